"""Loads of a tile from memory into the items of a block's or a wave's threads, and stores of the items."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any

from flydsl.expr.coop.exchange import BlockExchange, BlockExchangeAlgorithm, WarpExchange, WarpExchangeAlgorithm
from flydsl.expr.coop.primitive import BlockPrimitive, Primitive, WarpPrimitive
from flydsl.expr.numbers.vector_value import Vector
from flydsl.expr.threads.guarded import chosen, only_where


class BlockLoadAlgorithm(Enum):
    """Ways for a block to read a tile; they differ in the items that each thread gets.

    DIRECT and VECTORIZE read blocked items; LLVM packs neighbours into one instruction where it knows that they are
    aligned for it. STRIPED reads striped items. TRANSPOSE reads stripes of the block, WARP_TRANSPOSE stripes of each
    wave, and both make them blocked through shared memory; WARP_TRANSPOSE_TIMESLICED needs that of one wave only.
    """

    DIRECT = "direct"
    STRIPED = "striped"
    VECTORIZE = "vectorize"
    TRANSPOSE = "transpose"
    WARP_TRANSPOSE = "warp_transpose"
    WARP_TRANSPOSE_TIMESLICED = "warp_transpose_timesliced"
    Direct = DIRECT
    Striped = STRIPED
    Vectorize = VECTORIZE
    Transpose = TRANSPOSE
    WarpTranspose = WARP_TRANSPOSE
    WarpTransposeTimesliced = WARP_TRANSPOSE_TIMESLICED


class BlockStoreAlgorithm(Enum):
    """Ways for a block to write a tile: the inverse of `BlockLoadAlgorithm`."""

    DIRECT = "direct"
    STRIPED = "striped"
    VECTORIZE = "vectorize"
    TRANSPOSE = "transpose"
    WARP_TRANSPOSE = "warp_transpose"
    WARP_TRANSPOSE_TIMESLICED = "warp_transpose_timesliced"
    Direct = DIRECT
    Striped = STRIPED
    Vectorize = VECTORIZE
    Transpose = TRANSPOSE
    WarpTranspose = WARP_TRANSPOSE
    WarpTransposeTimesliced = WARP_TRANSPOSE_TIMESLICED


class _BlockAccess(BlockPrimitive):
    """The common part of a block's loads and stores."""

    has_items = True

    @classmethod
    def _exchange(cls) -> Any:
        """The exchange that turns the items as read into blocked ones, or None."""
        name = cls.algorithm.name
        if not name.endswith(("TRANSPOSE", "TIMESLICED")):
            return None
        sliced = name.endswith("TIMESLICED")
        policy = BlockExchangeAlgorithm.WARP_TIME_SLICING if sliced else BlockExchangeAlgorithm.SHARED_MEMORY
        return BlockExchange.__class_getitem__((cls.dtype, cls.block_size, cls.items_per_thread, policy))

    @classmethod
    def _fields(cls) -> dict[str, Any]:
        """The fields of the shared storage: those of the exchange."""
        exchange = cls._exchange()
        return {} if exchange is None else exchange._fields()

    @classmethod
    def _places(cls) -> list[Any]:
        """The places in the tile that this thread reads or writes."""
        name, thread = cls.algorithm.name, cls.thread()
        if name in ("STRIPED", "TRANSPOSE"):
            return cls.striped(thread)
        return cls.warp_striped(thread) if name.startswith("WARP") else cls.blocked(thread)


class BlockLoad(_BlockAccess):
    """`BlockLoad[dtype, threads, items, algorithm](source, storage=None, offset=0, valid_items=None, default=0)`.

    Returns a vector of `items` elements per thread. source: a tensor, or anything that is indexed by the number of an
    element. offset: of the tile's first element. valid_items: how many elements of the tile are read; the others are
    `default`. storage: shared memory, for the algorithms that transpose.
    """

    algorithms = BlockLoadAlgorithm

    def __new__(
        cls, source: Any, *, storage: Any = None, offset: Any = 0, valid_items: Any = None, default: Any = 0
    ) -> Any:
        read = _read(cls, source, cls._places(), offset, valid_items, default)
        exchange = cls._exchange()
        if exchange is None:
            return read
        back = exchange.striped_to_blocked if cls.algorithm.name == "TRANSPOSE" else exchange.warp_striped_to_blocked
        return back(read, storage=storage)


