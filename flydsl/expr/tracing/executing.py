"""The tracer's hook for the interpreter: while it is on, each operation is executed as soon as it is traced."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from flydsl.dialect.location import trace_error

if TYPE_CHECKING:
    from mlir import ir


class Executor(Protocol):
    """Executes operations. The only implementation is in `flydsl.interpreter`.

    twins: class of a branch or loop -> the one that is executed in its place.
    """

    twins: ClassVar[Mapping[type[Any], type[Any]]]

    def execute(self, op: ir.Operation) -> None:
        """Execute an operation that has just been traced."""

    def choose(self, condition: Any, then: Callable[[], Any], otherwise: Callable[[], Any]) -> Any:
        """`then()` in the lanes in which a runtime condition holds, `otherwise()` in the others.

        If all lanes agree, only one of the two is called.
        """


executing: ContextVar[Executor | None] = ContextVar("flydsl_executing", default=None)


def executed(op: ir.Operation) -> ir.Operation:
    """The operation, which has been executed if the interpreter is on."""
    executor = executing.get()
    if executor is not None:
        executor.execute(op)
    return op


class Shown(Protocol):
    """Contents of values, for people and debuggers."""

    def text(self, value: ir.Value, name: str) -> str | None:
        """The text of a value; None if nothing has executed it. name: of its type in the DSL."""

    def truth(self, value: ir.Value) -> bool | None:
        """The truth of a number that is the same in all active lanes; None if nothing has executed it."""

    def lanes(self, value: ir.Value) -> Any:
        """The array of a value, whose first axis is the lanes; None if nothing has executed it."""


class _Door:
    shown: Shown | None = None


door = _Door()
"""`flydsl.interpreter` enters here what shows its values."""


def text_of_lanes(value: Any, name: str) -> str | None:
    """Contents of an `ir.Value` that the interpreter has executed, else None. name: of its type in the DSL."""
    return None if door.shown is None else door.shown.text(value, name)


def truth_of_lanes(value: Any) -> bool | None:
    """The truth of a value that is the same in all active lanes, for a debugger's conditions.

    None where nothing executes it. TraceError where lanes differ.
    """
    return None if door.shown is None else door.shown.truth(value)


def lanes_of(value: Any, name: str) -> Any:
    """The array of what an `ir.Value` holds: its first axis is the lanes. TraceError where nothing executes it."""
    found = None if door.shown is None else door.shown.lanes(value)
    if found is None:
        raise trace_error(
            f"the lanes of a {name}, whose values are known on the device only",
            "the interpreter knows them: with flydsl.interpreting(): ..., or FLYDSL_INTERPRET=1",
        )
    return found
