"""Copy and matrix instructions as data: sizes, element types and thread-value layouts. One file per family."""

from flydsl.atoms.copy import CopyOp, parse_copy_op
from flydsl.atoms.universal_copy import UniversalCopy

__all__ = ["CopyOp", "UniversalCopy", "parse_copy_op"]
