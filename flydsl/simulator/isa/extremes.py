"""Minima, maxima and medians of floats on RDNA 4 (ISA, "V_MIN_NUM_F32" and the instructions after it).

There are two kinds, as in IEEE 754-2019. Instructions with `num` in their name prefer a number to a NaN, and return the
first of two NaNs, made quiet. Those with `minimum` or `maximum` return a NaN if there is one: the first signalling one,
else the first, made quiet. For both, -0 is less than +0.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flydsl.simulator.isa.builder import Builder, Value
from flydsl.simulator.isa.common import curried, minimum
from flydsl.simulator.isa.table import ENTERED, define
from flydsl.simulator.isa.vector_float import is_signaling, quiet

Of2 = Callable[[Builder, Value, Value], Value]


@curried
def extreme_number(type_: str, b: Builder, x: Value, y: Value, *, maximum: bool) -> Value:
    """IEEE's minimumNumber or maximumNumber: a number wins against a NaN."""
    x, y = b.canonicalize(x), b.canonicalize(y)
    number = _extreme(b, x, y, type_, maximum=maximum)
    return b.select(b.fcmp("uno", y, y), x, b.select(b.fcmp("uno", x, x), y, number))


@curried
def extreme(type_: str, b: Builder, x: Value, y: Value, *, maximum: bool) -> Value:
    """IEEE's minimum or maximum: a NaN wins."""
    first = b.or_(is_signaling(b, x, type_), b.and_(b.fcmp("uno", x, x), b.not_(is_signaling(b, y, type_))))
    nan = b.select(first, quiet(b, x, type_), quiet(b, y, type_))
    number = _extreme(b, b.canonicalize(x), b.canonicalize(y), type_, maximum=maximum)
    return b.select(b.fcmp("uno", x, y), nan, number)


def _extreme(b: Builder, x: Value, y: Value, type_: str, *, maximum: bool) -> Value:
    """The extreme of two. Equal numbers differ only if they are zeros: and-ing their signs gives +0, or-ing them -0."""
    bits = [b.bitcast(v, "i" + type_[1:]) for v in (x, y)]
    tie = b.bitcast((b.and_ if maximum else b.or_)(*bits), type_)
    better = b.select(b.fcmp("ogt" if maximum else "olt", x, y), x, y)
    return b.select(b.fcmp("oeq", x, y), tie, better)


def _of_three(first: Of2, then: Of2) -> Any:
    return lambda b, x, y, z: then(b, first(b, x, y), z)


@curried
def _median(type_: str, b: Builder, x: Value, y: Value, z: Value) -> Value:
    """The number that is neither the smallest nor the largest; the minimum if any is NaN."""
    low, high = extreme_number(type_, maximum=False), extreme_number(type_, maximum=True)
    has_nan = b.or_(b.or_(b.fcmp("uno", x, x), b.fcmp("uno", y, y)), b.fcmp("uno", z, z))
    median = high(b, low(b, x, y), low(b, high(b, x, y), z))
    return b.select(has_nan, low(b, low(b, x, y), z), median)


def _define_floats(type_: str) -> None:
    kept = "~" if type_ == "f16" else ""
    two, three = f"{type_}{kept} = {type_} {type_}", f"{type_}{kept} = {type_} {type_} {type_}"
    low, high = extreme_number(type_, maximum=False), extreme_number(type_, maximum=True)
    minimum_, maximum_ = extreme(type_, maximum=False), extreme(type_, maximum=True)
    for name, evaluate in (("min_num", low), ("max_num", high), ("minimum", minimum_), ("maximum", maximum_)):
        define(f"v_{name}_{type_}", two, evaluate, of="rdna")
        if type_ != "f64":
            define(f"s_{name}_{type_}", f"{type_} = {type_} {type_}", evaluate, of="rdna")
        if type_ == "f16":
            define(f"v_pk_{name}_f16", "f16 = f16 f16", evaluate, packed=True, of="rdna")
    if type_ == "f64":
        return
    for name, first, then in (
        ("min3_num", low, low),
        ("max3_num", high, high),
        ("minimum3", minimum_, minimum_),
        ("maximum3", maximum_, maximum_),
        ("minmax_num", low, high),
        ("maxmin_num", high, low),
        ("minimummaximum", minimum_, maximum_),
        ("maximumminimum", maximum_, minimum_),
    ):
        define(f"v_{name}_{type_}", three, _of_three(first, then), of="rdna")
    define(f"v_med3_num_{type_}", three, _median(type_), of="rdna")


for _type in ("f16", "f32", "f64"):
    _define_floats(_type)

for _suffix, _less in (("i32", "slt"), ("u32", "ult")):
    _low, _high = minimum(_less), minimum(_less.replace("lt", "gt"))
    define(f"v_minmax_{_suffix}", "i32 = i32 i32 i32", _of_three(_low, _high), of="rdna")
    define(f"v_maxmin_{_suffix}", "i32 = i32 i32 i32", _of_three(_high, _low), of="rdna")

# On RDNA 3 they are made of the older minima and maxima, v_min and v_max.
for _type in ("f16", "f32"):
    _low, _high = (ENTERED[f"v_{_name}_{_type}"].evaluate for _name in ("min", "max"))
    _signature = f"{_type}{'~' if _type == 'f16' else ''} = {_type} {_type} {_type}"
    define(f"v_minmax_{_type}", _signature, _of_three(_low, _high), of="rdna3")
    define(f"v_maxmin_{_type}", _signature, _of_three(_high, _low), of="rdna3")
