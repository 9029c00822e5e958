"""VOP1, VOP2, VOP3: floating-point arithmetic, per lane."""

from __future__ import annotations

from typing import Any

from flydsl.simulator.isa.builder import Builder, Value
from flydsl.simulator.isa.common import curried, flush_denormals
from flydsl.simulator.isa.table import define

_QUIET_BIT = {"f16": 1 << 9, "f32": 1 << 22, "f64": 1 << 51}
_INFINITY = {"f16": 0x7C00, "f32": 0x7F800000, "f64": 0x7FF0000000000000}


def is_signaling(b: Builder, x: Value, type_: str) -> Value:
    """A NaN whose quiet bit is not set."""
    bits = b.bitcast(x, "i" + type_[1:])
    quiet = b.and_(bits, b.const("i" + type_[1:], _QUIET_BIT[type_]))
    return b.and_(b.fcmp("uno", x, x), b.icmp("eq", quiet, b.const("i" + type_[1:], 0)))


def quiet(b: Builder, x: Value, type_: str) -> Value:
    """A NaN with its quiet bit set."""
    integer = "i" + type_[1:]
    return b.bitcast(b.or_(b.bitcast(x, integer), b.const(integer, _QUIET_BIT[type_])), type_)


def flush_to_mode(b: Builder, x: Value) -> Value:
    """x with a denormal flushed where the mode says so, and a NaN as it is."""
    return b.select(b.fcmp("uno", x, x), x, b.canonicalize(x))


@curried
def _extreme(type_: str, b: Builder, x: Value, y: Value, *, maximum: bool) -> Value:
    """With -0 below +0. A NaN loses, and of two the second is taken; but in IEEE mode a signalling NaN wins, and
    becomes quiet (ISA, V_MIN_F32)."""
    integer = "i" + type_[1:]
    x_bits, y_bits = b.bitcast(x, integer), b.bitcast(y, integer)
    # Of equal operands only zeros can differ: and-ing their signs gives +0, or-ing them -0.
    tie = b.bitcast(b.and_(x_bits, y_bits) if maximum else b.or_(x_bits, y_bits), type_)
    better = b.fcmp("ogt" if maximum else "olt", x, y)
    number = b.canonicalize(b.select(better, x, b.select(b.fcmp("oeq", x, y), tie, y)))
    x, y = flush_to_mode(b, x), flush_to_mode(b, y)
    result = b.select(b.fcmp("uno", x, x), y, b.select(b.fcmp("uno", y, y), x, number))
    if b.ieee_mode():
        result = b.select(is_signaling(b, y, type_), quiet(b, y, type_), result)
        result = b.select(is_signaling(b, x, type_), quiet(b, x, type_), result)
    return result


@curried
def _median(type_: str, b: Builder, x: Value, y: Value, z: Value) -> Value:
    """The larger of the two that remain without the (first) largest; the minimum if any is NaN (ISA, V_MED3)."""
    low, high = _extreme(type_, maximum=False), _extreme(type_, maximum=True)
    has_nan = b.or_(b.or_(b.fcmp("uno", x, x), b.fcmp("uno", y, y)), b.fcmp("uno", z, z))
    largest = high(b, high(b, x, y), z)
    others = b.select(b.fcmp("oeq", largest, y), high(b, x, z), high(b, x, y))
    median = b.select(b.fcmp("oeq", largest, x), high(b, y, z), others)
    return b.select(has_nan, low(b, low(b, x, y), z), median)


@curried
def _fraction(type_: str, b: Builder, x: Value) -> Value:
    """x - floor(x), kept below 1 (ISA, V_FRACT)."""
    largest = {"f16": 0x3BFF, "f32": 0x3F7FFFFF, "f64": 0x3FEFFFFFFFFFFFFF}[type_]
    below_one = b.bitcast(b.const("i" + type_[1:], largest), type_)
    fraction = b.fsub(x, b.floor(x))
    return b.select(b.fcmp("ogt", fraction, below_one), below_one, fraction)


def _ldexp(type_: str) -> Any:
    """The exponent is a signed i32, or i16 for f16, where the document gives constants the format f16."""
    if type_ == "f16":
        return lambda b, x, e: b.ldexp(x, b.sext(b.bitcast(e, "i16"), "i32"))
    return lambda b, x, e: b.ldexp(x, e)


def _define_arithmetic(type_: str) -> None:
    two, three = f"{type_} = {type_} {type_}", f"{type_}{'~' if type_ == 'f16' else ''} = {type_} {type_} {type_}"
    low, high = _extreme(type_, maximum=False), _extreme(type_, maximum=True)
    define(f"v_add_{type_}", two, lambda b, x, y: b.fadd(x, y))
    define(f"v_mul_{type_}", two, lambda b, x, y: b.fmul(x, y))
    define(f"v_min_{type_}", two, low)
    define(f"v_max_{type_}", two, high)
    define(f"v_fma_{type_}", three, lambda b, x, y, z: b.fma(x, y, z))
    if type_ != "f16":
        define(f"v_fmac_{type_}", two + " dst", lambda b, x, y, z: b.fma(x, y, z))
    define(f"v_ldexp_{type_}", f"{type_} = {type_} {'f16' if type_ == 'f16' else 'i32'}", _ldexp(type_))
    for name in ("floor", "ceil"):
        define(f"v_{name}_{type_}", f"{type_} = {type_}", lambda b, x, n=name: getattr(b, n)(x))
    define(f"v_trunc_{type_}", f"{type_} = {type_}", lambda b, x: b.ftrunc(x))
    define(f"v_rndne_{type_}", f"{type_} = {type_}", lambda b, x: b.roundeven(x))
    define(f"v_fract_{type_}", f"{type_} = {type_}", _fraction(type_))
    exponent = "i16" if type_ == "f16" else "i32"
    define(
        f"v_frexp_exp_{exponent}_{type_}",
        f"{exponent} = {type_}",
        lambda b, x, e=exponent: b.trunc(b.frexp(x)[1], e) if e == "i16" else b.frexp(x)[1],
    )
    define(f"v_frexp_mant_{type_}", f"{type_} = {type_}", lambda b, x: b.frexp(x)[0])


