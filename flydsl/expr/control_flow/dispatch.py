"""Control flow as functions of functions: the form in which FlyDSL's rewritten source calls it.

A branch or body takes the values of the names that it assigns and returns a dict of those that it changed. What runs
when compiling, and what becomes an operation, is decided as in rewritten source.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from mlir import ir
from mlir.dialects import scf

from flydsl.dialect.location import argument_error
from flydsl.errors import ArgumentError, TraceError
from flydsl.expr.control_flow.conditional_expression import conditional_expression
from flydsl.expr.control_flow.for_loop import ForLoop
from flydsl.expr.control_flow.if_statement import IfStatement
from flydsl.expr.control_flow.while_loop import WhileLoop
from flydsl.expr.numeric import Index
from flydsl.expr.tracing.operands import as_ir_value

Body = Callable[..., Any]


class Names:
    """Names and their values while a construct is traced."""

    def __init__(self, names: Sequence[str], values: Sequence[Any]) -> None:
        self.names, self.values = tuple(names), list(values)
        if len(self.names) != len(self.values):
            raise argument_error(f"{len(self.names)} names with {len(self.values)} values")

    @property
    def thunks(self) -> list[Callable[[], Any]]:
        """A function for each name that reads its value."""
        return [_reader(self.values, i) for i in range(len(self.names))]

    def set(self, values: Sequence[Any]) -> None:
        """Set the values of all names."""
        self.values[:] = values

    def update(self, changed: Any) -> None:
        """Set the values that a branch returned: a dict by name, one value for each name, or None for none."""
        if isinstance(changed, Mapping):
            self.set([changed.get(name, value) for name, value in zip(self.names, self.values, strict=True)])
        elif changed is not None and self.names:
            given = list(changed) if isinstance(changed, list | tuple) else [changed]
            if len(given) != len(self.names):
                raise argument_error(f"{len(given)} values for {len(self.names)} names")
            self.set(given)

    def require_values(self, construct: str) -> None:
        """Raise ArgumentError for a name that is None before a construct of the program."""
        if empty := [name for name, value in zip(self.names, self.values, strict=True) if value is None]:
            raise argument_error(
                f"{', '.join(empty)} is None before a runtime {construct}, which assigns it",
                "give it a value of its type before, such as fx.Int32(0)",
            )

    def packed(self) -> Any:
        """The values: None if there is none, the value if there is one, else a tuple."""
        return None if not self.values else self.values[0] if len(self.values) == 1 else tuple(self.values)


def _reader(values: list[Any], i: int) -> Callable[[], Any]:
    return lambda: values[i]


def called(body: Body, state: Names) -> Any:
    """Call a branch, with the names before the values if it has a parameter for them."""
    kinds = [p.kind for p in inspect.signature(body).parameters.values()]
    positional = [k for k in kinds if k in (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)]
    takes_names = inspect.Parameter.VAR_POSITIONAL in kinds or len(positional) > len(state.values)
    return body(*([state.names] if takes_names else []), *state.values)


def scf_if_dispatch(
    cond: Any,
    then_fn: Body,
    else_fn: Body | None = None,
    *,
    result_names: Sequence[str] = (),
    result_values: Sequence[Any] = (),
    state_names: Sequence[str] = (),
    state_values: Sequence[Any] = (),
    auto_else: bool = False,
) -> Any:
    """`if cond:`, with the names' values after it. Raises ArgumentError if the branches give a name two types."""
    state = Names(result_names or state_names, result_values or state_values)
    branch = IfStatement(cond, state.names, state.thunks, (), ())
    if branch.runtime:
        state.require_values("`if`")
    if branch.then():
        state.update(called(then_fn, state))
    if branch.otherwise():
        if branch.runtime:
            state.set(branch.restored())
        if else_fn is not None:
            state.update(called(else_fn, state))
    if branch.runtime:
        state.set(_typed(branch.merged))
    return state.packed()


def scf_ifexp_dispatch(cond: Any, then_fn: Body, else_fn: Body) -> Any:
    """`then_fn() if cond else else_fn()`. Raises ArgumentError if their types differ."""
    return _typed(lambda: conditional_expression(cond, then_fn, else_fn))


def scf_for_dispatch(
    start: Any,
    stop: Any,
    step: Any,
    body_fn: Body,
    *,
    result_names: Sequence[str] = (),
    result_values: Sequence[Any] = (),
) -> Any:
    """`for i in range(start, stop, step):`, with the names' values after it. body_fn takes i, the names, the values.

    Raises ArgumentError if an iteration changes a name's type.
    """
    state = Names(result_names, result_values)
    state.require_values("loop")
    loop = ForLoop(range, (start, stop, step), {}, state.names, state.thunks, (), (), None)
    for item in loop:
        state.set(loop.carried())
        state.update(body_fn(item, state.names, *state.values))
        _typed(loop.end)
    state.set(loop.results())
    return state.packed()


def scf_range(start: Any, stop: Any = None, step: Any = None, *, init: Sequence[Any] | None = None) -> Iterator[Any]:
    """`range(start, stop, step, init=[...])` as a loop of the program whose body the caller ends with `scf.YieldOp`.

    Yields the index, or with init the index and the list of carried values.
    """
    bounds = (0, start, 1) if stop is None else (start, stop, 1 if step is None else step)
    operands = [Index(bound).ir_value() for bound in bounds]
    loop = scf.ForOp(*operands, None if init is None else [as_ir_value(value) for value in init])
    with ir.InsertionPoint(loop.body):
        yield loop.induction_variable if init is None else (loop.induction_variable, list(loop.inner_iter_args))


def scf_while_dispatch(
    before_fn: Body, after_fn: Body, *, result_names: Sequence[str] = (), result_values: Sequence[Any] = ()
) -> Any:
    """`while before_fn(...): after_fn(...)`, with the names' values after it, as a loop of the program.

    Raises ArgumentError if an iteration changes a name's type.
    """
    state = Names(result_names, result_values)
    state.require_values("loop")
    loop = WhileLoop(state.names, state.thunks, (), (), state.thunks)
    if not loop.runtime:
        while loop.test(called(before_fn, state)):
            state.update(called(after_fn, state))
        return state.packed()
    state.set(loop.before())
    loop.test(called(before_fn, state))
    state.set(loop.after())
    state.update(called(after_fn, state))
    _typed(loop.end)
    state.set(loop.results())
    return state.packed()


def _typed(build: Callable[[], Any]) -> Any:
    """Build an operation; values of types that do not fit are an error in the arguments."""
    try:
        return build()
    except TraceError as error:
        raise ArgumentError(f"type mismatch: {error.message}", at=error.at, hint=error.hint) from None
