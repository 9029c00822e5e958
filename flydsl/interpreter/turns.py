"""Waves that take turns: each is a thread, and one of them runs at a time.

A wave runs until it ends, waits at its workgroup's barrier, or has gone around a loop that may wait for another wave.
Whoever runs holds the lock of the MLIR context, as everyone does who builds IR; the thread that launched gives it away.
"""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from flydsl.dialect.context import lock
from flydsl.errors import SimulatorError

_ITERATIONS_OF_A_TURN = 4
_IDLE_TURNS_OF_A_WAVE = 8
_MOST_ITERATIONS = 1_000_000


class _Stopped(BaseException):
    """Ends a wave whose launch has failed in another one."""


@dataclass
class Wave:
    """A wave. name: for people. group: of those that meet at a barrier. run: its program."""

    name: str
    group: int
    run: Callable[[Wave], None]
    waits: bool = False
    ended: bool = False
    iterations: int = 0
    turn: threading.Condition = field(default_factory=lambda: threading.Condition(lock), compare=False)


class Turns:
    """The turns of the waves of a launch."""

    def __init__(self, waves: Sequence[Wave]) -> None:
        self._waves = list(waves)
        self._current = self._waves[0]
        self._failed: BaseException | None = None
        self._ended = threading.Condition(lock)
        self._threads = len(self._waves)
        self._idle_turns = 0

    def run(self) -> None:
        """Run all waves to their end. Raises the error of the first one that fails."""
        with lock:
            for wave in self._waves:
                run = contextvars.copy_context().run
                threading.Thread(target=run, args=(self._of, wave), name=wave.name, daemon=True).start()
            try:
                self._ended.wait_for(lambda: not self._threads)
            except BaseException as error:  # a Ctrl-C, mostly
                self._fail(error)
                raise
        if self._failed is not None:
            raise self._failed

    def _of(self, wave: Wave) -> None:
        with lock:
            try:
                self._wait_for_turn(wave)
                wave.run(wave)
                wave.ended = True
                self._idle_turns = 0
                self._open_barrier(wave.group)
                self._next(wave)
            except _Stopped:
                pass
            except BaseException as error:  # noqa: BLE001 - raised again in the thread that waits for all
                self._fail(error)
            self._threads -= 1
            self._ended.notify()

    def _fail(self, error: BaseException) -> None:
        """Have every wave end where it waits."""
        self._failed = self._failed or error
        for wave in self._waves:
            wave.turn.notify()

    def barrier(self, wave: Wave) -> None:
        """Wait until all waves of the group that have not ended are here."""
        wave.waits = True
        self._idle_turns = 0
        self._open_barrier(wave.group)
        while wave.waits:
            self._pass_on(wave)

    def turn(self, wave: Wave, waits: bool, idle: bool) -> None:
        """Note an iteration of a loop. waits: for another wave, perhaps; idle: it has changed nothing, so it does."""
        wave.iterations += 1
        if not idle:
            self._idle_turns = 0
        if idle or (waits and wave.iterations % _ITERATIONS_OF_A_TURN == 0):
            self._idle_turns += 1
            if self._idle_turns > _IDLE_TURNS_OF_A_WAVE * len(self._waves) or wave.iterations > _MOST_ITERATIONS:
                raise SimulatorError(
                    f"loops do not end: {self._standing()}",
                    hint="at a breakpoint in the loop, look at what it waits for; a compiled launch in "
                    'flydsl.simulator.checking("races") says who wrote that last, and who did not',
                )
            self._pass_on(wave)

    def _standing(self) -> str:
        running = [w.name for w in self._waves if not (w.waits or w.ended)]
        waiting = [w.name for w in self._waves if w.waits]
        goes = "goes" if len(running) == 1 else "go"
        return f"{', '.join(running)} {goes} around" + (f", {', '.join(waiting)} wait at a barrier" if waiting else "")

    def _open_barrier(self, group: int) -> None:
        others = [wave for wave in self._waves if wave.group == group and not wave.ended]
        if others and all(wave.waits for wave in others):
            for wave in others:
                wave.waits = False

    def _pass_on(self, wave: Wave) -> None:
        """Let another wave run, until it is this one's turn again."""
        self._next(wave)
        self._wait_for_turn(wave)

    def _wait_for_turn(self, wave: Wave) -> None:
        wave.turn.wait_for(lambda: self._current is wave or self._failed is not None)
        if self._failed is not None:
            raise _Stopped

    def _next(self, wave: Wave) -> None:
        at = self._waves.index(wave)
        for other in (*self._waves[at + 1 :], *self._waves[: at + 1]):
            if not (other.ended or other.waits):
                self._current = other
                other.turn.notify()
                return
        if any(other.waits for other in self._waves):
            self._fail(
                SimulatorError(
                    f"a barrier that not all waves of a workgroup reach: {self._standing()}",
                    hint="every wave must come to as many barriers as the others",
                )
            )
