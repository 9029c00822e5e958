"""VOPC: one bit per lane. Each also has a v_cmpx form, which writes EXEC too."""

from __future__ import annotations

from collections.abc import Callable

from tests.simulator.reference import ieee
from tests.simulator.reference.case import Case, case, integer, signed
from tests.simulator.reference.ieee import Format, Mode

CASES: dict[str, Case] = {}

LESS, EQUAL, GREATER, UNORDERED = range(4)
INTEGER_RELATIONS: dict[str, Callable[[int, int], bool]] = {
    "f": lambda a, b: False,
    "lt": lambda a, b: a < b,
    "eq": lambda a, b: a == b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ne": lambda a, b: a != b,
    "ge": lambda a, b: a >= b,
    "t": lambda a, b: True,
}
FLOAT_RELATIONS = {
    "f": (),
    "lt": (LESS,),
    "eq": (EQUAL,),
    "le": (LESS, EQUAL),
    "gt": (GREATER,),
    "lg": (LESS, GREATER),
    "ge": (GREATER, EQUAL),
    "o": (LESS, EQUAL, GREATER),
    "u": (UNORDERED,),
    "nge": (LESS, UNORDERED),
    "nlg": (EQUAL, UNORDERED),
    "ngt": (LESS, EQUAL, UNORDERED),
    "nle": (GREATER, UNORDERED),
    "neq": (LESS, GREATER, UNORDERED),
    "nlt": (GREATER, EQUAL, UNORDERED),
    "tru": (LESS, EQUAL, GREATER, UNORDERED),
}


def relation(mode: Mode, f: Format, x: int, y: int) -> int:
    """Which of the four ways two floats relate."""
    x, y = mode.flush_in(f, x), mode.flush_in(f, y)
    if ieee.is_nan(f, x) or ieee.is_nan(f, y):
        return UNORDERED
    a, b = ieee.order(f, x), ieee.order(f, y)
    return LESS if a < b else GREATER if a > b else EQUAL


def class_of(f: Format, x: int) -> int:
    """The number of the bit that asks for this kind of value."""
    negative = ieee.is_negative(f, x)
    if ieee.is_nan(f, x):
        return 0 if ieee.is_signaling(f, x) else 1
    if ieee.is_infinite(f, x):
        return 2 if negative else 9
    if ieee.is_zero(f, x):
        return 5 if negative else 6
    if ieee.is_denormal(f, x):
        return 4 if negative else 7
    return 3 if negative else 8


for _prefix in ("cmp", "cmpx"):
    for _bits in (16, 32, 64):
        for _letter in "iu":
            for _name, _holds in INTEGER_RELATIONS.items():

                def compare(
                    a: int, b: int, w: int = _bits, s: bool = _letter == "i", holds: Callable[[int, int], bool] = _holds
                ) -> bool:
                    return holds(signed(a, w), signed(b, w)) if s else holds(a, b)

                CASES[f"v_{_prefix}_{_name}_{_letter}{_bits}"] = integer(f"mask = i{_bits} i{_bits}", compare)
    for _t, _f in ieee.FORMATS.items():
        for _name, _ways in FLOAT_RELATIONS.items():
            CASES[f"v_{_prefix}_{_name}_{_t}"] = case(
                f"mask = {_t} {_t}", lambda mode, x, y, f=_f, ways=_ways: relation(mode, f, x, y) in ways
            )
        CASES[f"v_{_prefix}_class_{_t}"] = case(
            f"mask = {_t} classes", lambda mode, x, wanted, f=_f: wanted >> class_of(f, x) & 1
        )
