"""Sorting by comparison: the items of a block by merging, those of a wave by a bitonic network.

A block's threads sort their own items, then merge runs that double: the rank of an item in the other run, which a
binary search finds, and its place in its own make its new place. The lanes of a wave compare and exchange from register
to register (Batcher 1968); the items' first places decide between equal ones, so that the order of these stays.

Items that do not count come after the others.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any

from flydsl.dialect.location import argument_error
from flydsl.expr.coop.exchange import gathered
from flydsl.expr.coop.operations import lanes_of
from flydsl.expr.coop.primitive import BlockPrimitive, Slots, WarpPrimitive, array_of, like, truth
from flydsl.expr.gpu import barrier
from flydsl.expr.numbers.operators import max, min
from flydsl.expr.numbers.vector_value import Vector
from flydsl.expr.numeric import Boolean, Int32, Numeric, as_numeric
from flydsl.expr.rocdl.lane import lane_id
from flydsl.expr.threads.shuffle import shuffle_xor

Compare = Callable[[Any, Any], Any]


def precedes(compare_op: Compare | None, descending: bool = False) -> Compare:
    """True if the first of two keys comes before the second: by a function, or because it is smaller."""
    ascending = (lambda a, b: a < b) if compare_op is None else (lambda a, b: truth(compare_op(a, b)))
    return (lambda a, b: ascending(b, a)) if descending else ascending


class BlockMergeSortAlgorithm(Enum):
    """Runs are merged."""

    MERGE = "merge"
    Merge = MERGE


class BlockMergeSort(BlockPrimitive):
    """`BlockMergeSort[dtype, threads, items](keys, storage=memory)`: a block's keys in order. `[(key, value), ...]`
    takes values along: `(keys, values, ...)`.

    Equal keys keep their order. descending: the largest first. compare_op: whether its first key comes before its
    second, by default `<`. valid_items: how many of the block count, the others come after them; oob_default: the key
    that those are given, with a value of 0. Items lie blocked.
    """

    algorithms = BlockMergeSortAlgorithm
    has_items = True
    has_pairs = True

    @classmethod
    def _fields(cls) -> dict[str, Any]:
        keys = {"keys": array_of(cls.dtype, cls.tile_size())}
        return keys if cls.value_dtype is None else keys | {"values": array_of(cls.value_dtype, cls.tile_size())}

    def __new__(cls, keys: Any, values: Any = None, **options: Any) -> Any:
        return cls.sort(keys, values, **options)

    @classmethod
    def sort(
        cls,
        keys: Any,
        values: Any = None,
        *,
        storage: Any,
        descending: bool = False,
        compare_op: Compare | None = None,
        valid_items: Any = None,
        oob_default: Any = None,
    ) -> Any:
        """The keys in order, with their values if there are any."""
        columns = columns_of(cls, keys, values)
        thread = cls.thread()
        places = cls.blocked(thread)
        if valid_items is not None and oob_default is not None:
            fills = [cls.dtype(oob_default), *([] if values is None else [cls.value_dtype(0)])]  # type: ignore[misc]
            columns = [
                [(place < valid_items).select(item, fill) for place, item in zip(places, column, strict=True)]
                for column, fill in zip(columns, fills, strict=True)
            ]
        memories = [cls.memory(storage, name) for name in cls._fields()]
        merged = merge_sorted(
            columns, memories, thread, cls.block_threads, precedes(compare_op, descending), valid_items
        )
        made = like(keys, merged[0], cls.dtype)
        return made if values is None else (made, like(values, merged[1], cls.value_dtype))  # type: ignore[arg-type]

    stable_sort = sort


def columns_of(cls: Any, keys: Any, values: Any) -> list[list[Any]]:
    """The keys, and the values if there are any, as lists of items."""
    columns = [cls.items_of("keys", keys, cls.dtype, cls.items_per_thread)]
    if (values is None) != (cls.value_dtype is None):
        raise argument_error(
            f"{cls.__name__} {'without' if values is None else 'with'} values, where the brackets have"
            f" {'a' if values is None else 'no'} type of them",
            f"{cls.__name__.partition('[')[0]}[(key type, value type), ...] takes keys and values",
        )
    if values is not None:
        columns.append(cls.items_of("values", values, cls.value_dtype, cls.items_per_thread))
    return columns


def merge_sorted(
    columns: list[list[Any]], memories: list[Slots], thread: Any, threads: int, before: Compare, valid_items: Any
) -> list[list[Any]]:
    """Columns of a block's items, blocked, in the order of the first one. memories: of a tile each."""
    count = len(columns[0])
    tile, places = threads * count, [thread * count + i for i in range(count)]
    valid = tile if valid_items is None else Int32(valid_items)
    columns = _sort_within(columns, [place < valid for place in places], before)
    for column, memory in zip(columns, memories, strict=True):
        _write(memory, places, column)
    barrier()
    run = count
    while run < tile:
        ranks = [
            _merged_place(memories[0], key, place, run, tile, valid, before)
            for key, place in zip(columns[0], places, strict=True)
        ]
        barrier()
        for column, memory in zip(columns, memories, strict=True):
            _write(memory, ranks, column)
        barrier()
        columns = [[memory[place] for place in places] for memory in memories]
        run *= 2
    return columns


