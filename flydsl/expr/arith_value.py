"""What scalars and vectors have in common: Python's operators, and a few methods that FlyDSL gives its values.

The functions behind them take and return these classes, so they are imported at the first use.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mlir import ir

    from flydsl.expr.numeric import Numeric


def _method(module: str, name: str) -> Callable[..., Any]:
    """A method that is a function of `fx.arith` or `fx.math` with the value as its first operand."""

    def method(self: ArithValue, *operands: Any, **options: Any) -> Any:
        return getattr(import_module(f"flydsl.expr.{module}"), name)(self, *operands, **options)

    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"`fx.{module}.{name}` of this value."
    return method


class ArithValue:
    """Anything with arithmetic operators: a scalar (`Numeric`) or a `Vector` of scalars.

    `ArithValue(value)` is a number, an `ir.Value` or a value of the DSL as such a scalar or vector.
    """

    dtype: type[Numeric]
    # NumPy scalars on the left of an operator leave it to this class.
    __array_ufunc__ = None

    def __new__(cls, *arguments: Any, **options: Any) -> Any:
        if cls is not ArithValue:
            return super().__new__(cls)
        from flydsl.expr.numeric import as_numeric

        (value,) = arguments
        return as_numeric(value)

    def ir_value(self) -> ir.Value:
        """The value in the program that is being traced."""
        raise NotImplementedError(f"{type(self).__name__} has no IR value")

    @property
    def result(self) -> Any:
        """The value itself: what MLIR's operations call their result, as in `arith.AddFOp(a, b).result`."""
        return self

    def _binary(self, operation: str, other: Any, reflected: bool = False) -> Any:
        from flydsl.expr import operators

        left, right = (other, self) if reflected else (self, other)
        return operators.binary(operation, left, right)

    def __add__(self, other: Any) -> Any:
        return self._binary("add", other)

    def __radd__(self, other: Any) -> Any:
        return self._binary("add", other, True)

    def __sub__(self, other: Any) -> Any:
        return self._binary("sub", other)

    def __rsub__(self, other: Any) -> Any:
        return self._binary("sub", other, True)

    def __mul__(self, other: Any) -> Any:
        return self._binary("mul", other)

    def __rmul__(self, other: Any) -> Any:
        return self._binary("mul", other, True)

    def __truediv__(self, other: Any) -> Any:
        return self._binary("div", other)

    def __rtruediv__(self, other: Any) -> Any:
        return self._binary("div", other, True)

    def __floordiv__(self, other: Any) -> Any:
        return self._binary("floordiv", other)

    def __rfloordiv__(self, other: Any) -> Any:
        return self._binary("floordiv", other, True)

    def __mod__(self, other: Any) -> Any:
        return self._binary("mod", other)

    def __rmod__(self, other: Any) -> Any:
        return self._binary("mod", other, True)

    def __pow__(self, other: Any) -> Any:
        return self._binary("pow", other)

    def __rpow__(self, other: Any) -> Any:
        return self._binary("pow", other, True)

    def __and__(self, other: Any) -> Any:
        return self._binary("and", other)

    def __rand__(self, other: Any) -> Any:
        return self._binary("and", other, True)

    def __or__(self, other: Any) -> Any:
        return self._binary("or", other)

    def __ror__(self, other: Any) -> Any:
        return self._binary("or", other, True)

    def __xor__(self, other: Any) -> Any:
        return self._binary("xor", other)

    def __rxor__(self, other: Any) -> Any:
        return self._binary("xor", other, True)

    def __lshift__(self, other: Any) -> Any:
        return self._binary("shl", other)

    def __rlshift__(self, other: Any) -> Any:
        return self._binary("shl", other, True)

    def __rshift__(self, other: Any) -> Any:
        return self._binary("shr", other)

    def __rrshift__(self, other: Any) -> Any:
        return self._binary("shr", other, True)

    def __lt__(self, other: Any) -> Any:
        return self._binary("lt", other)

    def __le__(self, other: Any) -> Any:
        return self._binary("le", other)

    def __gt__(self, other: Any) -> Any:
        return self._binary("gt", other)

    def __ge__(self, other: Any) -> Any:
        return self._binary("ge", other)

    def __eq__(self, other: object) -> Any:
        return self._binary("eq", other)

    def __ne__(self, other: object) -> Any:
        return self._binary("ne", other)

    __hash__ = object.__hash__

    def __neg__(self) -> Any:
        from flydsl.expr import operators

        return operators.negate(self)

    def __pos__(self) -> Any:
        return self

    def __abs__(self) -> Any:
        from flydsl.expr import operators

        return operators.absolute(self)

    def __round__(self, digits: int | None = None) -> Any:
        from flydsl.expr import operators

        return operators.rounded(self, "roundeven", digits)

    def __floor__(self) -> Any:
        from flydsl.expr import operators

        return operators.rounded(self, "floor")

    def __ceil__(self) -> Any:
        from flydsl.expr import operators

        return operators.rounded(self, "ceil")

    def __trunc__(self) -> Any:
        from flydsl.expr import operators

        return operators.rounded(self, "trunc")

    def __invert__(self) -> Any:
        return self._binary("xor", True if self.dtype.mlir_name == "i1" else -1)

    def select(self, true_value: Any, false_value: Any) -> Any:
        """`true_value` where this is not zero, else `false_value`; both are evaluated."""
        from flydsl.expr import arith

        return arith.select(self, true_value, false_value)

    addf, subf, mulf, divf = (_method("arith", name) for name in ("addf", "subf", "mulf", "divf"))
    maximumf, minimumf = _method("arith", "maximumf"), _method("arith", "minimumf")
    maxnumf, minnumf = _method("arith", "maxnumf"), _method("arith", "minnumf")
    extf, truncf = _method("arith", "extf"), _method("arith", "truncf")
    exp, exp2 = _method("math", "exp"), _method("math", "exp2")
    log, log2 = _method("math", "log"), _method("math", "log2")
    sqrt, rsqrt = _method("math", "sqrt"), _method("math", "rsqrt")
    sin, cos, tanh = _method("math", "sin"), _method("math", "cos"), _method("math", "tanh")

    def shuffle_xor(self, offset: Any, width: Any) -> Any:
        """This value in lane ^ offset, within groups of `width` lanes of the wave."""
        from flydsl.expr import gpu

        return gpu.shuffle(self, offset, width, "xor")

    def shuffle_up(self, offset: Any, width: Any) -> Any:
        """This value in lane - offset; the first `offset` lanes of a group keep their own."""
        from flydsl.expr import gpu

        return gpu.shuffle(self, offset, width, "up")

    def shuffle_down(self, offset: Any, width: Any) -> Any:
        """This value in lane + offset; the last `offset` lanes of a group keep their own."""
        from flydsl.expr import gpu

        return gpu.shuffle(self, offset, width, "down")

    def shuffle_idx(self, lane: Any, width: Any) -> Any:
        """This value in the group's lane number `lane`."""
        from flydsl.expr import gpu

        return gpu.shuffle(self, lane, width, "idx")
