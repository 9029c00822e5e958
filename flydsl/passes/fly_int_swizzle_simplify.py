"""fly-int-swizzle-simplify: shorten the shift-and-xor sequences that swizzled layouts leave behind.

The pass changes nothing: a swizzle is `x ^ ((x & mask) >> shift)`, three operations, of which the layout algebra has
dropped those that what divides `x` shows to be 0, and LLVM those that known bits show.
"""

from __future__ import annotations

from mlir import ir

from flydsl.arch import Arch

name = "fly-int-swizzle-simplify"


def apply(module: ir.Operation, arch: Arch) -> None:
    """Nothing is left to simplify."""
