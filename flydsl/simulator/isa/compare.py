"""VOPC: comparisons, whose result is one bit per lane in VCC or a pair of scalar registers."""

from __future__ import annotations

from typing import Any

from flydsl.simulator.isa.builder import Builder, Value
from flydsl.simulator.isa.common import curried
from flydsl.simulator.isa.table import define
from flydsl.simulator.isa.vector_float import is_signaling

_INTEGER_RELATIONS = ("lt", "eq", "le", "gt", "ne", "ge")
FLOAT_RELATIONS = {
    "lt": "olt",
    "eq": "oeq",
    "le": "ole",
    "gt": "ogt",
    "lg": "one",
    "ge": "oge",
    "o": "ord",
    "u": "uno",
    "nge": "ult",
    "nlg": "ueq",
    "ngt": "ule",
    "nle": "ugt",
    "neq": "une",
    "nlt": "uge",
}


def _define_comparison(suffix: str, words: str, evaluate: Any) -> None:
    """v_cmp_* and v_cmpx_*, which also writes EXEC."""

    def with_exec(b: Builder, *operands: Value) -> tuple[Value, Value]:
        result = evaluate(b, *operands)
        return result, b.ballot(result)

    define(f"v_cmp_{suffix}", f"mask = {words}", evaluate)
    define(f"v_cmpx_{suffix}", f"mask exec = {words}", with_exec)
    # RDNA has no other result; of these RDNA 4 has none.
    of = "rdna3" if suffix.startswith(("f_", "t_", "tru_")) else "rdna"
    define(f"v_cmpx_{suffix}", f"exec = {words}", lambda b, *operands: with_exec(b, *operands)[1], of=of)


for _bits in (16, 32, 64):
    for _sign, _letter in (("s", "i"), ("u", "u")):
        _words = f"i{_bits} i{_bits}"
        for _relation in _INTEGER_RELATIONS:
            _p = _relation if _relation in ("eq", "ne") else _sign + _relation
            _define_comparison(f"{_relation}_{_letter}{_bits}", _words, lambda b, x, y, p=_p: b.icmp(p, x, y))
        _define_comparison(f"f_{_letter}{_bits}", _words, lambda b, x, y: b.const("i1", False))
        _define_comparison(f"t_{_letter}{_bits}", _words, lambda b, x, y: b.const("i1", True))
    for _relation, _p in FLOAT_RELATIONS.items():
        _define_comparison(f"{_relation}_f{_bits}", f"f{_bits} f{_bits}", lambda b, x, y, p=_p: b.fcmp(p, x, y))
    _define_comparison(f"f_f{_bits}", f"f{_bits} f{_bits}", lambda b, x, y: b.const("i1", False))
    _define_comparison(f"tru_f{_bits}", f"f{_bits} f{_bits}", lambda b, x, y: b.const("i1", True))

_EXPONENT_AND_MANTISSA = {"f16": (0x7C00, 0x3FF), "f32": (0x7F800000, 0x7FFFFF), "f64": (0x7FF << 52, (1 << 52) - 1)}


@curried
def _class(type_: str, b: Builder, x: Value, wanted: Value) -> Value:
    """Bit i of the second operand asks for class i: signalling and quiet NaN, then -inf, -normal, -denormal, -0, +0,
    +denormal, +normal, +inf."""
    integer = "i" + type_[1:]
    narrow = type_ == "f16"  # then the document gives constants the format f16, for the second operand too
    exponent_bits, mantissa_bits = _EXPONENT_AND_MANTISSA[type_]
    bits = b.bitcast(x, integer)
    exponent, mantissa = b.const(integer, exponent_bits), b.const(integer, mantissa_bits)
    zero = b.const(integer, 0)
    exponent_field, mantissa_field = b.and_(bits, exponent), b.and_(bits, mantissa)
    negative = b.icmp("slt", bits, zero)
    no_exponent, no_mantissa = b.icmp("eq", exponent_field, zero), b.icmp("eq", mantissa_field, zero)
    all_exponent = b.icmp("eq", exponent_field, exponent)

    def by_sign(minus: int, plus: int) -> Value:
        return b.select(negative, b.const("i32", 1 << minus), b.const("i32", 1 << plus))

    finite = b.select(no_exponent, b.select(no_mantissa, by_sign(5, 6), by_sign(4, 7)), by_sign(3, 8))
    nan = b.select(is_signaling(b, x, type_), b.const("i32", 1), b.const("i32", 2))
    class_bit = b.select(all_exponent, b.select(no_mantissa, by_sign(2, 9), nan), finite)
    asked = b.zext(b.bitcast(wanted, "i16"), "i32") if narrow else wanted
    return b.icmp("ne", b.and_(class_bit, asked), b.const("i32", 0))


for _type in ("f16", "f32", "f64"):
    _define_comparison(f"class_{_type}", f"{_type} {'f16' if _type == 'f16' else 'i32'}", _class(_type))