def _write(memory: Slots, places: list[Any], items: list[Any]) -> None:
    for place, item in zip(places, items, strict=True):
        memory[place] = item


def _sort_within(columns: list[list[Any]], counts: list[Any], before: Compare) -> list[list[Any]]:
    """A thread's own items in order, by exchanges of neighbours. counts: whether each of them counts."""
    columns, counts = [list(column) for column in columns], list(counts)
    for turn in range(len(counts)):
        for i in range(turn % 2, len(counts) - 1, 2):
            swaps = counts[i + 1] & (~counts[i] | before(columns[0][i + 1], columns[0][i]))
            for column in [*columns, counts]:
                column[i], column[i + 1] = _swapped(swaps, column[i], column[i + 1])
    return columns


def _swapped(swaps: Any, a: Any, b: Any) -> tuple[Any, Any]:
    return swaps.select(b, a), swaps.select(a, b)


def _merged_place(keys: Slots, key: Any, place: Any, run: int, tile: int, valid: Any, before: Compare) -> Any:
    """The place of an item when two neighbouring runs of `run` items are merged."""
    start = place // (2 * run) * (2 * run)
    in_first = place - start < run
    own = in_first.select(start, start + run)
    other = in_first.select(start + run, start)
    own_valid, other_valid = (_count_of(first, run, tile, valid) for first in (own, other))
    counts = place - own < own_valid
    low, high = Int32(0), other_valid
    for _ in range(run.bit_length()):
        middle = (low + high) >> 1
        found = keys[min(other + middle, tile - 1)]
        is_before = in_first.select(before(found, key), ~before(key, found))
        goes_right = (low < high) & is_before
        low, high = goes_right.select(middle + 1, low), ((low < high) & ~is_before).select(middle, high)
    # Of items that do not count, those of the first run stay first: after all that count of the second.
    beyond = in_first.select(other_valid, Int32(run))
    return start + (place - own) + counts.select(low, beyond)


def _count_of(start: Any, run: int, tile: int, valid: Any) -> Any:
    """The items that count in a run: they come first in it."""
    return max(min(min(Int32(valid), Int32(tile)) - start, Int32(run)), Int32(0))


