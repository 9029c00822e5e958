"""The threads that a block must have for what its kernel calls: `fx.BlockReduce[fx.Float32, 256]` is for 256.

A call is noted at the kernel while it is traced, and the launch, which comes later, compares.
"""

from __future__ import annotations

from mlir import ir

from flydsl.dialect.elements import element_type
from flydsl.expr.emit import is_traced

_NOTE = "fly.threads_of_block"


def traced_kernel() -> ir.Operation | None:
    """The device function that is being traced."""
    op = ir.InsertionPoint.current.block.owner if is_traced() else None
    while op is not None and op.operation.name != "gpu.func":
        op = op.parent
    return op


def note_threads(what: str, threads: int) -> None:
    """Note that what is called works with so many threads, which have to be all of the block."""
    if (kernel := traced_kernel()) is not None:
        noted = {**_notes(kernel), what: threads}
        numbers = {name: ir.IntegerAttr.get(element_type("i32"), count) for name, count in noted.items()}
        kernel.attributes[_NOTE] = ir.DictAttr.get(numbers)


def taken_notes(kernel: ir.Operation) -> dict[str, int]:
    """Take a kernel's notes away: by each function that was called, its threads."""
    notes = _notes(kernel)
    if notes:
        del kernel.attributes[_NOTE]
    return notes


def _notes(kernel: ir.Operation) -> dict[str, int]:
    if _NOTE not in kernel.attributes:
        return {}
    return {note.name: ir.IntegerAttr(note.attr).value for note in ir.DictAttr(kernel.attributes[_NOTE])}
