"""The execution of operations on arrays of lanes, as soon as they are traced.

A value is an array whose first axis is the lanes of a workgroup; it has one entry where all lanes have the same. Where
control flow diverges, a mask says which lanes are active: they store, and count in votes; what an operation computes
in the others is never seen.

Control flow of the kernel's own source is Python's, under masks (`flydsl.interpreter.control_flow`). An `scf` operation
that a program or a function of `fx` builds itself is executed when its regions are complete, which is when something
follows it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from mlir import ir

from flydsl.arch import Arch
from flydsl.dialect.inference import algebra_value
from flydsl.dialect.leaves import is_static
from flydsl.dialect.location import source_location
from flydsl.dialect.ops import printed_name
from flydsl.dialect.types import (
    ComposedLayoutType,
    CoordSwizzleType,
    IntTupleType,
    LayoutType,
    MemRefType,
    PointerType,
    SwizzleType,
    TileType,
    fly_type,
)
from flydsl.errors import SimulatorError, TraceError
from flydsl.interpreter.elements import Array, dtype_of, element_name, shape_of
from flydsl.interpreter.memory import Fault, GlobalSpace, Outside, SharedSpace, Write
from flydsl.simulator.errors import Access, MemoryFault

Meaning = Callable[..., Any]
MEANINGS: dict[str, Meaning] = {}
"""MLIR's name of an operation -> what it does: a function of the execution, the operation, and its operands."""
PREFIXES: dict[str, Meaning] = {}
"""Beginnings of names of operations that have one meaning."""


def means(*names: str) -> Callable[[Meaning], Meaning]:
    """Decorate the meaning of operations. A name that ends in `*` is a beginning."""

    def decorate(function: Meaning) -> Meaning:
        for name in names:
            if name.endswith("*"):
                PREFIXES[name[:-1]] = function
            else:
                MEANINGS[name] = function
        return function

    return decorate


@dataclass(frozen=True)
class Position:
    """The place of a workgroup. grid, block: sizes along x, y, z; workgroup: its number along each."""

    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    workgroup: tuple[int, int, int]

    @property
    def lanes(self) -> int:
        """The threads of the workgroup."""
        x, y, z = self.block
        return x * y * z

    def thread(self, lane: int) -> tuple[int, int, int]:
        """A lane's number along x, y and z."""
        x, y, _ = self.block
        return lane % x, lane // x % y, lane // (x * y)


HOST = Position((1, 1, 1), (1, 1, 1), (0, 0, 0))


class NotInterpreted(TraceError):
    """An operation that the interpreter does not have."""


class WavesPart(Exception):
    """Raised where the waves of a workgroup diverge: from there on they are executed one by one, taking turns."""


class Values(dict[int, Any]):
    """Contents of values, by their hashes, which are their addresses: `==` of a value may compare on the device."""

    def of(self, value: ir.Value) -> Any:
        """Contents of a value, or `UNKNOWN`."""
        return self.get(ir.Value.__hash__(value), UNKNOWN)

    def set(self, value: ir.Value, held: Any) -> None:
        """Note what a value holds."""
        self[ir.Value.__hash__(value)] = held


UNKNOWN = object()


