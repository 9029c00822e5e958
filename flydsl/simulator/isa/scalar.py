"""SOP1, SOP2, SOPC, SOPK: integer arithmetic on scalar registers, once per wave."""

from __future__ import annotations

from typing import Any

from flydsl.simulator.isa.builder import Builder, Value
from flydsl.simulator.isa.common import curried, high_half, identity, minimum, mul_wide, nonzero, shift
from flydsl.simulator.isa.table import define

Pair = tuple[Value, Value]

# --- moves and selections

define("s_mov_b32", "i32 = i32", identity)
define("s_mov_b64", "i64 = i64", identity)
define("s_cmov_b32", "i32 = i32 dst scc", lambda b, x, old, scc: b.select(scc, x, old))
define("s_cmov_b64", "i64 = i64 dst scc", lambda b, x, old, scc: b.select(scc, x, old))
define("s_cselect_b32", "i32 = i32 i32 scc", lambda b, x, y, scc: b.select(scc, x, y))
define("s_cselect_b64", "i64 = i64 i64 scc", lambda b, x, y, scc: b.select(scc, x, y))


def _k(b: Builder, immediate: int) -> Value:
    """A 16-bit constant, sign-extended, written as -1 or as 0xffff."""
    return b.sext(b.const("i16", immediate & 0xFFFF), "i32")


define("s_movk_i32", "i32 = imm", _k)
define("s_cmovk_i32", "i32 = imm dst scc", lambda b, k, old, scc: b.select(scc, _k(b, k), old))

# --- addition and subtraction


def _add_signed(b: Builder, x: Value, y: Value) -> Pair:
    """SCC is signed overflow."""
    total = b.add(x, y)
    overflow = b.and_(b.xor(x, total), b.xor(y, total))
    return total, b.icmp("slt", overflow, b.const("i32", 0))


def _sub_signed(b: Builder, x: Value, y: Value) -> Pair:
    difference = b.sub(x, y)
    overflow = b.and_(b.xor(x, y), b.xor(x, difference))
    return difference, b.icmp("slt", overflow, b.const("i32", 0))


def _add_carry(b: Builder, x: Value, y: Value, carry: Value) -> Pair:
    total = b.add(b.add(b.zext(x, "i64"), b.zext(y, "i64")), b.zext(carry, "i64"))
    return b.trunc(total, "i32"), nonzero(b, b.lshr(total, b.const("i64", 32)), "i64")


def _sub_borrow(b: Builder, x: Value, y: Value, borrow: Value) -> Pair:
    difference = b.sub(b.sub(b.zext(x, "i64"), b.zext(y, "i64")), b.zext(borrow, "i64"))
    return b.trunc(difference, "i32"), b.icmp("slt", difference, b.const("i64", 0))


define("s_add_u32", "i32 scc = i32 i32", lambda b, x, y: _add_carry(b, x, y, b.const("i1", False)))
define("s_sub_u32", "i32 scc = i32 i32", lambda b, x, y: _sub_borrow(b, x, y, b.const("i1", False)))
define("s_addc_u32", "i32 scc = i32 i32 scc", _add_carry)
define("s_subb_u32", "i32 scc = i32 i32 scc", _sub_borrow)
define("s_add_i32", "i32 scc = i32 i32", _add_signed)
define("s_sub_i32", "i32 scc = i32 i32", _sub_signed)
define("s_addk_i32", "i32 scc = imm dst", lambda b, k, old: _add_signed(b, old, _k(b, k)))
define("s_mulk_i32", "i32 = imm dst", lambda b, k, old: b.mul(old, _k(b, k)))
define("s_mul_i32", "i32 = i32 i32", lambda b, x, y: b.mul(x, y))
define("s_mul_hi_u32", "i32 = i32 i32", lambda b, x, y: high_half(b, mul_wide(b, x, y, "zext")))
define("s_mul_hi_i32", "i32 = i32 i32", lambda b, x, y: high_half(b, mul_wide(b, x, y, "sext")))


def _absolute(b: Builder, x: Value) -> Pair:
    zero = b.const("i32", 0)
    result = b.select(b.icmp("slt", x, zero), b.sub(zero, x), x)
    return result, nonzero(b, result, "i32")


