"""Reductions and scans by the threads of a block."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from functools import reduce
from typing import TYPE_CHECKING, Any

from flydsl.dialect.location import argument_error
from flydsl.expr.coop.operations import (
    Operation,
    combination,
    first_value,
    identity_of,
    keeps_order,
    warp_size,
    with_operation,
)
from flydsl.expr.coop.primitive import BlockPrimitive, Slots, array_of
from flydsl.expr.coop.warp_reductions import (
    warp_broadcast,
    warp_inclusive_scan,
    warp_reduce,
    warp_scan_with_aggregate,
)
from flydsl.expr.gpu import barrier
from flydsl.expr.memory.shared_allocator import SharedAllocator
from flydsl.expr.numbers.vector_value import ReductionOp, Vector, as_vector
from flydsl.expr.numeric import as_numeric
from flydsl.expr.threads.guarded import only_where
from flydsl.expr.threads.shuffle import shuffle_up

if TYPE_CHECKING:
    from flydsl.expr.kinds import Number, Result

# Numbers that one instruction reads from shared memory.
_READ_AT_ONCE = 4
_SMALLEST_WAVE = 32


class BlockReduceAlgorithm(Enum):
    """Ways for a block to reduce: WARP_REDUCTIONS wave by wave, RAKING by one wave, each lane of which takes a part.

    Both keep the order of the values for functions. RAKING_COMMUTATIVE_ONLY is RAKING, and
    WARP_REDUCTIONS_NONDETERMINISTIC is WARP_REDUCTIONS, whose result is the same every time; they take commutative
    operations only.
    """

    WARP_REDUCTIONS = "warp_reductions"
    RAKING = "raking"
    RAKING_COMMUTATIVE_ONLY = "raking_commutative_only"
    WARP_REDUCTIONS_NONDETERMINISTIC = "warp_reductions_nondeterministic"
    WarpReductions = WARP_REDUCTIONS
    Raking = RAKING
    RakingCommutativeOnly = RAKING_COMMUTATIVE_ONLY
    WarpReductionsNondeterministic = WARP_REDUCTIONS_NONDETERMINISTIC


class BlockScanAlgorithm(Enum):
    """Ways for a block to scan: WARP_SCANS wave by wave, RAKING by one wave, each lane of which takes a part.

    RAKING_MEMOIZE keeps these parts in registers between its two passes, where RAKING reads them again.
    """

    WARP_SCANS = "warp_scans"
    RAKING = "raking"
    RAKING_MEMOIZE = "raking_memoize"
    WarpScans = WARP_SCANS
    Raking = RAKING
    RakingMemoize = RAKING_MEMOIZE


class _Block(BlockPrimitive):
    """A block with a number per wave in shared memory, or per thread of those that rake."""

    @classmethod
    def _rakes(cls) -> bool:
        return cls.algorithm.name.startswith("RAKING")

    @classmethod
    def storage_type(cls) -> Any:
        """The type of `SharedStorage` on the target."""
        return array_of(cls.dtype, cls.block_threads + 1 if cls._rakes() else max(1, cls.block_threads // warp_size()))

    @classmethod
    def _fields(cls) -> dict[str, Any]:
        return {"slots": cls.storage_type()}

    @classmethod
    def _waves(cls) -> int:
        cls.thread()  # which checks the block
        return max(1, cls.block_threads // warp_size())

    @classmethod
    def _items(cls, value: Any) -> list[Any]:
        """The values of a thread."""
        return cls.items_of("values", value, cls.dtype)

    @classmethod
    def _put(cls, total: Any, storage: Any) -> Slots:
        """The numbers of all waves in shared memory, when every wave has put its own there."""
        slots = cls.memory(storage, "slots")
        slots[cls.thread() // warp_size()] = total
        barrier()
        return slots

    @classmethod
    def _raked(cls, own: Any, storage: Any) -> tuple[Slots, int, Any]:
        """All values in shared memory, how many each lane of the first wave takes, and whether this thread is one."""
        slots, lanes = cls.memory(storage, "slots"), cls.warp_threads
        slots[cls.thread()] = own
        barrier()
        return slots, cls.block_threads // lanes, cls.thread() < lanes


class BlockReduce(_Block):
    """`BlockReduce[dtype, threads, algorithm]`: reductions by all threads of a block.

    threads: all of the block, 1 to 1024; above a wave, a multiple of its lanes. SharedStorage: the memory that a
    reduction needs; a barrier must lie between two that share it. A launch with another number of threads is an error.
    """

    algorithms = BlockReduceAlgorithm

    def __new__(cls, *arguments: Any, **named: Any) -> Any:
        """`Sum(x, op, storage=memory)` is `Sum.reduce(x, op, memory)`."""
        _ = cls.dtype  # an error without brackets
        return cls.reduce(*arguments, **named)

    @classmethod
    def reduce(cls, value: Any, op: Any, storage: Any, *, valid_items: Any = None, identity: Any = None) -> Any:
        """The values of the block's threads combined, in every thread. storage: shared memory of a SharedStorage.

        A vector is several values of its thread. valid_items: of how many threads the values count, from the first on;
        identity: the value that leaves others as they are, of a function that has none as `identity`.
        """
        combine, items = combination(op), cls._items(value)
        if keeps_order(op) and cls.algorithm.name.endswith(("COMMUTATIVE_ONLY", "NONDETERMINISTIC")):
            raise argument_error(
                f"{cls.algorithm} needs a function that is marked as commutative", "set function.commutative = True"
            )
        own = reduce(combine, items)
        if valid_items is not None:
            own = (cls.thread() < valid_items).select(own, cls._identity(items, op, identity))
        if cls._rakes():
            return cls._by_raking(own, op, storage)
        total = warp_reduce(own, op, width=cls.warp_threads)
        if cls._waves() == 1:
            return total
        slots, waves = cls._put(total, storage), cls._waves()
        if waves > _READ_AT_ONCE and waves & (waves - 1) == 0:
            return warp_reduce(slots[cls.thread() % waves], op, width=waves)
        return reduce(combine, (slots[wave] for wave in range(waves)))

    sum = with_operation(ReductionOp.ADD, "reduce", "sum")

    @classmethod
    def _identity(cls, items: list[Any], op: Any, given: Any) -> Any:
        found = identity_of(op, cls.dtype, given)
        if found is None or len(items) > 1:
            raise argument_error(
                f"{cls.__name__} of valid_items" + (" by a function" if found is None else ", and several of a thread"),
                "pass identity=, such as 0 of a sum" if found is None else "omit valid_items",
            )
        return found

    @classmethod
    def _by_raking(cls, own: Any, op: Any, storage: Any) -> Any:
        slots, share, rakes = cls._raked(own, storage)
        with only_where(rakes):
            first = cls.thread() * share
            part = reduce(combination(op), (slots[first + i] for i in range(share)))
            slots[cls.block_threads] = warp_reduce(part, op, width=cls.warp_threads)
        barrier()
        return slots[cls.block_threads]


def block_reduce(value: Number, op: Operation, threads: int) -> Result:
    """The values of all threads combined, in every thread: in each group of `threads` where that is within a wave.

    threads: of the block, or of a group of lanes. Each call has shared memory of its own, a number per wave, so none
    needs a barrier but the one inside.
    """
    if threads <= warp_size():
        return warp_reduce(value, op, width=threads)
    value = as_numeric(value)
    kind: Any = BlockReduce.__class_getitem__((value.dtype, threads))
    return kind.reduce(value, op, SharedAllocator().allocate(kind.SharedStorage).peek())


def vector_reduce(vector: Vector, op: Operation) -> Result:
    """The elements of a vector combined by halves, which is how packed instructions do it."""
    vector, combine = as_vector("vector_reduce", vector), combination(op)
    while vector.numel > 1 and vector.numel % 2 == 0:
        half = vector.numel // 2
        vector = combine(vector[:half], vector[half:])
    first, *rest = vector
    for element in rest:
        first = combine(first, element)
    return first


def scan_memory(dtype: Any, threads: int) -> Any:
    """The type of the memory that a scan by `threads` threads needs on any target."""
    return array_of(dtype, max(1, threads // _SMALLEST_WAVE))


class BlockScan(_Block):
    """`BlockScan[dtype, threads, algorithm]`: scans by a block's threads, in the order of their numbers.

    See `BlockReduce`. A vector is several values of its thread, one after the other; the result is a vector then, too.
    init: as for `warp_exclusive_scan`. valid_items: of how many threads the values count, from the first on; identity:
    as for `BlockReduce`. prefix_callback: in the first wave, of all values combined, gives what comes before them, from
    lane 0, in the place of init.
    """

    algorithms = BlockScanAlgorithm

    @classmethod
    def inclusive(cls, value: Any, op: Any, storage: Any, **options: Any) -> Any:
        """In thread i `init` and the values of threads 0 to i combined."""
        return cls._scan(value, op, storage, **options)[0]

    @classmethod
    def exclusive(cls, value: Any, op: Any, storage: Any, **options: Any) -> Any:
        """In thread i `init` and the values of the threads before i combined."""
        return cls._scan(value, op, storage, **options)[1]

    @classmethod
    def scan_with_aggregate(cls, value: Any, op: Any, storage: Any, **options: Any) -> tuple[Any, Any, Any]:
        """The inclusive and the exclusive scan, and all values of the block combined, without `init`."""
        inclusive, exclusive, total = cls._scan(value, op, storage, **options)
        return inclusive, exclusive, total()

    @classmethod
    def inclusive_with_aggregate(cls, value: Any, op: Any, storage: Any, **options: Any) -> tuple[Any, Any]:
        """The inclusive scan, and all values of the block combined, without `init`."""
        inclusive, _, total = cls._scan(value, op, storage, **options)
        return inclusive, total()

    @classmethod
    def exclusive_with_aggregate(cls, value: Any, op: Any, storage: Any, **options: Any) -> tuple[Any, Any]:
        """The exclusive scan, and all values of the block combined, without `init`."""
        _, exclusive, total = cls._scan(value, op, storage, **options)
        return exclusive, total()

    inclusive_sum = with_operation(ReductionOp.ADD, "inclusive", "inclusive_sum")
    exclusive_sum = with_operation(ReductionOp.ADD, "exclusive", "exclusive_sum")
    inclusive_sum_with_aggregate = with_operation(
        ReductionOp.ADD, "inclusive_with_aggregate", "inclusive_sum_with_aggregate"
    )
    exclusive_sum_with_aggregate = with_operation(
        ReductionOp.ADD, "exclusive_with_aggregate", "exclusive_sum_with_aggregate"
    )

    @classmethod
    def _scan(
        cls,
        value: Any,
        op: Any,
        storage: Any,
        *,
        init: Any = None,
        identity: Any = None,
        valid_items: Any = None,
        prefix_callback: Callable[[Any], Any] | None = None,
    ) -> tuple[Result, Result, Callable[[], Result]]:
        combine, items = combination(op), cls._items(value)
        neutral = identity_of(op, cls.dtype, identity)
        if valid_items is not None:
            if neutral is None or len(items) > 1:
                raise argument_error(
                    f"{cls.__name__} of valid_items, of {len(items)} values of each thread",
                    "pass identity=, such as 0 of a sum, and one value of each thread",
                )
            items = [(cls.thread() < valid_items).select(items[0], neutral)]
        if prefix_callback is not None:
            return cls._after_callback(value, items, op, storage, neutral, prefix_callback)
        start = neutral if init is None and identity is not None else first_value(op, cls.dtype, init)
        inclusive, exclusive, total = cls._scan_threads(reduce(combine, items), op, storage, start)
        if not isinstance(value, Vector | list | tuple):
            return inclusive, exclusive, total
        return *cls._within(items, exclusive, combine), total

    @classmethod
    def _within(cls, items: list[Any], first: Any, combine: Any) -> tuple[Vector, Vector]:
        """The scans of a thread's items, of what comes before them."""
        before = [first]
        for item in items:
            before.append(combine(before[-1], item))
        return Vector.from_elements(before[1:], cls.dtype), Vector.from_elements(before[:-1], cls.dtype)

    @classmethod
    def _after_callback(
        cls, value: Any, items: list[Any], op: Any, storage: Any, neutral: Any, callback: Callable[[Any], Any]
    ) -> tuple[Result, Result, Callable[[], Result]]:
        combine = combination(op)
        if neutral is None:
            raise argument_error(f"{cls.__name__} by a function, with prefix_callback", "pass identity=, too")
        inclusive, exclusive, total = cls._scan_threads(reduce(combine, items), op, storage, neutral)
        everything, slots = total(), cls.memory(storage, "slots")
        barrier()  # all have read the totals
        with only_where(cls.thread() < cls.warp_threads):
            prefix = cls.dtype(callback(everything))
            with only_where(cls.thread() == 0):
                slots[0] = prefix
        barrier()
        start = slots[0]
        if not isinstance(value, Vector | list | tuple):
            return combine(start, inclusive), combine(start, exclusive), lambda: everything
        return *cls._within(items, combine(start, exclusive), combine), lambda: everything

    @classmethod
    def _scan_threads(
        cls, number: Any, op: Any, storage: Any, start: Any
    ) -> tuple[Result, Result, Callable[[], Result]]:
        """The inclusive and the exclusive scan, and what reads the sum of the waves where it is asked for."""
        combine, lanes = combination(op), cls.warp_threads
        if cls._rakes():
            return cls._by_raking(number, op, storage, start)
        if cls._waves() == 1:
            inclusive, exclusive, total = warp_scan_with_aggregate(number, op, width=lanes, init=start)
            return inclusive, exclusive, lambda: total
        # What lies before this wave is not known yet, so lane 0's exclusive scan is chosen apart.
        own = warp_inclusive_scan(number, op, width=lanes)
        totals = cls._put(warp_broadcast(own, lanes - 1, width=lanes), storage)
        wave = cls.thread() // lanes
        for earlier in range(cls._waves() - 1):
            start = (wave > earlier).select(combine(start, totals[earlier]), start)
        lane = cls.thread() % lanes
        inclusive = combine(start, own)
        before = (lane == 0).select(start, combine(start, shuffle_up(own, 1, lanes)))
        return inclusive, before, lambda: reduce(combine, (totals[wave] for wave in range(cls._waves())))

    @classmethod
    def _by_raking(cls, own: Any, op: Any, storage: Any, start: Any) -> tuple[Result, Result, Callable[[], Result]]:
        combine, threads = combination(op), cls.block_threads
        slots, share, rakes = cls._raked(own, storage)
        with only_where(rakes):
            first = cls.thread() * share
            part = [slots[first + i] for i in range(share)]
            _, before, total = warp_scan_with_aggregate(reduce(combine, part), op, width=cls.warp_threads, init=start)
            if cls.algorithm is BlockScanAlgorithm.RAKING:
                part = [slots[first + i] for i in range(share)]
            for i, number in enumerate(part):
                slots[first + i] = before
                before = combine(before, number)
            slots[threads] = total
        barrier()
        exclusive = slots[cls.thread()]
        return combine(exclusive, own), exclusive, lambda: slots[threads]
