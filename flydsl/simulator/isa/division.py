"""The three instructions around the Newton iteration of an IEEE division (ISA, V_DIV_SCALE, V_DIV_FMAS, V_DIV_FIXUP).

With d the denominator and n the numerator: div_scale moves d or n out of the range where an intermediate would overflow
or become denormal, and notes in VCC that the quotient is scaled; div_fmas undoes the scale; div_fixup puts in what
zeros, infinities and NaNs give.
"""

from __future__ import annotations

from dataclasses import dataclass

from flydsl.simulator.isa.builder import Builder, Value
from flydsl.simulator.isa.table import define
from flydsl.simulator.isa.vector_float import quiet


@dataclass(frozen=True)
class _Format:
    type_: str
    mantissa_bits: int
    exponent_bits: int
    scale: int  # div_scale multiplies by two to this power
    far_apart: int  # difference of exponents at which a quotient nears overflow
    tiny_numerator: int  # largest biased exponent of a numerator that is scaled in any case
    underflow: int  # difference of exponents below which the quotient is 0

    @property
    def bias(self) -> int:
        return (1 << (self.exponent_bits - 1)) - 1

    def exponent(self, b: Builder, x: Value) -> Value:
        """The biased exponent as i32."""
        integer = "i" + self.type_[1:]
        bits = b.lshr(b.bitcast(x, integer), b.const(integer, self.mantissa_bits))
        narrow = b.trunc(bits, "i32") if integer == "i64" else bits
        return b.and_(narrow, b.const("i32", (1 << self.exponent_bits) - 1))

    def number(self, b: Builder, value: float) -> Value:
        return b.const(self.type_, value)


_F32 = _Format("f32", 23, 8, scale=64, far_apart=96, tiny_numerator=23, underflow=-150)
_F64 = _Format("f64", 52, 11, scale=128, far_apart=768, tiny_numerator=53, underflow=-1075)


def _div_scale(b: Builder, f: _Format, x: Value, d: Value, n: Value) -> tuple[Value, Value]:
    """x is d or n. The conditions are tried in the order of the ISA document; 1 / d and n / d are judged by exponents.

    (Where both are denormal, the document scales d up, which would overflow: d is so large. It must go down.)
    """
    x, d, n = b.canonicalize(x), b.canonicalize(d), b.canonicalize(n)
    exponent_d, exponent_n = f.exponent(b, d), f.exponent(b, n)
    zero, infinity = f.number(b, 0.0), f.number(b, float("inf"))
    finite = b.and_(b.fcmp("olt", b.fabs(d), infinity), b.fcmp("olt", b.fabs(n), infinity))
    invalid = b.or_(b.fcmp("oeq", d, zero), b.fcmp("oeq", n, zero))
    far_apart = b.icmp("sge", b.sub(exponent_n, exponent_d), b.const("i32", f.far_apart))
    denormal_d = b.icmp("eq", exponent_d, b.const("i32", 0))
    # 1 / d is denormal for |d| > 2**(bias - 1): its exponent is the largest, or the one below and the mantissa not 0.
    limit = f.number(b, 2.0 ** (f.bias - 1))
    denormal_reciprocal = b.and_(finite, b.fcmp("ogt", b.fabs(d), limit))
    denormal_quotient = b.and_(finite, _quotient_is_denormal(b, f, d, n))
    tiny = b.icmp("ule", exponent_n, b.const("i32", f.tiny_numerator))
    up, down = (b.ldexp(x, b.const("i32", s)) for s in (f.scale, -f.scale))
    is_d, is_n = b.fcmp("oeq", x, d), b.fcmp("oeq", x, n)

    both = b.and_(denormal_reciprocal, denormal_quotient)
    result = b.select(tiny, up, x)
    result = b.select(denormal_quotient, b.select(is_n, up, x), result)
    result = b.select(denormal_reciprocal, down, result)
    result = b.select(both, b.select(is_d, down, x), result)
    result = b.select(denormal_d, up, result)
    result = b.select(far_apart, b.select(is_d, up, x), result)
    result = b.select(invalid, f.number(b, float("nan")), result)
    late = b.and_(b.not_(denormal_d), denormal_quotient)
    return result, b.and_(b.not_(invalid), b.or_(far_apart, late))


