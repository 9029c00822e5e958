"""Rows of a matrix, shared by the threads of a wave or of a block: what every row-wise kernel is made of.

    row = x.row(tiling, number)                         # nothing is read yet
    largest = row.fold("max", -inf)                     # of all threads, in every thread
    row.map(lambda v: fx.exp2(v - largest)).store(y.row(...))

A lane moves `width` elements at a time, 16 bytes of the matrix's type; all threads of a row together a tile. The last
vectors are a tile with fewer lanes, and what is no whole vector a tile of single elements: so any N works, and none of
it takes a branch, as the row's buffer resource ends where the vectors end and lanes beyond it read 0 and write nothing.

Up to MAX_HELD columns a row is in registers from its first use on, and the tiles are unrolled. A longer one is read
again by each pass, in a loop over its tiles.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.expr import buffer_ops, const_expr, range_constexpr
from flydsl.expr.coop import combination, warp_size
from kernels.kernels_common import ceil_div, power_of_two, require, rounded
from kernels.launches import launch_some
from kernels.reduce import block_reduce, vector_reduce

WAVE = 64
BLOCK_THREADS = 256
MAX_THREADS = 1024
THREADS = (64, 128, 256, 512, 1024)
VECTOR_BYTES = 16
# Numbers of a row that a thread should have: few, as that leaves registers for eight waves per SIMD, and more waves
# have as many loads under way. A row of one wave needs no barrier, so a wave may have more.
FEW_PER_THREAD, MANY_PER_THREAD, WAVE_COLUMNS, FEW_THREADS = 4, 16, 256, 512
MAX_HELD = 65_536
MAX_COLUMNS = 131_072


@dataclass(frozen=True)
class Tile:
    """Columns `first` + `width` * thread on, for the threads below `lanes`. first may be a runtime number."""

    first: Any
    width: int
    lanes: int


@dataclass(frozen=True)
class Tiling:
    """The division of a row among threads. columns: N; width: elements that a lane moves at a time.

    threads: of one row; WAVE of them are a wave of the target, which on RDNA has 32 lanes.
    """

    columns: int
    width: int
    threads: int

    @classmethod
    def of(cls, columns: int, dtype: Any, threads: int | None = None, few_threads: int = FEW_THREADS) -> Tiling:
        """The tiling of rows of `columns` elements. threads: of one row, a power of two from 64 to 1024.

        few_threads: the most threads while each has few numbers.
        """
        fits = type(columns) is int and 1 <= columns <= MAX_COLUMNS
        require(fits, f"rows of {columns!r} elements", f"an integer from 1 to {MAX_COLUMNS}")
        if threads is None:
            few, many = (power_of_two(ceil_div(columns, each)) for each in (FEW_PER_THREAD, MANY_PER_THREAD))
            threads = min(max(min(few, few_threads), many, WAVE), MAX_THREADS) if columns > WAVE_COLUMNS else WAVE
        require(threads in THREADS, f"{threads} threads for a row", "a power of two from 64 to 1024")
        per_thread = power_of_two(ceil_div(columns, threads))
        return cls(columns, min(VECTOR_BYTES * 8 // int(dtype.width), per_thread), threads)

    @property
    def lanes(self) -> int:
        """Threads of a row on the target."""
        return warp_size() if self.threads == WAVE else self.threads

    @property
    def rows(self) -> int:
        """Rows of a block."""
        return BLOCK_THREADS // self.lanes if self.threads == WAVE else 1

    @property
    def vectors(self) -> int:
        """Whole vectors of a row."""
        return self.columns // self.width

    @property
    def held(self) -> bool:
        """True if a row stays in registers."""
        return self.columns <= MAX_HELD

    @property
    def full(self) -> int:
        """Tiles to which every thread contributes a vector."""
        return self.vectors // self.lanes

    def full_tile(self, number: Any) -> Tile:
        """One of these tiles. number: may be one of run time."""
        return Tile(number * self.lanes * self.width, self.width, self.lanes)

    def last_tiles(self) -> Iterator[Tile]:
        """The vectors that are left, and the elements that are left."""
        done = self.full * self.lanes
        if self.vectors > done:
            yield Tile(done * self.width, self.width, self.vectors - done)
        if self.columns % self.width:
            yield Tile(self.vectors * self.width, 1, self.columns % self.width)

    @flyc.jit
    def walk(self, visit: Callable[[Tile, Any], Any], carried: Any) -> Any:
        """`carried = visit(tile, carried)` for each tile, unrolled for rows in registers."""
        if const_expr(self.held):
            for number in range_constexpr(self.full):
                carried = visit(self.full_tile(number), carried)
        else:
            for number in range(self.full):
                carried = visit(self.full_tile(number), carried)
        for tile in self.last_tiles():
            carried = visit(tile, carried)
        return carried

    def launch(self, kernel: Any, m: Any, stream: Any) -> None:
        """Launch a kernel for m rows, inside a launcher."""
        launch_some(kernel, m, (m + self.rows - 1) // self.rows, self.rows * self.lanes, stream)

    def place(self) -> tuple[Any, Any]:
        """(row, thread in it) of the calling thread; the row is a scalar."""
        thread = fx.thread_idx.x
        if self.rows == 1:
            return fx.block_idx.x, thread
        return fx.block_idx.x * self.rows + fx.rocdl.readfirstlane(thread // self.lanes), thread % self.lanes


def row_resource(tensor: fx.Tensor, row: Any, size_bytes: Any = None) -> Any:
    """The buffer resource of a row of a matrix, which all lanes of a wave share; of the whole tensor without a row."""
    element_bytes = tensor.dtype.width // 8
    start = None if row is None else fx.Int64(row) * (fx.Int64(fx.get_scalar(tensor.stride[0])) * element_bytes)
    return buffer_ops.create_buffer_resource(tensor, num_records_bytes=size_bytes, base_byte_offset=start)


class RowMemory:
    """A row of a matrix, or a vector that all rows share, in global memory.

    row: None for a vector. packed: numbers of the row in an element of the matrix, two where each has 4 bits.
    """

    def __init__(self, tensor: fx.Tensor, tiling: Tiling, row: Any = None, packed: int = 1) -> None:
        layout: Any = tensor.type.layout
        side_by_side = layout.stride[-1] == 1 or tiling.columns == 1
        require(side_by_side, f"rows of {tensor.type}", "elements of a row lie side by side: x.contiguous()")
        self.tiling, self.dtype = tiling, tensor.dtype
        self.bytes = self.dtype.width // 8
        self.packed = packed
        of_vectors, of_all = (n // packed * self.bytes for n in (tiling.vectors * tiling.width, tiling.columns))
        self.vectors = row_resource(tensor, row, of_vectors)
        self.elements = row_resource(tensor, row, of_all) if tiling.columns % tiling.width else None

    def _place(self, tile: Tile) -> tuple[Any, Any, Any]:
        """(resource, offset, soffset in bytes) of a lane's elements of a tile."""
        resource = self.vectors if tile.width == self.tiling.width else self.elements
        offset = self.tiling.place()[1] * (tile.width // self.packed)
        return resource, offset, tile.first * self.bytes // self.packed

    def load(self, tile: Tile) -> Any:
        """A lane's elements of a tile, a vector; 0 beyond the row."""
        resource, offset, soffset = self._place(tile)
        loaded = buffer_ops.buffer_load(resource, offset, tile.width, self.dtype, soffset_bytes=soffset)
        return loaded if tile.width > 1 else fx.Vector.from_elements([loaded])

    def store(self, tile: Tile, values: Any) -> None:
        """Write a lane's elements of a tile, a vector of the memory's type; nothing beyond the row."""
        resource, offset, soffset = self._place(tile)
        buffer_ops.buffer_store(values, resource, offset, soffset_bytes=soffset)

    def row(self) -> Row:
        """Its numbers in f32."""
        return Row(self.tiling, lambda tile: self.load(tile).to(fx.Float32))


class Row:
    """A row of numbers, a function of its tiles. What a tile has is computed once where rows are in registers."""

    def __init__(self, tiling: Tiling, at: Callable[[Tile], Any]) -> None:
        self.tiling, self._at = tiling, at
        self._known: dict[Tile, Any] = {}

    def at(self, tile: Tile) -> Any:
        """A lane's numbers of a tile, a vector."""
        if not self.tiling.held:
            return self._at(tile)
        if tile not in self._known:
            self._known[tile] = self._at(tile)
        return self._known[tile]

    def map(self, function: Callable[..., Any], *others: Row) -> Row:
        """The row of `function(numbers, numbers of the others)`; it takes and gives vectors."""
        return Row(self.tiling, lambda tile: function(self.at(tile), *(other.at(tile) for other in others)))

    def filled(self, value: float) -> Row:
        """The row with `value` in the places of a tile that are beyond the row."""

        def at(tile: Tile) -> Any:
            numbers = self.at(tile)
            if tile.lanes == self.tiling.lanes:
                return numbers
            inside = self.tiling.place()[1] < tile.lanes
            return inside.select(numbers, fx.full_like(numbers, value))

        return Row(self.tiling, at)

    def fold(
        self, op: Any, step: Callable[[Any, Any], Any] | None = None, start: float = 0, dtype: Any = fx.Float32
    ) -> Any:
        """All numbers of the row combined, in every thread.

        op: as of `fx.coop.warp_reduce`. step: (so far, numbers) -> so far, for a thread; by default op.
        start: what op leaves as it is. dtype: of the numbers.
        """
        combine = combination(op)
        step = step or combine
        width = self.tiling.width

        def visit(tile: Tile, totals: Any) -> Any:
            wide, single = totals
            if tile.width == width:
                return step(wide, self.at(tile)), single
            return wide, step(single, self.at(tile))

        totals = tuple(fx.full(n, start, dtype) for n in (width, 1))
        wide, single = self.tiling.walk(visit, totals)
        total = vector_reduce(wide, op)
        if self.tiling.columns % width:
            total = combine(total, single[0])
        return block_reduce(total, op, self.tiling.lanes)

    def store(self, memory: RowMemory) -> Row:
        """Write the row, each tile when the next one is known, so that its loads are on their way.

        Returns the row that was written: the registers, or what to read again, as it may have been written in place.
        """
        pending: list[tuple[Tile, Any]] = []

        def visit(tile: Tile, carried: Any) -> Any:
            numbers = self.at(tile)
            numbers = rounded(numbers, memory.dtype) if numbers.dtype is fx.Float32 else numbers
            if self.tiling.held:
                pending.append((tile, numbers))
                if len(pending) == 1:
                    return carried
                tile, numbers = pending.pop(0)
            memory.store(tile, numbers)
            return carried

        self.tiling.walk(visit, fx.Int32(0))
        for tile, numbers in pending:
            memory.store(tile, numbers)
        return self if self.tiling.held else memory.row()
