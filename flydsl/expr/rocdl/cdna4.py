"""Instructions of CDNA 4 (gfx950): scaled matrix instructions, transposing reads from LDS, stochastic rounding."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from mlir import ir

from flydsl import atoms
from flydsl.atoms import CopyOp, MmaOp
from flydsl.atoms.instruction_sets import CDNA4
from flydsl.expr.flydsl_names.names import unknown_name
from flydsl.expr.numbers.vector_value import Vector
from flydsl.expr.numeric import BFloat16, Boolean, Float32, Uint32
from flydsl.expr.rocdl.intrinsic import call_intrinsic, require_target
from flydsl.expr.rocdl.matrix_atoms import scaled_op
from flydsl.expr.tracing.described import described
from flydsl.expr.tracing.operands import located

if TYPE_CHECKING:
    from flydsl.expr.kinds import Number

__all__ = [
    "BufferLoadAsyncLDS", "BufferLoadAsyncLDS32b", "BufferLoadAsyncLDS96b", "BufferLoadAsyncLDS128b",
    "GlobalLoadAsyncLDS", "GlobalLoadAsyncLDS32b", "GlobalLoadAsyncLDS96b", "GlobalLoadAsyncLDS128b",
    "LDSReadTrans", "LDSReadTrans4_64b", "LDSReadTrans6_96b", "LDSReadTrans8_64b", "LDSReadTrans16_64b", "MFMAScale",
    "MFMA_Scale", "cvt_sr_f32_to_bf16",
]  # fmt: skip


def MFMA_Scale(
    m: int,
    n: int,
    k: int,
    elem_ty_a: Any,
    elem_ty_b: Any = None,
    elem_ty_acc: Any = None,
    *,
    opsel_a: int = 0,
    opsel_b: int = 0,
) -> MmaOp:
    """A scaled matrix instruction, 16x16x128 or 32x32x64, of fp8, bf8, fp6, bf6 and fp4 in any pair.

    elem_ty_b: by default as A. opsel_a, opsel_b: which byte of a lane's scale belongs to its 32 elements. The scales of
    a call are its values: `fx.gemm(atom, d, a, b, c, scale_a=..., scale_b=...)`, or `atom.set_value("scale_a", ...)`;
    where none is set, nothing is scaled. A thread's 6-bit and 4-bit elements stand in words: in fragments of their own
    type, or in a tensor of fx.Int32.
    """
    return scaled_op(atoms.MFMAScale, (m, n, k), (elem_ty_a, elem_ty_b, elem_ty_acc), (opsel_a, opsel_b))


MFMAScale = MFMA_Scale


def BufferLoadAsyncLDS(bit_size: int) -> CopyOp:
    """An asynchronous copy of 32, 96 or 128 bits per lane from a buffer tensor into LDS: see `rocdl.BufferCopyLDS`.

    End a group of copies with `rocdl.asyncmark()` and wait with `rocdl.wait_asyncmark(groups)`, or `rocdl.s_waitcnt`.
    """
    return located(atoms.BufferLoadAsyncLDS, bit_size)


def GlobalLoadAsyncLDS(bit_size: int) -> CopyOp:
    """An asynchronous copy of 32, 96 or 128 bits per lane from global memory into LDS. See `BufferLoadAsyncLDS`.

    The wave writes contiguously, from the first lane's address in LDS on.
    """
    return located(atoms.GlobalLoadAsyncLDS, bit_size)


def _of_width(make: Callable[[int], CopyOp], bits: int) -> Callable[[], CopyOp]:
    def atom() -> CopyOp:
        return make(bits)

    return described(
        atom, f"{make.__name__}{bits}b", f"An asynchronous copy of {bits} bits per lane: see `{make.__name__}`."
    )


BufferLoadAsyncLDS32b = _of_width(BufferLoadAsyncLDS, 32)
BufferLoadAsyncLDS96b = _of_width(BufferLoadAsyncLDS, 96)
BufferLoadAsyncLDS128b = _of_width(BufferLoadAsyncLDS, 128)
GlobalLoadAsyncLDS32b = _of_width(GlobalLoadAsyncLDS, 32)
GlobalLoadAsyncLDS96b = _of_width(GlobalLoadAsyncLDS, 96)
GlobalLoadAsyncLDS128b = _of_width(GlobalLoadAsyncLDS, 128)


def LDSReadTrans(trans_granularity: int, bit_size: int) -> CopyOp:
    """A transposing read of `bit_size` bits per lane from LDS, of elements of `trans_granularity` bits.

    Lanes give the addresses of rows of a block of 16 lanes, and get columns of it.
    """
    return located(atoms.LDSReadTrans, bit_size, trans_granularity)


def LDSReadTrans4_64b() -> CopyOp:
    """A transposing read of 16 elements of 4 bits."""
    return LDSReadTrans(4, 64)


def LDSReadTrans6_96b() -> CopyOp:
    """A transposing read of 16 elements of 6 bits."""
    return LDSReadTrans(6, 96)


def LDSReadTrans8_64b() -> CopyOp:
    """A transposing read of 8 elements of 8 bits."""
    return LDSReadTrans(8, 64)


def LDSReadTrans16_64b() -> CopyOp:
    """A transposing read of 4 elements of 16 bits."""
    return LDSReadTrans(16, 64)


def cvt_sr_f32_to_bf16(x: Number, rand: Number) -> Any:
    """A Float32 rounded to one of the two BFloat16 around it, by 32 random bits: v_cvt_sr_bf16_f32.

    `fx.random.cvt_f32_to_bf16_sr` does the same on every target, with 16 bits.
    """
    require_target("cvt_sr_f32_to_bf16", CDNA4)
    pair = ir.VectorType.get([2], BFloat16.ir_type)
    old = Vector.filled(2, 0.0, BFloat16).ir_value()
    operands = [old, Float32(x).ir_value(), Uint32(rand).ir_value(), Boolean(False).ir_value()]
    return Vector(call_intrinsic("llvm.amdgcn.cvt.sr.bf16.f32", operands, pair), dtype=BFloat16)[0]


_TYPES = ("CopyOpCDNA4LdsReadTransposeType", "MmaOpCDNA4_MFMAScaleType")
__getattr__ = unknown_name(__name__, globals(), dict.fromkeys(_TYPES, "flydsl.expr.rocdl.instruction_types"))
