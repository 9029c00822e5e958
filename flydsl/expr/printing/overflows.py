"""Assertions that integers of a signed type do not wrap, which `checking("overflow")` adds to a kernel."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from flydsl.expr.numbers.elementwise import after_operation
from flydsl.expr.numeric import Int8, Int16, Int32, Int64, Numeric
from flydsl.expr.printing.assertions import device_assert
from flydsl.expr.tracing.emit import gpu_module_body
from flydsl.system.interrupts import holding

_SIGNS = {"addi": "+", "subi": "-", "muli": "*"}
_WIDE = {Int8: Int32, Int16: Int32, Int32: Int64}


@contextmanager
def check_overflow(checked: bool) -> Iterator[None]:
    """Trace the block with, or without, an assertion at each sum, difference and product of signed integers."""
    with holding(after_operation, _assert_fits if checked else None):
        yield


def _assert_fits(name: str, left: Any, right: Any, result: Any) -> None:
    sign, kind = _SIGNS.get(name), left.dtype
    if sign is None or gpu_module_body() is None or not (kind in _WIDE or (kind is Int64 and sign != "*")):
        return
    with holding(after_operation, None):  # what the assertion computes does not wrap
        if kind is Int64:
            changed = (left ^ result) & ((right ^ result) if sign == "+" else (left ^ right))
            fits = changed >= 0
        else:
            wide = _WIDE[kind]
            a, b = left.to(wide), right.to(wide)
            fits = (a + b if sign == "+" else a - b if sign == "-" else a * b) == result.to(wide)
        if isinstance(result, Numeric):
            device_assert(fits, f"{{}} {sign} {{}} is {{}} in {kind.__name__}: it wraps around", left, right, result)
        else:
            device_assert(fits.reduce("and"), f"an element of a vector's {sign} wraps around in {kind.__name__}")