def bitonic_sorted(
    columns: list[list[Any]], width: int, compare_op: Compare | None, valid_items: Any, is_blocked: bool
) -> list[list[Any]]:
    """Columns of a group's items in the order of the first one: of equal keys in that of their places."""
    count, lane = len(columns[0]), lane_id() & (width - 1)
    rows = 1 << (count - 1).bit_length()
    before = precedes(compare_op)
    first = [lane * count + i if is_blocked else lane + i * width for i in range(count)]
    valid = [Boolean(True) if valid_items is None else place < valid_items for place in first]
    # Rows up to a power of two are filled with items that do not count.
    fill = rows - count
    table = [[*column, *[column[0]] * fill] for column in columns]
    table.append([*first, *[Int32(width * rows)] * fill])
    table.append([*(flag.select(Int32(1), Int32(0)) for flag in valid), *[Int32(0)] * fill])
    size = 2
    while size <= width * rows:
        step = size // 2
        while step:
            table = _exchanged(table, lane, width, size, step, before)
            step //= 2
        size *= 2
    sorted_columns = [column[:count] for column in table[: len(columns)]]
    if not is_blocked:
        return sorted_columns
    source = [((lane * count + i) % width, (lane * count + i) // width) for i in range(count)]
    return [gathered(column, source, width) for column in sorted_columns]


def _exchanged(table: list[list[Any]], lane: Any, width: int, size: int, step: int, before: Compare) -> list[list[Any]]:
    """One step of the network: each item or its partner, whose place differs by the bit `step`."""
    rows = len(table[0])
    made: list[list[Any]] = [[] for _ in table]
    for row in range(rows):
        own = [column[row] for column in table]
        partner_row = row ^ (step // width) if step >= width else row
        if step >= width:
            partner = [column[partner_row] for column in table]
            is_low: Any = Boolean(row < partner_row)
        else:
            partner = [shuffle_xor(item, step, width) for item in own]
            is_low = lane & step == 0
        ascends = Boolean(row & (size // width) == 0) if size >= width else lane & size == 0
        wants_smaller = is_low == ascends
        takes = _comes_before(partner, own, before) == wants_smaller
        for column, mine, other in zip(made, own, partner, strict=True):
            column.append(takes.select(other, mine))
    return made


def _comes_before(a: list[Any], b: list[Any], before: Compare) -> Any:
    """True if row `a` of (key, ..., first place, counts) comes before row `b`. Only rows that fill are equal."""
    counts_a, counts_b = a[-1] != 0, b[-1] != 0
    place = a[-2] < b[-2]
    in_order = before(a[0], b[0]) | (~before(b[0], a[0]) & place)
    return (counts_a & ~counts_b) | (counts_a & counts_b & in_order) | (~counts_a & ~counts_b & place)


def warp_bitonic_sort(
    keys: Any,
    values: Any = None,
    *,
    width: int | None = None,
    compare_op: Compare | None = None,
    valid_items: Any = None,
) -> Any:
    """A group's keys, striped, in order; with values if there are any. Equal keys may change their order.

    keys, values: a vector, list or tuple, also of one item. compare_op: whether its first key comes before its second;
    by default `<`. valid_items: how many of the group's keys count; what is after them is undefined.
    """
    return _warp_sorted("warp_bitonic_sort", keys, values, width, compare_op, valid_items, is_blocked=False)


def warp_merge_sort(
    keys: Any,
    values: Any = None,
    *,
    width: int | None = None,
    compare_op: Compare | None = None,
    valid_items: Any = None,
) -> Any:
    """A group's keys, blocked, in order; equal keys keep theirs. See `warp_bitonic_sort`."""
    return _warp_sorted("warp_merge_sort", keys, values, width, compare_op, valid_items, is_blocked=True)


def _warp_sorted(
    what: str, keys: Any, values: Any, width: Any, compare_op: Compare | None, valid_items: Any, is_blocked: bool
) -> Any:
    given = [keys] if values is None else [keys, values]
    for items in given:
        if not isinstance(items, Vector | list | tuple):
            raise argument_error(f"{what} of {items!r}: a lane's items", "pass a vector or a list, also of one item")
    columns = [[as_numeric(item) for item in items] for items in given]
    if not columns[0] or len({len(column) for column in columns}) > 1:
        raise argument_error(
            f"{what} of {len(columns[0])} keys and {len(columns[-1])} values", "one value for each key"
        )
    lanes = lanes_of(what, width)
    kinds = [column[0].dtype for column in columns]
    columns = bitonic_sorted(columns, lanes, compare_op, valid_items, is_blocked)
    made = [Vector.from_elements(column, kind) for column, kind in zip(columns, kinds, strict=True)]
    return made[0] if values is None else (made[0], made[1])


class _WarpSort(WarpPrimitive):
    has_items = True
    has_pairs = True
    is_blocked = True

    @classmethod
    def sort(
        cls,
        keys: Any,
        values: Any = None,
        *,
        compare_op: Compare | None = None,
        valid_items: Any = None,
        storage: Any = None,
    ) -> Any:
        """The keys in order, with their values if there are any."""
        columns = columns_of(cls, keys, values)
        made = bitonic_sorted(columns, cls.warp_threads, compare_op, valid_items, cls.is_blocked)
        kinds: list[type[Numeric]] = [cls.dtype, *([] if cls.value_dtype is None else [cls.value_dtype])]
        vectors = [Vector.from_elements(column, kind) for column, kind in zip(made, kinds, strict=True)]
        return vectors[0] if values is None else tuple(vectors)


class WarpBitonicSort(_WarpSort):
    """`WarpBitonicSort[dtype, width, items].sort(keys)`: see `warp_bitonic_sort`."""

    is_blocked = False


class WarpMergeSort(_WarpSort):
    """`WarpMergeSort[dtype, width, items].sort(keys)`: see `warp_merge_sort`."""
