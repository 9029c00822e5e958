"""`fx.as_ir_value` and `fx.as_dsl_value`: values of the DSL as MLIR's and back, also inside lists and tuples."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlir import ir

from flydsl.expr.numbers.arith_value import ArithValue
from flydsl.expr.numeric import Numeric
from flydsl.expr.tracing import operands
from flydsl.expr.tracing.operands import FlyValue

if TYPE_CHECKING:
    from flydsl.expr.kinds import Nested, Result

__all__ = ["as_dsl_value", "as_ir_value"]


def as_ir_value(value: Nested, *, keep_static: bool = False) -> Result:
    """A value of the DSL as MLIR's; a Python number becomes a constant, a list or tuple one of values.

    An object with `__extract_to_ir_values__` gives its value, or the list of them; None and other objects stay.
    keep_static: numbers of the DSL that are known at compile time stay, too.
    """
    if value is None or isinstance(value, ir.Value):
        return value
    if type(value) in (tuple, list):
        return type(value)(as_ir_value(part, keep_static=keep_static) for part in value)
    if keep_static and isinstance(value, Numeric) and value.is_static:
        return value
    if isinstance(value, ArithValue | FlyValue | bool | int | float):
        return operands.as_ir_value(value)
    if hasattr(value, "__extract_to_ir_values__"):
        found = value.__extract_to_ir_values__()
        return found[0] if len(found) == 1 else found
    return value


def as_dsl_value(value: Nested, exemplar: Nested | None = None) -> Result:
    """An `ir.Value` as a value of the DSL; anything else unchanged. Parts of a list or tuple one by one.

    exemplar: a class of the DSL or a value of it, which the result is like; for a list or tuple one for each part, or
    one for all.
    """
    if type(value) in (tuple, list):
        given = exemplar if isinstance(exemplar, tuple | list) else [exemplar] * len(value)
        return type(value)(as_dsl_value(part, like) for part, like in zip(value, given, strict=True))
    if exemplar is None or not isinstance(value, ir.Value):
        return operands.as_dsl_value(value)
    kind = exemplar if isinstance(exemplar, type) else type(exemplar)
    make = getattr(kind, "__construct_from_ir_values__", None)
    return make([value]) if make is not None and not issubclass(kind, Numeric) else kind(value)
