"""`while`: an `scf.while` that carries the values that its condition and body change.

A rewritten loop reads:

    loop = __fly_while__(("n",), (lambda: n,), (), (), (lambda: n,))
    if loop.runtime:
        (n,) = loop.before()
    while loop.test(n > 1):
        if loop.runtime:
            (n,) = loop.after()
        n = n // 2
        if loop.end():
            break
    if loop.runtime:
        (n,) = loop.results()
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from types import FunctionType, ModuleType
from typing import Any

from mlir import ir

from flydsl.dialect.location import mlir_location, trace_error
from flydsl.errors import TraceError
from flydsl.expr.control_flow.carried import Entered, Returned, changes
from flydsl.expr.control_flow.condition import as_condition
from flydsl.expr.control_flow.construct import Thunks, value_of
from flydsl.expr.control_flow.containers import content, holds_value
from flydsl.expr.control_flow.loop import Loop
from flydsl.expr.control_flow.tree import flatten, leaf_like, leaf_type, leaf_value, typed
from flydsl.expr.numeric import Boolean
from flydsl.expr.tracing.trace_limit import count_operation
from flydsl.expr.tracing.undefined import Undefined


class WhileLoop(Loop):
    """A loop on a condition; a runtime loop if the condition names a value of the program.

    read: how to read each name in the condition.
    """

    def __init__(
        self, names: Sequence[str], thunks: Thunks, containers: Sequence[str], container_thunks: Thunks, read: Thunks
    ) -> None:
        super().__init__(names, thunks, containers, container_thunks)
        self.runtime = any(_is_of_program(value_of("", thunk)) for thunk in read)
        if self.runtime:
            self._begin()

    def before(self) -> tuple[Any, ...]:
        """The names' values for evaluating the condition."""
        self._condition = Entered.make(self._open(), self._slots)
        return tuple(self._condition.values()[: len(self._names)])

    def test(self, condition: Any) -> bool:
        """True if the body runs. In a runtime loop it is traced once."""
        decided = as_condition(condition)
        if not self.runtime:
            if isinstance(decided, Boolean):
                raise trace_error(
                    "the condition of `while` is a runtime value, but nothing that it names is",
                    "start with a value of the DSL, such as i = fx.Int32(0), and compare that",
                )
            if decided:
                count_operation()
            return decided
        self._decided = Boolean(decided)
        self._close()
        self._tested = self._current()
        self._leaves_tested = self._condition.given_back(self._tested, self._at)
        self._local = [
            flatten(value if slot.is_undefined and not isinstance(value, Undefined) else None)
            for slot, value in zip(self._slots, self._tested, strict=True)
        ]
        self._body = Entered.make(self._open(), self._slots)
        self._local_arguments = [[self._body.region.argument(typed(x)) for x in tree.leaves] for tree in self._local]
        return True

    def after(self) -> tuple[Any, ...]:
        """The names' values at the start of the body, after the condition."""
        values = self._body.values()
        for i, (tree, arguments) in enumerate(zip(self._local, self._local_arguments, strict=True)):
            if arguments:
                values[i] = tree.rebuild(arguments)
        return tuple(values[: len(self._names)])

    def end(self) -> bool:
        """End the body. Build the loop if it is a runtime one, and return True."""
        if self.runtime:
            after = self._current()
            self._close()
            self._require_unchanged()
            self._make_loop(after)
        return self.runtime

    def _make_loop(self, after: list[Any]) -> None:
        condition, body = self._condition, self._body
        given_back = body.given_back(after, self._at)
        kept = changes(condition, self._leaves_tested) | changes(body, given_back)
        order = sorted(kept)
        initial = [self._slots[i].initial[j] for i, j in order]
        tested = [self._leaf(self._leaves_tested, i, j) for i, j in order]
        outputs = [self._leaf(given_back, i, j) for i, j in order]
        local = [typed(leaf) for tree in self._local for leaf in tree.leaves]
        returned = Returned(self._slots, after)
        passed = returned.arguments(condition.region)
        condition.region.terminate("scf.condition", [self._decided, *tested, *passed, *local])
        body.region.terminate("scf.yield", [*outputs, *returned.leaves])
        condition.settle(kept)
        body.settle(kept)
        operands = [leaf_value(leaf) for leaf in (*initial, *returned.before(self._at))]
        given = [*tested, *returned.leaves, *local]
        kinds = [leaf_type(leaf) for leaf in given]
        loop = ir.Operation.create("scf.while", kinds, operands, regions=2, loc=mlir_location(self._at))
        condition.region.move_into(loop.regions[0], [*(condition.arguments[i][j] for i, j in order), *passed])
        carried = [*(body.arguments[i][j] for i, j in order), *returned.arguments(body.region)]
        body.region.move_into(loop.regions[1], [*carried, *chain(*self._local_arguments)])
        results = [leaf_like(leaf, value) for leaf, value in zip(given, loop.results, strict=True)]
        self._finish(given_back, after, dict(zip(order, results, strict=False)))
        first_local = len(results) - len(local)
        self._finish_local(iter(results[first_local:]))
        self._finish_returned(returned, results[len(order) : first_local])

    def _leaf(self, leaves: Sequence[list[Any] | None], i: int, j: int) -> Any:
        """A leaf that changes in one of the regions, at the end of the region given by `leaves`."""
        found = leaves[i]
        if found is None:
            slot = self._slots[i]
            raise TraceError(
                f"{slot.label!r} is {slot.before!r} before the loop and something of another type in it",
                at=self._at,
                hint=f"give the value inside the loop another name than {slot.label}",
            )
        return found[j]

    def _finish_local(self, results: Iterator[Any]) -> None:
        """Set the values of names that the condition assigns first; it is evaluated at least once."""
        for i, tree in enumerate(self._local):
            if tree.leaves:
                self._after[i] = tree.rebuild([next(results) for _ in tree.leaves])


def _is_of_program(value: Any) -> bool:
    """True if a value that a condition names is, or leads to, a value of the program."""
    if isinstance(value, ModuleType):
        return value.__name__.partition(".")[0] == "flydsl"
    if isinstance(value, FunctionType):
        return any(holds_value(content(cell)) for cell in value.__closure__ or ())
    return holds_value(value)