def _quotient_is_denormal(b: Builder, f: _Format, d: Value, n: Value) -> Value:
    """0 < |n / d| < 2**(1 - bias), by exponents, and by mantissas where the exponents alone do not tell."""
    (mantissa_d, exponent_d), (mantissa_n, exponent_n) = b.frexp(b.fabs(d)), b.frexp(b.fabs(n))
    smaller = b.fcmp("olt", mantissa_n, mantissa_d)
    exponent = b.sub(b.sub(exponent_n, exponent_d), b.zext(smaller, "i32"))
    return b.icmp("slt", exponent, b.const("i32", 1 - f.bias))


def _div_fmas(b: Builder, f: _Format, x: Value, y: Value, z: Value, scaled: Value) -> Value:
    """A quotient that was scaled is either huge or tiny; its own exponent tells which way to scale it back.

    Denormal operands are kept whatever the mode. (The CDNA3 document has 2**32 and 2**64 in both cases, with which no
    quotient would come out right.)
    """
    large = b.icmp("ugt", f.exponent(b, z), b.const("i32", f.bias))
    amount = b.select(large, b.const("i32", f.scale), b.const("i32", -f.scale))
    return b.scaled_fma(x, y, z, b.select(scaled, amount, b.const("i32", 0)))


def _div_fixup(b: Builder, type_: str, quotient: Value, d: Value, n: Value, f: _Format | None = None) -> Value:
    integer = "i" + type_[1:]
    sign_bit = b.const(integer, 1 << (int(type_[1:]) - 1))
    sign = b.and_(b.xor(b.bitcast(d, integer), b.bitcast(n, integer)), sign_bit)

    def signed(magnitude: Value) -> Value:
        return b.bitcast(b.or_(b.bitcast(magnitude, integer), sign), type_)

    zero, infinity = b.const(type_, 0.0), b.const(type_, float("inf"))
    zero_d, zero_n = b.fcmp("oeq", d, zero), b.fcmp("oeq", n, zero)
    infinite_d, infinite_n = b.fcmp("oeq", b.fabs(d), infinity), b.fcmp("oeq", b.fabs(n), infinity)
    quotient = b.canonicalize(quotient)
    # Of a finite nonzero n and d, an iteration that overflowed leaves a NaN: the quotient is beyond the largest number.
    result = signed(b.select(b.fcmp("uno", quotient, quotient), infinity, b.fabs(quotient)))
    if f is not None:
        apart = b.sub(f.exponent(b, n), f.exponent(b, d))
        result = b.select(b.icmp("slt", apart, b.const("i32", f.underflow)), signed(zero), result)
    result = b.select(b.or_(infinite_d, zero_n), signed(zero), result)
    result = b.select(b.or_(zero_d, infinite_n), signed(infinity), result)
    invalid = b.or_(b.and_(zero_d, zero_n), b.and_(infinite_d, infinite_n))
    negative_nan = b.bitcast(b.or_(b.bitcast(b.const(type_, float("nan")), integer), sign_bit), type_)
    result = b.select(invalid, negative_nan, result)
    result = b.select(b.fcmp("uno", d, d), quiet(b, d, type_), result)
    return b.select(b.fcmp("uno", n, n), quiet(b, n, type_), result)


for _format in (_F32, _F64):
    _t = _format.type_
    define(f"v_div_scale_{_t}", f"{_t} mask = {_t} {_t} {_t}", lambda b, x, d, n, f=_format: _div_scale(b, f, x, d, n))
    define(
        f"v_div_fmas_{_t}",
        f"{_t} = {_t} {_t} {_t} vcc",
        lambda b, x, y, z, vcc, f=_format: _div_fmas(b, f, x, y, z, vcc),
    )
    define(
        f"v_div_fixup_{_t}", f"{_t} = {_t} {_t} {_t}", lambda b, q, d, n, f=_format: _div_fixup(b, f.type_, q, d, n, f)
    )
define("v_div_fixup_f16", "f16~ = f16 f16 f16", lambda b, q, d, n: _div_fixup(b, "f16", q, d, n))
define("v_div_fixup_legacy_f16", "f16 = f16 f16 f16", lambda b, q, d, n: _div_fixup(b, "f16", q, d, n))
