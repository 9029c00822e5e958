"""`ir.Value`s with the operators and methods of the DSL."""

from __future__ import annotations

from typing import Any

from mlir import ir

from flydsl.expr.numbers.arith_value import ArithValue
from flydsl.expr.numeric import as_numeric

_OPERATORS = (
    *(f"__{side}{name}__" for name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and", "or", "xor",
                                      "lshift", "rshift") for side in ("", "r")),
    *(f"__{name}__" for name in ("lt", "le", "gt", "ge", "ne", "neg", "pos", "abs", "round", "floor", "ceil", "trunc",
                                 "invert")),
)  # fmt: skip


class TracedValue(ir.Value):
    """An `ir.Value` of scalar or vector type. Attributes that it does not have come from its value of the DSL.

    It hashes as MLIR's does. `==` compares on the device, unless both sides are the same value and no float, where it
    holds when tracing: so values find themselves in a dict.
    """

    def __init__(self, value: ir.Value) -> None:
        super().__init__(value)

    def __repr__(self) -> str:
        return repr(as_numeric(self))

    __hash__ = ir.Value.__hash__
    __array_ufunc__ = None

    def __eq__(self, other: object) -> Any:
        if isinstance(other, ir.Value) and ir.Value.__eq__(self, other) and not as_numeric(self).dtype.is_float:
            return True
        return ArithValue.__eq__(self, other)

    def ir_value(self) -> ir.Value:
        """The value itself."""
        return self

    @property
    def result(self) -> TracedValue:
        """The value itself, as operations call their result."""
        return self

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(as_numeric(self), name)

    def __getitem__(self, position: Any) -> Any:
        return as_numeric(self)[position]

    def __len__(self) -> int:
        return len(as_numeric(self))

    def __iter__(self) -> Any:
        return iter(as_numeric(self))

    def __bool__(self) -> bool:
        return bool(as_numeric(self))

    def __index__(self) -> int:
        return as_numeric(self).__index__()

    def __int__(self) -> int:
        return int(as_numeric(self))

    def __float__(self) -> float:
        return float(as_numeric(self))


for _name in _OPERATORS:
    setattr(TracedValue, _name, getattr(ArithValue, _name))


def with_operators(made: Any) -> Any:
    """The result of a builder of MLIR, with operators if it is a number or vector."""
    if isinstance(made, ir.Value) and isinstance(made.type, _NUMBERS):
        return TracedValue(made)
    return made


_NUMBERS = (ir.IntegerType, ir.IndexType, ir.FloatType, ir.VectorType)
