"""What gfx1250 has and RDNA 4 does not, on vector registers.

Sources: LLVM's definitions and tests for names and operands; AMD's tests of gfx1250 (rocm-systems, emulation/rocjitsu)
and what others write of the CDNA 5 ISA for what they compute.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from tests.simulator.reference import ieee, rdna, vector_float
from tests.simulator.reference.case import M16, M32, M64, Case, case, clamp, integer, s32, s64, signed
from tests.simulator.reference.ieee import BF16, F16, F32, F64, Mode

KEPT = Mode(0x3F0)
"""In which bf16 is always computed: to nearest even, denormals kept."""
CASES: dict[str, Case] = {
    "v_mov_b64": integer("i64 = i64", lambda x: x),
    "v_add_nc_u64": integer("i64 = i64 i64", lambda x, y: x + y & M64),
    "v_sub_nc_u64": integer("i64 = i64 i64", lambda x, y: x - y & M64),
    "v_mul_u64": integer("i64 = i64 i64", lambda x, y: x * y & M64),
    "v_min_u64": integer("i64 = i64 i64", min),
    "v_max_u64": integer("i64 = i64 i64", max),
    "v_min_i64": integer("i64 = i64 i64", lambda x, y: min(s64(x), s64(y)) & M64),
    "v_max_i64": integer("i64 = i64 i64", lambda x, y: max(s64(x), s64(y)) & M64),
    "v_mad_u32": integer("i32 = i32 i32 i32", lambda x, y, z: x * y + z & M32),
    "v_mad_nc_u64_u32": integer("i64 = i32 i32 i64", lambda x, y, z: x * y + z & M64),
    "v_mad_nc_i64_i32": integer("i64 = i32 i32 i64", lambda x, y, z: s32(x) * s32(y) + z & M64),
    "v_lshl_add_u64": integer("i64 = i64 i3 i64", lambda x, n, y: (x << n) + y & M64),
    "v_fmac_f64": case("f64 = f64 f64 old", lambda mode, x, y, z: ieee.fma(mode, F64, x, y, z)),
    "v_fmamk_f64": case("f64 = f64 0x40080000 f64", lambda mode, x, y: ieee.fma(mode, F64, x, 0x40080000_00000000, y)),
    "v_fmaak_f64": case("f64 = f64 f64 0x40080000", lambda mode, x, y: ieee.fma(mode, F64, x, y, 0x40080000_00000000)),
}
LIMITS = {"i": (lambda bits: (-(1 << (bits - 1)), (1 << (bits - 1)) - 1)), "u": (lambda bits: (0, (1 << bits) - 1))}


def value(letter: str, x: int, bits: int) -> int:
    return signed(x, bits) if letter == "i" else x


def sum_and_extreme(letter: str, bits: int, choose: Callable[[int, int], int]) -> Callable[[int, int, int], int]:
    def evaluate(x: int, y: int, z: int) -> int:
        total = clamp(value(letter, x, bits) + value(letter, y, bits), *LIMITS[letter](bits))
        return choose(total, value(letter, z, bits)) & ((1 << bits) - 1)

    return evaluate


def of_halves(function: Callable[..., int]) -> Callable[..., int]:
    """A function of 16 bits on the lower and on the upper halves."""

    def both(*operands: int) -> int:
        low, high = (function(*(x >> shift & M16 for x in operands)) for shift in (0, 16))
        return low & M16 | (high & M16) << 16

    return both


for _letter in "iu":
    for _name, _choose in (("min", min), ("max", max)):
        _wide, _narrow = (sum_and_extreme(_letter, bits, _choose) for bits in (32, 16))
        CASES[f"v_add_{_name}_{_letter}32"] = integer("i32 = i32 i32 i32", _wide)
        CASES[f"v_pk_add_{_name}_{_letter}16"] = integer("i32 = i32 i32 i32", of_halves(_narrow))
        _of_three = of_halves(lambda *n, c=_choose, s=_letter: c(value(s, x, 16) for x in n))
        CASES[f"v_pk_{_name}3_{_letter}16"] = integer("i32 = i32 i32 i32", _of_three)
    _low, _high = (-8, 7) if _letter == "i" else (0, 15)

    def _nibbles(x: int, s: str = _letter, low: int = _low, high: int = _high) -> int:
        return sum((clamp(value(s, x >> 8 * i & 0xFF, 8), low, high) & 15) << 4 * i for i in range(4))

    CASES[f"v_sat_pk4_{_letter}4_{_letter}8"] = integer("i16~ = i32", _nibbles)


def _mode_halves(function: Callable[..., int]) -> Callable[..., int]:
    return lambda mode, *operands: of_halves(lambda *parts: function(mode, *parts))(*operands)


for _name in ("min3_num", "max3_num", "minimum3", "maximum3"):
    _scalar = rdna.CASES[f"v_{_name}_f16"].function
    CASES[f"v_pk_{_name}_f16"] = case("f16x2 = f16x2 f16x2 f16x2", _mode_halves(_scalar), exact_nan=True)
for _name in ("add", "mul", "fma"):
    _scalar = vector_float.CASES[f"v_{_name}_f32"]
    _both = lambda mode, *n, f=_scalar.function: (  # noqa: E731 - one for each
        f(mode, *(x & M32 for x in n)) & M32 | (f(mode, *(x >> 32 for x in n)) & M32) << 32
    )
    CASES[f"v_pk_{_name}_f32"] = case("f32x2 = " + "f32x2 " * len(_scalar.operands), _both)

# --- bf16

CASES["v_pk_add_bf16"] = integer("i32 = i32 i32", of_halves(lambda x, y: ieee.add(KEPT, BF16, x, y)))
CASES["v_pk_mul_bf16"] = integer("i32 = i32 i32", of_halves(lambda x, y: ieee.multiply(KEPT, BF16, x, y)))
CASES["v_pk_fma_bf16"] = integer("i32 = i32 i32 i32", of_halves(lambda *n: ieee.fma(KEPT, BF16, *n)))
for _name, _larger in (("min", False), ("max", True)):
    CASES[f"v_pk_{_name}_num_bf16"] = integer(
        "i32 = i32 i32", of_halves(lambda x, y, w=_larger: rdna.of_numbers(KEPT, BF16, x, y, want_larger=w))
    )
CASES["v_cvt_f32_bf16"] = integer("i32 = i16", lambda x: x << 16)
CASES["v_cvt_pk_bf16_f32"] = integer(
    "i32 = f32 f32", lambda x, y: ieee.convert(KEPT, F32, BF16, x) | ieee.convert(KEPT, F32, BF16, y) << 16
)
CASES["v_cvt_pk_f16_f32"] = case(
    "f16x2 = f32 f32", lambda mode, x, y: ieee.convert(mode, F32, F16, x) | ieee.convert(mode, F32, F16, y) << 16
)


def of_bf16(x: int) -> float:
    m, e = ieee.number(BF16, x)
    return math.ldexp(m, e)


def to_bf16(x: float) -> int:
    if math.isinf(x):
        return BF16.infinity | (BF16.sign_bit if x < 0 else 0)
    exact = Fraction(x)
    return ieee.ratio(BF16, exact.numerator, exact.denominator)


INVALID = 0xFFC0
"""The NaN of functions that have no result."""


def _reciprocal(x: float) -> float:
    return math.copysign(math.inf, x) if x == 0 else 1 / x


ROUNDED_ONCE: dict[str, Callable[[float], float]] = {
    "rcp": _reciprocal,
    "sqrt": math.sqrt,
    "rsq": lambda x: _reciprocal(math.sqrt(x) if x else x),
    "exp": lambda x: math.inf if x > 200 else 2.0 ** max(x, -300),
    "log": lambda x: math.log2(x) if x else -math.inf,
}
NEAR: dict[str, Callable[[float], float]] = {
    "sin": lambda x: math.sin(2 * math.pi * (x - round(x))),
    "cos": lambda x: math.cos(2 * math.pi * (x - round(x))),
    "tanh": math.tanh,
}
"""Functions whose results may be one place off."""
AT_INFINITY = {"rcp": 0.0, "sqrt": math.inf, "rsq": 0.0, "exp": math.inf, "log": math.inf, "tanh": 1.0}


def bf16_function(name: str) -> Callable[[int], int]:
    function = (ROUNDED_ONCE | NEAR)[name]

    def evaluate(x: int) -> int:
        if ieee.is_nan(BF16, x):
            return ieee.quiet(BF16, x)
        if ieee.is_infinite(BF16, x):
            return _at_infinity(name, ieee.is_negative(BF16, x))
        number = of_bf16(x)
        if ieee.is_zero(BF16, x) and ieee.is_negative(BF16, x):
            number = -0.0
        if number < 0 and name in ("sqrt", "rsq", "log"):
            return INVALID
        result = function(number)
        if result == 0:
            return BF16.sign_bit if math.copysign(1, result) < 0 else 0
        return to_bf16(result)

    return evaluate


def _at_infinity(name: str, is_negative: bool) -> int:
    if name in ("sin", "cos") or (is_negative and name in ("sqrt", "rsq", "log")):
        return INVALID
    if is_negative and name == "exp":
        return 0
    return to_bf16(AT_INFINITY[name]) | (BF16.sign_bit if is_negative else 0)


for _name in ROUNDED_ONCE:
    CASES[f"v_{_name}_bf16"] = integer("i16~ = i16", bf16_function(_name))
