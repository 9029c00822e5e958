"""Reductions and scans by the lanes of a wave.

Several items of a lane, a vector, a list or a tuple, come before those of the next lane.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Any

from flydsl.atoms.instruction_sets import CDNA
from flydsl.dialect.location import argument_error
from flydsl.expr.coop.operations import Operation, combination, first_value, keeps_order, lanes_of, with_operation
from flydsl.expr.coop.primitive import WarpPrimitive, truth
from flydsl.expr.numbers.vector_value import ReductionOp, Vector
from flydsl.expr.numeric import Boolean, Int32, as_numeric
from flydsl.expr.rocdl.lane import lane_id, readlane, update_dpp
from flydsl.expr.threads.shuffle import moved_words, shuffle_down, shuffle_idx, shuffle_up, shuffle_xor
from flydsl.expr.tracing.emit import target_name

if TYPE_CHECKING:
    from flydsl.expr.kinds import Items, Number, Result

# The lane that a step of a reduction reads, for each number of lanes that hold the same value already: within 4 lanes
# lane ^ 1 and lane ^ 2, then any lane of the other half of 8, and of 16 (ISA, "DPP_CTRL": quad_perm, row_half_mirror,
# row_mirror).
_STEPS_IN_ROW = {1: 0xB1, 2: 0x4E, 4: 0x141, 8: 0x140}
_ROW_LANES = 16
# The last lane of the row before, of the two rows before; rows without one before them read 0.
_ROW_BCAST = (0x142, 0x143)
_LAST_LANE = 63


def warp_reduce(value: Items, op: Operation, *, width: int | None = None, valid_items: Number | None = None) -> Result:
    """The values of a group's lanes combined, in every lane. valid_items: of how many of them, from the first on.

    Steps within 16 lanes are DPP, part of the instruction that combines. A whole wave of 64 goes on by DPP to its last
    lane, whose result becomes a scalar. The operands of a function keep their order unless it has `commutative = True`.
    """
    combine, lanes = combination(op), lanes_of("warp_reduce", width)
    if valid_items is not None:
        _require_one_item("warp_reduce", value)
        last = as_numeric(valid_items) - 1
        return warp_broadcast(warp_inclusive_scan(value, op, width=lanes), last, width=lanes)
    value = _combined(value, op)
    ordered = keeps_order(op)
    for same, control in _STEPS_IN_ROW.items():
        if same < lanes:
            value = _joined(op, value, _moved(value, control), same)
    if lanes == _LAST_LANE + 1 and target_name() in CDNA:
        for control in _ROW_BCAST:
            moved = _moved(value, control)
            value = combine(moved, value) if ordered else combine(value, moved)
        return moved_words(value, lambda word: readlane(word, _LAST_LANE))
    same = _ROW_LANES
    while same < lanes:
        value = _joined(op, value, shuffle_xor(value, same, lanes), same)
        same *= 2
    return value


def _joined(op: Any, own: Any, other: Any, same: int) -> Any:
    """Two values combined, of `same` lanes each: those of the lower lanes first, if the order matters."""
    combine = combination(op)
    if not keeps_order(op):
        return combine(own, other)
    is_upper = lane_id() & same != 0
    return combine(is_upper.select(other, own), is_upper.select(own, other))


def _combined(value: Any, op: Any) -> Any:
    """A lane's items combined."""
    if not isinstance(value, Vector | list | tuple):
        return as_numeric(value)
    return reduce(combination(op), [as_numeric(item) for item in value])


def _require_one_item(what: str, value: Any) -> None:
    if isinstance(value, Vector | list | tuple):
        raise argument_error(f"{what} of several items of each lane, with valid_items", "omit it, or pass one item")


def _moved(value: Any, control: int) -> Any:
    return moved_words(value, lambda word: update_dpp(word, word, control, 0xF, 0xF, True))


def warp_head_segmented_reduce(value: Items, head_flag: Number, op: Operation, *, width: int | None = None) -> Result:
    """The values of each segment of a group's lanes combined, in the segment's first lane; undefined in the others.

    head_flag: not zero where a segment begins. The group's first lane begins one, too.
    """
    lanes = lanes_of("warp_head_segmented_reduce", width)
    is_head = truth(head_flag).select(Int32(1), Int32(0))
    lane = lane_id() & (lanes - 1)
    behind = shuffle_down(is_head, 1, lanes)
    return _segmented(value, (lane == lanes - 1) | (behind != 0), op, lanes)


