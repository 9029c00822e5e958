"""What RDNA has and CDNA does not, on vector and on scalar registers (RDNA 4 ISA; LLVM's tests for its operands)."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

from tests.simulator.reference import ieee
from tests.simulator.reference.case import M16, M32, M64, Case, case, integer, signed
from tests.simulator.reference.ieee import FORMATS, Format, Mode
from tests.simulator.reference.vector_float import CASES as OF_CDNA
from tests.simulator.reference.vector_float import multiply_legacy

# --- minima and maxima of IEEE 754-2019


def _is_better(f: Format, x: int, y: int, *, want_larger: bool) -> bool:
    return (_place(f, x) > _place(f, y)) == want_larger and x != y


def _place(f: Format, x: int) -> tuple[int, bool]:
    """Where a number is in the order in which -0 is below +0."""
    return ieee.order(f, x), not ieee.is_negative(f, x)


def _kept(mode: Mode, f: Format, x: int) -> int:
    return mode.flush_out(f, mode.flush_in(f, ieee.quiet(f, x) if ieee.is_nan(f, x) else x))


def of_numbers(mode: Mode, f: Format, x: int, y: int, *, want_larger: bool) -> int:
    if ieee.is_nan(f, y) or ieee.is_nan(f, x):
        return _kept(mode, f, x if ieee.is_nan(f, y) else y)
    x, y = _kept(mode, f, x), _kept(mode, f, y)
    return x if _is_better(f, x, y, want_larger=want_larger) else y


def of_all(mode: Mode, f: Format, x: int, y: int, *, want_larger: bool) -> int:
    nans = [v for v in (x, y) if ieee.is_nan(f, v)]
    if nans:
        return ieee.quiet(f, ([v for v in nans if ieee.is_signaling(f, v)] or nans)[0])
    return of_numbers(mode, f, x, y, want_larger=want_larger)


def median(mode: Mode, f: Format, *numbers: int) -> int:
    if any(ieee.is_nan(f, x) for x in numbers):
        return reduce(lambda x, y: of_numbers(mode, f, x, y, want_larger=False), numbers)
    return sorted((_kept(mode, f, x) for x in numbers), key=lambda x: _place(f, x))[1]


CASES: dict[str, Case] = {}
SCALAR: dict[str, Case] = {}

_KINDS = {
    "min_num": (of_numbers, False),
    "max_num": (of_numbers, True),
    "minimum": (of_all, False),
    "maximum": (of_all, True),
}
_OF_THREE = {
    "min3_num": ("min_num", "min_num"),
    "max3_num": ("max_num", "max_num"),
    "minmax_num": ("min_num", "max_num"),
    "maxmin_num": ("max_num", "min_num"),
    "minimum3": ("minimum", "minimum"),
    "maximum3": ("maximum", "maximum"),
    "minimummaximum": ("minimum", "maximum"),
    "maximumminimum": ("maximum", "minimum"),
}


def _of_two(name: str, f: Format) -> Callable[..., int]:
    function, want_larger = _KINDS[name]
    return lambda mode, x, y: function(mode, f, x, y, want_larger=want_larger)


def _of_three(name: str, f: Format) -> Callable[..., int]:
    first, then = (_of_two(part, f) for part in _OF_THREE[name])
    return lambda mode, x, y, z: then(mode, first(mode, x, y), z)


for _t, _f in FORMATS.items():
    _result = "f16~" if _t == "f16" else _t
    for _name in _KINDS:
        CASES[f"v_{_name}_{_t}"] = case(f"{_result} = {_t} {_t}", _of_two(_name, _f), exact_nan=True)
        if _t != "f64":
            SCALAR[f"s_{_name}_{_t}"] = case(f"{_t} = {_t} {_t}", _of_two(_name, _f), exact_nan=True)
    for _name in _OF_THREE if _t != "f64" else ():
        CASES[f"v_{_name}_{_t}"] = case(f"{_result} = {_t} {_t} {_t}", _of_three(_name, _f), exact_nan=True)
    if _t != "f64":
        _median: Any = lambda mode, *n, f=_f: median(mode, f, *n)  # noqa: E731 - one for each
        CASES[f"v_med3_num_{_t}"] = case(f"{_result} = {_t} {_t} {_t}", _median, exact_nan=True)


def _of_both_halves(function: Callable[..., int]) -> Callable[..., int]:
    return lambda mode, x, y: function(mode, x & M16, y & M16) | function(mode, x >> 16, y >> 16) << 16


for _name in _KINDS:
    _halves = _of_both_halves(_of_two(_name, ieee.F16))
    CASES[f"v_pk_{_name}_f16"] = case("f16x2 = f16x2 f16x2", _halves, exact_nan=True)
for _suffix, _value in (("i32", lambda x: signed(x, 32)), ("u32", lambda x: x)):
    for _name, _first, _then in (("minmax", min, max), ("maxmin", max, min)):
        CASES[f"v_{_name}_{_suffix}"] = integer(
            "i32 = i32 i32 i32", lambda x, y, z, v=_value, a=_first, b=_then: b(a(v(x), v(y)), v(z)) & M32
        )

# --- 16 bits

CASES |= {
    "v_mov_b16": integer("i16~ = i16", lambda x: x),
    "v_not_b16": integer("i16~ = i16", lambda x: ~x & M16),
    "v_and_b16": integer("i16~ = i16 i16", lambda x, y: x & y),
    "v_or_b16": integer("i16~ = i16 i16", lambda x, y: x | y),
    "v_xor_b16": integer("i16~ = i16 i16", lambda x, y: x ^ y),
    "v_cndmask_b16": integer("i16~ = i16 i16 mask", lambda x, y, chosen: y if chosen else x),
    "v_cvt_i32_i16": integer("i32 = i16", lambda x: signed(x, 16) & M32),
    "v_cvt_u32_u16": integer("i32 = i16", lambda x: x),
    "v_fmamk_f16": case("f16~ = f16 0x4248 f16", lambda mode, x, y: ieee.fma(mode, ieee.F16, x, 0x4248, y)),
    "v_fmaak_f16": case("f16~ = f16 f16 0x4248", lambda mode, x, y: ieee.fma(mode, ieee.F16, x, y, 0x4248)),
    "v_xor3_b32": integer("i32 = i32 i32 i32", lambda x, y, z: x ^ y ^ z),
}


def _pair_of_16(low: int, high: int) -> Callable[..., int]:
    def convert(mode: Mode, x: int, y: int) -> int:
        halves = [ieee.to_integer(mode, ieee.F32, v, low, high) & M16 for v in (x, y)]
        return halves[0] | halves[1] << 16

    return convert


CASES["v_cvt_pk_i16_f32"] = case("i32 = f32 f32", _pair_of_16(-32768, 32767))
CASES["v_cvt_pk_u16_f32"] = case("i32 = f32 f32", _pair_of_16(0, 65535))


def _fma_dx9(mode: Mode, x: int, y: int, z: int) -> int:
    if any(ieee.is_zero(ieee.F32, mode.flush_in(ieee.F32, v)) for v in (x, y)):
        return ieee.add(mode, ieee.F32, 0, z)
    return ieee.fma(mode, ieee.F32, x, y, z)


def _for_lighting(mode: Mode, x: int, y: int, z: int) -> int:
    f = ieee.F32
    smallest = f.largest | f.sign_bit
    is_usable = not ieee.is_nan(f, y) and ieee.order(f, y) > ieee.order(f, smallest)
    is_lit = not ieee.is_nan(f, z) and ieee.order(f, mode.flush_in(f, z)) > 0
    return multiply_legacy(mode, x, y) if is_usable and is_lit else smallest


CASES["v_fma_dx9_zero_f32"] = case("f32 = f32 f32 f32", _fma_dx9)
CASES["v_mullit_f32"] = case("f32 = f32 f32 f32", _for_lighting)

# --- dot products


def _parts(x: int, bits: int, *, is_signed: bool) -> list[int]:
    fields = [x >> i & (1 << bits) - 1 for i in range(0, 32, bits)]
    return [signed(v, bits) for v in fields] if is_signed else fields


def _dot(bits: int, signs: tuple[bool, bool], *, saturates: bool = False) -> Callable[..., int]:
    def evaluate(x: int, y: int, start: int) -> int:
        factors = (_parts(v, bits, is_signed=s) for v, s in zip((x, y), signs, strict=True))
        total = signed(start, 32) + sum(p * q for p, q in zip(*factors, strict=True))
        return (max(-(1 << 31), min((1 << 31) - 1, total)) if saturates else total) & M32

    return evaluate


MIXED_DOTS = {
    (name, suffix): integer("i32 = i32 i32 i32", _dot(bits, signs, saturates="clamp" in suffix), suffix)
    for name, bits in (("v_dot4_i32_iu8", 8), ("v_dot8_i32_iu4", 4))
    for signs in ((False, False), (True, False), (False, True), (True, True))
    for suffix in (f" neg_lo:[{signs[0]:d},{signs[1]:d},0]", f" neg_lo:[{signs[0]:d},{signs[1]:d},0] clamp")
}

# --- scalars

_MODE_FREE: dict[str, Case] = {
    "s_add_nc_u64": integer("i64 = i64 i64", lambda x, y: x + y & M64),
    "s_sub_nc_u64": integer("i64 = i64 i64", lambda x, y: x - y & M64),
    "s_mul_u64": integer("i64 = i64 i64", lambda x, y: x * y & M64),
    "s_pack_hl_b32_b16": integer("i32 = i32 i32", lambda x, y: x >> 16 | (y & M16) << 16),
}
SCALAR |= _MODE_FREE
for _t, _f in (("f16", ieee.F16), ("f32", ieee.F32)):
    for _name in ("add", "sub", "mul"):
        SCALAR[f"s_{_name}_{_t}"] = case(f"{_t} = {_t} {_t}", OF_CDNA[f"v_{_name}_{_t}"].function)
    for _name in ("ceil", "floor", "trunc", "rndne"):
        SCALAR[f"s_{_name}_{_t}"] = case(f"{_t} = {_t}", OF_CDNA[f"v_{_name}_{_t}"].function)
    SCALAR[f"s_fmac_{_t}"] = case(
        f"{_t} = {_t} {_t} old", lambda mode, x, y, z, f=_f: ieee.fma(mode, f, x, y, z & (1 << f.bits) - 1)
    )
SCALAR["s_fmamk_f32"] = case("f32 = f32 0x40490fdb f32", lambda mode, x, y: ieee.fma(mode, ieee.F32, x, 0x40490FDB, y))
SCALAR["s_fmaak_f32"] = case("f32 = f32 f32 0x40490fdb", lambda mode, x, y: ieee.fma(mode, ieee.F32, x, y, 0x40490FDB))
SCALAR["s_cvt_f16_f32"] = case("f16 = f32", lambda mode, x: ieee.convert(mode, ieee.F32, ieee.F16, x))
SCALAR["s_cvt_f32_f16"] = case("f32 = f16", lambda mode, x: ieee.convert(mode, ieee.F16, ieee.F32, x))
SCALAR["s_cvt_hi_f32_f16"] = case("f32 = i32", lambda mode, x: ieee.convert(mode, ieee.F16, ieee.F32, x >> 16))
SCALAR["s_cvt_i32_f32"] = case(
    "i32 = f32", lambda mode, x: ieee.to_integer(mode, ieee.F32, x, -(1 << 31), (1 << 31) - 1)
)
SCALAR["s_cvt_u32_f32"] = case("i32 = f32", lambda mode, x: ieee.to_integer(mode, ieee.F32, x, 0, M32))
SCALAR["s_cvt_f32_i32"] = case("f32 = i32", lambda mode, x: ieee.encode(ieee.F32, signed(x, 32), 0))
SCALAR["s_cvt_f32_u32"] = case("f32 = i32", lambda mode, x: ieee.encode(ieee.F32, x, 0))


def _towards_zero(mode: Mode, x: int, y: int) -> int:
    low, high = (ieee.convert(mode, ieee.F32, ieee.F16, v, ieee.ZERO) for v in (x, y))
    return low | high << 16


SCALAR["s_cvt_pk_rtz_f16_f32"] = case("f16x2 = f32 f32", _towards_zero)

_RELATIONS: dict[str, Callable[[int, int], bool]] = {
    "lt": lambda x, y: x < y,
    "eq": lambda x, y: x == y,
    "le": lambda x, y: x <= y,
    "gt": lambda x, y: x > y,
    "lg": lambda x, y: x != y,
    "ge": lambda x, y: x >= y,
    "o": lambda x, y: True,
}
_NEGATED = {"u": "o", "nge": "ge", "nlg": "lg", "ngt": "gt", "nle": "le", "neq": "eq", "nlt": "lt"}


def _compared(f: Format, relation: str) -> Callable[..., int]:
    def evaluate(mode: Mode, x: int, y: int) -> int:
        base = _NEGATED.get(relation, relation)
        ordered = not (ieee.is_nan(f, x) or ieee.is_nan(f, y))
        numbers = (_value(f, mode.flush_in(f, v)) for v in (x, y))
        return int((ordered and _RELATIONS[base](*numbers)) != (relation in _NEGATED))

    return evaluate


def _value(f: Format, x: int) -> int:
    """A number in whose order floats are; both zeros are one."""
    return 0 if ieee.is_zero(f, x) else ieee.order(f, x)


for _t, _f in (("f16", ieee.F16), ("f32", ieee.F32)):
    for _relation in (*_RELATIONS, *_NEGATED):
        SCALAR[f"s_cmp_{_relation}_{_t}"] = case(f"scc = {_t} {_t}", _compared(_f, _relation))


# --- RDNA 3: extremes by the rules of CDNA

OF_RDNA3: dict[str, Case] = {}
SCALAR_OF_RDNA3: dict[str, Case] = {}
for _t in ("f16", "f32"):
    _low, _high = (OF_CDNA[f"v_{_name}_{_t}"].function for _name in ("min", "max"))
    _words = f"{_t}{'~' if _t == 'f16' else ''} = {_t} {_t} {_t}"
    for _name, _first, _then in (("minmax", _low, _high), ("maxmin", _high, _low)):
        _both: Any = lambda mode, x, y, z, f=_first, g=_then: g(mode, f(mode, x, y), z)  # noqa: E731 - one for each
        OF_RDNA3[f"v_{_name}_{_t}"] = case(_words, _both, exact_nan=True)
    for _name, _function in (("min", _low), ("max", _high)):
        SCALAR_OF_RDNA3[f"s_{_name}_{_t}"] = case(f"{_t} = {_t} {_t}", _function, exact_nan=True)
