"""Data movement between lanes: readlane, swizzle, permute, and counting lanes of a mask."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from flydsl.simulator.isa.builder import Builder, Value
from flydsl.simulator.isa.common import curried
from flydsl.simulator.isa.fields import field_of, packed_fields
from flydsl.simulator.isa.table import define

define("v_readfirstlane_b32", "i32 = i32", lambda b, x: b.read_first_lane(x))
define("v_readlane_b32", "i32 = i32 i32", lambda b, x, lane: b.read_lane(x, lane))


def _write_lane(b: Builder, x: Value, lane: Value, old: Value) -> Value:
    chosen = b.icmp("eq", b.lane_id(), b.and_(lane, b.const("i32", b.lane_count - 1)))
    return b.select(chosen, x, old)


define("v_writelane_b32", "i32 = i32 i32 dst", _write_lane, ignores_exec=True)
define("v_swap_b32", "i32 i32 = dst dst1", lambda b, x, y: (y, x))


@curried
def _count_below(b: Builder, mask: Value, start: Value, *, high: bool) -> Value:
    """v_mbcnt: the ones of the mask's half below this lane, plus the second operand."""
    lane = b.lane_id()
    half = b.const("i32", 32)
    in_upper = b.icmp("uge", lane, half)
    below = b.sub(b.shl(b.const("i32", 1), b.and_(lane, b.const("i32", 31))), b.const("i32", 1))
    edge = b.const("i32", 0) if high else b.const("i32", -1)
    lanes = b.select(in_upper, below, edge) if high else b.select(in_upper, edge, below)
    return b.add(b.ctpop(b.and_(mask, lanes)), start)


define("v_mbcnt_lo_u32_b32", "i32 = i32 i32", _count_below(high=False))
define("v_mbcnt_hi_u32_b32", "i32 = i32 i32", _count_below(high=True))


def _active_or_zero(b: Builder, x: Value) -> Value:
    """The value of each lane; 0 for lanes that are not active."""
    return b.select(b.exec_mask(), x, b.const("i32", 0))


def _lane_of_address(b: Builder, address: Value, modifiers: Any) -> Value:
    offset = b.const("i32", modifiers.integer("offset"))
    return b.and_(b.lshr(b.add(address, offset), b.const("i32", 2)), b.const("i32", b.lane_count - 1))


def _backward_permute(b: Builder, address: Value, data: Value, modifiers: Any) -> Value:
    """ds_bpermute: every lane reads the lane that its address (4 bytes per lane) names."""
    return b.permute(_active_or_zero(b, data), _lane_of_address(b, address, modifiers))


def _forward_permute(b: Builder, address: Value, data: Value, modifiers: Any) -> Value:
    """ds_permute: every lane writes to the lane that its address names; the highest one wins, 0 where none writes."""
    return b.scatter_lanes(data, _lane_of_address(b, address, modifiers))


define("ds_bpermute_b32", "i32 = i32 i32 modifiers", _backward_permute)
define("ds_permute_b32", "i32 = i32 i32 modifiers", _forward_permute)


def _fetching_permute(b: Builder, address: Value, data: Value, modifiers: Any) -> Value:
    """Lanes that are not active are read, too."""
    return b.permute(b.per_lane(data), _lane_of_address(b, address, modifiers))


define("ds_bpermute_fi_b32", "i32 = i32 i32 modifiers", _fetching_permute, of="rdna4 cdna5")


def _swizzle(b: Builder, data: Value, modifiers: Any) -> Value:
    lane = b.lane_id()
    source = _swizzle_source(b, lane, _swizzle_pattern(modifiers))
    return b.permute(_active_or_zero(b, data), source)


def _swizzle_source(b: Builder, lane: Value, pattern: int) -> Value:
    """Bit 15 set: a permutation of each four lanes. Clear: and-, or- and xor-masks on each 32 lanes."""
    if pattern >= 0xE000:
        return _butterfly_source(b, lane, pattern & 31)
    if pattern >= 0xC000:
        return _rotated_source(b, lane, pattern)
    if pattern & 0x8000:
        selected = b.and_(
            b.lshr(b.const("i32", pattern), b.mul(b.and_(lane, b.const("i32", 3)), b.const("i32", 2))),
            b.const("i32", 3),
        )
        return b.or_(b.and_(lane, b.const("i32", ~3)), selected)
    and_mask, or_mask, xor_mask = (b.const("i32", (pattern >> shift) & 31) for shift in (0, 5, 10))
    within = b.xor(b.or_(b.and_(lane, and_mask), or_mask), xor_mask)
    return b.or_(b.and_(lane, b.const("i32", 32)), within)


def _rotated_source(b: Builder, lane: Value, pattern: int) -> Value:
    """Within each 32 lanes: the bits of the mask stay, the others are those of a lane further on."""
    mask, distance = pattern & 31, (pattern >> 5) & 31
    moved = b.add(lane, b.const("i32", -distance if pattern & 0x400 else distance))
    within = b.or_(b.and_(lane, b.const("i32", mask)), b.and_(moved, b.const("i32", 31 & ~mask)))
    return b.or_(b.and_(lane, b.const("i32", 32)), within)


