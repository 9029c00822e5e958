"""Tracing into a region before its operation exists.

The results of a branch or loop are known only once its body has been traced. So the body is traced into the region of a
scratch operation and then moved. Placeholders stand for its inputs. They become block arguments or, if the body leaves
a value unchanged, the value itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from mlir import ir

from flydsl.dialect.location import mlir_location, source_location
from flydsl.dialect.walk import operations
from flydsl.errors import SourceLocation, TraceError
from flydsl.expr.control_flow.recursion import MOST_CALLS, refuse_endless_calls
from flydsl.expr.control_flow.tree import flatten, leaf_like, leaf_type, leaf_value, typed

# Regions that operations go to, innermost last. One thread traces at a time.
_open: list[TracedRegion] = []
_STAND_IN = "builtin.unrealized_conversion_cast"


class TracedRegion:
    """A region with one block. Operations between `open` and `close` are inserted in it.

    word: what of the user's source it is. iterators: those that were there before, by id.
    """

    def __init__(self, at: SourceLocation | None, word: str, iterators: Mapping[int, Any]) -> None:
        self.at = at
        self.word = word
        self.iterators = iterators
        self._location = mlir_location(at)
        self._scratch = ir.Operation.create("scf.execute_region", regions=1, loc=self._location)
        self._block = ir.Block.create_at_start(self._scratch.regions[0], [])
        self._insertion = ir.InsertionPoint(self._block)

    def open(self) -> None:
        """Insert following operations at the end of this region. Raises TraceError for a recursion without end."""
        if len(_open) >= MOST_CALLS:
            refuse_endless_calls()
        self._insertion.__enter__()
        _open.append(self)

    def close(self) -> None:
        """Restore the previous insertion point."""
        _require_innermost(self)
        _open.pop()._insertion.__exit__(None, None, None)

    @property
    def operations(self) -> list[ir.Operation]:
        """The traced operations."""
        return [view.operation for view in self._block.operations]

    def argument(self, leaf: Any) -> Any:
        """Create a stand-in for an incoming value, of the type of a typed leaf."""
        with ir.InsertionPoint.at_block_begin(self._block):
            made = ir.Operation.create(_STAND_IN, results=[leaf_type(leaf)], loc=self._location)
        return leaf_like(leaf, made.result)

    def is_used(self, argument: Any) -> bool:
        """True if an operation uses a stand-in."""
        return any(True for _ in argument.value.uses)

    def replace(self, argument: Any, value: ir.Value) -> None:
        """Replace a stand-in by a value."""
        argument.value.replace_all_uses_with(value)

    def anything_like(self, value: Any) -> Any:
        """A placeholder value with the structure and types of another; its contents are never read."""
        tree = flatten(value)
        with ir.InsertionPoint(self._block):
            return tree.rebuild([poison_like(typed(leaf), self._location) for leaf in tree.leaves])

    def terminate(self, operation: str, operands: Sequence[Any]) -> None:
        """End the region with an operation on typed leaves, which may be constants."""
        with ir.InsertionPoint(self._block):
            values = [leaf_value(leaf) for leaf in operands]
            ir.Operation.create(operation, operands=values, loc=self._location)

    def discard(self) -> None:
        """Remove the region with what was traced into it."""
        self._scratch.erase()

    def inline(self) -> None:
        """Move the traced operations to the place of the region."""
        for op in self.operations:
            op.move_before(self._scratch)
        self._scratch.erase()

    def move_into(self, region: ir.Region, arguments: Sequence[Any] = ()) -> None:
        """Move the block into an operation. arguments: stand-ins that become its arguments; others must be unused."""
        for argument in arguments:
            argument.value.replace_all_uses_with(self._block.add_argument(leaf_type(argument), self._location))
        self._block.append_to(region)
        self._scratch.erase()


def poison_like(leaf: Any, at: ir.Location) -> Any:
    """A placeholder of a typed leaf's type, at the insertion point; its content is never read."""
    return leaf_like(leaf, ir.Operation.create("ub.poison", results=[leaf_type(leaf)], loc=at).result)


def open_word() -> str | None:
    """The words for the innermost open region, such as "a runtime loop"; None if none is open."""
    return _open[-1].word if _open else None


def word_after(iterator: Any) -> str | None:
    """The words for an open region that an iterator is older than; None if there is no such region."""
    return next((region.word for region in _open if id(iterator) in region.iterators), None)


@contextmanager
def regions_closed() -> Iterator[None]:
    """Close regions that an error has left open, at the end of the `with` block."""
    outer = _open[-1] if _open else None
    try:
        yield
        _require_innermost(outer)
    finally:
        while _open and _open[-1] is not outer:
            _open.pop()._insertion.__exit__(None, None, None)


@contextmanager
def regions_of_function() -> Iterator[None]:
    """Trace a function of its own: the regions that are open are around what launches it."""
    outer = _open[:]
    _open.clear()
    try:
        with regions_closed():
            yield
    finally:
        _open[:] = outer


def _require_innermost(region: TracedRegion | None) -> None:
    """Raise TraceError if a region inside this one is still open."""
    innermost = _open[-1] if _open else None
    if innermost is not None and innermost is not region:
        raise TraceError(
            "a runtime branch or loop was left by an exception that has been caught",
            at=innermost.at,
            hint="put `try` inside it, or unroll it: exceptions happen when it is traced, not on the device",
        )


def remove_stand_ins(root: ir.Operation) -> None:
    """Remove placeholders at the end of tracing. Until then a Python object may still refer to one.

    Raises TraceError if such an object was used outside of its loop.
    """
    for op in operations(root):
        if op.name != _STAND_IN or len(op.operands):
            continue
        for use in op.result.uses:
            raise TraceError(
                "a value that a loop carries is used outside of it",
                at=source_location(use.owner.location),
                hint="a Python object outside of the function has kept it: assign it to a name instead",
            )
        op.erase()