define("s_abs_i32", "i32 scc = i32", _absolute)
define("s_absdiff_i32", "i32 scc = i32 i32", lambda b, x, y: _absolute(b, b.sub(x, y)))


@curried
def _shifted_add(distance: int, b: Builder, x: Value, y: Value) -> Pair:
    wide = b.add(b.shl(b.zext(x, "i64"), b.const("i64", distance)), b.zext(y, "i64"))
    return b.trunc(wide, "i32"), nonzero(b, b.lshr(wide, b.const("i64", 32)), "i64")


for _distance in (1, 2, 3, 4):
    define(f"s_lshl{_distance}_add_u32", "i32 scc = i32 i32", _shifted_add(_distance))


@curried
def _select_extreme(predicate: str, b: Builder, x: Value, y: Value) -> Pair:
    """The operand that compares true; SCC says whether it was the first (of equal ones s_max takes the first)."""
    return minimum(predicate)(b, x, y), b.icmp(predicate, x, y)


for _name, _predicate in (("min_i32", "slt"), ("min_u32", "ult"), ("max_i32", "sge"), ("max_u32", "uge")):
    define(f"s_{_name}", "i32 scc = i32 i32", _select_extreme(_predicate))

# --- bits


@curried
def with_scc(operation: Any, type_: str, b: Builder, *operands: Value) -> Pair:
    """SCC says whether the result is not zero."""
    result = operation(b, *operands)
    return result, nonzero(b, result, type_)


_BITWISE = {
    "and": lambda b, x, y: b.and_(x, y),
    "or": lambda b, x, y: b.or_(x, y),
    "xor": lambda b, x, y: b.xor(x, y),
    "andn2": lambda b, x, y: b.and_(x, b.not_(y)),
    "orn2": lambda b, x, y: b.or_(x, b.not_(y)),
    "nand": lambda b, x, y: b.not_(b.and_(x, y)),
    "nor": lambda b, x, y: b.not_(b.or_(x, y)),
    "xnor": lambda b, x, y: b.not_(b.xor(x, y)),
}


@curried
def _save_exec(operation: Any, type_: str, b: Builder, source: Value, old: Value) -> tuple[Value, Value, Value]:
    """The result is EXEC's old value; EXEC becomes operation(source, EXEC)."""
    new = operation(b, source, old)
    return old, nonzero(b, new, type_), new


@curried
def _write_exec(operation: Any, type_: str, b: Builder, source: Value, old: Value) -> tuple[Value, Value, Value]:
    """Both the result and EXEC become operation(source, EXEC)."""
    new = operation(b, source, old)
    return new, nonzero(b, new, type_), new


_NEGATED_SOURCE = {"andn1": lambda b, x, old: b.and_(b.not_(x), old), "orn1": lambda b, x, old: b.or_(b.not_(x), old)}

for _bits, _set in ((64, ""), (32, "rdna")):
    _type = f"i{_bits}"
    _signature = f"{_type} scc exec_b{_bits} = {_type} exec_b{_bits}"
    for _name, _operation in (_BITWISE | _NEGATED_SOURCE).items():
        define(f"s_{_name}_saveexec_b{_bits}", _signature, _save_exec(_operation, _type), of=_set)
    for _name in ("andn1", "andn2"):
        _operation = (_BITWISE | _NEGATED_SOURCE)[_name]
        define(f"s_{_name}_wrexec_b{_bits}", _signature, _write_exec(_operation, _type), of=_set)
for _bits in (32, 64):
    for _name, _operation in _BITWISE.items():
        define(f"s_{_name}_b{_bits}", f"i{_bits} scc = i{_bits} i{_bits}", with_scc(_operation, f"i{_bits}"))

for _bits in (32, 64):
    _type = f"i{_bits}"
    _unary = f"{_type} scc = {_type}"
    define(f"s_not_b{_bits}", _unary, with_scc(lambda b, x: b.not_(x), _type))
    define(f"s_brev_b{_bits}", f"{_type} = {_type}", lambda b, x: b.bitreverse(x))
    define(f"s_lshl_b{_bits}", f"{_type} scc = {_type} i32", with_scc(shift("shl", _type), _type))
    define(f"s_lshr_b{_bits}", f"{_type} scc = {_type} i32", with_scc(shift("lshr", _type), _type))
    define(f"s_ashr_i{_bits}", f"{_type} scc = {_type} i32", with_scc(shift("ashr", _type), _type))


