"""Conversions between f32 and floats of 8 bits and fewer: `arith.extf` and `arith.truncf` as the target can do them.

Where the architecture has instructions for a format they are used, else integer arithmetic on the bits. Both round to
the nearest, ties to even. A number that is too large becomes infinity; NaN in the FNUZ formats, as by the instructions;
and the largest number in the other formats without infinity. For the 8-bit formats this is what torch 2.13 does. A NaN
becomes the largest number of a format that has no NaN.

Sources: OCP 8-bit Floating Point Specification 1.0, OCP Microscaling Formats 1.0, and the MI300 ISA document.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable

from mlir import ir

from flydsl.dialect.elements import FLOAT_BITS, NARROW_FLOATS, NarrowFloat, element_type
from flydsl.dialect.location import source_location
from flydsl.errors import CompileError
from flydsl.passes.rewriting import create
from flydsl.passes.to_rocdl.arith_builder import ElementwiseValue

_EXPONENT_ONLY = "f8E8M0FNU"


# The name that instructions have for a format.
_INSTRUCTIONS = {"f8E4M3FNUZ": "fp8", "f8E5M2FNUZ": "bf8"}

_CONVERSIONS = tuple(f"arith.{name}" for name in ("extf", "truncf", "sitofp", "uitofp", "fptosi", "fptoui"))


def expand(ops: Iterable[ir.Operation], instructions: Collection[str]) -> bool:
    """Replace every conversion from or to a narrow float. Return whether there is one.

    instructions: the formats for which there are instructions; none on the host.

    Programs convert narrow floats from f32 and f64 and to f32 only, but canonicalization makes one conversion of two
    that follow each other: from an integer or f16 to f8, for example.
    """
    found = False
    for op in ops:
        if op.name not in _CONVERSIONS:
            continue
        x = ElementwiseValue(op.operands[0], op.location)
        source, target = str(x.element), str(ElementwiseValue(op.result, op.location).element)
        if not {source, target} & NARROW_FLOATS.keys():
            continue
        found = True
        with ir.InsertionPoint(op):
            x = _widen(x, source, instructions) if source in NARROW_FLOATS else _to_f32(op.name, x)
            result = _narrow(x, target, instructions) if target in NARROW_FLOATS else _cast(op.name, x, target)
        op.result.replace_all_uses_with(result.value)
        op.erase()
    return found


def _to_f32(name: str, x: ElementwiseValue) -> ElementwiseValue:
    """A number as f32, which is rounded once more; an f64 is rounded to odd, so that both make one rounding.

    Source: Boldo and Melquiond, "When double rounding is odd", 2005.
    """
    rounded = _cast(name, x, "f32")
    if str(x.element) != "f64":
        return rounded
    back = rounded.op("arith.extf", kind=x.value.type)
    bits = rounded.bits()
    neighbour = (back.abs() > x.abs()).choose(bits - 1, bits + 1)
    inexact = (back < x) | (back > x)  # neither for NaN
    odd = (inexact & (bits & 1).equals(0)).choose(neighbour, bits)
    return odd.op("arith.bitcast", kind=rounded.value.type)


def _cast(name: str, x: ElementwiseValue, target: str) -> ElementwiseValue:
    """Convert between a number that is not a narrow float and another type that can hold it. One of them is f32.

    name: the whole conversion's, which says whether integers have a sign.
    """
    source = str(x.element)
    if source == target:
        return x
    if source in FLOAT_BITS and target in FLOAT_BITS:
        name = "arith.extf" if FLOAT_BITS[source] < FLOAT_BITS[target] else "arith.truncf"
    return x.op(name, kind=x.like(target))


def _narrow(x: ElementwiseValue, target: str, instructions: Collection[str]) -> ElementwiseValue:
    if target == _EXPONENT_ONLY:
        raise CompileError(
            f"conversion to {target} is unsupported", at=source_location(x.at), hint="convert to fx.Float32 first"
        )
    if target in instructions:
        codes = _by_groups(x, _INSTRUCTIONS[target])
    else:
        codes = encode(x, NARROW_FLOATS[target])
        codes = codes.op("arith.trunci", kind=x.like(f"i{FLOAT_BITS[target]}"))
    return codes.op("arith.bitcast", kind=x.like(target))


def _widen(x: ElementwiseValue, source: str, instructions: Collection[str]) -> ElementwiseValue:
    codes = x.op("arith.bitcast", kind=x.like(f"i{FLOAT_BITS[source]}"))
    if source in instructions:
        return _from_groups(codes, _INSTRUCTIONS[source])
    codes = codes.op("arith.extui", kind=x.like("i32"))
    return _decode_exponent(codes) if source == _EXPONENT_ONLY else decode(codes, NARROW_FLOATS[source])


# --- arithmetic ------------------------------------------------------------------------------------------------------


def _dropped_bits(kind: NarrowFloat) -> int:
    """The number of mantissa bits that f32 has in addition."""
    return 23 - kind.mantissa_bits


def _largest_code(kind: NarrowFloat) -> int:
    """The code of the largest finite number."""
    fraction, exponent = math.frexp(kind.largest)
    return (exponent - 1 + kind.bias << kind.mantissa_bits) + int((2 * fraction - 1) * (1 << kind.mantissa_bits))


def encode(x: ElementwiseValue, to: NarrowFloat) -> ElementwiseValue:
    """The codes of f32 numbers, as i32."""
    a = x.abs()
    bits, dropped, largest = a.bits(), _dropped_bits(to), _largest_code(to)
    to_even = (bits >> dropped) & 1
    normal = ((bits + to_even + ((1 << (dropped - 1)) - 1)) >> dropped) - ((127 - to.bias) << to.mantissa_bits)
    # Beside this number the unit in the last place is the smallest number of the format: the sum rounds to it.
    aligner = x.constant(2.0 ** (24 - to.bias - to.mantissa_bits))
    denormal = (a + aligner).bits() - aligner.bits()
    code = (a < 2.0 ** (1 - to.bias)).choose(denormal, normal)
    # NaN too, whose bits without sign are larger than those of any number.
    too_large = code > largest
    sign = (x.bits() >> (32 - to.bits)) & (1 << (to.bits - 1))
    if not to.negative_zero:
        return too_large.choose(1 << (to.bits - 1), code.equals(0).choose(0, code | sign))
    code = too_large.choose(largest + int(to.infinity), code)
    if to.nan:
        code = x.differs(x).choose((1 << (to.bits - 1)) - 1, code)
    return code | sign


def decode(code: ElementwiseValue, of: NarrowFloat) -> ElementwiseValue:
    """The f32 numbers of codes, which are i32."""
    sign_bit = 1 << (of.bits - 1)
    magnitude = code & (sign_bit - 1)
    # As f32 the code has the wrong bias, which the product corrects, for denormals too.
    small = (magnitude << _dropped_bits(of)).op("arith.bitcast", kind=code.like("f32"))
    x = small * 2.0 ** (127 - of.bias)
    signed = (x.bits() | ((code & sign_bit) << (32 - of.bits))).op("arith.bitcast", kind=code.like("f32"))
    if not of.negative_zero:
        return code.equals(sign_bit).choose(math.nan, signed)
    if of.nan:
        signed = (magnitude > _largest_code(of) + int(of.infinity)).choose(math.nan, signed)
    if of.infinity:
        infinite = signed.constant(math.inf).copysign(signed)
        signed = magnitude.equals(_largest_code(of) + 1).choose(infinite, signed)
    return signed


def _decode_exponent(code: ElementwiseValue) -> ElementwiseValue:
    """2^(code - 127); 255 is NaN."""
    x = (code << 23).op("arith.bitcast", kind=code.like("f32"))
    x = code.equals(0).choose(2.0**-127, x)
    return code.equals(255).choose(math.nan, x)


# --- instructions ----------------------------------------------------------------------------------------------------
#
# They convert two numbers at a time, from or to one half of a register.


def _by_groups(x: ElementwiseValue, name: str) -> ElementwiseValue:
    """The codes of f32 numbers, as i8."""
    if not isinstance(x.value.type, ir.VectorType):
        return _pack(x, x, None, name).op("arith.trunci", kind=element_type("i8"))
    shape = x.value.type.shape
    codes: list[ElementwiseValue] = []
    elements = x.elements()
    for start in range(0, len(elements), 4):
        group = elements[start : start + 4]
        word = _pack(group[0], group[min(1, len(group) - 1)], None, name)
        if len(group) > 2:
            word = _pack(group[2], group[-1], word, name)
        codes += [(word >> 8 * i).op("arith.trunci", kind=element_type("i8")) for i in range(len(group))]
    return ElementwiseValue.from_elements(codes, shape)


def _pack(low: ElementwiseValue, high: ElementwiseValue, word: ElementwiseValue | None, name: str) -> ElementwiseValue:
    """The codes of two numbers in the upper half of a word, or where there is none in the lower half of a new one."""
    old = word or low.bits().constant(0)
    half = ElementwiseValue(_flag(word is not None, low.at), low.at)
    return low.llvm(f"amdgcn.cvt.pk.{name}.f32", high, old, half, kind=element_type("i32"))


def _from_groups(codes: ElementwiseValue, name: str) -> ElementwiseValue:
    """The f32 numbers of codes, which are i8."""
    if not isinstance(codes.value.type, ir.VectorType):
        word = codes.op("arith.extui", kind=element_type("i32"))
        return word.llvm(f"amdgcn.cvt.f32.{name}", word.constant(0), kind=element_type("f32"))
    pair_type = ir.VectorType.get([2], element_type("f32"))
    elements = [code.op("arith.extui", kind=element_type("i32")) for code in codes.elements()]
    numbers: list[ElementwiseValue] = []
    for start in range(0, len(elements), 4):
        group = elements[start : start + 4]
        word = group[0]
        for i, element in enumerate(group[1:], 1):
            word = word | (element << 8 * i)
        for half in range((len(group) + 1) // 2):
            flag = ElementwiseValue(_flag(bool(half), codes.at), codes.at)
            numbers += word.llvm(f"amdgcn.cvt.pk.f32.{name}", flag, kind=pair_type).elements()
    return ElementwiseValue.from_elements(numbers[: len(elements)], codes.value.type.shape)


def _flag(value: bool, at: ir.Location) -> ir.Value:
    return create("arith.constant", [], [element_type("i1")], at, {"value": ir.BoolAttr.get(value)}).result
