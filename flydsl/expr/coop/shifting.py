"""Neighbours in a block: items that move by one place, differences of neighbours, and where runs begin and end."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from enum import Enum
from typing import Any

from flydsl.expr.coop.operations import combination
from flydsl.expr.coop.primitive import BlockPrimitive, array_of, like, truth
from flydsl.expr.gpu import barrier
from flydsl.expr.numbers.vector_value import ReductionOp
from flydsl.expr.numeric import Int32, Numeric


class BlockShuffleAlgorithm(Enum):
    """Values move through shared memory."""

    SHARED_MEMORY = "shared_memory"
    SharedMemory = SHARED_MEMORY


class BlockShuffle(BlockPrimitive):
    """`BlockShuffle[dtype, threads]`: values of other threads of the block, and items moved by one place."""

    algorithms = BlockShuffleAlgorithm

    @classmethod
    def _fields(cls) -> dict[str, Any]:
        return {"first": array_of(cls.dtype, cls.block_threads), "last": array_of(cls.dtype, cls.block_threads)}

    @classmethod
    def offset(cls, value: Any, distance: Any = 1, *, storage: Any, fill: Any = None) -> Any:
        """The value of the thread `distance` further; where there is none, `fill`, or by default the own value."""
        thread, own = cls.thread(), cls.dtype(value)
        slots = cls.memory(storage, "first")
        slots[thread] = own
        barrier()
        place = thread + Int32(distance)
        is_there = (place >= 0) & (place < cls.block_threads)
        other = own if fill is None else cls.dtype(fill)
        return is_there.select(slots[is_there.select(place, thread)], other)

    @classmethod
    def rotate(cls, value: Any, distance: Any = 1, *, storage: Any) -> Any:
        """The value of the thread `distance` further; after the last thread comes the first."""
        thread, threads = cls.thread(), cls.block_threads
        slots = cls.memory(storage, "first")
        slots[thread] = cls.dtype(value)
        barrier()
        step = Int32(distance) % threads  # of the dividend's sign
        return slots[(thread + step + threads) % threads]

    @classmethod
    def up(cls, value: Any, *, storage: Any, predecessor: Any = None, return_suffix: bool = False) -> Any:
        """Items moved to the next place. predecessor: what comes first, by default the first item itself.

        return_suffix: whether the last item of all comes as well, in every thread.
        """
        moved = like(value, cls._with_left(value, storage, predecessor)[1], cls.dtype)
        return (moved, cls.memory(storage, "last")[cls.block_threads - 1]) if return_suffix else moved

    @classmethod
    def down(cls, value: Any, *, storage: Any, successor: Any = None, return_prefix: bool = False) -> Any:
        """Items moved to the place before. successor: what comes last, by default the last item itself.

        return_prefix: whether the first item of all comes as well, in every thread.
        """
        items = cls._published(value, storage)
        moved = like(value, cls._rights(items, storage, successor), cls.dtype)
        return (moved, cls.memory(storage, "first")[0]) if return_prefix else moved

    @classmethod
    def _with_left(cls, value: Any, storage: Any, predecessor: Any) -> tuple[list[Any], list[Any]]:
        items = cls._published(value, storage)
        return items, cls._lefts(items, storage, predecessor)

    @classmethod
    def _published(cls, value: Any, storage: Any) -> list[Any]:
        """The items, once every thread's first and last ones are in shared memory."""
        items, thread = cls.items_of("items", value, cls.dtype), cls.thread()
        cls.memory(storage, "first")[thread] = items[0]
        cls.memory(storage, "last")[thread] = items[-1]
        barrier()
        return items

    @classmethod
    def _lefts(cls, items: list[Any], storage: Any, predecessor: Any) -> list[Any]:
        """The item before each."""
        thread = cls.thread()
        is_first = thread == 0
        before = cls.memory(storage, "last")[is_first.select(0, thread - 1)]
        return [is_first.select(items[0] if predecessor is None else cls.dtype(predecessor), before), *items[:-1]]

    @classmethod
    def _rights(cls, items: list[Any], storage: Any, successor: Any) -> list[Any]:
        """The item after each."""
        thread, last = cls.thread(), cls.block_threads - 1
        is_last = thread == last
        behind = cls.memory(storage, "first")[is_last.select(last, thread + 1)]
        return [*items[1:], is_last.select(items[-1] if successor is None else cls.dtype(successor), behind)]


def _difference(current: Any, other: Any) -> Any:
    return current - other


