"""Copy and matrix instructions as data: sizes, element types and thread-value layouts. One file per family."""

from flydsl.atoms.buffer_copy import BufferCopy
from flydsl.atoms.copy import CopyOp, parse_copy_op
from flydsl.atoms.tiled_copy import TiledCopy
from flydsl.atoms.universal_copy import UniversalCopy

__all__ = ["BufferCopy", "CopyOp", "TiledCopy", "UniversalCopy", "parse_copy_op"]
