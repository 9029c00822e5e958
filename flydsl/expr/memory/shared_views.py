"""The swizzles of views of shared memory: a hint where two views of the same elements have different ones.

What is written through one of them is elsewhere for the other. Views of other types or sizes are other data, which take
their turn in the memory.
"""

from __future__ import annotations

import warnings

from mlir import ir

from flydsl import layout as algebra
from flydsl.dialect.types import AnyLayout, MemRefType
from flydsl.errors.places import lines_of_callers, user_location
from flydsl.expr.threads.block_threads import note_shared_view

__all__ = ["note_view"]


def note_view(pointer: ir.Value, view: MemRefType) -> None:
    """Note a view of shared memory at the kernel, and warn at the user's line if an earlier one has another swizzle."""
    start, place, callers = _start(pointer), user_location(), lines_of_callers()
    if start is None or place is None or not _has_known_size(view.layout):
        return
    elements = f"{start}: {view.element}, {algebra.cosize(view.layout)}"
    swizzle = _swizzle(view.layout)
    earlier = note_shared_view(elements, f"{swizzle} in line {place.line}{callers}")
    if earlier and earlier.partition(" in ")[0] != swizzle:
        warnings.warn_explicit(
            f"this view of shared memory{callers} has {swizzle}, that of the same elements {earlier}: what is written "
            "through one is elsewhere for the other. Give both the same swizzle, or each its own memory",
            UserWarning,
            place.file,
            place.line,
        )


def _swizzle(layout: AnyLayout) -> str:
    """The swizzle of indices in a layout.

    Coordinate swizzles do not count: copies that go to shared memory by themselves write it plainly, from swizzled
    places, and what reads it has the swizzle.
    """
    while isinstance(layout, algebra.ComposedLayout):
        inner, _, layout = algebra.composed_parts(layout)
        if isinstance(inner, algebra.Swizzle):
            return f"the swizzle {inner}"
    return "no swizzle"


def _has_known_size(layout: AnyLayout) -> bool:
    return "?" not in str(layout)


def _start(pointer: ir.Value) -> str | None:
    """The place of a pointer's memory, None if it is known only when the kernel runs."""
    steps: list[str] = []
    while isinstance(pointer.owner, ir.Operation | ir.OpView):
        op = pointer.owner.operation
        if op.name == "fly.get_dyn_shared":
            return "".join(["dynamic", *steps])
        if op.name == "llvm.mlir.addressof":
            return "".join([str(op.attributes["global_name"]), *steps])
        if op.name == "fly.add_offset":
            steps.append(f" + {op.operands[1].type} of {pointer.type}")
            if "?" in steps[-1]:
                return None
        elif op.name not in ("fly.recast_iter", "builtin.unrealized_conversion_cast"):
            return None
        pointer = op.operands[0]
    return None