@curried
def _count(operation: str, type_: str, b: Builder, x: Value, *, absent: bool) -> Value:
    """A bit count or position as i32; with `absent`, -1 where no bit is found."""
    count = getattr(b, operation)(x)
    count = b.trunc(count, "i32") if type_ == "i64" else count
    return b.select(nonzero(b, x, type_), count, b.const("i32", -1)) if absent else count


@curried
def _sign_run(type_: str, b: Builder, x: Value) -> Value:
    """s_flbit_i32: the number of sign bits at the top, -1 for 0 and -1."""
    flipped = b.select(b.icmp("slt", x, b.const(type_, 0)), b.not_(x), x)
    return _count("ctlz", type_, absent=True)(b, flipped)


for _bits in (32, 64):
    _type = f"i{_bits}"
    define(f"s_ff1_i32_b{_bits}", f"i32 = {_type}", _count("cttz", _type, absent=True))
    define(f"s_ff0_i32_b{_bits}", f"i32 = {_type}", lambda b, x, t=_type: _count("cttz", t, absent=True)(b, b.not_(x)))
    define(f"s_flbit_i32_b{_bits}", f"i32 = {_type}", _count("ctlz", _type, absent=True))
    _ones = _count("ctpop", _type, absent=False)
    define(f"s_bcnt1_i32_b{_bits}", f"i32 scc = {_type}", with_scc(_ones, "i32"))
    define(f"s_bcnt0_i32_b{_bits}", f"i32 scc = {_type}", with_scc(lambda b, x, f=_ones: f(b, b.not_(x)), "i32"))
define("s_flbit_i32", "i32 = i32", _sign_run("i32"))
define("s_flbit_i32_i64", "i32 = i64", _sign_run("i64"))

define("s_sext_i32_i8", "i32 = i32", lambda b, x: b.sext(b.trunc(x, "i8"), "i32"))
define("s_sext_i32_i16", "i32 = i32", lambda b, x: b.sext(b.trunc(x, "i16"), "i32"))


def _bit(type_: str, b: Builder, position: Value) -> Value:
    return shift("shl", type_)(b, b.const(type_, 1), position)


define("s_bitset0_b32", "i32 = i32 dst", lambda b, i, old: b.and_(old, b.not_(_bit("i32", b, i))))
define("s_bitset1_b32", "i32 = i32 dst", lambda b, i, old: b.or_(old, _bit("i32", b, i)))
define("s_bitset0_b64", "i64 = i32 dst", lambda b, i, old: b.and_(old, b.not_(_bit("i64", b, i))))
define("s_bitset1_b64", "i64 = i32 dst", lambda b, i, old: b.or_(old, _bit("i64", b, i)))


@curried
def _mask_of(type_: str, b: Builder, x: Value, y: Value) -> Value:
    """s_bfm: x ones, shifted up by y."""
    ones = b.sub(_bit(type_, b, x), b.const(type_, 1))
    return shift("shl", type_)(b, ones, y)


define("s_bfm_b32", "i32 = i32 i32", _mask_of("i32"))
define("s_bfm_b64", "i64 = i32 i32", _mask_of("i64"))


@curried
def _extract(type_: str, b: Builder, x: Value, control: Value, *, signed: bool) -> Value:
    """s_bfe: the width is in bits 22:16 of the second operand, the offset in its lowest 5 or 6 bits."""
    bits = int(type_[1:])
    offset = b.and_(control, b.const("i32", bits - 1))
    width = b.and_(b.lshr(control, b.const("i32", 16)), b.const("i32", 0x7F))
    full = b.const("i32", bits)
    width = b.select(b.icmp("ugt", width, full), full, width)
    # Up to the top and down again leaves `width` bits; what lies beyond the top is zeros, or copies of the sign.
    value = shift("ashr" if signed else "lshr", type_)(b, x, offset)
    distance = b.sub(full, width)
    up = shift("shl", type_)(b, value, distance)
    down = shift("ashr" if signed else "lshr", type_)(b, up, distance)
    return b.select(b.icmp("eq", width, b.const("i32", 0)), b.const(type_, 0), down)


