"""Casts between an index and integers of other widths than 64 bits, as two: the index itself is cast to or from i64.

Upstream's canonicalization takes two casts that lead back to the type they came from for nothing, also where the first
of them dropped bits: index to i32 to index, or i128 to index to i128. Numbers of lanes and workgroups have no bits
beyond the 31 of a launch's limits, and nearly all casts are theirs: they stay.
"""

from __future__ import annotations

from mlir import ir

from flydsl.dialect.elements import scalar_of, with_elements
from flydsl.passes.rewriting import create

EXTENSIONS = {"arith.index_cast": "arith.extsi", "arith.index_castui": "arith.extui"}
_INDEX_BITS = 64
_BELOW_31_BITS = {"gpu.thread_id", "gpu.block_id", "gpu.block_dim", "gpu.grid_dim", "gpu.lane_id"}


def split(op: ir.Operation) -> None:
    """Replace a cast that drops bits, or may be part of a pair that does. op: one of `EXTENSIONS`."""
    source, target = op.operands[0], op.result.type
    is_from_index = isinstance(scalar_of(source.type), ir.IndexType)
    width = scalar_of(target if is_from_index else source.type).width
    if width == _INDEX_BITS or (width < _INDEX_BITS and not is_from_index) or (width > 31 and _is_small(source)):
        return
    word = with_elements(target, ir.IntegerType.get_signless(_INDEX_BITS))
    with ir.InsertionPoint(op):
        if is_from_index:
            names = op.name, "arith.trunci" if width < _INDEX_BITS else EXTENSIONS[op.name]
        else:
            names = "arith.trunci", op.name
        middle = create(names[0], [source], [word], op.location).result
        op.result.replace_all_uses_with(create(names[1], [middle], [target], op.location).result)
    op.erase()


def _is_small(value: ir.Value) -> bool:
    return not isinstance(value.owner, ir.Block) and value.owner.operation.name in _BELOW_31_BITS
