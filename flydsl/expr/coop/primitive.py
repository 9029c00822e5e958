"""Collective operations for a type and a number of threads, as classes: `BlockLoad[fx.Float32, 256, 4]`.

The parameters in brackets are, in this order: the type of an element, or of a key and a value; the threads; for tiles
the number of items of each thread; and a member of the operation's enum, if there is one. Elements are numbers. Several
items of a thread are a vector, a list or a tuple, and come back as a vector; a single number comes back as a number.

Items lie blocked, where thread t has the items t * items and those after it of a tile, or striped, where it has every
threads-th one, from t on. All threads take part in a call. `SharedStorage` is the memory that it needs; between two
calls that share it lies a barrier.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from functools import cache
from math import prod
from typing import Any, ClassVar

from flydsl.dialect.location import argument_error
from flydsl.expr.coop.operations import lanes_of, warp_size
from flydsl.expr.memory.storage import ArrayInMemory, Storage
from flydsl.expr.memory.tensors import memref_load, memref_store
from flydsl.expr.numbers.vector_value import Vector
from flydsl.expr.numeric import Boolean, Int32, Numeric, require_numeric
from flydsl.expr.rocdl.lane import lane_id
from flydsl.expr.struct import Array, Empty, Struct
from flydsl.expr.threads.block_threads import note_threads
from flydsl.expr.threads.positions import thread_idx
from flydsl.layout import make_layout

_MAX_THREADS = 1024
_ALIGN_BYTES = 16


_OF_SPECIALISED = ("dtype", "value_dtype", "items_per_thread", "algorithm", "block_size", "block_threads", "width")


class _PrimitiveMeta(type):
    """Says of a class without its brackets that it lacks them, and makes the type of its memory for the target."""

    @property
    def SharedStorage(cls) -> Any:
        """The type of the shared memory that a call needs, on the target."""
        return cls.storage_type()

    @property
    def warp_threads(cls) -> int:
        """The lanes of a wave of the block, or of a group, on the target."""
        return cls.lanes_of_warp()

    @property
    def num_warps(cls) -> int:
        """The waves of the block, on the target."""
        return cls.warps_of_block()

    def __getattr__(cls, name: str) -> Any:
        said = f"type object {cls.__name__!r} has no attribute {name!r}"
        if name in _OF_SPECIALISED:
            if any("dtype" in vars(base) for base in cls.__mro__):
                raise AttributeError(f"{said}: it is of a group of lanes, and warp_threads is how many they are")
            raise argument_error(
                f"{cls.__name__} without its type and threads", f"fx.coop.{cls.__name__}[fx.Float32, 256], for example"
            )
        raise AttributeError(said)


class Primitive(metaclass=_PrimitiveMeta):
    """A collective operation. `Primitive[...]` is the class that is called.

    algorithms: the enum to choose from; its first member is the default. has_items, has_pairs: whether the brackets
    have a number of items, and take a pair of types.
    """

    algorithms: ClassVar[type[Enum] | None] = None
    has_items: ClassVar[bool] = False
    has_pairs: ClassVar[bool] = False

    dtype: ClassVar[type[Numeric]]
    key_dtype: ClassVar[type[Numeric]]
    value_dtype: ClassVar[type[Numeric] | None]
    items_per_thread: ClassVar[int]
    algorithm: ClassVar[Any]

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "scan_type" in vars(cls):
            raise argument_error(
                f"unsupported: {cls.__name__}.scan_type, another scan inside a primitive",
                "leave it out: sorts and selections scan with fx.coop.BlockScan",
            )

    def __class_getitem__(cls, parameters: Any) -> Any:
        given = parameters if isinstance(parameters, tuple) else (parameters,)
        names = ["dtype", "threads", *(["items"] if cls.has_items else []), *(["algorithm"] if cls.algorithms else [])]
        if not 1 <= len(given) <= len(names):
            raise argument_error(f"{cls.__name__} takes [{', '.join(names)}], got {parameters!r}")
        named = dict(zip(names, given, strict=False))
        types = named["dtype"] if isinstance(named["dtype"], tuple) else (named["dtype"],)
        if len(types) > (2 if cls.has_pairs else 1):
            raise argument_error(
                f"{cls.__name__} takes one type, not {types!r}",
                f"write fx.coop.{cls.__name__}[fx.Float32, 256], for example",
            )
        key, value = ([require_numeric(cls.__name__, kind) for kind in types] + [None])[:2]
        size = cls._checked_size(named.get("threads"))
        items = cls._checked_items(named.get("items")) if cls.has_items else 1
        algorithm = cls._checked_algorithm(named.get("algorithm"))
        return _specialised(cls, key, value, size, items, algorithm)

    @classmethod
    def _checked_size(cls, size: Any) -> Any:
        raise NotImplementedError

    @classmethod
    def _checked_items(cls, items: Any) -> int:
        if type(items) is not int or items < 1:
            raise argument_error(
                f"the items per thread of {cls.__name__} must be a positive Python int, got {items!r}",
                "pass 4, for example",
            )
        return items

    @classmethod
    def _checked_algorithm(cls, algorithm: Any) -> Any:
        if cls.algorithms is None:
            return None
        default = next(iter(cls.algorithms))
        if algorithm is not None and not isinstance(algorithm, cls.algorithms):
            raise argument_error(
                f"the algorithm of {cls.__name__} must be a member of {cls.algorithms.__name__}, got {algorithm!r}",
                f"pass {default}, for example",
            )
        return default if algorithm is None else algorithm

    @classmethod
    def _fields(cls) -> dict[str, Any]:
        """The parts of the shared storage: name -> type."""
        return {}

    @classmethod
    def storage_type(cls) -> Any:
        """The type of `SharedStorage`."""
        fields = cls._fields()
        return Struct[tuple(slice(name, kind) for name, kind in fields.items())] if fields else Empty

    @classmethod
    def items_of(cls, what: str, value: Any, dtype: type[Numeric], count: int | None = None) -> list[Any]:
        """A thread's items as numbers of a type. count: how many there must be; by default at least one."""
        items = list(value) if isinstance(value, Vector | list | tuple) else [value]
        if not items or (count is not None and len(items) != count):
            raise argument_error(
                f"{cls.__name__} takes {count or 'one or more'} {what} per thread, got {len(items)}",
                f"fx.Vector.from_elements([...]), and as many in the brackets of {cls.__name__}",
            )
        return [dtype(item) for item in items]

    @classmethod
    def memory(cls, storage: Any, name: str) -> Slots:
        """A part of the shared storage."""
        held = storage.peek() if isinstance(storage, Storage) else storage
        part = held if isinstance(held, ArrayInMemory) else getattr(held, name, None)
        wanted = cls._fields()[name]
        if not isinstance(part, ArrayInMemory) or len(part) < wanted.size:
            size = f": it needs {wanted.size} elements, which is {len(part)}" if isinstance(part, ArrayInMemory) else ""
            raise argument_error(
                f"the storage of {cls.__name__} must be shared memory of its SharedStorage, got {storage!r}{size}",
                f"pass storage=fx.SharedAllocator().allocate({cls.__name__}.SharedStorage).peek()",
            )
        return Slots(part, wanted.dtype)