@dataclass
class Execution:
    """The state of a workgroup, or of a wave of it, or of a launcher.

    first_lane: of a wave that is executed by itself. mask: the active lanes. printed: (thread, line) in order.
    storages: those in LDS, by symbol: the line that made one, and how many this line had made before. stores: how many
    so far. at_barrier: called where all waves of the workgroup must arrive; None if they are executed together.
    at_turn: called after each iteration of a loop. at_result: called with each operation, the contents of its operands,
    and its result.
    """

    arch: Arch
    position: Position
    memory: GlobalSpace
    shared: SharedSpace
    block: ir.Block
    lanes: int
    first_lane: int = 0
    is_host: bool = False
    at_barrier: Callable[[], None] | None = None
    at_turn: Callable[[bool, bool], None] | None = None
    at_result: Callable[[Execution, ir.Operation, list[Any], Any], None] | None = None
    mask: Array = field(init=False)
    values: Values = field(default_factory=lambda: Values())
    printed: list[tuple[int, str]] = field(default_factory=list)
    storages: dict[str, tuple[str, int]] = field(default_factory=dict)
    stores: int = 0
    _pending: list[ir.Operation] = field(default_factory=list)
    _location: ir.Location | None = None
    _operation: str = ""

    def __post_init__(self) -> None:
        self.mask = np.ones(self.lanes, np.bool_)

    @property
    def wave_size(self) -> int:
        """Lanes of a wave."""
        return self.arch.wave_size

    def lane_numbers(self) -> Array:
        """The number of each lane in the workgroup."""
        return np.arange(self.first_lane, self.first_lane + self.lanes)

    # --- operations --------------------------------------------------------------------------------------------------

    def execute(self, op: ir.Operation) -> None:
        """Execute an operation that has just been traced, if it is one of the function's own block."""
        op = op.operation
        if op.block != self.block:
            if op.name in _STORAGES:
                self._note_storage(op)
            return  # of a region, which is executed as a whole, or of the module
        self.settle()
        if len(op.regions):
            self._pending.append(op)
        else:
            self.run(op)

    def _note_storage(self, op: ir.Operation) -> None:
        """Note a storage in LDS that this execution has made. Waves that take turns each make the same ones."""
        made_here = sum(place == str(op.location) for place, _ in self.storages.values())
        self.storages[ir.StringAttr(op.attributes["sym_name"]).value] = str(op.location), made_here

    def settle(self) -> None:
        """Execute the operations with regions that wait for their end."""
        while self._pending:
            self.run(self._pending.pop(0))

    def run(self, op: ir.Operation) -> None:
        """Execute an operation."""
        meaning = MEANINGS.get(op.name) or _by_prefix(op.name)
        if meaning is None:
            raise self._missing(op)
        self._location, self._operation = op.location, printed_name(op.name)
        operands = [self.of(value) for value in op.operands]
        made = meaning(self, op, *operands)
        if self.at_result is not None:
            self.at_result(self, op, operands, made)
        results = op.results
        if len(results) == 1:
            self.values.set(results[0], made)
        else:
            for result, value in zip(results, made or (), strict=True):
                self.values.set(result, value)

    def run_block(self, block: ir.Block, arguments: Sequence[Any] = ()) -> list[Any]:
        """Execute a region's block, and return what its terminator gives."""
        for argument, value in zip(block.arguments, arguments, strict=True):
            self.values.set(argument, value)
        for view in block.operations:
            op = view.operation
            if op.name in _TERMINATORS:
                return [self.of(value) for value in op.operands]
            self.run(op)
        return []

    def of(self, value: ir.Value) -> Any:
        """Contents of a value."""
        found = self.values.of(value)
        if found is UNKNOWN and self._pending:
            self.settle()
            found = self.values.of(value)
        if found is UNKNOWN:
            found = self.of_type(value)
            if found is UNKNOWN:
                found = self._of_maker(value)
            self.values.set(value, found)
        return found

    def _of_maker(self, value: ir.Value) -> Any:
        """Contents of a value whose operation stands elsewhere, such as in the module."""
        if isinstance(value.owner, ir.Block):
            raise SimulatorError("this value was made outside the function that is interpreted", at=self.place())
        self.run(value.owner.operation)
        return self.values.of(value)

    @staticmethod
    def of_type(value: ir.Value) -> Any:
        """Contents of a value whose type says them in full; of an atom or a tiling, the values set on it by name."""
        kind = fly_type(value.type)
        if isinstance(kind, _ALGEBRA_TYPES):
            described = algebra_value(kind)
            return described if is_static(described) else UNKNOWN
        return UNKNOWN if kind is None or isinstance(kind, PointerType | MemRefType) else {}

    def _missing(self, op: ir.Operation) -> TraceError:
        return NotInterpreted(
            f"the interpreter has no {printed_name(op.name)}",
            at=source_location(op.location),
            hint="run the kernel compiled; with the simulator, sim.explore() shows registers by instruction",
        )

    # --- lanes -------------------------------------------------------------------------------------------------------

    @contextmanager
    def only(self, mask: Array) -> Iterator[None]:
        """Execute the `with` block with these lanes active."""
        before, self.mask = self.mask, mask
        try:
            yield
        finally:
            self.mask = before

    def spread(self, value: Array) -> Array:
        """A value with an entry for each lane."""
        return value if len(value) == self.lanes else np.broadcast_to(value, (self.lanes, *value.shape[1:]))

    def by_waves(self, value: Array) -> Array:
        """A value as (waves, lanes of a wave, ...); lanes that the last wave does not have are 0."""
        size = self.wave_size
        whole = -(-self.lanes // size) * size
        value = self.spread(value)
        if whole != self.lanes:
            value = np.concatenate([value, np.zeros((whole - self.lanes, *value.shape[1:]), value.dtype)])
        return value.reshape(-1, size, *value.shape[1:])

    def by_lanes(self, value: Array) -> Array:
        """A value as lanes, of one as (waves, lanes of a wave, ...)."""
        return value.reshape(-1, *value.shape[2:])[: self.lanes]

    def spread_one(self, value: Array) -> Array:
        """One lane's value, given to all."""
        return np.broadcast_to(value, (self.lanes, *value.shape[1:]))

    def zero(self, kind: ir.Type) -> Any:
        """A value of a type that is never read."""
        if fly_type(kind) is None and isinstance(kind, ir.VectorType | ir.IntegerType | ir.FloatType | ir.IndexType):
            return np.zeros((1, *shape_of(kind)), dtype_of(element_name(kind)))
        return None

    def turn(self, *, waits: bool = False, idle: bool = False) -> None:
        """Note an iteration of a loop.

        waits: the loop may be waiting for another wave; where waves take turns, it is the other's turn then. idle: the
        iteration has changed nothing, so the loop is waiting.
        """
        if self.at_turn is not None:
            self.at_turn(waits, idle)

    def any_active(self, condition: Array) -> bool:
        """True if a condition holds in an active lane."""
        return bool((self.mask & condition).any())

    # --- memory ------------------------------------------------------------------------------------------------------

    def place(self) -> Any:
        """The place in the source of the operation that is executed."""
        return None if self._location is None else source_location(self._location)

    def write_of(self, lane: int) -> Write:
        """A write of a lane by the operation that is executed."""
        number = lane + self.first_lane
        return Write(number, self.position.thread(number), self.position.workgroup, self.place())

    @property
    def fault(self) -> Fault:
        """The function that makes the error for a lane's access."""

        def make(lane: int, what: Outside) -> MemoryFault:
            number = lane + self.first_lane
            wave, buffer = number // self.wave_size, what.buffer
            access = Access(
                is_write=what.is_write,
                access_bytes=what.size,
                address=what.address,
                space=what.space,
                buffer=None if buffer is None else buffer.name,
                label="" if buffer is None else buffer.label,
                element_index=None if buffer is None else buffer.element_index(what.address),
                workgroup=self.position.workgroup,
                wave=wave,
                lane=number % self.wave_size,
                thread=self.position.thread(number),
            )
            hint = "put breakpoint() before this line: there the index shows its value in each lane"
            return MemoryFault.of_operation(what.problem, access, self._operation, self.place(), hint)

        return make


_ALGEBRA_TYPES = (IntTupleType, LayoutType, ComposedLayoutType, SwizzleType, CoordSwizzleType, TileType)
_STORAGES = ("llvm.mlir.global", "memref.global")
_TERMINATORS = ("scf.yield", "scf.condition", "scf.reduce.return", "gpu.return", "func.return")


def _by_prefix(name: str) -> Meaning | None:
    return next((meaning for start, meaning in PREFIXES.items() if name.startswith(start)), None)
