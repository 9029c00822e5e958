"""fly-int-swizzle-simplify: shorten the shift-and-xor sequences that swizzled layouts leave behind.

Swizzled layouts cannot be put on tensors yet, so no such sequence exists and the pass changes nothing.
"""

from __future__ import annotations

from mlir import ir

from flydsl.arch import Arch

name = "fly-int-swizzle-simplify"


def apply(module: ir.Operation, arch: Arch) -> None:
    """Nothing to simplify before swizzled tensors exist."""
