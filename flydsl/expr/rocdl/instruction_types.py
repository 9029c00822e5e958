"""Instructions under the names of FlyDSL's types: `CopyOpUniversalCopyType.get(128)` is `fx.UniversalCopy(128)`.

An instruction is an instance of its type: `isinstance(fx.UniversalCopy(128), CopyOpUniversalCopyType)`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flydsl import atoms
from flydsl.atoms import CopyOp, MmaOp
from flydsl.dialect.elements import value_name
from flydsl.expr.atoms.copies import UniversalCopy
from flydsl.expr.atoms.mma import UniversalFMA
from flydsl.expr.memory.atomics import AtomicOp, UniversalAtomic
from flydsl.expr.rocdl.buffer_atomic import BufferAtomic
from flydsl.expr.rocdl.buffer_tensor import BufferCopy, BufferCopyLDS
from flydsl.expr.rocdl.cdna4 import LDSReadTrans, MFMA_Scale
from flydsl.expr.rocdl.matrix_atoms import MFMA
from flydsl.expr.tracing.operands import element_name, located

__all__ = [
    "CopyOpCDNA3BufferAtomicType", "CopyOpCDNA3BufferCopyLDSType", "CopyOpCDNA3BufferCopyType",
    "CopyOpCDNA4LdsReadTransposeType", "CopyOpUniversalAtomicType", "CopyOpUniversalCopyType", "MmaOpCDNA3_MFMAType",
    "MmaOpCDNA4_MFMAScaleType", "MmaOpGFX11_WMMAType", "MmaOpGFX120X_WMMAType", "MmaOpGFX1250_WMMAType",
    "MmaOpUniversalFMAType",
]  # fmt: skip


class InstructionType:
    """A kind of instruction. make: what `get` calls with the instruction's parameters."""

    def __init__(self, name: str, kind: type, make: Callable[..., CopyOp | MmaOp]) -> None:
        self.__name__ = name
        self._kind, self._make = kind, make

    def get(self, *parameters: Any, context: Any = None, **named: Any) -> CopyOp | MmaOp:
        """The instruction with these parameters. context: MLIR's; there is one."""
        return self._make(*parameters, **named)

    def __instancecheck__(self, value: object) -> bool:
        return isinstance(value, self._kind)

    def __repr__(self) -> str:
        return self.__name__


def _atomic(make: Callable[..., CopyOp]) -> Callable[..., CopyOp]:
    """An atomic's constructor that takes the operation by its number, too."""

    def of(atomic_op: AtomicOp | int, val_type: Any) -> CopyOp:
        return make(list(AtomicOp)[atomic_op] if isinstance(atomic_op, int) else atomic_op, val_type)

    return of


def _mfma(m: int, n: int, k: int, elem_ty_a: Any, elem_ty_b: Any, elem_ty_acc: Any) -> MmaOp:
    return MFMA(m, n, k, elem_ty_a, elem_ty_acc, elem_ty_b=elem_ty_b)


def _wmma(kind: type[MmaOp]) -> Callable[..., MmaOp]:
    def make(
        m: int, n: int, k: int, elem_ty_a: Any, elem_ty_b: Any, elem_ty_acc: Any,
        *, sign_a: bool = False, sign_b: bool = False, clamp: bool = False,
    ) -> MmaOp:  # fmt: skip
        elements = [value_name(element_name(dtype)) for dtype in (elem_ty_a, elem_ty_b, elem_ty_acc)]
        return located(kind, m, n, k, *elements, sign_a, sign_b, clamp)

    return make


CopyOpUniversalCopyType = InstructionType("CopyOpUniversalCopyType", atoms.UniversalCopy, UniversalCopy)
CopyOpUniversalAtomicType = InstructionType(
    "CopyOpUniversalAtomicType", atoms.UniversalAtomic, _atomic(UniversalAtomic)
)
MmaOpUniversalFMAType = InstructionType("MmaOpUniversalFMAType", atoms.UniversalFMA, UniversalFMA)
CopyOpCDNA3BufferCopyType = InstructionType("CopyOpCDNA3BufferCopyType", atoms.BufferCopy, BufferCopy)
CopyOpCDNA3BufferCopyLDSType = InstructionType("CopyOpCDNA3BufferCopyLDSType", atoms.BufferCopyLDS, BufferCopyLDS)
CopyOpCDNA3BufferAtomicType = InstructionType("CopyOpCDNA3BufferAtomicType", atoms.BufferAtomic, _atomic(BufferAtomic))
CopyOpCDNA4LdsReadTransposeType = InstructionType("CopyOpCDNA4LdsReadTransposeType", atoms.LDSReadTrans, LDSReadTrans)
MmaOpCDNA3_MFMAType = InstructionType("MmaOpCDNA3_MFMAType", atoms.MFMA, _mfma)
MmaOpCDNA4_MFMAScaleType = InstructionType("MmaOpCDNA4_MFMAScaleType", atoms.MFMAScale, MFMA_Scale)
MmaOpGFX11_WMMAType = InstructionType("MmaOpGFX11_WMMAType", atoms.Gfx11WMMA, _wmma(atoms.Gfx11WMMA))
MmaOpGFX120X_WMMAType = InstructionType("MmaOpGFX120X_WMMAType", atoms.Gfx120xWMMA, _wmma(atoms.Gfx120xWMMA))
MmaOpGFX1250_WMMAType = InstructionType("MmaOpGFX1250_WMMAType", atoms.Gfx1250WMMA, _wmma(atoms.Gfx1250WMMA))