for _bits in (32, 64):
    _type = f"i{_bits}"
    define(f"s_bfe_u{_bits}", f"{_type} scc = {_type} i32", with_scc(_extract(_type, signed=False), _type))
    define(f"s_bfe_i{_bits}", f"{_type} scc = {_type} i32", with_scc(_extract(_type, signed=True), _type))


@curried
def _pack(first_high: bool, second_high: bool, b: Builder, x: Value, y: Value) -> Value:
    def half(b: Builder, x: Value, high: bool) -> Value:
        return b.lshr(x, b.const("i32", 16)) if high else b.and_(x, b.const("i32", 0xFFFF))

    return b.or_(half(b, x, first_high), b.shl(half(b, y, second_high), b.const("i32", 16)))


define("s_pack_ll_b32_b16", "i32 = i32 i32", _pack(False, False))
define("s_pack_lh_b32_b16", "i32 = i32 i32", _pack(False, True))
define("s_pack_hh_b32_b16", "i32 = i32 i32", _pack(True, True))
define("s_pack_hl_b32_b16", "i32 = i32 i32", _pack(True, False), of="rdna")

define("s_add_nc_u64", "i64 = i64 i64", lambda b, x, y: b.add(x, y), of="rdna")
define("s_sub_nc_u64", "i64 = i64 i64", lambda b, x, y: b.sub(x, y), of="rdna")
define("s_mul_u64", "i64 = i64 i64", lambda b, x, y: b.mul(x, y), of="rdna")

# --- comparisons

_RELATIONS = {"eq": "eq", "lg": "ne", "gt": "gt", "ge": "ge", "lt": "lt", "le": "le"}


def _signed_predicate(relation: str, sign: str) -> str:
    return relation if relation in ("eq", "ne") else sign + relation


for _name, _relation in _RELATIONS.items():
    for _suffix, _sign in (("i32", "s"), ("u32", "u")):
        _p = _signed_predicate(_relation, _sign)
        define(f"s_cmp_{_name}_{_suffix}", "scc = i32 i32", lambda b, x, y, p=_p: b.icmp(p, x, y))
        _immediate = (
            (lambda b, x, k, p=_p: b.icmp(p, x, _k(b, k)))
            if _sign == "s"
            else (lambda b, x, k, p=_p: b.icmp(p, x, b.const("i32", k & 0xFFFF)))
        )
        define(f"s_cmpk_{_name}_{_suffix}", "scc = i32 imm", _immediate)
define("s_cmp_eq_u64", "scc = i64 i64", lambda b, x, y: b.icmp("eq", x, y))
define("s_cmp_lg_u64", "scc = i64 i64", lambda b, x, y: b.icmp("ne", x, y))

for _bits in (32, 64):
    _type = f"i{_bits}"
    define(
        f"s_bitcmp1_b{_bits}", f"scc = {_type} i32", lambda b, x, i, t=_type: nonzero(b, b.and_(x, _bit(t, b, i)), t)
    )
    define(
        f"s_bitcmp0_b{_bits}",
        f"scc = {_type} i32",
        lambda b, x, i, t=_type: b.not_(nonzero(b, b.and_(x, _bit(t, b, i)), t)),
    )

# --- hardware registers: MODE, and where a wave runs, which here is always the same place

_MODE = ("HW_REG_MODE", "HW_REG_WAVE_MODE", "1")
_PLACES = (
    *("HW_REG_HW_ID", "4", "HW_REG_XCC_ID", "20"),
    *("HW_REG_WAVE_HW_ID1", "HW_REG_HW_ID1", "23", "HW_REG_WAVE_HW_ID2", "HW_REG_HW_ID2", "24"),
)
_CLUSTER_STATE = ("HW_REG_IB_STS2", "28")
_CYCLES = {"HW_REG_SHADER_CYCLES": 0, "HW_REG_SHADER_CYCLES_LO": 0, "29": 0, "HW_REG_SHADER_CYCLES_HI": 32, "30": 32}


