"""Operations of AMD GPUs, one module per family. All their names are in this package.

Results of ROCDL operations have their type as first argument, `rocdl.exp2(T.f32, x)`; where the operands decide it,
it may be left out. An instruction that the target lacks, or an operand of the wrong type, is an error at the line of
the call.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlir import ir

from flydsl.dialect.upstream import upstream
from flydsl.expr.flydsl_names import as_submodules
from flydsl.expr.flydsl_names.names import unknown_name
from flydsl.expr.flydsl_names.rocdl import cdna3, cdna5, enum, inline_asm, rdna3, rdna4, universal
from flydsl.expr.numeric import Int16, Int32, Int64
from flydsl.expr.rocdl import (
    async_copy,
    barriers,
    buffer_atomic,
    buffer_tensor,
    cdna4,
    cluster,
    convert,
    convert_scaled,
    dot_products,
    hardware_math,
    ids,
    instruction_types,
    lane,
    lds,
    matrix_atoms,
    mfma,
    raw_buffer,
    scheduling,
    tdm_atom,
    tdm_ops,
    tiled_tdm,
    transposing,
    waits,
    wmma,
)
from flydsl.expr.rocdl.async_copy import *  # noqa: F403
from flydsl.expr.rocdl.barriers import *  # noqa: F403
from flydsl.expr.rocdl.buffer_atomic import *  # noqa: F403
from flydsl.expr.rocdl.buffer_builder import builder_of as _builder_of
from flydsl.expr.rocdl.buffer_tensor import *  # noqa: F403
from flydsl.expr.rocdl.convert import *  # noqa: F403
from flydsl.expr.rocdl.convert_scaled import *  # noqa: F403
from flydsl.expr.rocdl.dot_products import *  # noqa: F403
from flydsl.expr.rocdl.hardware_math import *  # noqa: F403
from flydsl.expr.rocdl.ids import *  # noqa: F403
from flydsl.expr.rocdl.lane import *  # noqa: F403
from flydsl.expr.rocdl.lds import *  # noqa: F403
from flydsl.expr.rocdl.matrix_atoms import *  # noqa: F403
from flydsl.expr.rocdl.mfma import *  # noqa: F403
from flydsl.expr.rocdl.raw_buffer import *  # noqa: F403
from flydsl.expr.rocdl.scheduling import *  # noqa: F403
from flydsl.expr.rocdl.tdm_atom import *  # noqa: F403
from flydsl.expr.rocdl.tdm_ops import tensor_load_to_lds, tensor_store_from_lds
from flydsl.expr.rocdl.tiled_tdm import *  # noqa: F403
from flydsl.expr.rocdl.transposing import *  # noqa: F403
from flydsl.expr.rocdl.waits import *  # noqa: F403
from flydsl.expr.rocdl.wmma import *  # noqa: F403
from flydsl.expr.tracing.operands import as_ir_value

as_submodules(__name__, cdna3, cdna5, enum, inline_asm, rdna3, rdna4, universal)

_FAMILIES = (
    async_copy, barriers, buffer_atomic, buffer_tensor, convert, convert_scaled, dot_products, hardware_math, ids, lane,
    lds, matrix_atoms, mfma, raw_buffer, scheduling, tdm_atom, tiled_tdm, transposing, waits, wmma,
)  # fmt: skip

__all__ = [
    "Int16", "Int32", "Int64", "cdna3", "cdna4", "cdna5", "cluster", "inline_asm", "rdna3", "rdna4", "tdm_ops",
    "tensor_load_to_lds", "tensor_store_from_lds", "universal",
    *(name for family in _FAMILIES for name in family.__all__),
]  # fmt: skip


def _to_ir(value: Any) -> ir.Value:
    """The `ir.Value` of a value of the DSL."""
    return as_ir_value(value)


def _unwrap_mfma_operand(value: Any, *, loc: ir.Location | None = None) -> ir.Value:
    """An operand of a matrix instruction for MLIR's builders: a Python number is an i32. FlyDSL's kernels import it."""
    return Int32(value).ir_value() if isinstance(value, int) else as_ir_value(value)


def _split_mfma_operands(operands: Sequence[Any]) -> tuple[Any, ...]:
    """The operands a, b, c of a matrix instruction for MLIR's builders, and its cbsz, abid and blgp, 0 if left out.

    FlyDSL's kernels call it.
    """
    modifiers = [*operands[3:6], 0, 0, 0][:3]
    return (*map(_unwrap_mfma_operand, operands[:3]), *map(int, modifiers[:2]), _blgp_attr(modifiers[2]))


def _blgp_attr(value: Any) -> Any:
    """The blgp of a matrix instruction for MLIR's builders, which take a number or an attribute."""
    return value if isinstance(value, ir.Attribute) else int(value)


def __getattr__(name: str) -> Any:
    """The MLIR operation class of the name; it takes values of the DSL."""
    found = getattr(upstream("rocdl"), name, None) if name[:1].isupper() else None
    if isinstance(found, type) and issubclass(found, ir.OpView):
        return _builder_of(found)
    return _unknown(name)


_UNIVERSAL = ("TargetAddressSpace", "cosize", "get_iter", "get_layout", "make_ptr", "make_view")
_unknown = unknown_name(
    __name__,
    globals(),
    {"PointerType": "flydsl.dialect.types"}
    | dict.fromkeys(_UNIVERSAL, "flydsl.expr.rocdl.universal")
    | dict.fromkeys(instruction_types.__all__, "flydsl.expr.rocdl.instruction_types"),
)
