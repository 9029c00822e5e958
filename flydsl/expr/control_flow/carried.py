"""Values that a loop carries from iteration to iteration: the leaves of the values that its body changes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from flydsl.dialect.location import mlir_location
from flydsl.errors import SourceLocation, TraceError
from flydsl.expr.control_flow.joining import Mismatch, matched
from flydsl.expr.control_flow.region import TracedRegion, poison_like
from flydsl.expr.control_flow.tree import Tree, describe, flatten, is_same_leaf, leaf_value, typed, write_into
from flydsl.expr.control_flow.undefined import UNSET, assigned_in_loop
from flydsl.expr.numeric import Numeric, is_python_number
from flydsl.expr.tracing.operands import FlyValue
from flydsl.expr.tracing.undefined import Undefined


class Slot:
    """One value that a loop may change: that of a name or, with `in_place`, the contents of a container."""

    def __init__(self, label: str, before: Any, in_place: bool = False) -> None:
        self.label = label
        self.before = before
        self.in_place = in_place
        self.tree: Tree = flatten(before)
        self.initial = [typed(leaf) for leaf in self.tree.leaves]
        self._shown = describe(before) if in_place else None  # as it is now: the body changes this object

    @property
    def is_undefined(self) -> bool:
        """True if the name has no value before the loop; it has none after it either."""
        return isinstance(self.before, Undefined)

    def value(self, leaves: Sequence[Any]) -> Any:
        """The value with other leaves. A container that changes in place is updated."""
        made = self.tree.rebuild(leaves)
        return write_into(self.before, made) if self.in_place else made

    def mismatch(self, found: Mismatch, at: SourceLocation | None) -> TraceError:
        """The error for a value whose type is different after an iteration."""
        a, b = (self._shown, describe(self.before)) if self.in_place else (found.a, found.b)
        return TraceError(
            f"{self.label!r} is {a} before the loop and {b} after an iteration",
            at=at,
            hint=f"give it its final type before the loop, such as {self.label} = fx.Float32(0), or convert it back; "
            "give another value another name; range_constexpr unrolls the loop, and lets types change",
        )


@dataclass
class Entered:
    """A region's view of the slots. arguments: the stand-ins for the leaves of each slot."""

    region: TracedRegion
    slots: list[Slot]
    arguments: list[list[Any]]

    @staticmethod
    def make(region: TracedRegion, slots: list[Slot]) -> Entered:
        """Create stand-ins for all slots."""
        return Entered(region, slots, [[region.argument(leaf) for leaf in slot.initial] for slot in slots])

    def values(self) -> list[Any]:
        """The slots' values inside the region."""
        return [slot.value(leaves) for slot, leaves in zip(self.slots, self.arguments, strict=True)]

    def given_back(self, values: Sequence[Any], at: SourceLocation | None) -> list[list[Any] | None]:
        """The leaves of each slot's value at the end of the region, or None for a slot that has no value any more.

        Raises TraceError for a value that has changed its type or shape.
        """
        return [self._given_back(i, value, at) for i, value in enumerate(values)]

    def _given_back(self, i: int, value: Any, at: SourceLocation | None) -> list[Any] | None:
        slot = self.slots[i]
        if slot.is_undefined or slot.before is UNSET:
            return None
        try:
            return matched(slot.tree, slot.before, value)
        except Mismatch as found:
            if self._is_read(i):
                raise slot.mismatch(found, at) from None
            return None

    def _is_read(self, i: int) -> bool:
        """True if an iteration may read the value that a slot had before.

        A name may hold a new view of memory each time; a name of a Python number may later hold something else.
        """
        slot, arguments = self.slots[i], self.arguments[i]
        replaceable = bool(arguments) and (
            is_python_number(slot.before) or all(isinstance(argument, FlyValue) for argument in arguments)
        )
        return not replaceable or any(self.region.is_used(argument) for argument in arguments)

    def settle(self, kept: set[tuple[int, int]]) -> None:
        """Replace stand-ins that no iteration changes by the value before the loop. kept: (slot, leaf) of others."""
        for i, (slot, arguments) in enumerate(zip(self.slots, self.arguments, strict=True)):
            for j, (leaf, argument) in enumerate(zip(slot.initial, arguments, strict=True)):
                if (i, j) not in kept and self.region.is_used(argument):
                    self.region.replace(argument, leaf_value(leaf))


class Returned:
    """The results that a `return` in a loop sets: they have no value before it, and the iteration is the last one.

    after: the slots' values at the end of an iteration. leaves: what the loop gives back for them.
    """

    def __init__(self, slots: Sequence[Slot], after: Sequence[Any]) -> None:
        self._trees = {
            i: flatten(value)
            for i, (slot, value) in enumerate(zip(slots, after, strict=True))
            if slot.before is UNSET and value is not UNSET and not isinstance(value, Undefined)
        }
        self.leaves = [typed(leaf) for tree in self._trees.values() for leaf in tree.leaves]

    def before(self, at: SourceLocation | None) -> list[Any]:
        """Placeholders for the leaves before the loop, which nothing reads."""
        return [poison_like(leaf, mlir_location(at)) for leaf in self.leaves]

    def arguments(self, region: TracedRegion) -> list[Any]:
        """Stand-ins for the leaves in a region."""
        return [region.argument(leaf) for leaf in self.leaves]

    def values(self, results: Sequence[Any]) -> dict[int, Any]:
        """The slots' values after the loop, of leaves that it returned."""
        remaining = iter(results)
        return {i: tree.rebuild([next(remaining) for _ in tree.leaves]) for i, tree in self._trees.items()}


def changes(entered: Entered, after: Sequence[list[Any] | None]) -> set[tuple[int, int]]:
    """The leaves, as (slot, leaf), that differ at the end of a region from its start."""
    return {
        (i, j)
        for i, leaves in enumerate(after)
        for j, leaf in enumerate(leaves or ())
        if not is_same_leaf(entered.arguments[i][j], leaf) and not _stays(entered, i, j, leaf)
    }


def _stays(entered: Entered, i: int, j: int, leaf: Any) -> bool:
    """True if a leaf is the same constant before and after an iteration, and no iteration reads it."""
    before = entered.slots[i].initial[j]
    constant = isinstance(before, Numeric) and before.is_static and is_same_leaf(before, leaf)
    return constant and not entered.region.is_used(entered.arguments[i][j])


def after_loop(
    slots: Sequence[Slot],
    given_back: Sequence[list[Any] | None],
    values: Sequence[Any],
    result: Callable[[int, int], Any],
) -> list[Any]:
    """The slots' values after a loop.

    given_back, values: each slot's leaves and value after an iteration. result: a leaf (slot, leaf) after the loop.
    """
    found = []
    for i, (slot, leaves, value) in enumerate(zip(slots, given_back, values, strict=True)):
        if leaves is not None:
            found.append(slot.value([result(i, j) for j in range(len(leaves))]))
        elif isinstance(value, Undefined) or slot.before is UNSET:
            found.append(slot.before)
        else:
            found.append(assigned_in_loop(slot.label, slot.before, value))
    return found