def _butterfly_source(b: Builder, lane: Value, mask: int) -> Value:
    """The FFT's order: the five bits reversed, and shifted down by as many as the mask has ones, which stay."""
    reversed_bits = b.lshr(b.bitreverse(b.and_(lane, b.const("i32", 31))), b.const("i32", 27))
    moved = b.lshr(reversed_bits, b.const("i32", mask.bit_count()))
    return b.or_(moved, b.and_(lane, b.const("i32", mask | 32)))


def _swizzle_pattern(modifiers: Any) -> int:
    """`offset:1234` or LLVM's spelling `offset:swizzle(MODE,...)`."""
    text = modifiers.text("offset", "0")
    match = re.fullmatch(r"swizzle\((\w+),\s*(.*)\)", text)
    if match is None:
        return int(text, 0)
    mode, arguments = match[1], [a.strip().strip('"') for a in match[2].split(",")]
    if mode == "BITMASK_PERM":
        return _bitmask_pattern(arguments[0])
    numbers = [int(a, 0) for a in arguments]
    if mode == "QUAD_PERM":
        return 0x8000 | sum(n << 2 * i for i, n in enumerate(numbers))
    if mode == "SWAP":
        return numbers[0] << 10 | 0x1F
    if mode == "REVERSE":
        return (numbers[0] - 1) << 10 | 0x1F
    if mode == "BROADCAST":
        group, lane = numbers
        return lane << 5 | (0x1F & ~(group - 1))
    if mode == "FFT":
        return 0xE000 | numbers[0]
    if mode == "ROTATE":
        direction, distance = numbers
        return 0xC000 | direction << 10 | distance << 5
    raise NotImplementedError(f"swizzle mode {mode}")


def _bitmask_pattern(bits: str) -> int:
    """Five characters from the highest bit down: 0, 1, p (preserve), i (invert)."""
    and_mask = or_mask = xor_mask = 0
    for position, character in enumerate(reversed(bits)):
        and_mask |= (character in "pi") << position
        or_mask |= (character == "1") << position
        xor_mask |= (character == "i") << position
    return and_mask | or_mask << 5 | xor_mask << 10


define("ds_swizzle_b32", "i32 = i32 modifiers", _swizzle)


# --- rows of lanes that change places


@curried
def _swap_rows(lanes: int, b: Builder, x: Value, y: Value, modifiers: Any) -> tuple[Value, Value]:
    """The odd rows of lanes of the first register change places with the even rows of the second.

    A lane whose counterpart is not active keeps its value, or becomes 0 with bound_ctrl; with fi it gets the value
    all the same.
    """
    lane = b.per_lane(b.lane_id())
    is_odd = b.icmp("ne", b.and_(lane, b.const("i32", lanes)), b.const("i32", 0))
    partners = [i ^ lanes for i in range(b.lane_count)]
    active = b.permute_constant(b.exec_mask(), partners)

    def taken(value: Value, own: Value) -> Value:
        moved = b.permute_constant(b.per_lane(value), partners)
        if modifiers.flag("fi"):
            return moved
        return b.select(active, moved, b.const("i32", 0) if modifiers.flag("bound_ctrl") else own)

    return b.select(is_odd, taken(y, x), x), b.select(is_odd, y, taken(x, y))


for _lanes, _sets in ((16, "cdna4 cdna5"), (32, "cdna4")):
    define(f"v_permlane{_lanes}_swap_b32", "i32 i32 = dst dst1 modifiers", _swap_rows(_lanes), of=_sets)


# --- permutations of rows of 16 lanes, and of halves of a wave


def _permute_rows(*, across: bool, variable: bool) -> Any:
    """Each lane takes the value of the lane of its row that four bits of the selectors name: of a pair of scalars, a
    nibble for each lane of a row, or of a register, each lane's own. across: of the other row of the two.

    op_sel is fi, which reads lanes that are not active, and bound_ctrl, which reads 0 there; without both the result
    stays as it is.
    """

    def evaluate(b: Builder, x: Value, *rest: Any) -> Value:
        *selectors, old, modifiers = rest
        lane = b.per_lane(b.lane_id())
        row = b.and_(lane, b.const("i32", ~15))
        row = b.xor(row, b.const("i32", 16)) if across else row
        source = b.or_(row, b.and_(_nibbles(b, lane, selectors), b.const("i32", 15)))
        fetches, bound = (bool(bit) for bit in modifiers.bits("op_sel", 2)[:2])
        taken = b.permute(b.per_lane(x), source)
        if fetches:
            return taken
        active = b.permute(b.select(b.exec_mask(), b.const("i32", 1), b.const("i32", 0)), source)
        other = b.const("i32", 0) if bound else old
        return b.select(b.icmp("ne", active, b.const("i32", 0)), taken, other)

    def _nibbles(b: Builder, lane: Value, selectors: list[Value]) -> Value:
        if variable:
            return selectors[0]
        low, high = (b.per_lane(s) for s in selectors)
        is_high = b.icmp("ne", b.and_(lane, b.const("i32", 8)), b.const("i32", 0))
        at = b.mul(b.and_(lane, b.const("i32", 7)), b.const("i32", 4))
        return b.lshr(b.select(is_high, high, low), at)

    return evaluate


