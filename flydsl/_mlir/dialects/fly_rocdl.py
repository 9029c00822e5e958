"""Types and address spaces of AMD GPUs in FlyDSL's own dialects."""

from flydsl.expr.memory.tensors import AddressSpace as TargetAddressSpace
from flydsl.expr.rocdl.instruction_types import (
    CopyOpCDNA3BufferAtomicType,
    CopyOpCDNA3BufferCopyLDSType,
    CopyOpCDNA3BufferCopyType,
    CopyOpCDNA4LdsReadTransposeType,
    MmaOpCDNA3_MFMAType,
    MmaOpCDNA4_MFMAScaleType,
    MmaOpGFX11_WMMAType,
    MmaOpGFX120X_WMMAType,
    MmaOpGFX1250_WMMAType,
)

__all__ = [
    "CopyOpCDNA3BufferAtomicType", "CopyOpCDNA3BufferCopyLDSType", "CopyOpCDNA3BufferCopyType",
    "CopyOpCDNA4LdsReadTransposeType", "MmaOpCDNA3_MFMAType", "MmaOpCDNA4_MFMAScaleType", "MmaOpGFX11_WMMAType",
    "MmaOpGFX120X_WMMAType", "MmaOpGFX1250_WMMAType", "TargetAddressSpace",
]  # fmt: skip
