"""Items that change their threads: blocked to striped and back, and to places that are given."""

from __future__ import annotations

from enum import Enum
from typing import Any

from flydsl.dialect.location import argument_error
from flydsl.expr.coop.primitive import BlockPrimitive, Slots, WarpPrimitive, array_of, like, truth
from flydsl.expr.gpu import barrier
from flydsl.expr.llvm import memory_fence
from flydsl.expr.numeric import Int32
from flydsl.expr.rocdl.intrinsic import call_intrinsic
from flydsl.expr.threads.guarded import only_where
from flydsl.expr.threads.shuffle import shuffle_idx

_LARGEST_WAVE = 64


class BlockExchangeAlgorithm(Enum):
    """Ways for a block to exchange: with the whole tile in shared memory, or one wave's part after another."""

    SHARED_MEMORY = "shared_memory"
    WARP_TIME_SLICING = "warp_time_slicing"
    SharedMemory = SHARED_MEMORY
    WarpTimeSlicing = WARP_TIME_SLICING


class BlockExchange(BlockPrimitive):
    """`BlockExchange[dtype, threads, items, algorithm]`: a block's items in another order, through shared memory."""

    algorithms = BlockExchangeAlgorithm
    has_items = True

    @classmethod
    def _fields(cls) -> dict[str, Any]:
        sliced = cls.algorithm is BlockExchangeAlgorithm.WARP_TIME_SLICING
        threads = min(cls.block_threads, _LARGEST_WAVE) if sliced else cls.block_threads
        return {"slots": array_of(cls.dtype, threads * cls.items_per_thread)}

    @classmethod
    def blocked_to_striped(cls, value: Any, *, storage: Any) -> Any:
        """Items that lie blocked, striped."""
        thread = cls.thread()
        return cls._moved(value, cls.blocked(thread), cls.striped(thread), storage)

    @classmethod
    def striped_to_blocked(cls, value: Any, *, storage: Any) -> Any:
        """Items that lie striped, blocked."""
        thread = cls.thread()
        return cls._moved(value, cls.striped(thread), cls.blocked(thread), storage)

    @classmethod
    def blocked_to_warp_striped(cls, value: Any, *, storage: Any) -> Any:
        """Items that lie blocked, striped within the part of each wave."""
        thread = cls.thread()
        return cls._moved(value, cls.blocked(thread), cls.warp_striped(thread), storage)

    @classmethod
    def warp_striped_to_blocked(cls, value: Any, *, storage: Any) -> Any:
        """Items that lie striped within the part of each wave, blocked."""
        thread = cls.thread()
        return cls._moved(value, cls.warp_striped(thread), cls.blocked(thread), storage)

    @classmethod
    def scatter_to_blocked(cls, value: Any, ranks: Any, *, storage: Any) -> Any:
        """Items at the places that `ranks` gives them, blocked. The ranks of all threads are a permutation."""
        return cls._moved(value, cls._ranks(ranks), cls.blocked(cls.thread()), storage)

    @classmethod
    def scatter_to_striped(cls, value: Any, ranks: Any, *, storage: Any) -> Any:
        """Items at the places that `ranks` gives them, striped. The ranks of all threads are a permutation."""
        return cls._moved(value, cls._ranks(ranks), cls.striped(cls.thread()), storage)

    @classmethod
    def scatter_to_striped_guarded(cls, value: Any, ranks: Any, *, storage: Any, default: Any = 0) -> Any:
        """Like `scatter_to_striped`, without items whose rank is outside of the tile.

        default: at places without an item. Ranks inside differ.
        """
        return cls.scatter_to_striped_flagged(
            value, ranks, [True] * cls.items_per_thread, storage=storage, default=default
        )

    @classmethod
    def scatter_to_striped_flagged(
        cls, value: Any, ranks: Any, is_valid: Any, *, storage: Any, default: Any = 0
    ) -> Any:
        """Like `scatter_to_striped_guarded`, without items whose flag is zero."""
        flags = [truth(flag) for flag in cls.items_of("flags", is_valid, Int32, cls.items_per_thread)]
        return cls._moved(value, cls._ranks(ranks), cls.striped(cls.thread()), storage, flags, cls.dtype(default))

    @classmethod
    def _ranks(cls, ranks: Any) -> list[Any]:
        return cls.items_of("ranks", ranks, Int32, cls.items_per_thread)

    @classmethod
    def _moved(
        cls,
        value: Any,
        ranks: list[Any],
        places: list[Any],
        storage: Any,
        flags: list[Any] | None = None,
        default: Any = None,
    ) -> Any:
        """The items at `places`, once all threads' items are at their ranks."""
        items = cls.items_of("items", value, cls.dtype, cls.items_per_thread)
        slots, tile = cls.memory(storage, "slots"), cls.tile_size()
        if cls.algorithm is BlockExchangeAlgorithm.SHARED_MEMORY:
            return like(value, through(slots, items, ranks, places, _Window(cls, 0, tile, flags, default)), cls.dtype)
        size = cls.warp_threads * cls.items_per_thread
        moved: list[Any] = [cls.dtype(0)] * len(items)
        for first in range(0, tile, size):
            window = _Window(cls, first, size, flags or [True] * len(items), default)
            part = through(slots, items, ranks, [window.inside(place) for place in places], window)
            here = [(place >= first) & (place < first + size) for place in places]
            moved = [is_here.select(new, old) for is_here, new, old in zip(here, part, moved, strict=True)]
            barrier()
        return like(value, moved, cls.dtype)


