"""A simulated workgroup between two steps: what can be seen of it, and the same in words."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

from flydsl.arch.launch_limits import Dim3
from flydsl.errors import OutOfRange
from flydsl.hsaco.variables import Variables
from flydsl.simulator.arrays import Array
from flydsl.simulator.decoding.program import Instruction, Program
from flydsl.simulator.dispatch import Dispatch
from flydsl.simulator.stepping.variables import VariableTable, VariableValue, variable_table
from flydsl.simulator.stepping.wave_state import WaveState

_CONTEXT_LINES = 3


class Standing(ABC):
    """A workgroup between two steps: that of a `Simulation` now, or a `Moment` of a recording.

    step_number: the position in the recording, if there is one: iterations of a loop differ in it.
    """

    workgroup: Dim3
    step_number: int | None = None

    @property
    @abstractmethod
    def kernel(self) -> str:
        """The name of the kernel that runs, or of the last one that ran."""

    @property
    @abstractmethod
    def program(self) -> Program:
        """The code that runs, or ran last."""

    @property
    @abstractmethod
    def done(self) -> bool:
        """True if everything has run."""

    @property
    @abstractmethod
    def wave_count(self) -> int:
        """The number of waves of the workgroup."""

    @property
    @abstractmethod
    def state(self) -> Any:
        """The registers and all else of the workgroup's waves, in place; more waves may follow them."""

    @property
    @abstractmethod
    def lds(self) -> Array:
        """The workgroup's LDS: (lds_bytes,) u8, a view."""

    @property
    @abstractmethod
    def lds_touched(self) -> Array:
        """The bytes of LDS read (0) and written (1) by what was done last: (2, lds_bytes) bool."""

    @property
    @abstractmethod
    def current(self) -> tuple[int, ...]:
        """The waves that continue next; empty if all wait at a barrier, or have ended."""

    @property
    @abstractmethod
    def changed(self) -> dict[int, tuple[str, ...]]:
        """The changes of what was done last, by wave: "s4", "v2", "a0", "vcc", "exec", "m0", "scc"."""

    @property
    @abstractmethod
    def launched(self) -> Dispatch:
        """The launch of the kernel that runs, or of the last one that ran."""

    @abstractmethod
    def described(self) -> Variables:
        """The variables of the source that the machine code is described with, for `variables`."""

    def variables(self, wave: int | None = None) -> VariableTable:
        """The variables of the source in a wave, before its next instruction; by default in the first that goes on.

        They are found by a second compilation, when first asked for. A variable is optimised out where no register has
        its value any more. Raises SimulatorError for code that came without its source.
        """
        if wave is None:
            wave = next(iter(self.current), 0)
        return variable_table(self.described(), self.launched, self.wave(wave))

    def variable(self, name: str, wave: int | None = None) -> VariableValue:
        """One of `variables`: `sim.variable("acc")[lane]`. Raises OutOfRange if there is none of that name."""
        return self.variables(wave).named(name)

    def type_of(self, wave: int, register: str) -> str:
        """The element type, by its name in MLIR, that the last instruction to write a register of a wave has computed:
        "v6", "a0", "s4". "" where that is not known: only a `Recording` knows it, of what it has recorded."""
        return ""

    def wave(self, number: int) -> WaveState:
        """One wave of the workgroup. IndexError if there is no such wave."""
        if not 0 <= number < self.wave_count:
            raise OutOfRange(
                f"workgroup {self.workgroup} has waves 0 to {self.wave_count - 1}, not {number}",
                hint="waves count from 0",
            )
        return WaveState(self.state, number)

    @property
    def waves(self) -> tuple[WaveState, ...]:
        """Every wave."""
        return tuple(map(self.wave, range(self.wave_count)))

    @property
    def listing(self) -> tuple[Instruction, ...]:
        """The program's instructions."""
        return self.program.instructions

    @property
    def instruction(self) -> Instruction | None:
        """The next instruction of the current waves."""
        current = self.current
        return self.listing[self.wave(current[0]).pc] if current else None

    def where(self) -> str:
        """The next instruction in words, with its neighbours in the listing and its source line."""
        return "\n".join(_description(self))

    __repr__ = where


def _description(at: Standing) -> Iterator[str]:
    head = f"{at.kernel}, workgroup {at.workgroup}"
    head += "" if at.step_number is None else f", step {at.step_number}"
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
