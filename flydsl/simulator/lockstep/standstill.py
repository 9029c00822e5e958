"""See that the waves of a lock-step machine only go round in loops until other processes write memory."""

from __future__ import annotations

from flydsl.simulator.memory.peers import Wait
from flydsl.simulator.waves import Waves

_RUNS = 8
"""Group runs between two looks, which take as long as many instructions."""


class Standstill:
    """Compares the state of all waves with an earlier one: where they are equal, only memory can let a wave go on.

    The earlier state is replaced less and less often, so that a loop of any number of runs is found.
    """

    def __init__(self, wait: Wait, waves: Waves) -> None:
        self._wait, self._waves = wait, waves
        self._runs = self._looks = 0
        self._replaced_after = 1
        self._is_still = False
        self._keep()

    def after_run(self) -> None:
        """After a group's run: if nothing moved since the earlier state, let other processes run."""
        self._runs += 1
        if self._runs % _RUNS:
            return
        self._looks += 1
        if self._state() == self._before:
            self._waves.executed[:] = self._executed  # what was executed meanwhile does not count
            self._is_still = True
            self._wait.pause()
        elif self._looks >= self._replaced_after:
            self._replace()

    def _replace(self) -> None:
        if not self._is_still:
            self._wait.go_on()
        self._replaced_after = 1 if self._is_still else 2 * self._replaced_after
        self._looks, self._is_still = 0, False
        self._keep()

    def _keep(self) -> None:
        self._before, self._executed = self._state(), self._waves.executed.copy()

    def _state(self) -> tuple[int, ...]:
        waves = self._waves
        parts = (waves.pc, waves.status, waves.scc, waves.sgpr, waves.vgpr)
        return tuple(hash(part.tobytes()) for part in parts)