class BlockAdjacentDifference(BlockShuffle):
    """`BlockAdjacentDifference[dtype, threads]`: each item and its neighbour combined, by default subtracted."""

    @classmethod
    def subtract_left(
        cls,
        value: Any,
        op: Any = _difference,
        *,
        storage: Any,
        predecessor: Any = None,
        valid_items: Any = None,
        output_dtype: type[Numeric] | None = None,
    ) -> Any:
        """`op(item, the one before)`. predecessor: what is before the first, which stays as it is without one.

        valid_items: how many items of the block count; the others stay. output_dtype: by default the items'.
        """
        items, before = cls._with_left(value, storage, predecessor)
        places = cls.blocked(cls.thread(), len(items))
        stays = [place == 0 if predecessor is None else None for place in places]
        return cls._combined(value, op, items, before, places, stays, valid_items, output_dtype)

    @classmethod
    def subtract_right(
        cls,
        value: Any,
        op: Any = _difference,
        *,
        storage: Any,
        successor: Any = None,
        valid_items: Any = None,
        output_dtype: type[Numeric] | None = None,
    ) -> Any:
        """`op(item, the next one)`. successor: what is after the last that counts. See `subtract_left`."""
        items = cls._published(value, storage)
        behind, places = cls._rights(items, storage, successor), cls.blocked(cls.thread(), len(items))
        count = cls.block_threads * len(items) if valid_items is None else valid_items
        is_last = [place == count - 1 for place in places]
        if successor is not None:
            end = cls.dtype(successor)
            behind = [last.select(end, item) for last, item in zip(is_last, behind, strict=True)]
        stays = is_last if successor is None else [None] * len(items)
        return cls._combined(value, op, items, behind, places, stays, valid_items, output_dtype)

    @classmethod
    def subtract_left_partial_tile(
        cls,
        value: Any,
        valid_items: Any,
        op: Any = _difference,
        *,
        storage: Any,
        predecessor: Any = None,
        output_dtype: type[Numeric] | None = None,
    ) -> Any:
        """`subtract_left` of the first `valid_items`."""
        return cls.subtract_left(
            value, op, storage=storage, predecessor=predecessor, valid_items=valid_items, output_dtype=output_dtype
        )

    @classmethod
    def subtract_right_partial_tile(
        cls,
        value: Any,
        valid_items: Any,
        op: Any = _difference,
        *,
        storage: Any,
        successor: Any = None,
        output_dtype: type[Numeric] | None = None,
    ) -> Any:
        """`subtract_right` of the first `valid_items`."""
        return cls.subtract_right(
            value, op, storage=storage, successor=successor, valid_items=valid_items, output_dtype=output_dtype
        )

    @classmethod
    def _combined(
        cls,
        value: Any,
        op: Any,
        items: list[Any],
        others: list[Any],
        places: list[Any],
        stays: list[Any],
        valid_items: Any,
        output_dtype: type[Numeric] | None,
    ) -> Any:
        dtype = cls.dtype if output_dtype is None else output_dtype
        combine = combination(op) if isinstance(op, ReductionOp | str) else op
        made = []
        for item, other, place, stay in zip(items, others, places, stays, strict=True):
            result = dtype(combine(item, other))
            if stay is not None:
                result = stay.select(item.to(dtype), result)
            made.append(result if valid_items is None else (place < valid_items).select(result, item.to(dtype)))
        return like(value, made, dtype)


def _differ(left: Any, right: Any) -> Any:
    return left != right


class BlockDiscontinuity(BlockShuffle):
    """`BlockDiscontinuity[dtype, threads]`: flags, Int32, where a run begins, or ends.

    flag_op: of two neighbours, the left one first, whether a run ends between them; by default whether they differ. It
    may take the number of the right one in the tile as well.
    """

    @classmethod
    def flag_heads(
        cls,
        value: Any,
        flag_op: Callable[..., Any] = _differ,
        *,
        storage: Any,
        predecessor: Any = None,
        return_predecessors: bool = False,
    ) -> Any:
        """1 where a run begins. predecessor: what is before the first item, which begins one if there is none.

        return_predecessors: whether the items before each come as well; before the first it is then the last of all.
        """
        items = cls._published(value, storage)
        flags, before = cls._heads(items, flag_op, storage, predecessor)
        heads = like(value, flags, Int32)
        return (heads, like(value, before, cls.dtype)) if return_predecessors else heads

    @classmethod
    def flag_tails(
        cls, value: Any, flag_op: Callable[..., Any] = _differ, *, storage: Any, successor: Any = None
    ) -> Any:
        """1 where a run ends. successor: what is after the last item, which ends one if there is none."""
        return like(value, cls._tails(cls._published(value, storage), flag_op, storage, successor), Int32)

    @classmethod
    def flag_heads_and_tails(
        cls,
        value: Any,
        flag_op: Callable[..., Any] = _differ,
        *,
        storage: Any,
        predecessor: Any = None,
        successor: Any = None,
        return_predecessors: bool = False,
    ) -> Any:
        """Both, and with `return_predecessors` the items before each."""
        items = cls._published(value, storage)
        heads, before = cls._heads(items, flag_op, storage, predecessor)
        both = like(value, heads, Int32), like(value, cls._tails(items, flag_op, storage, successor), Int32)
        return (*both, like(value, before, cls.dtype)) if return_predecessors else both

    @classmethod
    def _heads(
        cls, items: list[Any], flag_op: Callable[..., Any], storage: Any, predecessor: Any
    ) -> tuple[list[Any], list[Any]]:
        end = cls.memory(storage, "last")[cls.block_threads - 1] if predecessor is None else predecessor
        before = cls._lefts(items, storage, end)
        places = cls.blocked(cls.thread(), len(items))
        return _flags(flag_op, before, items, places, places[0] == 0 if predecessor is None else None, 0), before

    @classmethod
    def _tails(cls, items: list[Any], flag_op: Callable[..., Any], storage: Any, successor: Any) -> list[Any]:
        behind = cls._rights(items, storage, successor)
        places = [place + 1 for place in cls.blocked(cls.thread(), len(items))]
        is_last = places[-1] == cls.block_threads * len(items) if successor is None else None
        return _flags(flag_op, items, behind, places, is_last, len(items) - 1)


def _flags(
    flag_op: Callable[..., Any], lefts: list[Any], rights: list[Any], places: list[Any], always: Any, where: int
) -> list[Any]:
    """1 where a run ends between two neighbours. always: whether it does at item number `where`, anyway."""
    takes_place = _takes(flag_op, 3)
    flags = []
    for i, (left, right, place) in enumerate(zip(lefts, rights, places, strict=True)):
        found = truth(flag_op(left, right, place) if takes_place else flag_op(left, right))
        found = found | always if always is not None and i == where else found
        flags.append(found.select(Int32(1), Int32(0)))
    return flags


def _takes(function: Callable[..., Any], count: int) -> bool:
    try:
        inspect.signature(function).bind(*[None] * count)
    except TypeError:
        return False
    return True
