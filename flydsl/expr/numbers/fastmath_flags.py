"""Fastmath flags, which let the compiler make assumptions about floats: of one operation, and of a block of code.

with fx.fastmath("contract,afn"):
    y = fx.exp(x * scale + shift)     # operations without flags of their own have these
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from enum import Flag
from typing import Any

from mlir import ir

from flydsl.dialect.location import argument_error
from flydsl.system.interrupts import holding


class FastMathFlags(Flag):
    """Assumptions about floats that the compiler may make in one operation; combine them with `|`."""

    none = 0
    reassoc = 1
    nnan = 2
    ninf = 4
    nsz = 8
    arcp = 16
    contract = 32
    afn = 64
    fast = 127

    def __str__(self) -> str:
        """Return the flags as MLIR writes them, as its builders make attributes of an enumeration's text."""
        named = [name for name, flag in FastMathFlags.__members__.items() if flag == self]
        return named[0] if named else ",".join(flag.name or "" for flag in FastMathFlags if flag and flag in self)


def fastmath_attribute(fastmath: Any) -> dict[str, ir.Attribute]:
    """The attributes of fastmath flags, given as None, "fast", "nnan,contract", or FastMathFlags."""
    if fastmath is None:
        return {}
    if isinstance(fastmath, ir.Attribute):
        return {"fastmath": fastmath}
    return {"fastmath": ir.Attribute.parse(f"#arith.fastmath<{flag_names(fastmath)}>")}


def flag_names(fastmath: Any) -> str:
    """MLIR's names of fastmath flags, with commas between. Raises ArgumentError for what is none."""
    names = [name.strip() for name in str(fastmath).replace("|", ",").split(",")]
    known = list(FastMathFlags.__members__)
    if any(name not in known for name in names):
        raise argument_error(
            f"there are no fastmath flags {fastmath!r}", f"join some of these by commas: {', '.join(known)}"
        )
    return ",".join(names)


_around: ContextVar[dict[str, ir.Attribute]] = ContextVar("flydsl_fastmath", default={})  # noqa: B039 - never changed

# The operations that have flags.
_FLOAT_OPERATIONS = frozenset(
    f"{dialect}.{name}"
    for dialect, names in {
        "arith": "addf subf mulf divf remf negf maximumf minimumf maxnumf minnumf cmpf",
        "math": "absf acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh erf erfc exp exp2 expm1 floor "
        "fma fpowi isfinite isinf isnan isnormal log log10 log1p log2 powf round roundeven rsqrt sin sincos sinh sqrt "
        "tan tanh trunc clampf",
        "vector": "reduction",
    }.items()
    for name in names.split()
)


@contextmanager
def fastmath(flags: FastMathFlags | str | None) -> Iterator[None]:
    """Trace the block with these flags for operations on floats that state none.

    flags: as an operation takes them: "fast", "nnan,contract", FastMathFlags. Inner blocks replace outer ones.
    """
    with holding(_around, fastmath_attribute(flags)):
        yield


def current_fastmath() -> ir.Attribute | None:
    """The flags that the surrounding `with fastmath(...)` gives, as MLIR's attribute; None outside of one."""
    return _around.get().get("fastmath")


def flags_of_block(operation: str) -> dict[str, ir.Attribute]:
    """The attributes that the surrounding `with fastmath(...)` gives an operation of a name."""
    around = _around.get()
    return around if around and operation in _FLOAT_OPERATIONS else {}
