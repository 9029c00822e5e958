"""Classes of `mlir.ir` as programs see them: they take values and types of the DSL, and check what MLIR does not.

What MLIR raises in a call of one is an error of the program, not of this package (`flydsl.compiler.user_error`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mlir import ir

from flydsl.dialect.context import context
from flydsl.errors import ArgumentError
from flydsl.expr.tracing.builder import Face, MlirBuilder, ValueFace, to_mlir

_WIDEST_BITS = (1 << 24) - 1


class ContextFace(Face):
    """`ir.Context`: a call returns the one context of the process, which all types of the DSL belong to.

    So operations of the DSL can be built by hand, in a module outside of a kernel.
    """

    def __call__(self) -> ir.Context:
        return context()


class TypeFace(Face):
    """A type of MLIR that is made of others, such as `ir.FunctionType`: `get` takes the DSL's types, too.

    A call is MLIR's: `ir.VectorType(kind)` is the type `kind` as one of vectors.
    """

    def __call__(self, kind: Any) -> Any:
        return self._target(to_mlir(kind))

    def get(self, *parts: Any, **named: Any) -> Any:
        return self._target.get(*map(to_mlir, parts), **{name: to_mlir(part) for name, part in named.items()})


class IntegerTypeFace(Face):
    """`ir.IntegerType`: a width that no integer of MLIR has is an error, where MLIR would end the process."""

    def __call__(self, kind: Any) -> Any:
        return self._target(to_mlir(kind))

    def __getattr__(self, name: str) -> Any:
        found = super().__getattr__(name)
        return _of_a_width(found) if name in ("get_signless", "get_signed", "get_unsigned") else found


def _of_a_width(make: Callable[..., Any]) -> Callable[..., Any]:
    def get(width: int, *rest: Any, **named: Any) -> Any:
        if isinstance(width, int) and width > _WIDEST_BITS:
            raise ArgumentError(f"an integer of {width} bits", hint=f"MLIR has them up to {_WIDEST_BITS} bits")
        return make(width, *rest, **named)

    return get


class IntegerAttrFace(Face):
    """`ir.IntegerAttr`: its `get` takes types of the DSL, too; a type of no integer is an error."""

    def __call__(self, attribute: Any) -> Any:
        return self._target(attribute)

    def get(self, kind: Any, value: int, *rest: Any, **named: Any) -> Any:
        kind = to_mlir(kind)
        if isinstance(kind, ir.Type) and not isinstance(kind, ir.IntegerType | ir.IndexType):
            raise ArgumentError(
                f"an IntegerAttr of type {kind}", hint="its type is an integer or index; ir.FloatAttr is for floats"
            )
        return self._target.get(kind, value, *rest, **named)


class OperationFace(Face):
    """`ir.Operation`: `create`, which makes an operation by its name, is a builder like the operation classes."""

    @property
    def create(self) -> MlirBuilder:
        return MlirBuilder(self._target.create)


FACES: dict[type, type[Face]] = {
    ir.Context: ContextFace,
    ir.FunctionType: TypeFace,
    ir.IntegerAttr: IntegerAttrFace,
    ir.IntegerType: IntegerTypeFace,
    ir.Operation: OperationFace,
    ir.TypeAttr: TypeFace,
    ir.Value: ValueFace,
    ir.VectorType: TypeFace,
}
