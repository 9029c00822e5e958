"""Reductions and scans by the lanes of a wave, and by the threads of a block: `fx.coop`.

    total = fx.coop.warp_reduce(x, fx.ReductionOp.ADD)

    Sum = fx.coop.BlockReduce[fx.Float32, 256]
    storage = fx.SharedAllocator().allocate(Sum.SharedStorage)
    total = Sum.reduce(x, fx.ReductionOp.ADD, storage)

op: a `ReductionOp`, its name, or an associative and commutative function of two values (a scan needs associativity
only). Maximum and minimum leave NaNs out. Values are scalars of up to 64 bits. All lanes of a group take part in a
call; groups are `width` neighbouring lanes, a power of two, by default the wave. Every thread gets the result.

Floats are added in an order that depends on the width, the same in every lane.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, reduce
from math import inf
from typing import TYPE_CHECKING, Any, ClassVar

from flydsl.atoms.instruction_sets import CDNA, WAVE32
from flydsl.dialect.location import argument_error
from flydsl.expr.arith import maxnumf, maxsi, maxui, minnumf, minsi, minui
from flydsl.expr.flydsl_names.names import unknown_name
from flydsl.expr.gpu import barrier
from flydsl.expr.memory.shared_allocator import SharedAllocator
from flydsl.expr.memory.storage import ArrayInMemory, Storage
from flydsl.expr.memory.tensors import memref_load, memref_store
from flydsl.expr.numbers.vector_value import ReductionOp, Vector, as_vector
from flydsl.expr.numeric import Numeric, as_numeric, require_numeric
from flydsl.expr.rocdl.intrinsic import immediate
from flydsl.expr.rocdl.lane import lane_id, readlane, update_dpp
from flydsl.expr.struct import Array
from flydsl.expr.threads.block_threads import note_threads
from flydsl.expr.threads.positions import thread_idx
from flydsl.expr.threads.shuffle import moved_words, shuffle_idx, shuffle_up, shuffle_xor
from flydsl.expr.tracing.emit import target_name
from flydsl.layout import make_layout

if TYPE_CHECKING:
    from flydsl.expr.kinds import Number, Result

__all__ = [
    "BlockReduce", "BlockScan", "ReductionOp", "WarpReduce", "WarpScan", "block_reduce", "vector_reduce",
    "warp_broadcast", "warp_exclusive_scan", "warp_inclusive_scan", "warp_reduce", "warp_scan",
    "warp_scan_with_aggregate", "warp_size",
]  # fmt: skip

__getattr__ = unknown_name("flydsl.extension.coop", globals())

Combine = Callable[[Any, Any], Any]

# The lane that a step of a reduction reads, for each number of lanes that hold the same value already: within 4 lanes
# lane ^ 1 and lane ^ 2, then any lane of the other half of 8, and of 16 (ISA, "DPP_CTRL": quad_perm, row_half_mirror,
# row_mirror).
_STEPS_IN_ROW = {1: 0xB1, 2: 0x4E, 4: 0x141, 8: 0x140}
_ROW_LANES = 16
# The last lane of the row before, of the two rows before; rows without one before them read 0.
_ROW_BCAST = (0x142, 0x143)
_LAST_LANE = 63
_STORAGE = "it takes shared memory: fx.SharedAllocator().allocate(Sum.SharedStorage), Sum being the BlockReduce[...]"
# Numbers that one instruction reads from shared memory.
_READ_AT_ONCE = 4


def warp_size() -> int:
    """Lanes of a wave on the target."""
    return 32 if target_name() in WAVE32 else 64


def combination(op: ReductionOp | str) -> Combine:
    """The function of two values that an operation stands for."""
    if callable(op) and not isinstance(op, ReductionOp):
        return op
    return _COMBINATIONS[_named(op)]


def _named(op: Any) -> ReductionOp:
    try:
        return ReductionOp(op.lower() if isinstance(op, str) else op)
    except ValueError:
        names = ", ".join(member.value for member in ReductionOp)
        raise argument_error(f"reduction by {op!r}", f"pass a function, or {names}") from None


def _start(op: ReductionOp | str, dtype: type[Numeric], init: Any) -> Any:
    """The first value of a scan: `init`, or the neutral element, which is not known of a function."""
    if init is not None:
        return dtype(init)
    if callable(op) and not isinstance(op, ReductionOp):
        raise argument_error(
            "a scan by a function, without init",
            "init= is the value that leaves others as they are, such as 0 of a sum",
        )
    return dtype(_neutral(_named(op), dtype))


def _neutral(op: ReductionOp, dtype: type[Numeric]) -> float:
    if op in (ReductionOp.MAX, ReductionOp.MIN) and dtype.is_float:
        return -inf if op is ReductionOp.MAX else inf
    lowest, highest = (
        (-(1 << dtype.width - 1), (1 << dtype.width - 1) - 1) if dtype.signed else (0, (1 << dtype.width) - 1)
    )
    ones = -1 if dtype.signed else highest
    return {ReductionOp.MUL: 1, ReductionOp.MAX: lowest, ReductionOp.MIN: highest, ReductionOp.AND: ones}.get(op, 0)


def _extremum(of_floats: Combine, of_signed: Combine, of_unsigned: Combine) -> Combine:
    def combine(a: Any, b: Any) -> Any:
        dtype = a.dtype
        return (of_floats if dtype.is_float else of_signed if dtype.signed else of_unsigned)(a, b)

    return combine


_COMBINATIONS: dict[ReductionOp, Combine] = {
    ReductionOp.ADD: lambda a, b: a + b,
    ReductionOp.MUL: lambda a, b: a * b,
    ReductionOp.MAX: _extremum(maxnumf, maxsi, maxui),
    ReductionOp.MIN: _extremum(minnumf, minsi, minui),
    ReductionOp.AND: lambda a, b: a & b,
    ReductionOp.OR: lambda a, b: a | b,
    ReductionOp.XOR: lambda a, b: a ^ b,
}


def _lanes(what: str, width: Any) -> int:
    """The lanes of a group."""
    lanes = immediate(f"the width of {what}", warp_size() if width is None else width, 1, warp_size())
    if lanes & (lanes - 1):
        raise argument_error(
            f"{what}: groups must have a power of two of lanes, got {lanes}", "pass 64, the lanes of a wave"
        )
    return lanes


def warp_reduce(value: Number, op: ReductionOp | str, *, width: int | None = None) -> Result:
    """The values of a group's lanes combined to one, in every lane.

    Steps within 16 lanes are DPP, part of the instruction that combines. A whole wave of 64 goes on by DPP to its last
    lane, whose result becomes a scalar.
    """
    combine, lanes = combination(op), _lanes("warp_reduce", width)
    value = as_numeric(value)
    for same, control in _STEPS_IN_ROW.items():
        if same < lanes:
            value = combine(value, _moved(value, control))
    if lanes == _LAST_LANE + 1 and target_name() in CDNA:
        for control in _ROW_BCAST:
            value = combine(value, _moved(value, control))
        return moved_words(value, lambda word: readlane(word, _LAST_LANE))
    same = _ROW_LANES
    while same < lanes:
        value = combine(value, shuffle_xor(value, same, lanes))
        same *= 2
    return value


def _moved(value: Any, control: int) -> Any:
    return moved_words(value, lambda word: update_dpp(word, word, control, 0xF, 0xF, True))


def warp_broadcast(value: Number, src_lane: Number, *, width: int | None = None) -> Result:
    """The value of a group's lane number `src_lane`, in every lane."""
    return shuffle_idx(value, src_lane, _lanes("warp_broadcast", width))