class _Window:
    """The part of a tile that lies in shared memory. flags: the items to write, if not all; default: what else is."""

    def __init__(self, of: type[BlockPrimitive], first: int, size: int, flags: Any, default: Any) -> None:
        self.of, self.first, self.size, self.flags, self.default = of, first, size, flags, default

    def inside(self, place: Any) -> Any:
        """A place in the tile as one in the window: of those outside, any."""
        moved = place - self.first
        return ((moved >= 0) & (moved < self.size)).select(moved, 0)

    def fill(self, slots: Slots) -> None:
        """Write the default everywhere."""
        thread, threads = self.of.thread(), self.of.block_threads
        for start in range(0, self.size, threads):
            if start + threads <= self.size:
                slots[thread + start] = self.default
            else:
                with only_where(thread + start < self.size):
                    slots[thread + start] = self.default
        barrier()


def through(slots: Slots, items: list[Any], ranks: list[Any], places: list[Any], window: _Window | None) -> list[Any]:
    """Write the items of all threads to their ranks, and read the items at `places`."""
    if window is not None and window.default is not None:
        window.fill(slots)
    if window is None or window.flags is None:
        for item, rank in zip(items, ranks, strict=True):
            slots[rank] = item
    else:
        for item, rank, flag in zip(items, ranks, window.flags, strict=True):
            place = rank - window.first
            with only_where((place >= 0) & (place < window.size) & flag):
                slots[place] = item
    barrier()
    return [slots[place] for place in places]


class WarpExchangeAlgorithm(Enum):
    """Ways for lanes to exchange: through shared memory, or from register to register."""

    SHARED = "shared"
    SHUFFLE = "shuffle"
    Shared = SHARED
    Shuffle = SHUFFLE


class WarpExchange(WarpPrimitive):
    """`WarpExchange[dtype, width, items, algorithm]`: a group's items in another order.

    SHARED takes a storage for each group: `fx.Array[P.SharedStorage, groups]`, and `storage.peek()[group]`. SHUFFLE
    takes none; it reads each of a lane's items once for each item of the result.
    """

    algorithms = WarpExchangeAlgorithm
    has_items = True

    @classmethod
    def _fields(cls) -> dict[str, Any]:
        if cls.algorithm is WarpExchangeAlgorithm.SHUFFLE:
            return {}
        return {"slots": array_of(cls.dtype, (cls.width or _LARGEST_WAVE) * cls.items_per_thread)}

    @classmethod
    def blocked_to_striped(cls, value: Any, *, storage: Any = None) -> Any:
        """Items that lie blocked, striped."""
        lane, items, width = cls.lane(), cls.items_per_thread, cls.warp_threads
        blocked, striped = [lane * items + i for i in range(items)], [lane + i * width for i in range(items)]
        source = [(place // items, place % items) for place in striped]
        return cls._moved(value, blocked, striped, source, storage)

    @classmethod
    def striped_to_blocked(cls, value: Any, *, storage: Any = None) -> Any:
        """Items that lie striped, blocked."""
        lane, items, width = cls.lane(), cls.items_per_thread, cls.warp_threads
        blocked, striped = [lane * items + i for i in range(items)], [lane + i * width for i in range(items)]
        source = [(place % width, place // width) for place in blocked]
        return cls._moved(value, striped, blocked, source, storage)

    @classmethod
    def scatter_to_striped(cls, value: Any, ranks: Any, *, storage: Any = None) -> Any:
        """Items at the places that `ranks` gives them, striped: a permutation in each group. Not by SHUFFLE."""
        places = cls.items_of("ranks", ranks, Int32, cls.items_per_thread)
        striped = [cls.lane() + i * cls.warp_threads for i in range(cls.items_per_thread)]
        return cls._moved(value, places, striped, None, storage)

    @classmethod
    def _moved(cls, value: Any, ranks: list[Any], places: list[Any], source: Any, storage: Any) -> Any:
        items = cls.items_of("items", value, cls.dtype, cls.items_per_thread)
        if cls.algorithm is WarpExchangeAlgorithm.SHUFFLE:
            if source is None:
                raise argument_error(f"{cls.__name__} to given places by SHUFFLE", "take WarpExchangeAlgorithm.SHARED")
            return like(value, gathered(items, source, cls.warp_threads), cls.dtype)
        slots = cls.memory(storage, "slots")
        for item, rank in zip(items, ranks, strict=True):
            slots[rank] = item
        wave_barrier()
        moved = [slots[place] for place in places]
        wave_barrier()
        return like(value, moved, cls.dtype)


def wave_barrier() -> None:
    """Have the lanes of a wave see what the others wrote to shared memory before."""
    memory_fence(syncscope="wavefront", ordering="acq_rel")
    call_intrinsic("llvm.amdgcn.wave.barrier", [])
    memory_fence(syncscope="wavefront", ordering="acq_rel")


def gathered(items: list[Any], source: list[tuple[Any, Any]], width: int) -> list[Any]:
    """For each (lane, number) the item with that number of that lane of the group."""
    found = []
    for lane, number in source:
        value = shuffle_idx(items[0], lane, width)
        for i, item in enumerate(items[1:], 1):
            value = (number == i).select(shuffle_idx(item, lane, width), value)
        found.append(value)
    return found