def _field(text: str) -> tuple[str, int, int]:
    """Name, offset and mask of `hwreg(HW_REG_MODE, offset, width)`: as many bits as the register has from there on."""
    name, *numbers = (word.strip() for word in text.removeprefix("hwreg(").removesuffix(")").split(","))
    try:
        offset, width = (int(number, 0) for number in numbers) if numbers else (0, 32)
    except ValueError:
        raise NotImplementedError(f"{text}: an offset and a width are two numbers") from None
    if not (0 <= offset < 32 and 1 <= width <= 32):
        raise NotImplementedError(f"{text}: the register has 32 bits")
    return name, offset, (1 << min(width, 32 - offset)) - 1


def _set_mode(b: Builder, register: str, value: Value) -> None:
    name, offset, mask = _field(register)
    if name not in _MODE:
        raise NotImplementedError(f"writing the hardware register {name}")
    field = mask << offset
    placed = b.and_(b.shl(value, b.const("i32", offset)), b.const("i32", field))
    b.write_mode(b.or_(b.and_(b.read_mode(), b.const("i32", ~field)), placed))


def _get_register(b: Builder, register: str) -> Value:
    name, offset, mask = _field(register)
    if name in _PLACES:
        return b.const("i32", 0)  # slot, SIMD, compute unit and XCC number 0
    if name in _CYCLES:
        cycles = b.trunc(b.lshr(b.clock(), b.const("i64", _CYCLES[name])), "i32")
        return b.and_(b.lshr(cycles, b.const("i32", offset)), b.const("i32", mask))
    if name not in _MODE:
        raise NotImplementedError(f"hardware register {name}")
    return b.and_(b.lshr(b.read_mode(), b.const("i32", offset)), b.const("i32", mask))


define("s_setreg_b32", "= word i32", _set_mode)
define("s_setreg_imm32_b32", "= word i32", _set_mode)


def _get_register_or_cluster(b: Builder, register: str, cluster_state: Value) -> Value:
    name, offset, mask = _field(register)
    if name not in _CLUSTER_STATE:
        return _get_register(b, register)
    return b.and_(b.lshr(cluster_state, b.const("i32", offset)), b.const("i32", mask))


define("s_getreg_b32", "i32 = word", _get_register)

_SCHEDULING = ("HW_REG_WAVE_SCHED_MODE", "26")
_OF_FLOATS, _OF_REGISTERS = 0x00800FFF, 0x000FF000
"""The bits of MODE on gfx1250 that say how floats are computed, and the upper bits of the numbers of VGPRs. The others
are about scheduling and what is done again after a page fault: they have no effect, and read as 0."""


def _set_mode_of_cdna5(b: Builder, register: str, value: Value) -> None:
    name, offset, mask = _field(register)
    if name in _SCHEDULING:
        return
    if name not in _MODE:
        raise NotImplementedError(f"writing the hardware register {name}")
    field = mask << offset
    if field & _OF_REGISTERS:
        raise NotImplementedError("writing the upper bits of the numbers of VGPRs other than by s_set_vgpr_msb")
    kept = field & _OF_FLOATS
    if kept:
        placed = b.and_(b.shl(value, b.const("i32", offset)), b.const("i32", kept))
        b.write_mode(b.or_(b.and_(b.read_mode(), b.const("i32", ~kept)), placed))


for _name in ("s_setreg_b32", "s_setreg_imm32_b32"):
    define(_name, "= word i32", _set_mode_of_cdna5, of="cdna5")
define("s_getreg_b32", "i32 = word cluster_state", _get_register_or_cluster, of="cdna5")


@curried
def _set_mode_bits(offset: int, b: Builder, bits: int) -> None:
    """Four bits of MODE: how floats are rounded, or which denormals are kept."""
    placed = b.shl(b.and_(b.const("i32", bits), b.const("i32", 15)), b.const("i32", offset))
    b.write_mode(b.or_(b.and_(b.read_mode(), b.const("i32", ~(15 << offset))), placed))


define("s_round_mode", "= imm", _set_mode_bits(0), of="rdna")
define("s_denorm_mode", "= imm", _set_mode_bits(4), of="rdna")