def warp_inclusive_scan(
    value: Number, op: ReductionOp | str, *, width: int | None = None, init: Number | None = None
) -> Result:
    """In lane i the values of the group's lanes 0 to i combined, after `init`."""
    combine, lanes = combination(op), _lanes("warp_inclusive_scan", width)
    value = as_numeric(value)
    place, distance = lane_id() & (lanes - 1), 1
    while distance < lanes:
        before = combine(shuffle_up(value, distance, lanes), value)
        value = (place >= distance).select(before, value)
        distance *= 2
    return value if init is None else combine(value.dtype(init), value)


def warp_exclusive_scan(
    value: Number, op: ReductionOp | str, *, width: int | None = None, init: Number | None = None
) -> Result:
    """In lane i `init` and the values of the group's lanes before i combined; in lane 0 `init` itself.

    init: by default what leaves others as they are: 0 for a sum, 1 for a product, the least number for a maximum. A
    function as op needs it.
    """
    return warp_scan(value, op, width=width, init=init)[1]


def warp_scan(
    value: Number, op: ReductionOp | str, *, width: int | None = None, init: Number | None = None
) -> tuple[Result, Result]:
    """The inclusive and the exclusive scan. init: as for `warp_exclusive_scan`."""
    return warp_scan_with_aggregate(value, op, width=width, init=init)[:2]


