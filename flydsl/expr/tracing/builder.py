"""MLIR's own operation classes and functions for kernels. They take values of the DSL and keep the user's line."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Union

from mlir import ir

from flydsl.dialect.location import mlir_location
from flydsl.dialect.types import FlyType
from flydsl.errors import ArgumentError, FlyError
from flydsl.errors.places import user_location
from flydsl.expr.numbers.arith_value import ArithValue
from flydsl.expr.numeric import NumericMeta
from flydsl.expr.tracing.emit import require_trace
from flydsl.expr.tracing.executing import executed, executing
from flydsl.expr.tracing.operands import FlyValue, as_ir_value
from flydsl.expr.tracing.outlived import note_raw
from flydsl.expr.tracing.trace_limit import count_operation


def is_value(value: Any) -> bool:
    """True if a value is an `ir.Value`, or the DSL's wrapper of a scalar or vector one."""
    return isinstance(value, ir.Value | ArithValue)


def to_mlir(argument: Any) -> Any:
    """Convert an argument for MLIR's builders: values and scalar types of the DSL become MLIR's, also inside lists."""
    if isinstance(argument, ir.Value):
        note_raw(argument)
    if isinstance(argument, ArithValue):
        return argument.ir_value()
    if isinstance(argument, FlyValue):
        return argument.value
    if isinstance(argument, FlyType):
        return argument.ir
    if isinstance(argument, NumericMeta) and hasattr(argument, "mlir_name"):
        return argument.ir_type
    if type(argument) is list or type(argument) is tuple:
        return type(argument)(map(to_mlir, argument))
    if type(argument) is dict:
        return {key: to_mlir(value) for key, value in argument.items()}
    return argument


class Face:
    """A wrapper that changes how an MLIR class is called; other attributes come from the class itself."""

    def __init__(self, target: Any) -> None:
        self._target = target
        self.__doc__ = target.__doc__
        self.__name__ = target.__name__

    def __getattr__(self, name: str) -> Any:
        return getattr(self._target, name)

    def __instancecheck__(self, instance: Any) -> bool:
        return isinstance(instance, self._target)

    def __subclasscheck__(self, subclass: type) -> bool:
        return issubclass(subclass, getattr(self._target, "_target", self._target))

    def __eq__(self, other: object) -> bool:
        return self._target is getattr(other, "_target", other)

    def __hash__(self) -> int:
        return hash(self._target)

    def __mro_entries__(self, bases: tuple[Any, ...]) -> tuple[Any, ...]:
        return (self._target,)

    def __or__(self, other: Any) -> Any:
        return Union[self._target, other]  # noqa: UP007 - of two objects, not of two types

    def __ror__(self, other: Any) -> Any:
        return Union[other, self._target]  # noqa: UP007

    def __repr__(self) -> str:
        return repr(self._target)


class ValueFace(Face):
    """`ir.Value` with values of the DSL as instances; `ir.Value(x)` returns the `ir.Value` behind x."""

    def __instancecheck__(self, instance: Any) -> bool:
        return is_value(instance)

    def __call__(self, value: Any) -> ir.Value:
        return as_ir_value(value)


# Exceptions of MLIR's Python for operands and attributes that it does not accept.
_WRONG_USE = (
    TypeError, ValueError, AttributeError, IndexError, KeyError, RuntimeError, AssertionError, NotImplementedError,
    ir.MLIRError,
)  # fmt: skip


class Hooks:
    """Callbacks of builders. before_call: called with a builder's name before each call; what it returns, after it."""

    before_call: Callable[[str], Callable[[], None] | None] | None = None


hooks = Hooks()


class MlirBuilder(Face):
    """An operation class of MLIR, or a function that makes operations.

    It takes values of the DSL as operands, and its operation carries the user's line. The operation is verified at
    once; one with regions, or one that ends a block, is verified with the whole module.
    """

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        require_trace(self.__name__)
        count_operation()
        after_call = None if hooks.before_call is None else hooks.before_call(self.__name__)
        at = user_location()
        try:
            with mlir_location(at):
                given, by_name = [to_mlir(a) for a in arguments], {key: to_mlir(v) for key, v in named.items()}
                _require_one_module(self.__name__, [*given, *by_name.values()])
                made = self._target(*given, **by_name)
                _verify(made)
                note_raw(made)
                _execute(made)
        except FlyError:
            raise
        except _WRONG_USE as error:
            raise ArgumentError(f"{self.__name__}: {error}", at=at, hint=_signature(self._target)) from error
        finally:
            if after_call is not None:
                after_call()
        return made


def _signature(target: Any) -> str | None:
    """The parameters of a builder, without the location and insertion point that all take, or None if unknown."""
    try:
        names = list(inspect.signature(target).parameters)
    except (TypeError, ValueError):
        return None
    return f"it takes ({', '.join(name for name in names if name not in ('loc', 'ip'))})"


def _require_one_module(name: str, arguments: list[Any]) -> None:
    """Refuse operands of another module than the operation's: MLIR would end the process when one of both is freed."""
    values = [
        value for argument in arguments for value in (argument if isinstance(argument, list | tuple) else [argument])
    ]
    owners = [value.owner if isinstance(value, ir.Value) else value.operation
              for value in values if isinstance(value, ir.Value | ir.OpView | ir.Operation)]  # fmt: skip
    if owners and (here := ir.InsertionPoint.current) is not None:
        modules = {module for place in (here.block, *owners) if (module := _module(place)) is not None}
        if len(modules) > 1:
            raise ArgumentError(
                f"{name}: an operand of another module",
                at=user_location(),
                hint="a kernel that was traced before has made it; keep values in variables of the kernel",
            )


def _module(place: ir.Block | ir.Operation) -> ir.Operation | None:
    """The module that a block or an operation is in; None for what is in none."""
    op = place.owner if isinstance(place, ir.Block) else place
    while op is not None and op.name != "builtin.module":
        op = op.parent
    return None if op is None else op.operation


def _verify(made: Any) -> None:
    """Raise MLIRError if an operation is invalid on its own."""
    if isinstance(made, ir.OpResultList | ir.Value):
        made = made.owner
    if isinstance(made, ir.OpView | ir.Operation) and not made.regions and not _ends_block(made.operation):
        made.operation.verify()


def _execute(made: Any) -> None:
    """Have the interpreter, where it is on, execute an operation, or the one whose results these are."""
    if executing.get() is not None:
        if isinstance(made, ir.OpResultList) and len(made):
            made = made[0]
        op = made.owner if isinstance(made, ir.Value) else made
        if isinstance(op, ir.OpView | ir.Operation):
            executed(op.operation)


def _ends_block(op: ir.Operation) -> bool:
    return op.name in ("scf.yield", "scf.condition", "scf.reduce.return", "cf.br", "cf.cond_br", "cf.switch",
                       "func.return", "gpu.return", "llvm.return", "llvm.br", "llvm.cond_br", "gpu.yield")  # fmt: skip