def warp_tail_segmented_reduce(value: Items, tail_flag: Number, op: Operation, *, width: int | None = None) -> Result:
    """The values of each segment of a group's lanes combined, in the segment's first lane; undefined in the others.

    tail_flag: not zero where a segment ends. The group's last lane ends one, too.
    """
    lanes = lanes_of("warp_tail_segmented_reduce", width)
    lane = lane_id() & (lanes - 1)
    return _segmented(value, truth(tail_flag) | (lane == lanes - 1), op, lanes)


def _segmented(value: Any, is_tail: Boolean, op: Any, lanes: int) -> Any:
    """Combine the values from each lane to the end of its segment."""
    combine, total = combination(op), _combined(value, op)
    ended, distance = is_tail.select(Int32(1), Int32(0)), 1
    while distance < lanes:
        behind, theirs = shuffle_down(total, distance, lanes), shuffle_down(ended, distance, lanes)
        total = (ended != 0).select(total, combine(total, behind))
        ended = ended | theirs
        distance *= 2
    return total


def warp_reduce_batched(
    value: Items, op: Operation, *, width: int | None = None, sync_physical_warp: bool = False
) -> Result:
    """Item i of a group's lanes combined, in lane i; undefined in lanes without one. At most as many items as lanes.

    sync_physical_warp: whether the whole wave takes part, which makes no difference here.
    """
    columns, lanes = _batches("warp_reduce_batched", value), lanes_of("warp_reduce_batched", width)
    if len(columns) > lanes:
        raise argument_error(
            f"warp_reduce_batched of {len(columns)} items by {lanes} lanes", "warp_reduce_batched_to_blocked takes more"
        )
    return _dealt([warp_reduce(column, op, width=lanes) for column in columns], lanes, 1, is_blocked=False)[0]


def warp_reduce_batched_to_blocked(
    value: Items, op: Operation, *, width: int | None = None, sync_physical_warp: bool = False
) -> Result:
    """Item i of a group's lanes combined; lane l has the totals from l * n on, n being as many as it takes for all."""
    return _batched(value, op, width, is_blocked=True)


def warp_reduce_batched_to_striped(
    value: Items, op: Operation, *, width: int | None = None, sync_physical_warp: bool = False
) -> Result:
    """Item i of a group's lanes combined; lane l has the totals number l, l + width and so on."""
    return _batched(value, op, width, is_blocked=False)