def warp_scan_with_aggregate(
    value: Number, op: ReductionOp | str, *, width: int | None = None, init: Number | None = None
) -> tuple[Result, Result, Result]:
    """The inclusive and the exclusive scan, and all values of the group combined, without `init`.

    init: as for `warp_exclusive_scan`.
    """
    combine, lanes = combination(op), _lanes("warp_scan", width)
    value = as_numeric(value)
    own, start = warp_inclusive_scan(value, op, width=lanes), _start(op, value.dtype, init)
    before = (lane_id() & (lanes - 1) == 0).select(start, combine(start, shuffle_up(own, 1, lanes)))
    return combine(start, own), before, warp_broadcast(own, lanes - 1, width=lanes)


class WarpReduce:
    """`WarpReduce[dtype, width]`: `warp_reduce` of groups of one width."""

    dtype: ClassVar[type[Numeric]]
    width: ClassVar[int]

    def __class_getitem__(cls, parameters: Any) -> Any:
        dtype, width = parameters if isinstance(parameters, tuple) else (parameters, None)
        generic: Any = cls
        return _specialised(generic, require_numeric(cls.__name__, dtype), width)

    @classmethod
    def reduce(cls, value: Any, op: Any) -> Any:
        """The values of a group's lanes combined, in every lane."""
        return warp_reduce(cls.dtype(value), op, width=cls.width)


class WarpScan(WarpReduce):
    """`WarpScan[dtype, width]`: scans of groups of one width."""

    @classmethod
    def inclusive(cls, value: Any, op: Any, *, init: Any = None) -> Any:
        """See `warp_inclusive_scan`."""
        return warp_inclusive_scan(cls.dtype(value), op, width=cls.width, init=init)

    @classmethod
    def exclusive(cls, value: Any, op: Any, *, init: Any = None) -> Any:
        """See `warp_exclusive_scan`."""
        return warp_exclusive_scan(cls.dtype(value), op, width=cls.width, init=init)

    @classmethod
    def scan_with_aggregate(cls, value: Any, op: Any, *, init: Any = None) -> tuple[Any, Any, Any]:
        """See `warp_scan_with_aggregate`."""
        return warp_scan_with_aggregate(cls.dtype(value), op, width=cls.width, init=init)


