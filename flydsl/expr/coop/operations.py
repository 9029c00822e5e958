"""Operators that collective operations combine values with: a `ReductionOp`, its name, or a function of two values."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Any

from flydsl.atoms.instruction_sets import WAVE32
from flydsl.dialect.location import argument_error
from flydsl.expr.arith import maxnumf, maxsi, maxui, minnumf, minsi, minui
from flydsl.expr.numbers.vector_value import ReductionOp
from flydsl.expr.numeric import Numeric
from flydsl.expr.tracing.described import described
from flydsl.expr.tracing.emit import target_name
from flydsl.expr.tracing.immediates import immediate

Combine = Callable[[Any, Any], Any]
Operation = ReductionOp | str | Combine


def warp_size() -> int:
    """Lanes of a wave on the target."""
    return 32 if target_name() in WAVE32 else 64


def lanes_of(what: str, width: Any) -> int:
    """The lanes of a group: a power of two up to the wave, by default the wave."""
    lanes = immediate(f"the width of {what}", warp_size() if width is None else width, 1, warp_size())
    if lanes & (lanes - 1):
        raise argument_error(
            f"{what}: groups must have a power of two of lanes, got {lanes}", "pass 64, the lanes of a wave"
        )
    return lanes


def is_function(op: Any) -> bool:
    """True if an operation is a function of the user's."""
    return callable(op) and not isinstance(op, ReductionOp)


def keeps_order(op: Any) -> bool:
    """True if the order of the operands matters: of a function that does not say `commutative = True`."""
    return is_function(op) and not getattr(op, "commutative", False)


def combination(op: Operation) -> Combine:
    """The function of two values that an operation stands for."""
    if callable(op) and not isinstance(op, ReductionOp):
        return op
    return _COMBINATIONS[_named(op)]


def with_operation(op: ReductionOp, method: str, name: str) -> Any:
    """A class method `name` that is another one of the class with its parameter `op` given."""

    def shorthand(cls: Any, *given: Any, **named: Any) -> Any:
        return getattr(cls, method)(*given, op=op, **named)

    return classmethod(described(shorthand, name, f"`{method}` with `fx.ReductionOp.{op.name}`."))


def _named(op: Any) -> ReductionOp:
    try:
        return ReductionOp(op.lower() if isinstance(op, str) else op)
    except ValueError:
        names = ", ".join(member.value for member in ReductionOp)
        raise argument_error(
            f"the operation of a reduction must be a function or a name, got {op!r}", f"the names are {names}"
        ) from None


def identity_of(op: Any, dtype: type[Numeric], given: Any = None) -> Any:
    """The value that leaves others as they are: given, the function's own `identity`, or a known one; or None."""
    found = getattr(op, "identity", None) if given is None else given
    if found is not None:
        return dtype(found(dtype) if callable(found) else found)
    return None if is_function(op) else dtype(_neutral(_named(op), dtype))


def first_value(op: Operation, dtype: type[Numeric], init: Any) -> Any:
    """The first value of a scan: `init`, or the neutral element, which is not known of a function."""
    if init is not None:
        return dtype(init)
    found = identity_of(op, dtype)
    if found is None:
        raise argument_error(
            "a scan by a function, without init",
            "init= is the value that leaves others as they are, such as 0 of a sum",
        )
    return found


def _neutral(op: ReductionOp, dtype: type[Numeric]) -> float:
    if op in (ReductionOp.MAX, ReductionOp.MIN) and dtype.is_float:
        return -inf if op is ReductionOp.MAX else inf
    lowest, highest = (
        (-(1 << dtype.width - 1), (1 << dtype.width - 1) - 1) if dtype.signed else (0, (1 << dtype.width) - 1)
    )
    ones = -1 if dtype.signed else highest
    return {ReductionOp.MUL: 1, ReductionOp.MAX: lowest, ReductionOp.MIN: highest, ReductionOp.AND: ones}.get(op, 0)


def _extremum(of_floats: Combine, of_signed: Combine, of_unsigned: Combine) -> Combine:
    def combine(a: Any, b: Any) -> Any:
        dtype = a.dtype
        return (of_floats if dtype.is_float else of_signed if dtype.signed else of_unsigned)(a, b)

    return combine


_COMBINATIONS: dict[ReductionOp, Combine] = {
    ReductionOp.ADD: lambda a, b: a + b,
    ReductionOp.MUL: lambda a, b: a * b,
    ReductionOp.MAX: _extremum(maxnumf, maxsi, maxui),
    ReductionOp.MIN: _extremum(minnumf, minsi, minui),
    ReductionOp.AND: lambda a, b: a & b,
    ReductionOp.OR: lambda a, b: a | b,
    ReductionOp.XOR: lambda a, b: a ^ b,
}