for _type in ("f16", "f32", "f64"):
    _define_arithmetic(_type)

for _type in ("f16", "f32"):
    _two, _three = f"{_type} = {_type} {_type}", f"{_type} = {_type} {_type} {_type}"
    _kept = _three.replace("=", "~ =").replace(" ~", "~") if _type == "f16" else _three
    _low, _high = _extreme(_type, maximum=False), _extreme(_type, maximum=True)
    define(f"v_sub_{_type}", _two, lambda b, x, y: b.fsub(x, y))
    define(f"v_subrev_{_type}", _two, lambda b, x, y: b.fsub(y, x))
    define(f"v_min3_{_type}", _kept, lambda b, x, y, z, f=_low: f(b, f(b, x, y), z))
    define(f"v_max3_{_type}", _kept, lambda b, x, y, z, f=_high: f(b, f(b, x, y), z))
    define(f"v_med3_{_type}", _kept, _median(_type))

define("v_fmamk_f32", "f32 = f32 f32 f32", lambda b, x, k, y: b.fma(x, k, y), of="cdna3 rdna")
define("v_fmaak_f32", "f32 = f32 f32 f32", lambda b, x, y, k: b.fma(x, y, k), of="cdna3 rdna")
define("v_fmamk_f64", "f64 = f64 f64 f64", lambda b, x, k, y: b.fma(x, k, y), of="cdna5")
define("v_fmaak_f64", "f64 = f64 f64 f64", lambda b, x, y, k: b.fma(x, y, k), of="cdna5")
# The multiply-adds of older generations round the product, too.
define("v_mac_f16", "f16 = f16 f16 dst", lambda b, x, y, z: b.fadd(b.fmul(x, y), z))
define("v_mad_f16", "f16~ = f16 f16 f16", lambda b, x, y, z: b.fadd(b.fmul(x, y), z))
define("v_mad_legacy_f16", "f16 = f16 f16 f16", lambda b, x, y, z: b.fadd(b.fmul(x, y), z))
define("v_fma_legacy_f16", "f16 = f16 f16 f16", lambda b, x, y, z: b.fma(x, y, z))
define("v_madmk_f16", "f16 = f16 f16 f16", lambda b, x, k, y: b.fadd(b.fmul(x, k), y))
define("v_madak_f16", "f16 = f16 f16 f16", lambda b, x, y, k: b.fadd(b.fmul(x, y), k))


@curried
def _multiply_add(multiply: Any, b: Builder, x: Value, y: Value, z: Value) -> Value:
    """The multiply-adds of f32 know no denormals, whatever the mode."""

    def flushed(b: Builder, x: Value) -> Value:
        return flush_denormals(b, x, 2.0**-126)

    product = flushed(b, multiply(b, flushed(b, x), flushed(b, y)))
    return flushed(b, b.fadd(product, flushed(b, z)))


def _define_multiply_adds() -> None:
    evaluate, of = _multiply_add(lambda b, x, y: b.fmul(x, y)), "cdna2"
    define("v_mad_f32", "f32 = f32 f32 f32", evaluate, of=of)
    define("v_mac_f32", "f32 = f32 f32 dst", evaluate, of=of)
    define("v_madmk_f32", "f32 = f32 f32 f32", lambda b, x, k, y: evaluate(b, x, k, y), of=of)
    define("v_madak_f32", "f32 = f32 f32 f32", evaluate, of=of)
    define("v_mad_legacy_f32", "f32 = f32 f32 f32", _multiply_add(mul_legacy), of=of)


def mul_legacy(b: Builder, x: Value, y: Value) -> Value:
    """DirectX 9: zero times anything is zero."""
    zero = b.const("f32", 0.0)
    either = b.or_(b.fcmp("oeq", x, zero), b.fcmp("oeq", y, zero))
    return b.select(either, zero, b.fmul(x, y))


define("v_mul_legacy_f32", "f32 = f32 f32", mul_legacy)
_define_multiply_adds()


# --- minimum and maximum of IEEE 754-2019: NaN if an operand is one, and -0 is less than +0


@curried
def ieee_extreme(type_: str, b: Builder, x: Value, y: Value, *, maximum: bool) -> Value:
    bits_type = "i" + type_[1:]
    x, y = b.canonicalize(x), b.canonicalize(y)
    both = (b.bitcast(v, bits_type) for v in (x, y))
    equal = b.bitcast((b.and_ if maximum else b.or_)(*both), type_)  # which matters for zeros alone
    chosen = b.select(b.fcmp("ogt" if maximum else "olt", x, y), x, y)
    chosen = b.select(b.fcmp("oeq", x, y), equal, chosen)
    nan = b.select(b.fcmp("uno", x, x), x, y)
    return b.select(b.fcmp("uno", x, y), nan, chosen)


for _name, _maximum in (("minimum", False), ("maximum", True)):
    for _type, _mnemonic in (("f32", f"v_{_name}3_f32"), ("f16", f"v_pk_{_name}3_f16")):
        _of_two = ieee_extreme(_type, maximum=_maximum)
        define(
            _mnemonic,
            f"{_type} = {_type} {_type} {_type}",
            lambda b, x, y, z, f=_of_two: f(b, f(b, x, y), z),
            packed=_type == "f16",
            of="cdna4",
        )
