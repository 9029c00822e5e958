"""Types of operands of functions, by the names that signatures use.

They say what an operand can do rather than which class it has: the classes' own methods take such operands, too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

if TYPE_CHECKING:
    from mlir import ir

    from flydsl.expr.numbers.arith_value import ArithValue
    from flydsl.expr.numbers.fastmath_flags import FastMathFlags
    from flydsl.layout import ComposedLayout, Layout


class HasType(Protocol):
    """A value of the program with a type of the `fly` dialect: a layout, a tuple of integers, a pointer, a tensor."""

    @property
    def type(self) -> Any:
        """Its type."""


class HasLayout(HasType, Protocol):
    """A tensor: of elements in memory, or of coordinates."""

    @property
    def layout(self) -> Any:
        """Its layout, whose shape and stride are integers or values of the program."""


if TYPE_CHECKING:
    # A scalar: of Python, of the DSL, or a value of MLIR.
    Number: TypeAlias = bool | int | float | ArithValue | ir.Value
    # A scalar or a vector.
    Value: TypeAlias = Number
    # A value, or several in a list or tuple.
    Items: TypeAlias = Value | list[Any] | tuple[Any, ...]
    # A type of scalars, such as fx.Float32.
    ScalarType: TypeAlias = type[ArithValue] | ir.Type
    # An integer, or a tuple of them that may be nested; None in a coordinate keeps a mode.
    IntTupleLike: TypeAlias = int | ArithValue | HasType | tuple[Any, ...] | list[Any] | None
    AnyLayout: TypeAlias = Layout | ComposedLayout | HasType
    LayoutOperand: TypeAlias = AnyLayout | IntTupleLike
    AnyTensor: TypeAlias = HasLayout
    AnyPointer: TypeAlias = HasType | ir.Value
    # A value, or lists, tuples, dicts and structs of them.
    Nested: TypeAlias = Any
    # What arithmetic gives: a Python number for Python numbers, else a value of the DSL.
    Result: TypeAlias = Any
    # The threads that see accesses in one order: a name such as "agent", or MLIR's; None is all of them.
    Scope: TypeAlias = Any
    # Fastmath flags, or their names with commas between.
    FastMath: TypeAlias = FastMathFlags | str | None
