"""Methods that FlyDSL's values have besides Python's operators: `v.extui(T.i64)`, `v.type`, `v.with_signedness(False)`.

The operations behind them are those of `fx.arith`.
"""

from __future__ import annotations

from typing import Any

from mlir import ir

from flydsl.dialect.location import argument_error
from flydsl.expr import arith
from flydsl.expr.numbers.arith_value import ArithValue, add_methods
from flydsl.expr.numbers.vector_value import Vector
from flydsl.expr.numeric import Integer, Numeric, numeric_class

add_methods(
    arith.extsi, arith.extui, arith.trunci, arith.index_cast, arith.addi, arith.subi, arith.muli, arith.divui,
    arith.divsi, arith.remui, arith.remsi, arith.andi, arith.ori, arith.xori, arith.shli, arith.shrui, arith.shrsi,
    arith.maxsi, arith.maxui, arith.minsi, arith.minui, arith.negf, arith.sitofp, arith.uitofp, arith.fptosi,
    arith.fptoui,
)  # fmt: skip


def with_signedness(value: Any, signed: bool) -> Any:
    """The same bits, read as signed or unsigned integers."""
    dtype = value.dtype
    if not issubclass(dtype, Integer):
        raise argument_error(
            f"with_signedness of {value!r}: it has no integers", "bitcast it to integers of that width first"
        )
    if dtype.signed == signed or str(dtype.ir_type) in ("i1", "index", "i4"):
        return value
    other = numeric_class(f"{'' if signed else 'u'}{dtype.mlir_name}")
    if isinstance(value, Vector):
        return Vector(value.value, value.shape, other)
    return other(value) if value.is_static else other.of(value.value)


def _ir_type(value: Any) -> ir.Type:
    """The MLIR type of a scalar or vector."""
    return value.dtype.ir_type if isinstance(value, Numeric) else value.ir_value().type


def _owner(value: Any) -> Any:
    """The operation or block that defines a value."""
    return value.ir_value().owner


add_methods(with_signedness)
ArithValue.type = property(_ir_type)  # type: ignore[attr-defined] # in the class body it would hide Python's `type`
ArithValue.owner = property(_owner)  # type: ignore[attr-defined]
