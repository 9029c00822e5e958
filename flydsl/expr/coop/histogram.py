"""Histograms: the number of times that each value occurs among a block's items."""

from __future__ import annotations

from enum import Enum
from typing import Any

from flydsl.expr.coop.primitive import BlockPrimitive, Slots, array_of
from flydsl.expr.coop.sorting import merge_sorted, precedes
from flydsl.expr.gpu import barrier
from flydsl.expr.memory.atomics import atomic_add
from flydsl.expr.memory.storage import Storage
from flydsl.expr.numbers.operators import min
from flydsl.expr.numeric import Int32, Numeric
from flydsl.expr.threads.guarded import only_where


class BlockHistogramAlgorithm(Enum):
    """ATOMIC adds to the counters atomically, SORT sorts an item of each thread at a time and looks for each number."""

    ATOMIC = "atomic"
    SORT = "sort"
    Atomic = ATOMIC
    Sort = SORT


class BlockHistogram(BlockPrimitive):
    """`BlockHistogram[dtype, threads, bins, algorithm](items, storage=memory)`: counters, an array in shared memory.

    Items are numbers of a bin, from 0 on; others do not count. `[(dtype, counter), ...]` has a type of counters, by
    default Int32. A thread may have any number of items.
    """

    algorithms = BlockHistogramAlgorithm
    has_items = True
    has_pairs = True

    @classmethod
    def _counter_dtype(cls) -> type[Numeric]:
        return Int32 if cls.value_dtype is None else cls.value_dtype

    @classmethod
    def _fields(cls) -> dict[str, Any]:
        counts = {"counts": array_of(cls._counter_dtype(), cls.items_per_thread)}
        if cls.algorithm is BlockHistogramAlgorithm.ATOMIC:
            return counts
        return counts | {"keys": array_of(Int32, cls.block_threads)}

    def __new__(cls, value: Any, *, storage: Any) -> Any:
        cls.init(storage=storage)
        return cls.composite(value, storage=storage)

    @classmethod
    def init(cls, *, storage: Any) -> None:
        """Set every counter to 0."""
        cls._each_bin(cls.memory(storage, "counts"), lambda counts, place: 0)
        barrier()

    @classmethod
    def composite(cls, value: Any, *, storage: Any) -> Any:
        """Add to the counters that are there; the counters."""
        held = storage.peek() if isinstance(storage, Storage) else storage
        keys = [Int32(item) for item in cls.items_of("items", value, cls.dtype)]
        if cls.algorithm is BlockHistogramAlgorithm.ATOMIC:
            one = cls._counter_dtype()(1)
            for key in keys:
                with only_where((key >= 0) & (key < cls.items_per_thread)):
                    atomic_add(held.counts.ptr + key, one, syncscope="workgroup")
        else:
            for key in keys:
                cls._add_sorted(key, storage)
        barrier()
        return held.counts

    @classmethod
    def _add_sorted(cls, key: Any, storage: Any) -> None:
        """Add a key of each thread."""
        slots = cls.memory(storage, "keys")
        merge_sorted([[key]], [slots], cls.thread(), cls.block_threads, precedes(None), None)
        barrier()

        def added(counts: Slots, place: Any) -> Any:
            found = cls._below(slots, place + 1) - cls._below(slots, place)
            return counts[place] + found.to(cls._counter_dtype())

        cls._each_bin(cls.memory(storage, "counts"), added)
        barrier()

    @classmethod
    def _below(cls, keys: Slots, number: Any) -> Any:
        """The number of sorted keys that are smaller than a number."""
        threads = cls.block_threads
        low, high = Int32(0), Int32(threads)
        for _ in range(threads.bit_length()):
            middle = (low + high) >> 1
            smaller = keys[min(middle, Int32(threads - 1))] < number
            is_open = low < high
            low, high = (is_open & smaller).select(middle + 1, low), (is_open & ~smaller).select(middle, high)
        return low

    @classmethod
    def _each_bin(cls, counts: Slots, value: Any) -> None:
        """Set each counter to `value(counts, place)`."""
        thread, bins = cls.thread(), cls.items_per_thread
        for start in range(0, bins, cls.block_threads):
            place = thread + start
            with only_where(place < bins):
                counts[place] = value(counts, place)