class BlockStore(_BlockAccess):
    """`BlockStore[dtype, threads, items, algorithm](destination, value, storage=None, offset=0, valid_items=None)`.

    value: blocked items; of STRIPED, striped ones. Items past `valid_items` are not written. See `BlockLoad`.
    """

    algorithms = BlockStoreAlgorithm

    def __new__(
        cls, destination: Any, value: Any, *, storage: Any = None, offset: Any = 0, valid_items: Any = None
    ) -> Any:
        places, exchange = cls._places(), cls._exchange()
        if exchange is not None:
            is_block = cls.algorithm.name == "TRANSPOSE"
            away = exchange.blocked_to_striped if is_block else exchange.blocked_to_warp_striped
            value = away(value, storage=storage)
        _write(cls, destination, value, places, offset, valid_items)


class WarpLoadAlgorithm(Enum):
    """Ways for a group of lanes to read a tile, as in `BlockLoadAlgorithm`. TRANSPOSE moves items between registers."""

    DIRECT = "direct"
    STRIPED = "striped"
    VECTORIZE = "vectorize"
    TRANSPOSE = "transpose"
    Direct = DIRECT
    Striped = STRIPED
    Vectorize = VECTORIZE
    Transpose = TRANSPOSE


class WarpStoreAlgorithm(Enum):
    """Ways for a group of lanes to write a tile: the inverse of `WarpLoadAlgorithm`."""

    DIRECT = "direct"
    STRIPED = "striped"
    VECTORIZE = "vectorize"
    TRANSPOSE = "transpose"
    Direct = DIRECT
    Striped = STRIPED
    Vectorize = VECTORIZE
    Transpose = TRANSPOSE


class _WarpAccess(WarpPrimitive):
    """The common part of loads and stores by a group of lanes."""

    has_items = True

    @classmethod
    def _places(cls) -> list[Any]:
        lane, items = cls.lane(), cls.items_per_thread
        if cls.algorithm.name in ("STRIPED", "TRANSPOSE"):
            return [lane + i * cls.warp_threads for i in range(items)]
        return [lane * items + i for i in range(items)]

    @classmethod
    def _exchange(cls) -> Any:
        return WarpExchange.__class_getitem__(
            (cls.dtype, cls.width, cls.items_per_thread, WarpExchangeAlgorithm.SHUFFLE)
        )


class WarpLoad(_WarpAccess):
    """`WarpLoad[dtype, width, items, algorithm].load(source, ...)`: a group's tile. See `BlockLoad`."""

    algorithms = WarpLoadAlgorithm

    @classmethod
    def load(
        cls, source: Any, *, offset: Any = 0, valid_items: Any = None, default: Any = None, storage: Any = None
    ) -> Any:
        """The items. offset: of the group's tile. default: what is past `valid_items`, by default 0."""
        read = _read(cls, source, cls._places(), offset, valid_items, 0 if default is None else default)
        return cls._exchange().striped_to_blocked(read) if cls.algorithm is WarpLoadAlgorithm.TRANSPOSE else read


class WarpStore(_WarpAccess):
    """`WarpStore[dtype, width, items, algorithm].store(destination, value, ...)`: a group's tile. See `BlockStore`."""

    algorithms = WarpStoreAlgorithm

    @classmethod
    def store(
        cls, destination: Any, value: Any, *, offset: Any = 0, valid_items: Any = None, storage: Any = None
    ) -> None:
        """Write the items. offset: of the group's tile. Those past `valid_items` are not written."""
        if cls.algorithm is WarpStoreAlgorithm.TRANSPOSE:
            value = cls._exchange().blocked_to_striped(value)
        _write(cls, destination, value, cls._places(), offset, valid_items)


def _read(cls: type[Primitive], source: Any, places: list[Any], offset: Any, valid_items: Any, default: Any) -> Any:
    def reader(place: Any) -> Callable[[], Any]:
        return lambda: cls.dtype(source[offset + place])

    reads = [reader(place) for place in places]
    if valid_items is None:
        items = [read() for read in reads]
    else:
        other = cls.dtype(default)
        items = [chosen(place < valid_items, read, other) for place, read in zip(places, reads, strict=True)]
    return Vector.from_elements(items, cls.dtype)


def _write(
    cls: type[Primitive], destination: Any, value: Any, places: list[Any], offset: Any, valid_items: Any
) -> None:
    dtype = getattr(destination, "dtype", cls.dtype)
    for place, item in zip(places, cls.items_of("items", value, cls.dtype, cls.items_per_thread), strict=True):
        if valid_items is None:
            destination[offset + place] = item.to(dtype)
        else:
            with only_where(place < valid_items):
                destination[offset + place] = item.to(dtype)