def _batched(value: Any, op: Any, width: Any, is_blocked: bool) -> Vector:
    columns, lanes = _batches("warp_reduce_batched", value), lanes_of("warp_reduce_batched", width)
    totals = [warp_reduce(column, op, width=lanes) for column in columns]
    return Vector.from_elements(_dealt(totals, lanes, -(-len(totals) // lanes), is_blocked), totals[0].dtype)


def _batches(what: str, value: Any) -> list[Any]:
    if not isinstance(value, Vector | list | tuple) or not len(value):
        raise argument_error(f"{what} of {value!r}: a vector or list of items", "pass [value] for one")
    return [as_numeric(item) for item in value]


def _dealt(totals: list[Any], lanes: int, share: int, is_blocked: bool) -> list[Any]:
    """Values that all lanes have, dealt out to them."""
    lane, dealt = lane_id() & (lanes - 1), []
    for slot in range(share):
        number = lane * share + slot if is_blocked else lane + slot * lanes
        mine = totals[0]
        for i, total in enumerate(totals[1:], 1):
            mine = (number == i).select(total, mine)
        dealt.append(mine)
    return dealt


def warp_broadcast(value: Number, src_lane: Number, *, width: int | None = None) -> Result:
    """The value of a group's lane number `src_lane`, in every lane."""
    return shuffle_idx(value, src_lane, lanes_of("warp_broadcast", width))


def warp_inclusive_scan(
    value: Items,
    op: Operation,
    *,
    width: int | None = None,
    init: Number | None = None,
    valid_items: Number | None = None,
) -> Result:
    """In lane i the values of the group's lanes 0 to i combined, after `init`.

    valid_items: of how many lanes the values count, from the first on; the others' result is undefined.
    """
    combine, lanes = combination(op), lanes_of("warp_inclusive_scan", width)
    if isinstance(value, Vector | list | tuple):
        return _scan_items(value, op, lanes, init, is_inclusive=True)
    value = as_numeric(value)
    place, distance = lane_id() & (lanes - 1), 1
    while distance < lanes:
        before = combine(shuffle_up(value, distance, lanes), value)
        value = (place >= distance).select(before, value)
        distance *= 2
    return value if init is None else combine(value.dtype(init), value)


def _scan_items(value: Any, op: Any, lanes: int, init: Any, is_inclusive: bool) -> Vector:
    """The scan of several items of each lane."""
    combine, items = combination(op), [as_numeric(item) for item in value]
    dtype = items[0].dtype
    totals = warp_inclusive_scan(reduce(combine, items), op, width=lanes)
    earlier, is_first = shuffle_up(totals, 1, lanes), lane_id() & (lanes - 1) == 0
    if init is None and is_inclusive:
        found = [is_first.select(items[0], combine(earlier, items[0]))]
        for item in items[1:]:
            found.append(combine(found[-1], item))
        return Vector.from_elements(found, dtype)
    start = first_value(op, dtype, init)
    found = [is_first.select(start, combine(start, earlier))]
    for item in items:
        found.append(combine(found[-1], item))
    return Vector.from_elements(found[1:] if is_inclusive else found[:-1], dtype)


def warp_exclusive_scan(
    value: Items,
    op: Operation,
    *,
    width: int | None = None,
    init: Number | None = None,
    valid_items: Number | None = None,
) -> Result:
    """In lane i `init` and the values of the group's lanes before i combined; in lane 0 `init` itself.

    init: by default what leaves others as they are: 0 for a sum, 1 for a product, the least number for a maximum. A
    function as op needs it, or has it as `identity`.
    """
    return warp_scan(value, op, width=width, init=init, valid_items=valid_items)[1]


def warp_scan(
    value: Items,
    op: Operation,
    *,
    width: int | None = None,
    init: Number | None = None,
    valid_items: Number | None = None,
) -> tuple[Result, Result]:
    """The inclusive and the exclusive scan. init: as for `warp_exclusive_scan`."""
    return warp_scan_with_aggregate(value, op, width=width, init=init, valid_items=valid_items)[:2]


def warp_scan_with_aggregate(
    value: Items,
    op: Operation,
    *,
    width: int | None = None,
    init: Number | None = None,
    valid_items: Number | None = None,
) -> tuple[Result, Result, Result]:
    """The inclusive and the exclusive scan, and all values of the group combined, without `init`.

    init: as for `warp_exclusive_scan`. valid_items: as for `warp_inclusive_scan`.
    """
    combine, lanes = combination(op), lanes_of("warp_scan", width)
    if isinstance(value, Vector | list | tuple):
        _require_one_item("warp_scan", None if valid_items is None else value)
        both = [_scan_items(value, op, lanes, init, is_inclusive=inclusive) for inclusive in (True, False)]
        return both[0], both[1], warp_reduce(value, op, width=lanes)
    value = as_numeric(value)
    own, start = warp_inclusive_scan(value, op, width=lanes), first_value(op, value.dtype, init)
    before = (lane_id() & (lanes - 1) == 0).select(start, combine(start, shuffle_up(own, 1, lanes)))
    last = lanes - 1 if valid_items is None else as_numeric(valid_items) - 1
    return combine(start, own), before, warp_broadcast(own, last, width=lanes)


class WarpReduce(WarpPrimitive):
    """`WarpReduce[dtype, width]`: `warp_reduce` of groups of one width."""

    @classmethod
    def reduce(cls, value: Any, op: Any, *, valid_items: Any = None, storage: Any = None) -> Any:
        """The values of a group's lanes combined, in every lane."""
        return warp_reduce(cls._given(value), op, width=cls.width, valid_items=valid_items)

    @classmethod
    def head_segmented_reduce(cls, value: Any, head_flag: Any, op: Any, *, storage: Any = None) -> Any:
        """See `warp_head_segmented_reduce`."""
        return warp_head_segmented_reduce(cls._given(value), head_flag, op, width=cls.width)

    @classmethod
    def tail_segmented_reduce(cls, value: Any, tail_flag: Any, op: Any, *, storage: Any = None) -> Any:
        """See `warp_tail_segmented_reduce`."""
        return warp_tail_segmented_reduce(cls._given(value), tail_flag, op, width=cls.width)

    sum = with_operation(ReductionOp.ADD, "reduce", "sum")
    max = with_operation(ReductionOp.MAX, "reduce", "max")
    min = with_operation(ReductionOp.MIN, "reduce", "min")
    head_segmented_sum = with_operation(ReductionOp.ADD, "head_segmented_reduce", "head_segmented_sum")
    tail_segmented_sum = with_operation(ReductionOp.ADD, "tail_segmented_reduce", "tail_segmented_sum")

    @classmethod
    def _given(cls, value: Any) -> Any:
        if not isinstance(value, Vector | list | tuple):
            return cls.dtype(value)
        return Vector.from_elements([cls.dtype(item) for item in value], cls.dtype)


class WarpScan(WarpReduce):
    """`WarpScan[dtype, width]`: scans of groups of one width."""

    @classmethod
    def inclusive(cls, value: Any, op: Any, *, init: Any = None, valid_items: Any = None, storage: Any = None) -> Any:
        """See `warp_inclusive_scan`."""
        return warp_inclusive_scan(cls._given(value), op, width=cls.width, init=init, valid_items=valid_items)

    @classmethod
    def exclusive(cls, value: Any, op: Any, *, init: Any = None, valid_items: Any = None, storage: Any = None) -> Any:
        """See `warp_exclusive_scan`."""
        return warp_exclusive_scan(cls._given(value), op, width=cls.width, init=init, valid_items=valid_items)

    @classmethod
    def scan(
        cls, value: Any, op: Any, *, init: Any = None, valid_items: Any = None, storage: Any = None
    ) -> tuple[Any, Any]:
        """See `warp_scan`."""
        return warp_scan(cls._given(value), op, width=cls.width, init=init, valid_items=valid_items)

    @classmethod
    def scan_with_aggregate(
        cls, value: Any, op: Any, *, init: Any = None, valid_items: Any = None, storage: Any = None
    ) -> tuple[Any, Any, Any]:
        """See `warp_scan_with_aggregate`."""
        return warp_scan_with_aggregate(cls._given(value), op, width=cls.width, init=init, valid_items=valid_items)

    @classmethod
    def broadcast(cls, value: Any, source_lane: Any, *, storage: Any = None) -> Any:
        """See `warp_broadcast`."""
        return warp_broadcast(cls.dtype(value), source_lane, width=cls.width)

    inclusive_scan, exclusive_scan = inclusive, exclusive
    inclusive_sum = with_operation(ReductionOp.ADD, "inclusive", "inclusive_sum")
    exclusive_sum = with_operation(ReductionOp.ADD, "exclusive", "exclusive_sum")


class WarpReduceBatched(WarpPrimitive):
    """`WarpReduceBatched[dtype, width, batches]`: several reductions of groups of one width at once."""

    has_items = True

    @classmethod
    def reduce(cls, value: Any, op: Any, *, sync_physical_warp: bool = False, storage: Any = None) -> Any:
        """See `warp_reduce_batched`."""
        return warp_reduce_batched(cls._columns(value), op, width=cls.width)

    @classmethod
    def reduce_to_blocked(cls, value: Any, op: Any, *, sync_physical_warp: bool = False, storage: Any = None) -> Any:
        """See `warp_reduce_batched_to_blocked`."""
        return warp_reduce_batched_to_blocked(cls._columns(value), op, width=cls.width)

    @classmethod
    def reduce_to_striped(cls, value: Any, op: Any, *, sync_physical_warp: bool = False, storage: Any = None) -> Any:
        """See `warp_reduce_batched_to_striped`."""
        return warp_reduce_batched_to_striped(cls._columns(value), op, width=cls.width)

    sum = with_operation(ReductionOp.ADD, "reduce", "sum")
    sum_to_blocked = with_operation(ReductionOp.ADD, "reduce_to_blocked", "sum_to_blocked")
    sum_to_striped = with_operation(ReductionOp.ADD, "reduce_to_striped", "sum_to_striped")

    @classmethod
    def _columns(cls, value: Any) -> list[Any]:
        return cls.items_of("batches", value, cls.dtype, cls.items_per_thread)
