"""Fastmath flags, which let the compiler make assumptions about floats, and their attribute."""

from __future__ import annotations

from enum import Flag
from typing import Any

from mlir import ir

from flydsl.dialect.location import user_location
from flydsl.errors import ArgumentError


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


def fastmath_attribute(fastmath: Any) -> dict[str, ir.Attribute]:
    """The attributes of fastmath flags, given as None, "fast", "nnan,contract", or FastMathFlags."""
    if fastmath is None:
        return {}
    if isinstance(fastmath, ir.Attribute):
        return {"fastmath": fastmath}
    names = [name.strip() for name in str(fastmath).removeprefix("FastMathFlags.").replace("|", ",").split(",")]
    known = list(FastMathFlags.__members__)
    if any(name not in known for name in names):
        raise ArgumentError(
            f"fastmath={fastmath!r}", at=user_location(), hint=f"flags, with commas between: {', '.join(known)}"
        )
    return {"fastmath": ir.Attribute.parse(f"#arith.fastmath<{','.join(names)}>")}