class Slots:
    """Numbers in shared memory, by their place."""

    def __init__(self, array: ArrayInMemory, dtype: type[Numeric]) -> None:
        self._view, self._dtype = array.view(make_layout(len(array), 1)), dtype

    def __getitem__(self, place: Any) -> Any:
        return memref_load(self._view, place)

    def __setitem__(self, place: Any, value: Any) -> None:
        memref_store(self._dtype(value), self._view, place)


def array_of(dtype: type[Numeric], count: int) -> Any:
    """The type of numbers in shared memory."""
    return Array.__class_getitem__((dtype, count, _ALIGN_BYTES))


def like(given: Any, items: Sequence[Any], dtype: type[Numeric]) -> Any:
    """Items in the form of what was given: a vector for several, a number for a number."""
    if isinstance(given, Vector | list | tuple):
        return Vector.from_elements(list(items), dtype)
    return items[0]


class BlockPrimitive(Primitive):
    """An operation of all threads of a block, whose numbers count along x first.

    block_size: threads, or those along x, y and z: 1 to 1024, above a wave a multiple of its lanes, below a power of
    two.
    """

    block_size: ClassVar[tuple[int, int, int]]
    block_threads: ClassVar[int]

    @classmethod
    def _checked_size(cls, size: Any) -> tuple[int, int, int]:
        sizes = (size, 1, 1) if not isinstance(size, tuple | list) else tuple(size)
        good = len(sizes) == 3 and all(type(extent) is int and extent > 0 for extent in sizes)
        if not good or prod(sizes) > _MAX_THREADS:
            raise argument_error(
                f"the threads of {cls.__name__} must be 1 to {_MAX_THREADS}, or those along x, y and z, got {size!r}",
                f"fx.coop.{cls.__name__}[fx.Float32, 256{', 4' if cls.has_items else ''}]",
            )
        return sizes

    @classmethod
    def thread(cls) -> Any:
        """This thread's number. The launch compares the block's size."""
        x, y, _ = cls.block_size
        lanes, threads = warp_size(), cls.block_threads
        if threads % lanes if threads > lanes else threads & (threads - 1):
            raise argument_error(
                f"{cls.__name__} of {threads} threads", f"pass a power of two up to {lanes}, or a multiple of {lanes}"
            )
        if cls.block_size[1:] == (1, 1):
            note_threads(cls.__name__, threads)
            return Int32(thread_idx.x)
        return Int32(thread_idx.x) + Int32(thread_idx.y) * x + Int32(thread_idx.z) * (x * y)

    @classmethod
    def lanes_of_warp(cls) -> int:
        """The lanes of a wave of the block, which may be smaller than a wave."""
        return min(cls.block_threads, warp_size())

    @classmethod
    def warps_of_block(cls) -> int:
        """The waves of the block."""
        return -(-cls.block_threads // cls.lanes_of_warp())

    @classmethod
    def tile_size(cls) -> int:
        """The items of all threads."""
        return cls.block_threads * cls.items_per_thread

    @classmethod
    def blocked(cls, thread: Any, count: int | None = None) -> list[Any]:
        """The places of a thread's items in a tile, one after another."""
        items = cls.items_per_thread if count is None else count
        return [thread * items + i for i in range(items)]

    @classmethod
    def striped(cls, thread: Any) -> list[Any]:
        """The places of a thread's items in a tile, a block apart."""
        return [thread + i * cls.block_threads for i in range(cls.items_per_thread)]

    @classmethod
    def warp_striped(cls, thread: Any) -> list[Any]:
        """The places of a thread's items in a tile, a wave apart in the part of its wave."""
        lanes = cls.warp_threads
        start = thread // lanes * (lanes * cls.items_per_thread) + thread % lanes
        return [start + i * lanes for i in range(cls.items_per_thread)]


class WarpPrimitive(Primitive):
    """An operation of `width` neighbouring lanes: a power of two up to a wave, None for the wave."""

    width: ClassVar[int | None]

    @classmethod
    def _checked_size(cls, size: Any) -> int | None:
        if size is not None and (type(size) is not int or size < 1):
            raise argument_error(
                f"{cls.__name__} of {size!r} lanes", f"fx.coop.{cls.__name__}[fx.Float32, 64], or None for a wave"
            )
        return size

    @classmethod
    def lanes_of_warp(cls) -> int:
        """The lanes of a group."""
        return lanes_of(cls.__name__, cls.width)

    @classmethod
    def lane(cls) -> Any:
        """This lane's number in its group."""
        return lane_id() & (cls.warp_threads - 1)


@cache
def _specialised(
    cls: Any, key: type[Numeric], value: type[Numeric] | None, size: Any, items: int, algorithm: Any
) -> Any:
    members: dict[str, Any] = {
        "dtype": key, "key_dtype": key, "value_dtype": value, "items_per_thread": items, "algorithm": algorithm,
    }  # fmt: skip
    if issubclass(cls, BlockPrimitive):
        members |= {"block_size": size, "block_threads": prod(size), "width": prod(size)}
    else:
        members["width"] = size
    threads = size[0] if isinstance(size, tuple) and size[1:] == (1, 1) else size
    shown = ", ".join(str(part) for part in (key.__name__, threads, *([items] if cls.has_items else [])))
    made: Any = type(f"{cls.__name__}[{shown}]", (cls,), members)
    return made


def truth(value: Any) -> Any:
    """A flag, a Boolean or a number, as a Boolean."""
    return value if isinstance(value, Boolean) else Int32(value) != 0
