"""Powers of floats by logarithm and exponential, which have more bits than the result: f64 for one of f32, sums of two
f64 for one of f64. Powers of integers by squaring."""

from __future__ import annotations

from mlir import ir

from flydsl.dialect.elements import element_type
from flydsl.passes.rewriting import constant, create, splat_of
from flydsl.passes.to_rocdl.arith_builder import ElementwiseValue
from flydsl.passes.to_rocdl.math_functions import coefficients
from flydsl.passes.to_rocdl.math_functions.of_f64.exponential import logarithm, natural, scaled_exp, with_its_limits
from flydsl.passes.to_rocdl.math_functions.of_f64.pairs import Pair, exact_product

_INFINITY = float("inf")
# Up to this exponent a known power is a product of at most three factors, faster and as exact.
_LARGEST_UNROLLED = 4


def powf(x: ElementwiseValue, y: ElementwiseValue) -> ElementwiseValue:
    """x to the power of y, within 1 ulp; special values as in C."""
    wide = y.to_float("f64")
    halved = wide * 0.5
    whole = wide.equals(wide.llvm("trunc"))
    even = halved.equals(halved.llvm("trunc"))
    return _power(x, wide, whole, whole & (even ^ even.constant(1)))


def fpowi(x: ElementwiseValue, n: ElementwiseValue) -> ElementwiseValue:
    """x to the power of a signed integer, within 1 ulp."""
    known = splat_of(n.value)
    if known is not None and is_unrolled(n):
        power = _product(x, abs(known))
        return power if known >= 0 else 1.0 / power
    wide = n.op("arith.sitofp", kind=n.like("f64"))
    always = n.equals(n)
    return _power(x, wide, always, (n & 1).differs(0))


def is_unrolled(n: ElementwiseValue) -> bool:
    """True if an exponent is known and so small that the power is a few products."""
    known = splat_of(n.value)
    return known is not None and abs(known) <= _LARGEST_UNROLLED


def _product(x: ElementwiseValue, n: int) -> ElementwiseValue:
    if n == 0:
        return x.constant(1)
    half = _product(x, n // 2) if n > 1 else None
    if half is None:
        return x
    return half * half * x if n % 2 else half * half


def _power(
    x: ElementwiseValue, y: ElementwiseValue, whole: ElementwiseValue, odd: ElementwiseValue
) -> ElementwiseValue:
    """x to the power of y, which is f64; whole, odd: whether y is an integer, and an odd one."""
    a = x.abs()
    magnitude = _of_f64(a, y) if str(x.element) == "f64" else _of_f32(a, y)
    negative = x.bits() < 0
    result = (negative & odd).choose(-magnitude, magnitude)
    undefined = (x < 0.0) & whole.op("arith.xori", whole.constant(1)) & (a < _INFINITY)
    result = undefined.choose(float("nan"), result)
    result = (x.equals(x) & y.equals(y)).choose(result, x + y.to_float(str(x.element)))
    # 1 whatever the other is, NaN too; and (-1)^(+-inf).
    one = y.equals(0.0) | x.equals(1.0) | (a.equals(1.0) & y.abs().equals(_INFINITY))
    return one.choose(1.0, result)


def _of_f32(x: ElementwiseValue, y: ElementwiseValue) -> ElementwiseValue:
    """A positive f32 to the power of an f64."""
    exponent = (y * _log2(x.to_float("f64"))).clamp(-300.0, 300.0)
    return _exp2(exponent).to_float("f32")


def _of_f64(x: ElementwiseValue, y: ElementwiseValue) -> ElementwiseValue:
    """A positive f64 to the power of an f64."""
    log = natural(*logarithm(x))
    product = exact_product(y, with_its_limits(x, log.high))
    beyond = product.high.abs() > 800.0  # or infinite, where what it lacks has no meaning
    low = beyond.choose(0.0, y.fma(log.low, product.low))
    return scaled_exp(Pair(product.high.clamp(-800.0, 800.0), low))


def _log2(x: ElementwiseValue) -> ElementwiseValue:
    """log2 of a normal f64 to 2^-35 of itself, of 0 and infinity."""
    bits = x.bits()
    # The exponent that leaves a mantissa between sqrt(1/2), whose bits these are, and sqrt(2).
    shifted = bits - 0x3FE6A09E667F3BCD
    n = shifted.op("arith.shrsi", 52)
    mantissa = (bits - (n << 52)).op("arith.bitcast", kind=x.value.type)
    f = mantissa - 1.0
    result = f.fma(f.polynomial(coefficients.LOG2), n.op("arith.trunci", kind=x.like("i32")).to_float("f64"))
    result = x.equals(_INFINITY).choose(x, result)
    return x.equals(0.0).choose(-_INFINITY, result)


def _exp2(x: ElementwiseValue) -> ElementwiseValue:
    """2^x of an f64 to 2^-29 of itself."""
    n = x.nearest()
    return (x - n).polynomial(coefficients.EXP2).ldexp(n.to_int())


def ipowi(x: ElementwiseValue, n: ElementwiseValue) -> ElementwiseValue:
    """An integer to the power of a signed integer, modulo 2^width; a negative power is rounded toward zero."""
    known = splat_of(n.value)
    if known is not None and 0 <= known <= _LARGEST_UNROLLED:
        return _product(x, known)
    inverse = x.equals(1).choose(1, x.equals(-1).choose((n & 1).differs(0).choose(x, x.constant(1)), x.constant(0)))
    return (n < 0).choose(inverse, _by_squaring(x, n))


def _by_squaring(x: ElementwiseValue, n: ElementwiseValue) -> ElementwiseValue:
    """One loop iteration per bit of the exponent."""
    bounds = [constant(bound, 32, x.at) for bound in (0, x.width, 1)]
    start = [x.constant(1).value, x.value, n.value]
    loop = ir.Operation.create("scf.for", [value.type for value in start], [*bounds, *start], regions=1, loc=x.at)
    block = loop.regions[0].blocks.append(element_type("i32"), *(v.type for v in start), arg_locs=[x.at] * 4)
    with ir.InsertionPoint(block):
        power, base, left = (ElementwiseValue(argument, x.at) for argument in list(block.arguments)[1:])
        power = (left & 1).differs(0).choose(power * base, power)
        create("scf.yield", [power.value, (base * base).value, (left >> 1).value], [], x.at)
    return ElementwiseValue(loop.results[0], x.at)
