"""Copy and matrix instructions as data: sizes, element types and thread-value layouts. One file per family."""

from flydsl.atoms.atomic_copy import AtomicCopy, BufferAtomic, UniversalAtomic
from flydsl.atoms.buffer_copy import BufferCopy, BufferCopyLDS, BufferLoadAsyncLDS, GlobalLoadAsyncLDS
from flydsl.atoms.copy import BUFFER, CopyOp, Lowering, UniversalCopy, parse_copy_op
from flydsl.atoms.lds_read_trans import LDSReadTrans
from flydsl.atoms.mfma import MFMA
from flydsl.atoms.mma import MmaOp, parse_mma_op
from flydsl.atoms.scaled import MFMAScale, ScaledOp, WMMAScale
from flydsl.atoms.tiled_copy import TiledCopy
from flydsl.atoms.tiled_mma import TiledMma
from flydsl.atoms.universal_fma import UniversalFMA
from flydsl.atoms.wmma import WMMA, Gfx11WMMA, Gfx120xWMMA, Gfx1250WMMA, wmma_of

__all__ = [
    "BUFFER", "MFMA", "WMMA", "AtomicCopy", "BufferAtomic", "BufferCopy", "BufferCopyLDS", "BufferLoadAsyncLDS",
    "CopyOp", "Gfx11WMMA", "Gfx120xWMMA", "Gfx1250WMMA", "GlobalLoadAsyncLDS", "LDSReadTrans", "Lowering", "MFMAScale",
    "MmaOp", "ScaledOp", "TiledCopy", "TiledMma", "UniversalAtomic", "UniversalCopy", "UniversalFMA", "WMMAScale",
    "parse_copy_op", "parse_mma_op", "wmma_of",
]  # fmt: skip
