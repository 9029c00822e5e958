"""The execution of a kernel: workgroup after workgroup, the waves of each together, or taking turns if they part."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import Context, copy_context
from dataclasses import dataclass, field
from functools import partial
from itertools import product
from typing import Any, ClassVar

import numpy as np
from mlir import ir

from flydsl.arch import Arch
from flydsl.dialect.context import context
from flydsl.dialect.leaves import dynamic_leaves, with_leaves
from flydsl.dialect.types import MemRefType, PointerType, fly_type
from flydsl.expr.tracing.executing import executing
from flydsl.interpreter import post_mortem
from flydsl.interpreter.control_flow import TWINS, choose
from flydsl.interpreter.elements import Array, dtype_of, element_name, rounded
from flydsl.interpreter.execution import HOST, UNKNOWN, Execution, Position, WavesPart
from flydsl.interpreter.leaves import LaneLeaf
from flydsl.interpreter.meanings.fly import LaneTensor
from flydsl.interpreter.memory import GlobalSpace, Pointer, SharedSpace, Write, watching
from flydsl.interpreter.nans import look_at
from flydsl.interpreter.turns import Turns, Wave
from flydsl.simulator import Memory
from flydsl.simulator.checks import NAN, enabled_checks
from flydsl.simulator.lockstep.checked.nans import NanHistory
from flydsl.system.interrupts import holding

Body = Callable[[Callable[[ir.Block], Any]], None]
"""Traces a kernel's body once. What it is given makes the execution of the function whose block has been made."""

_MOST_ITERATIONS_TOGETHER = 20_000
_MOST_FAILED = 4


class Interpretation(Execution):
    """An execution that a kernel's own source runs in."""

    twins: ClassVar[Mapping[type[Any], type[Any]]] = TWINS

    def choose(self, condition: Any, then: Callable[[], Any], otherwise: Callable[[], Any]) -> Any:
        """The value of one of two functions in each lane."""
        return choose(self, condition, then, otherwise)


_failed: list[tuple[Execution, Context]] = []
"""Executions that ended in an error, which a debugger may still look at, and what keeps their modules alive."""


def execution_of(value: Any) -> Execution | None:
    """The execution that has made a value: the current one, or one that has failed. None for what is no value."""
    if not isinstance(value, ir.Value):
        return None
    current = executing.get()
    if isinstance(current, Execution) and current.values.of(value) is not UNKNOWN:
        return current
    failed = (x for x, _ in reversed(_failed))
    return next((x for x in failed if x.values.of(value) is not UNKNOWN and _is_in_module(value, x)), None)


def _is_in_module(value: ir.Value, x: Execution) -> bool:
    """True if a value is of the module that an execution was traced into.

    Contents are kept by addresses: a value of a later trace may stand where one stood that has been erased.
    """
    return _outermost(value.owner) == _outermost(x.block)


def _outermost(owner: Any) -> ir.Operation:
    op = owner.owner if isinstance(owner, ir.Block) else owner
    while (parent := op.parent) is not None:
        op = parent
    return op.operation


@contextmanager
def within(x: Interpretation) -> Iterator[None]:
    """Execute what is traced in the `with` block."""
    before = post_mortem.failures()
    with holding(executing, x):
        try:
            with np.errstate(all="ignore"):
                yield
                x.settle()
        except WavesPart:
            raise
        except BaseException as error:
            _failed.append((x, copy_context()))
            del _failed[:-_MOST_FAILED]
            if isinstance(error, Exception) and post_mortem.failures() == before:  # the innermost one
                post_mortem.keep(x)
            raise


def watched(address: int, size: int) -> AbstractContextManager[list[Write]]:
    """Note who writes bytes at an address of the host, in the launches that are interpreted in a `with` block."""

    def describe(lane: int) -> Write:
        x = executing.get()
        assert isinstance(x, Execution)
        return x.write_of(lane)

    return watching(address, size, describe)


def host_execution(arch: Arch, memory: Memory, block: ir.Block) -> Interpretation:
    """The execution of a launcher's body: one lane."""
    shared = SharedSpace(0, 0)
    return Interpretation(arch, HOST, GlobalSpace(memory), shared, block, 1, is_host=True)


def bind_host(x: Execution, block: ir.Block, flat: Sequence[Any]) -> None:
    """Give the launcher's parameters what its caller passes, as numbers: of a tensor its address, sizes and strides."""
    given = iter(flat)
    for argument in block.arguments:
        x.values.set(argument, _taken(x, argument.type, given))


def _taken(x: Execution, kind: ir.Type, given: Iterator[Any]) -> Any:
    fly = fly_type(kind)
    if isinstance(fly, PointerType):
        return Pointer(x.memory, np.array([next(given)], np.int64))
    if isinstance(fly, MemRefType):
        pointer = Pointer(x.memory, np.array([next(given)], np.int64))
        symbols = dynamic_leaves(fly.layout)
        leaves = [LaneLeaf(np.array([next(given)]), symbol.width, symbol.divisibility) for symbol in symbols]
        return LaneTensor(fly, pointer, 0, _with_leaves(fly.layout, leaves))
    if isinstance(kind, ir.IntegerType | ir.FloatType | ir.IndexType):
        return _number(next(given), element_name(kind))
    return next(given)


