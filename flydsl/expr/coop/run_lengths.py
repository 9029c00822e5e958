"""Runs as the items that they stand for: run-length decoding by a block."""

from __future__ import annotations

from enum import Enum
from typing import Any

from flydsl.dialect.location import argument_error
from flydsl.expr.coop.block_reductions import BlockScan, scan_memory
from flydsl.expr.coop.primitive import BlockPrimitive, array_of
from flydsl.expr.gpu import barrier
from flydsl.expr.numbers.operators import min
from flydsl.expr.numbers.vector_value import Vector
from flydsl.expr.numeric import Int32, Integer


class BlockRunLengthDecodeAlgorithm(Enum):
    """A scan of the lengths gives where runs begin; a binary search finds the run of each item."""

    SCAN = "scan"
    Scan = SCAN


class BlockRunLengthDecode(BlockPrimitive):
    """`BlockRunLengthDecode[dtype, threads, runs](values, lengths, storage=memory)`: `(items, offsets, total)`.

    Each thread has `runs` runs: a value, and how often it comes. Of the items of all runs, one after the other, thread
    t gets `decoded_items_per_thread`, from `offset + t * decoded_items_per_thread` on; offsets: the place of each in
    its run, -1 (of an unsigned type the largest number) where there is none and the item is `default`. total: the items
    of all runs. `[(value, offset), ...]` has a type of offsets, by default Int32.

    `init_with_run_lengths` and `init_with_run_offsets` give what decodes several windows: `.decode(...)`.
    """

    algorithms = BlockRunLengthDecodeAlgorithm
    has_items = True
    has_pairs = True

    @classmethod
    def _offset_dtype(cls) -> type[Integer]:
        dtype = Int32 if cls.value_dtype is None else cls.value_dtype
        if not issubclass(dtype, Integer):
            raise argument_error(f"the offsets of {cls.__name__} must be fx.Int32 or fx.Int64, got {dtype.__name__}")
        return dtype

    @classmethod
    def _fields(cls) -> dict[str, Any]:
        return {
            "values": array_of(cls.dtype, cls.tile_size()),
            "starts": array_of(cls._offset_dtype(), cls.tile_size()),
            "scan": scan_memory(cls._offset_dtype(), cls.block_threads),
        }

    def __new__(
        cls,
        values: Any,
        lengths: Any,
        *,
        storage: Any,
        decoded_items_per_thread: int = 1,
        offset: Any = 0,
        default: Any = 0,
    ) -> Any:
        decoder = cls.init_with_run_lengths(values, lengths, storage=storage)
        return decoder.decode(decoded_items_per_thread=decoded_items_per_thread, offset=offset, default=default)

    @classmethod
    def init_with_run_lengths(cls, values: Any, lengths: Any, *, storage: Any) -> RunLengthDecoder:
        """A decoder of runs of such lengths, none of which is negative."""
        dtype = cls._offset_dtype()
        counts = cls.items_of("lengths", lengths, dtype, cls.items_per_thread)
        scan: Any = BlockScan.__class_getitem__((dtype, cls.block_threads))
        held = storage.peek() if hasattr(storage, "peek") else storage
        starts, total = scan.exclusive_with_aggregate(Vector.from_elements(counts, dtype), "add", held.scan)
        return cls._decoder(values, list(starts), total, storage)

    @classmethod
    def init_with_run_offsets(cls, values: Any, offsets: Any, *, storage: Any, total: Any = None) -> RunLengthDecoder:
        """A decoder of runs that begin there, in order. total: where the last one ends, by default nowhere."""
        dtype = cls._offset_dtype()
        starts = cls.items_of("offsets", offsets, dtype, cls.items_per_thread)
        end = dtype(dtype.limits()[1] if total is None else total)
        return cls._decoder(values, starts, end, storage)

    @classmethod
    def _decoder(cls, values: Any, starts: list[Any], total: Any, storage: Any) -> RunLengthDecoder:
        items, places = cls.items_of("values", values, cls.dtype, cls.items_per_thread), cls.blocked(cls.thread())
        kept_values, kept_starts = cls.memory(storage, "values"), cls.memory(storage, "starts")
        for place, item, start in zip(places, items, starts, strict=True):
            kept_values[place], kept_starts[place] = item, start
        barrier()
        return RunLengthDecoder(cls, kept_values, kept_starts, total)


class RunLengthDecoder:
    """Runs in shared memory."""

    def __init__(self, of: type[BlockRunLengthDecode], values: Any, starts: Any, total: Any) -> None:
        self._of, self._values, self._starts, self._total = of, values, starts, total

    def decode(
        self, *, decoded_items_per_thread: int = 1, offset: Any = 0, default: Any = 0
    ) -> tuple[Vector, Vector, Any]:
        """The items of a window, the place of each in its run, and the number of all. See `BlockRunLengthDecode`."""
        of, count = self._of, decoded_items_per_thread
        dtype = of._offset_dtype()
        if type(count) is not int or count < 1:
            raise argument_error(
                f"the decoded items per thread must be a positive Python int, got {count!r}", "pass 4, for example"
            )
        first = dtype(offset) + dtype(of.thread()) * dtype(count)
        items, relative = [], []
        for i in range(count):
            place = first + dtype(i)
            run, is_there = self._run_of(place)
            items.append(is_there.select(self._values[run], of.dtype(default)))
            relative.append(is_there.select(place - self._starts[run], dtype(-1)))
        barrier()
        return Vector.from_elements(items, of.dtype), Vector.from_elements(relative, dtype), self._total

    run_length_decode = decode

    def _run_of(self, place: Any) -> tuple[Any, Any]:
        """The last run that begins there or before, and whether there is one that has the place."""
        runs = self._of.tile_size()
        low, high = Int32(0), Int32(runs)
        for _ in range(runs.bit_length()):
            middle = (low + high) >> 1
            begun = self._starts[min(middle, Int32(runs - 1))] <= place
            is_open = low < high
            low, high = (is_open & begun).select(middle + 1, low), (is_open & ~begun).select(middle, high)
        return (low > 0).select(low - 1, Int32(0)), (low > 0) & (place < self._total)