class _Block:
    """Threads of a block in one dimension, and a number per wave in shared memory."""

    dtype: ClassVar[type[Numeric]]
    width: ClassVar[int]

    def __class_getitem__(cls, parameters: Any) -> Any:
        dtype, threads = parameters if isinstance(parameters, tuple) else (parameters, None)
        if isinstance(threads, tuple) and threads[1:] == (1, 1):
            threads = threads[0]  # as known_block_size() has it
        if not isinstance(threads, int) or not 1 <= threads <= 1024:
            raise argument_error(f"{cls.__name__}[{parameters!r}]", f"fx.coop.{cls.__name__}[fx.Float32, 256]")
        generic: Any = cls
        return _specialised(generic, require_numeric(cls.__name__, dtype), threads, max(1, threads // warp_size()))

    @classmethod
    def _waves(cls) -> int:
        """The waves of a block, which must have the threads that this is for; its launch compares."""
        note_threads(cls.__name__, cls.width)
        lanes = warp_size()
        if cls.width > lanes and cls.width % lanes:
            raise argument_error(f"{cls.__name__} of {cls.width} threads", f"pass a multiple of {lanes}")
        return max(1, cls.width // lanes)

    @classmethod
    def _items(cls, value: Any) -> list[Any]:
        """The values of a thread."""
        return [cls.dtype(item) for item in (value if isinstance(value, Vector) else [value])]

    @classmethod
    def _put(cls, total: Any, storage: Any) -> Any:
        """The numbers of all waves in shared memory, when every wave has put its own there."""
        memory = storage.peek() if isinstance(storage, Storage) else storage
        if not isinstance(memory, ArrayInMemory):
            raise argument_error(f"{cls.__name__} in {storage!r}", _STORAGE)
        if len(memory) < cls._waves():
            raise argument_error(
                f"{cls.__name__} in {storage!r}: it needs {cls._waves()} elements, which is {len(memory)}", _STORAGE
            )
        slots = memory.view(make_layout(cls._waves(), 1))
        memref_store(total, slots, thread_idx.x // warp_size())
        barrier()
        return slots


class BlockReduce(_Block):
    """`BlockReduce[dtype, threads]`: reductions by all threads of a block of one dimension.

    threads: all of the block, 1 to 1024; above a wave, a multiple of its lanes. SharedStorage: the memory that a
    reduction needs; a barrier must lie between two that share it. A launch with another number of threads is an error.
    """

    SharedStorage: ClassVar[type[Array]]

    def __new__(cls, *arguments: Any, **named: Any) -> Any:
        """`Sum(x, op, storage=memory)` is `Sum.reduce(x, op, memory)`."""
        if not hasattr(cls, "dtype"):
            raise argument_error("BlockReduce without its type and threads", "fx.BlockReduce[fx.Float32, 256]")
        return cls.reduce(*arguments, **named)

    @classmethod
    def reduce(cls, value: Any, op: Any, storage: Any) -> Any:
        """The values of the block's threads combined, in every thread. storage: shared memory of a SharedStorage.

        A vector is several values of its thread.
        """
        own = reduce(combination(op), cls._items(value))
        total = warp_reduce(own, op, width=min(cls.width, warp_size()))
        if cls._waves() == 1:
            return total
        slots, waves = cls._put(total, storage), cls._waves()
        if waves > _READ_AT_ONCE and waves & (waves - 1) == 0:
            return warp_reduce(memref_load(slots, thread_idx.x % waves), op, width=waves)
        return reduce(combination(op), (memref_load(slots, wave) for wave in range(waves)))


def block_reduce(value: Number, op: ReductionOp | str, threads: int) -> Result:
    """The values of all threads combined, in every thread: in each group of `threads` where that is within a wave.

    threads: of the block, or of a group of lanes. Each call has shared memory of its own, a number per wave, so none
    needs a barrier but the one inside.
    """
    if threads <= warp_size():
        return warp_reduce(value, op, width=threads)
    value = as_numeric(value)
    kind: Any = BlockReduce.__class_getitem__((value.dtype, threads))
    return kind.reduce(value, op, SharedAllocator().allocate(kind.SharedStorage).peek())


def vector_reduce(vector: Vector, op: ReductionOp | str) -> Result:
    """The elements of a vector combined by halves, which is how packed instructions do it."""
    vector, combine = as_vector("vector_reduce", vector), combination(op)
    while vector.numel > 1 and vector.numel % 2 == 0:
        half = vector.numel // 2
        vector = combine(vector[:half], vector[half:])
    first, *rest = vector
    for element in rest:
        first = combine(first, element)
    return first


class BlockScan(_Block):
    """`BlockScan[dtype, threads]`: scans by a block's threads, in the order of their numbers. See `BlockReduce`.

    A vector is several values of its thread, one after the other; the result is a vector then, too.
    """

    SharedStorage: ClassVar[type[Array]]

    @classmethod
    def inclusive(cls, value: Any, op: Any, storage: Any, *, init: Any = None) -> Any:
        """In thread i `init` and the values of threads 0 to i combined. init: as for `warp_exclusive_scan`."""
        return cls._scan(value, op, storage, init)[0]

    @classmethod
    def exclusive(cls, value: Any, op: Any, storage: Any, *, init: Any = None) -> Any:
        """In thread i `init` and the values of the threads before i combined."""
        return cls._scan(value, op, storage, init)[1]

    @classmethod
    def scan_with_aggregate(cls, value: Any, op: Any, storage: Any, *, init: Any = None) -> tuple[Any, Any, Any]:
        """The inclusive and the exclusive scan, and all values of the block combined, without `init`."""
        inclusive, exclusive, total = cls._scan(value, op, storage, init)
        return inclusive, exclusive, total()

    @classmethod
    def inclusive_with_aggregate(cls, value: Any, op: Any, storage: Any, *, init: Any = None) -> tuple[Any, Any]:
        """The inclusive scan, and all values of the block combined, without `init`."""
        inclusive, _, total = cls._scan(value, op, storage, init)
        return inclusive, total()

    @classmethod
    def exclusive_with_aggregate(cls, value: Any, op: Any, storage: Any, *, init: Any = None) -> tuple[Any, Any]:
        """The exclusive scan, and all values of the block combined, without `init`."""
        _, exclusive, total = cls._scan(value, op, storage, init)
        return exclusive, total()

    @classmethod
    def _scan(cls, value: Any, op: Any, storage: Any, init: Any) -> tuple[Result, Result, Callable[[], Result]]:
        if not isinstance(value, Vector):
            return cls._scan_threads(cls.dtype(value), op, storage, init)
        combine, items = combination(op), cls._items(value)
        _, first, total = cls._scan_threads(reduce(combine, items), op, storage, init)
        before = [first]
        for item in items:
            before.append(combine(before[-1], item))
        return Vector.from_elements(before[1:], cls.dtype), Vector.from_elements(before[:-1], cls.dtype), total

    @classmethod
    def _scan_threads(
        cls, number: Any, op: Any, storage: Any, init: Any
    ) -> tuple[Result, Result, Callable[[], Result]]:
        """The inclusive and the exclusive scan, and what reads the sum of the waves where it is asked for."""
        combine, lanes = combination(op), min(cls.width, warp_size())
        start = _start(op, cls.dtype, init)
        if cls._waves() == 1:
            inclusive, exclusive, total = warp_scan_with_aggregate(number, op, width=lanes, init=start)
            return inclusive, exclusive, lambda: total
        # What lies before this wave is not known yet, so lane 0's exclusive scan is chosen apart.
        own = warp_inclusive_scan(number, op, width=lanes)
        totals = cls._put(warp_broadcast(own, lanes - 1, width=lanes), storage)
        wave = thread_idx.x // lanes
        for earlier in range(cls._waves() - 1):
            start = (wave > earlier).select(combine(start, memref_load(totals, earlier)), start)
        lane = thread_idx.x % lanes
        inclusive = combine(start, own)
        before = (lane == 0).select(start, combine(start, shuffle_up(own, 1, lanes)))
        return inclusive, before, lambda: reduce(combine, (totals[wave] for wave in range(cls._waves())))


@cache
def _specialised(cls: Any, dtype: type[Numeric], width: int | None, waves: int = 0) -> Any:
    members: dict[str, Any] = {"dtype": dtype, "width": width}
    if waves:
        members["SharedStorage"] = Array.__class_getitem__((dtype, waves, 16))
    return type(f"{cls.__name__}[{dtype.__name__}, {width}]", (cls,), members)
