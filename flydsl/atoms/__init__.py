"""Copy and matrix instructions as data: sizes, element types and thread-value layouts. One file per family."""

from flydsl.atoms.atomic_copy import AtomicCopy, BufferAtomic, UniversalAtomic
from flydsl.atoms.buffer_copy import BufferCopy, BufferCopyLDS
from flydsl.atoms.copy import BUFFER, CopyOp, Lowering, UniversalCopy, parse_copy_op
from flydsl.atoms.mfma import MFMA
from flydsl.atoms.mma import MmaOp, parse_mma_op
from flydsl.atoms.tiled_copy import TiledCopy
from flydsl.atoms.tiled_mma import TiledMma
from flydsl.atoms.universal_fma import UniversalFMA

__all__ = [
    "BUFFER",
    "MFMA",
    "AtomicCopy",
    "BufferAtomic",
    "BufferCopy",
    "BufferCopyLDS",
    "CopyOp",
    "Lowering",
    "MmaOp",
    "TiledCopy",
    "TiledMma",
    "UniversalAtomic",
    "UniversalCopy",
    "UniversalFMA",
    "parse_copy_op",
    "parse_mma_op",
]
