"""Types of operands of functions, by the names that signatures use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from mlir import ir

    from flydsl.expr.layouts.algebra import IntTuple, LayoutValue
    from flydsl.expr.layouts.coord_tensor import CoordTensor
    from flydsl.expr.memory.tensors import Pointer, Tensor
    from flydsl.expr.numbers.fastmath_flags import FastMathFlags
    from flydsl.expr.numbers.vector_value import ReductionOp, Vector
    from flydsl.expr.numeric import Numeric
    from flydsl.layout import ComposedLayout, Layout

    # A scalar: of Python, of the DSL, or a value of MLIR.
    Number: TypeAlias = bool | int | float | Numeric | ir.Value
    # A scalar or a vector.
    Value: TypeAlias = Number | Vector
    # A type of scalars, such as fx.Float32.
    ScalarType: TypeAlias = type[Numeric] | ir.Type
    # An integer, or a tuple of them that may be nested; None in a coordinate keeps a mode.
    IntTupleLike: TypeAlias = int | Numeric | IntTuple | tuple[Any, ...] | list[Any] | None
    AnyLayout: TypeAlias = Layout | ComposedLayout | LayoutValue
    LayoutOperand: TypeAlias = AnyLayout | IntTupleLike | Tensor
    AnyTensor: TypeAlias = Tensor | CoordTensor
    AnyPointer: TypeAlias = Pointer | ir.Value
    # A value, or lists, tuples, dicts and structs of them.
    Nested: TypeAlias = Any
    # What arithmetic gives: a Python number for Python numbers, else a value of the DSL.
    Result: TypeAlias = Any
    # The threads that see accesses in one order: a name such as "agent", or MLIR's; None is all of them.
    Scope: TypeAlias = Any
    FastMath: TypeAlias = FastMathFlags | str | None
    Reduction: TypeAlias = ReductionOp | str