def _number(value: Any, element: str) -> Array:
    dtype = dtype_of(element)
    if dtype.kind == "i":
        bits = 8 * dtype.itemsize
        value = int(value) & ((1 << bits) - 1)
        value -= (value >> (bits - 1)) << bits
        return np.array([value], dtype)
    return rounded(np.array([value], np.bool_ if dtype.kind == "b" else np.float64), element)


def _with_leaves(layout: Any, leaves: list[Any]) -> Any:
    from flydsl.layout import make_layout

    count = len(dynamic_leaves(layout.extents))
    return make_layout(with_leaves(layout.extents, leaves[:count]), with_leaves(layout.strides, leaves[count:]))


@dataclass
class KernelRun:
    """A launch of a kernel. operands: of the kernel, as the launcher has them. printed: (workgroup, thread, line)."""

    arch: Arch
    memory: GlobalSpace
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    dynamic_lds_bytes: int | None
    operands: Sequence[Any]
    body: Body
    printed: list[tuple[tuple[int, ...], tuple[int, ...], str]] = field(default_factory=list)

    def run(self) -> None:
        """Run all workgroups. Where waves wait for one another, all begin again, in turns."""
        before = [
            (buffer.data, buffer.data.copy()) for buffer in self.memory.memory.buffers().values() if buffer.writable
        ]
        self.memory.nans = nans = NanHistory(self.memory.memory) if enabled_checks() >= NAN else None
        try:
            for workgroup in self._workgroups():
                self._together(workgroup)
        except WavesPart:
            for data, content in before:
                np.copyto(data, content)
            self.printed.clear()
            self._in_turns()
        if nans is not None:
            nans.check()

    def _workgroups(self) -> Iterator[tuple[int, int, int]]:
        for z, y, x in product(*(range(extent) for extent in reversed(self.grid))):
            yield x, y, z

    def _shared(self) -> SharedSpace:
        return SharedSpace(self.dynamic_lds_bytes, self.arch.lds_bytes_per_workgroup)

    def _execution(self, workgroup: tuple[int, int, int], shared: SharedSpace, block: ir.Block, **options: Any) -> Any:
        position, nans = Position(self.grid, self.block, workgroup), self.memory.nans
        if nans is not None:
            options["at_result"] = partial(look_at, history=nans)
        lanes = options.pop("lanes", position.lanes)
        x = Interpretation(self.arch, position, self.memory, shared, block, lanes, **options)
        for argument, held in zip(block.arguments, self.operands, strict=True):
            x.values.set(argument, held)
        return x

    def _together(self, workgroup: tuple[int, int, int]) -> None:
        """Run a workgroup as one execution."""
        iterations = 0

        def turn(waits: bool, idle: bool) -> None:
            nonlocal iterations
            iterations += waits
            if idle or iterations > _MOST_ITERATIONS_TOGETHER:
                raise WavesPart("a loop may wait for another wave or workgroup")

        made: list[Interpretation] = []

        def execution(block: ir.Block) -> Interpretation:
            made.append(self._execution(workgroup, self._shared(), block, at_turn=turn))
            return made[0]

        self.body(execution)
        self._take_printed(made[0])

    def _take_printed(self, x: Execution) -> None:
        for lane, line in x.printed:
            thread = x.position.thread(lane)
            self.printed.append((x.position.workgroup[::-1], thread[::-1], line))

    # --- in turns ----------------------------------------------------------------------------------------------------

    def _in_turns(self) -> None:
        waves = []
        lanes, size = Position(self.grid, self.block, (0, 0, 0)).lanes, self.arch.wave_size
        for group, workgroup in enumerate(self._workgroups()):
            shared = self._shared()
            for first in range(0, lanes, size):
                name = f"wave {first // size} of workgroup {workgroup}"
                waves.append(Wave(name, group, self._wave(workgroup, shared, first, min(size, lanes - first))))
        self._turns = Turns(waves)
        self._turns.run()

    def _wave(
        self, workgroup: tuple[int, int, int], shared: SharedSpace, first: int, lanes: int
    ) -> Callable[[Wave], None]:
        def run(wave: Wave) -> None:
            made: list[Execution] = []

            def execution(block: ir.Block) -> Execution:
                x = self._execution(
                    workgroup, shared, block, lanes=lanes, first_lane=first,
                    at_barrier=lambda: self._turns.barrier(wave),
                    at_turn=lambda waits, idle: self._turns.turn(wave, waits, idle),
                )  # fmt: skip
                made.append(x)
                return x

            with context(), ir.Location.unknown():
                self.body(execution)
            self._take_printed(made[0])

        return run

    def lines(self) -> str:
        """The printed lines, ordered by workgroup, thread and time."""
        return "".join(line for _, _, line in sorted(self.printed, key=lambda record: record[:2]))