for _name, _across in (("", False), ("x", True)):
    _evaluate = _permute_rows(across=_across, variable=False)
    define(f"v_permlane{_name}16_b32", "i32 = i32 i32 i32 dst modifiers", _evaluate, of="rdna")
    _evaluate = _permute_rows(across=_across, variable=True)
    define(f"v_permlane{_name}16_var_b32", "i32 = i32 i32 dst modifiers", _evaluate, of="rdna")


def _swap_halves(b: Builder, x: Value, old: Value) -> Value:
    """The other half of a wave of 64 lanes; in a wave of 32 it does nothing. Lanes that are not active are read."""
    if b.lane_count == 32:
        return old
    return b.permute_constant(b.per_lane(x), [lane ^ 32 for lane in range(64)])


define("v_permlane64_b32", "i32 = i32 dst", _swap_halves, of="rdna")


# --- permutations of gfx1250 within groups of lanes, of which there are as many lanes as the last operand says: a power
# of two. Lanes that are not active are read. (CDNA 5 ISA, 15.14.)


@curried
def _in_groups(source: Callable[..., Value], b: Builder, x: Value, distance: Value, size: Value) -> Value:
    """source: the lane to read, of the lane, its place in the group, the distance and the size of groups."""
    lane = b.per_lane(b.lane_id())
    place = b.and_(lane, b.sub(size, b.const("i32", 1)))
    return b.permute(b.per_lane(x), source(b, lane, place, distance, size))


def _broadcast_source(b: Builder, lane: Value, place: Value, distance: Value, size: Value) -> Value:
    return b.add(b.sub(lane, place), b.and_(distance, b.sub(size, b.const("i32", 1))))


def _lower_source(b: Builder, lane: Value, place: Value, distance: Value, size: Value) -> Value:
    return b.select(b.icmp("ult", place, distance), lane, b.sub(lane, distance))


def _upper_source(b: Builder, lane: Value, place: Value, distance: Value, size: Value) -> Value:
    is_inside = b.icmp("ult", distance, b.sub(size, place))
    return b.select(is_inside, b.add(lane, distance), lane)


def _crossed_source(b: Builder, lane: Value, place: Value, distance: Value, size: Value) -> Value:
    other = b.xor(place, distance)
    return b.select(b.icmp("ult", other, size), b.add(b.sub(lane, place), other), lane)


for _name, _source in (
    ("bcast", _broadcast_source),
    ("up", _lower_source),
    ("down", _upper_source),
    ("xor", _crossed_source),
):
    define(f"v_permlane_{_name}_b32", "i32 = i32 i32 i32", _in_groups(_source), of="cdna5")


def _address_in_group(b: Builder, index: Value, size: Value) -> Value:
    """The address that ds_bpermute takes for the lane of the own group that has this number."""
    inside = b.sub(size, b.const("i32", 1))
    lane = b.per_lane(b.lane_id())
    source = b.or_(b.and_(lane, b.not_(inside)), b.and_(index, inside))
    return b.shl(source, b.const("i32", 2))


define("v_permlane_idx_gen_b32", "i32 = i32 i32", _address_in_group, of="cdna5")


# --- tables in registers, of gfx1250


@curried
def _looked_up(bits: int, b: Builder, upper: Any, lower: Any, indices: Any) -> tuple[Value, ...]:
    """16 elements of a table of 16, that many fields of 4 bits name. The first operand is the table's upper part."""
    parts = [part if isinstance(part, tuple) else (part,) for part in (lower, upper)]
    table = [field_of(b, (*parts[0], *parts[1]), i, bits) for i in range(16)]
    return packed_fields(b, [_element(b, table, field_of(b, indices, i, 4)) for i in range(16)], bits)


def _element(b: Builder, table: list[Value], index: Value) -> Value:
    for place in range(4):
        is_set = b.icmp("ne", b.and_(index, b.const("i32", 1 << place)), b.const("i32", 0))
        table = [b.select(is_set, odd, even) for even, odd in zip(table[::2], table[1::2], strict=True)]
    return table[0]


define("v_perm_pk16_b4_u4", "i32x2 = i32 i32 i32x2", _looked_up(4), of="cdna5")
define("v_perm_pk16_b6_u4", "i32x3 = i32 i32x2 i32x2", _looked_up(6), of="cdna5")
define("v_perm_pk16_b8_u4", "i32x4 = i32x2 i32x2 i32x2", _looked_up(8), of="cdna5")
