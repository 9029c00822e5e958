"""Observers of one's own: Python functions that are told what launches do, with arrays over waves and lanes.

    class Range(Observer):
        classes = ("VALU",)
        lowest = numpy.inf

        def instruction(self, executed):
            if executed.instruction.mnemonic.endswith("_f32") and executed.results:
                self.lowest = min(self.lowest, executed.results[0].view("f4")[executed.active].min())

    with observing(Range()) as found:
        launcher(A, B, C)
    print(found.lowest)

The lock-step backend executes these launches, as many waves together as stand at the same instruction; an observer that
has no method of a kind costs nothing for it. What observers look at they must not change: arrays are copies, or cannot
be written. An exception that one raises ends the launch. Launches on a GPU are not observed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from flydsl.errors import ArgumentError, did_you_mean
from flydsl.simulator.counters.instruction_class import CLASSES
from flydsl.system.interrupts import holding

if TYPE_CHECKING:
    from flydsl.arch.launch_limits import Dim3
    from flydsl.simulator.arrays import Array
    from flydsl.simulator.decoding.program import Instruction, Program


@dataclass(frozen=True)
class ObservedLaunch:
    """A launch that begins. grid counts workgroups, block threads."""

    kernel: str
    grid: Dim3
    block: Dim3
    program: Program


@dataclass(frozen=True)
class ObservedInstruction:
    """An instruction that some waves have executed together.

    workgroups: (n, 3), of each wave; waves: (n,) its number in the workgroup. active: (n, lanes) bool, the lanes that
    EXEC leaves on when it begins. results: the dwords that it has written to registers, first to last: (n, lanes)
    uint32 of a vector register, (n, 1) of a scalar one; `view("f4")` makes floats of them.
    """

    instruction: Instruction
    workgroups: Array
    waves: Array
    active: Array
    results: tuple[Array, ...]


@dataclass(frozen=True)
class ObservedAccess:
    """Accesses of lanes to one memory by one instruction. All arrays are (n,), one place for each lane that accesses.

    space: "global", "lds" or "scratch". addresses: of global memory, offsets in the others; each of size_bytes.
    buffer, elements: the name of the tensor that it is in and the numbers of the elements there, None for other memory.
    workgroups: (n, 3). waves: their numbers in the workgroup. lanes: 0 for what a wave accesses once.
    """

    instruction: Instruction
    is_write: bool
    space: str
    addresses: Array
    size_bytes: int
    buffer: str | None
    elements: Array | None
    workgroups: Array
    waves: Array
    lanes: Array


class Observer:
    """The base class of observers: each method is told of what its name says, and does nothing here.

    classes: of the instructions that `instruction` is told of (`counters.instruction_class.CLASSES`).
    """

    classes: Sequence[str] = CLASSES

    def launch(self, launch: ObservedLaunch) -> None:
        """A kernel begins."""

    def instruction(self, executed: ObservedInstruction) -> None:
        """Waves have executed an instruction."""

    def access(self, access: ObservedAccess) -> None:
        """Lanes are about to access memory; the access is in bounds. Tiles of gfx1250 are left out."""

    def barrier(self, workgroups: Array) -> None:
        """Workgroups, (n, 3), have met at their barriers and go on."""

    def overrides(self, name: str) -> bool:
        """True if a subclass has a method of its own of that name."""
        return getattr(type(self), name) is not getattr(Observer, name)


Observers = TypeVar("Observers", bound=Observer)
_observers: ContextVar[tuple[Observer, ...]] = ContextVar("flydsl_observers", default=())


@contextmanager
def observing(observer: Observers) -> Iterator[Observers]:
    """Tell an observer of the launches in the block, which gets it. Blocks nest.

    Raises ArgumentError for what is no observer, and for classes that do not exist. A launch that is also counted,
    timed or checked raises LaunchError.
    """
    given: Any = observer
    if not isinstance(given, Observer):
        raise ArgumentError(
            f"an observer must be an Observer, got a {type(given).__name__}",
            hint="pass an object of a subclass of Observer",
        )
    for name in observer.classes:
        if name not in CLASSES:
            raise ArgumentError(f"there is no class {name!r} of instructions", hint=did_you_mean(name, CLASSES))
    observers: tuple[Observer, ...] = (*_observers.get(), observer)
    with holding(_observers, observers):
        yield observer


def current_observers() -> tuple[Observer, ...]:
    """The observers of launches now, outermost first."""
    return _observers.get()
