"""The threads that a block must have for what its kernel calls: `fx.BlockReduce[fx.Float32, 256]` is for 256.

A tile that a tiled copy or product of 128 threads deals out by `fx.thread_idx.x` is dealt out in part by a smaller
block; one that another number is dealt out by, too, may be by several calls. A call is noted at the kernel while it is
traced, and the launch, which comes later, compares. So is the dynamic shared memory that a kernel allocates itself, and
what views of shared memory there are.
"""

from __future__ import annotations

from typing import Any, cast

from mlir import ir

from flydsl.dialect.elements import element_type
from flydsl.expr.numeric import as_numeric
from flydsl.expr.tracing.emit import is_traced
from flydsl.layout import Layout, size
from flydsl.layout.int_tuple import leaves

_NOTE = "fly.threads_of_block"
_TILES = "fly.threads_of_tiles"
_DYNAMIC_LDS = "fly.dynamic_lds_bytes"
_SHARED_VIEWS = "fly.views_of_shared_memory"
_CASTS = ("arith.index_cast", "arith.index_castui", "arith.extsi", "arith.extui", "arith.trunci")


def traced_kernel() -> ir.Operation | None:
    """The device function that is being traced."""
    op = ir.InsertionPoint.current.block.owner if is_traced() else None
    while op is not None and op.operation.name != "gpu.func":
        op = op.parent
    return op


def note_threads(what: str, threads: int) -> None:
    """Note the number of threads that a function works with, which have to be all of the block."""
    if (kernel := traced_kernel()) is not None:
        _write(kernel, _NOTE, {**_read(kernel, _NOTE), what: threads})


def note_tile(what: str, layout: Layout, thread: Any) -> None:
    """Note that a tile is dealt out by a thread's number. layout: (thread, value) -> element, of the whole tile."""
    threads = layout[0]
    if (kernel := traced_kernel()) is None or 0 in leaves(threads.strides):
        return
    noted, count = _read(kernel, _TILES), cast("int", size(threads)) if _is_thread_idx_x(thread) else 0
    if noted.get(what) != 0:
        _write(kernel, _TILES, {**noted, what: count})


def _is_thread_idx_x(thread: Any) -> bool:
    value = as_numeric(thread).value
    while isinstance(value, ir.Value) and isinstance(value.owner, ir.Operation | ir.OpView):
        op = value.owner.operation
        if op.name == "gpu.thread_id":
            return "dim x" in str(op.attributes["dimension"])
        if op.name not in _CASTS:
            return False
        value = op.operands[0]
    return False


def note_dynamic_lds(size_bytes: int) -> None:
    """Note that dynamic shared memory is in use up to there."""
    if (kernel := traced_kernel()) is not None:
        known = ir.IntegerAttr(kernel.attributes[_DYNAMIC_LDS]).value if _DYNAMIC_LDS in kernel.attributes else 0
        kernel.attributes[_DYNAMIC_LDS] = ir.IntegerAttr.get(element_type("i32"), max(known, size_bytes))


def taken_dynamic_lds(kernel: ir.Operation) -> int:
    """Take a kernel's note of its dynamic shared memory away: bytes, 0 without one."""
    if _DYNAMIC_LDS not in kernel.attributes:
        return 0
    size_bytes = ir.IntegerAttr(kernel.attributes[_DYNAMIC_LDS]).value
    del kernel.attributes[_DYNAMIC_LDS]
    return size_bytes


def note_shared_view(elements: str, seen_through: str) -> str:
    """Note what elements in shared memory are seen through, and return what an earlier view of them noted, or ""."""
    if (kernel := traced_kernel()) is None:
        return ""
    noted = kernel.attributes[_SHARED_VIEWS] if _SHARED_VIEWS in kernel.attributes else ir.DictAttr.get({})
    views = {note.name: note.attr for note in ir.DictAttr(noted)}
    if elements in views:
        return str(ir.StringAttr(views[elements]).value)
    kernel.attributes[_SHARED_VIEWS] = ir.DictAttr.get({**views, elements: ir.StringAttr.get(seen_through)})
    return ""


def taken_notes(kernel: ir.Operation) -> tuple[dict[str, int], dict[str, int]]:
    """Take a kernel's notes away: the threads of each function that was called, and of each tile."""
    notes = _read(kernel, _NOTE), _read(kernel, _TILES)
    for name in (_NOTE, _TILES, _SHARED_VIEWS):
        if name in kernel.attributes:
            del kernel.attributes[name]
    return notes


def _write(kernel: ir.Operation, name: str, notes: dict[str, int]) -> None:
    numbers = {what: ir.IntegerAttr.get(element_type("i32"), count) for what, count in notes.items()}
    kernel.attributes[name] = ir.DictAttr.get(numbers)


def _read(kernel: ir.Operation, name: str) -> dict[str, int]:
    if name not in kernel.attributes:
        return {}
    return {note.name: ir.IntegerAttr(note.attr).value for note in ir.DictAttr(kernel.attributes[name])}
