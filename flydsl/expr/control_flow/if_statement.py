"""`if`: an `scf.if` on a runtime condition, whose results are the names that differ between the branches.

A rewritten `if` reads:

    branch = __fly_if__(condition, ("x",), (lambda: x,), (), ())
    if branch.then():
        x = 1
    if branch.otherwise():
        (x,) = branch.restored()
        x = 2
    (x,) = branch.merged()
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mlir import ir

from flydsl.dialect.location import mlir_location
from flydsl.errors import SourceLocation, TraceError
from flydsl.errors.places import user_location
from flydsl.expr.control_flow.condition import as_condition
from flydsl.expr.control_flow.construct import Construct, Thunks, changed_containers
from flydsl.expr.control_flow.containers import Reachable, write
from flydsl.expr.control_flow.host_objects import HostObjects, refuse_globals
from flydsl.expr.control_flow.joining import Join, Mismatch
from flydsl.expr.control_flow.region import TracedRegion
from flydsl.expr.control_flow.tree import leaf_like, leaf_type
from flydsl.expr.control_flow.undefined import UNSET, assigned_in_one_branch
from flydsl.expr.numeric import Boolean
from flydsl.expr.printing.refusals import change_within
from flydsl.expr.tracing.undefined import Undefined

Rebuild = Callable[[Sequence[Any]], Any]


class IfStatement(Construct):
    """A branch on a condition that is a Python truth value or a runtime one.

    containers, container_thunks: names whose elements or attributes a branch assigns. unread: those of `names` that
    nothing reads afterwards, whose types may differ.
    """

    word = "`if`"

    def __init__(
        self,
        condition: Any,
        names: Sequence[str],
        thunks: Thunks,
        containers: Sequence[str],
        container_thunks: Thunks,
        unread: Sequence[str] = (),
    ) -> None:
        super().__init__(names, thunks)
        self._unread = unread
        self._condition = as_condition(condition)
        self.runtime = isinstance(self._condition, Boolean)
        if self.runtime:
            refuse_globals(names, thunks, self.word, self._at)
            self._host = HostObjects(containers, container_thunks)
            self._objects = Reachable.from_here()
            self._objects.forget_variables(thunks)
            for _, value in changed_containers(names, containers, container_thunks):
                self._objects.claim(value)
            self._before = self._values()

    def then(self) -> bool:
        """Begin the first branch. True if it runs now."""
        if self.runtime:
            self._then = self._open()
        return bool(self.runtime or self._condition)

    def otherwise(self) -> bool:
        """End the first branch and begin the second. True if the second runs now."""
        if not self.runtime:
            return not self._condition
        self._close()
        self._host.require_unchanged(self.word, self._at)
        self._objects.require_unchanged_data(self.word, self._at)
        self._after_then = self._values()
        self._objects_after_then = self._objects.contents()
        self._objects.restore(self._objects.changed(self._objects_after_then))
        self._else = self._open()
        return True

    def restored(self) -> tuple[Any, ...]:
        """The names' values before the branches."""
        return tuple(self._before)

    def merged(self) -> tuple[Any, ...]:
        """The names' values after the branches."""
        self._close()
        self._host.require_unchanged(self.word, self._at)
        self._objects.require_unchanged_data(self.word, self._at)
        then, otherwise = (self._without_left(values) for values in (self._after_then, self._values()))
        join = Join()
        names = [self._joined_name(join, *sides) for sides in zip(self._names, then, otherwise, strict=True)]
        objects = self._joined_objects(join)
        results = self._results(join)
        for key, rebuild in objects.items():
            write(self._objects.objects[key], rebuild(results))
        return tuple(rebuild(results) for rebuild in names)

    def _results(self, join: Join) -> list[Any]:
        """The value of each difference between the branches."""
        assert isinstance(self._condition, Boolean)
        return scf_if(self._condition, self._then, self._else, join, self._at)

    def _without_left(self, values: Sequence[Any]) -> Sequence[Any]:
        """The names' values after a branch; one that always takes an exit need not have any."""
        left = any(
            name.startswith(LEFT) and isinstance(value, bool) and value
            for name, value in zip(self._names, values, strict=True)
        )
        return [UNSET if left and isinstance(value, Undefined) else value for value in values]

    def _joined_name(self, join: Join, name: str, then: Any, otherwise: Any) -> Rebuild:
        if isinstance(then, Undefined) or isinstance(otherwise, Undefined):
            undefined = assigned_in_one_branch(name)
            return lambda results: undefined
        if then is UNSET and otherwise is not UNSET:
            then = self._then.anything_like(otherwise)
        if otherwise is UNSET and then is not UNSET:
            otherwise = self._else.anything_like(then)
        try:
            return join.of(then, otherwise)
        except Mismatch as mismatch:
            error = _mismatch(name, mismatch, self._at)
            if mismatch.matters and name not in self._unread:
                raise error from None
            undefined = Undefined(error.message, error.hint or "")
            return lambda results: undefined

    def _joined_objects(self, join: Join) -> dict[int, Rebuild]:
        """The joined contents of each object that a branch has changed."""
        then, otherwise = self._objects_after_then, self._objects.contents()
        joined = {}
        for key in self._objects.changed(then, otherwise):
            try:
                joined[key] = join.of(then[key], otherwise[key])
            except Mismatch as mismatch:
                raise _mismatch(self._objects.paths[key], mismatch, self._at) from None
        return joined


def scf_if(
    condition: Boolean, then: TracedRegion, otherwise: TracedRegion, join: Join, at: SourceLocation | None
) -> list[Any]:
    """Build the `scf.if` of two traced branches; return its results, one for each difference in `join`."""
    kinds = [leaf_type(leaf) for leaf, _ in join.pairs]
    then.terminate("scf.yield", [leaf for leaf, _ in join.pairs])
    otherwise.terminate("scf.yield", [leaf for _, leaf in join.pairs])
    op = ir.Operation.create("scf.if", kinds, [condition.ir_value()], regions=2, loc=mlir_location(at))
    then.move_into(op.regions[0])
    otherwise.move_into(op.regions[1])
    return [leaf_like(leaf, value) for (leaf, _), value in zip(join.pairs, op.results, strict=True)]


def _mismatch(name: str, mismatch: Mismatch, at: SourceLocation | None) -> TraceError:
    if mismatch.of_containers:
        return TraceError(
            f"{name!r} is {mismatch.a} in one branch of a runtime `if` and {mismatch.b} in the other: "
            "changed container shape",
            at=change_within(at, name) or at or user_location(),
            hint="how many elements it has must be known at compile time: change it in both branches alike, or keep "
            "values in a tensor, such as fx.make_rmem_tensor(4, fx.Float32), and their number in a variable",
        )
    shown = "what is returned" if name == RETURNED else repr(name)
    return TraceError(
        f"{shown} is {mismatch.a} in one branch of a runtime `if` and {mismatch.b} in the other",
        at=at or user_location(),
        hint="give it one type in both, such as fx.Float32(...), or another name where it is something else"
        if name != RETURNED
        else "return values of one type, or none, on every way through the function",
    )


# The name that holds a rewritten function's result, and how those begin that say whether an exit was taken.
RETURNED = "__fly_returned"
LEFT = "__fly_left_"
