"""Common parts of `for` and `while`: values carried from one iteration to the next."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flydsl.errors import TraceError
from flydsl.expr.control_flow.carried import Returned, Slot, after_loop
from flydsl.expr.control_flow.construct import Construct, Thunks, changed_containers
from flydsl.expr.control_flow.containers import Reachable
from flydsl.expr.control_flow.host_objects import HostObjects, is_global, refuse_globals
from flydsl.expr.control_flow.remembered import forget, is_set_anew
from flydsl.expr.printing.refusals import change_within


class Loop(Construct):
    """A loop of the user's source.

    containers, container_thunks: names whose elements or attributes the body assigns.
    """

    word = "loop"

    def __init__(
        self, names: Sequence[str], thunks: Thunks, containers: Sequence[str], container_thunks: Thunks
    ) -> None:
        super().__init__(names, thunks)
        self._containers = containers
        self._container_thunks = container_thunks
        self._after: list[Any] = []

    def _begin(self) -> None:
        """Record the values of names and containers before a runtime loop."""
        refuse_globals(self._names, self._thunks, self.word, self._at)
        self._host = HostObjects(self._containers, self._container_thunks)
        self._objects = Reachable.from_here()
        self._objects.forget_variables(self._thunks)
        local = [
            (name, thunk)
            for name, thunk in zip(self._containers, self._container_thunks, strict=True)
            if not is_global(name, thunk)
        ]
        self._in_place = changed_containers(self._names, [n for n, _ in local], [thunk for _, thunk in local])
        self._slots = [Slot(name, value) for name, value in zip(self._names, self._values(), strict=True)]
        for name, value in self._in_place:
            self._slots.append(Slot(name, value, in_place=True))
            self._objects.forget(value)

    def _current(self) -> list[Any]:
        """The current values of the slots."""
        return [*self._values(), *(value for _, value in self._in_place)]

    def _require_unchanged(self) -> None:
        """Raise TraceError if the body has changed a Python object that iterations do not carry."""
        self._host.require_unchanged(self.word, self._at)
        self._objects.require_unchanged_data(self.word, self._at)
        for key in self._objects.changed(self._objects.contents()):
            if is_set_anew(self._objects, key):
                forget(self._objects, key)
                continue
            path = self._objects.paths[key]
            raise TraceError(
                f"{path} is changed inside a runtime {self.word}, other than by an assignment that stands there",
                at=change_within(self._at, path) or self._at,
                hint="a Python object changes once, when the loop is traced, and not in each iteration: assign in the "
                "loop itself, keep what changes in a register tensor, or unroll with range_constexpr",
            )

    def _finish(self, given_back: Sequence[list[Any] | None], values: Sequence[Any], results: dict[Any, Any]) -> None:
        """Record the slots' values after the loop. results: the leaves that the loop returns, by (slot, leaf)."""
        leaves = [slot.tree.leaves for slot in self._slots]
        self._after = after_loop(self._slots, given_back, values, lambda i, j: results.get((i, j), leaves[i][j]))

    def _finish_returned(self, returned: Returned, results: Sequence[Any]) -> None:
        """Set the results of a `return` in the loop. results: the leaves that the loop gives back for them."""
        for i, value in returned.values(results).items():
            self._after[i] = value

    def results(self) -> tuple[Any, ...]:
        """The names' values after the loop."""
        return tuple(self._after[: len(self._names)])
