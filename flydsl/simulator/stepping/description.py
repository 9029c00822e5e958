"""The state of a simulated workgroup, in words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

from flydsl.arch.launch_limits import Dim3
from flydsl.simulator.arrays import Array
from flydsl.simulator.program import Instruction, Program
from flydsl.simulator.stepping.wave_state import WaveState

_CONTEXT_LINES = 3


class Standing(Protocol):
    """A workgroup between two steps: that of a `Simulation` now, or a `Moment` of a recording. The names mean what they
    mean there."""

    @property
    def workgroup(self) -> Dim3: ...
    @property
    def kernel(self) -> str: ...
    @property
    def program(self) -> Program: ...
    @property
    def done(self) -> bool: ...
    @property
    def wave_count(self) -> int: ...
    @property
    def waves(self) -> tuple[WaveState, ...]: ...
    @property
    def current(self) -> tuple[int, ...]: ...
    @property
    def instruction(self) -> Instruction | None: ...
    @property
    def listing(self) -> tuple[Instruction, ...]: ...
    @property
    def changed(self) -> dict[int, tuple[str, ...]]: ...
    @property
    def lds(self) -> Array: ...
    @property
    def lds_touched(self) -> Array: ...
    def wave(self, number: int) -> WaveState: ...
    def where(self) -> str: ...


def description(at: Standing | Any) -> Iterator[str]:
    """The next instruction, its line of the source, and its neighbours in the listing."""
    head = f"{at.kernel}, workgroup {at.workgroup}"
    instruction = at.instruction
    if at.done:
        yield f"{head}: everything has run"
    elif instruction is None:
        barrier = at.listing[next((wave.pc for wave in at.waves if wave.at_barrier), 1) - 1]
        here = f" at {barrier.location}" if barrier.location else ""
        waits = any(wave.at_barrier for wave in at.waves)
        yield f"{head}: every wave waits at a barrier{here}" if waits else f"{head}: every wave has ended"
    else:
        here = f" at {instruction.location}" if instruction.location else ""
        yield f"{head}, {_wave_list(at.current)} of {at.wave_count}{here}"
        if instruction.location:
            yield from instruction.location.excerpt()
        first = max(instruction.index - _CONTEXT_LINES, 0)
        for near in at.listing[first : instruction.index + _CONTEXT_LINES + 1]:
            arrow = "->" if near is instruction else "  "
            yield f"{arrow} {near.listed.line:5d}  {near.listed.text}"


def _wave_list(waves: tuple[int, ...]) -> str:
    return f"wave {waves[0]}" if len(waves) == 1 else f"waves {', '.join(map(str, waves))}"
