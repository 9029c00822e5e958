"""Blocks in which lanes meet stay apart, even where they are identical.

convert-gpu-to-rocdl merges identical blocks of a function. Where lanes come to one of them from both, those of a wave
that should meet at two barriers, or be asked by two ballots, would meet in one, or not at all.
"""

from __future__ import annotations

from mlir import ir

from flydsl.arch import Arch
from flydsl.dialect.walk import operations

name = "fly-blocks-apart"
_MARK = "apart"
_MEETINGS = ("barrier", "shuffle", "ballot", "lane", "dpp", "permute", "swizzle")


def apply(module: ir.Operation, arch: Arch) -> None:
    """Give the last operations of such blocks an attribute each that no other one has. LLVM ignores it."""
    blocks = {op.block: None for op in operations(module) if _is_meeting(op.name)}
    number = ir.IntegerType.get_signless(64, context=module.context)
    for count, block in enumerate(blocks):
        block.operations[len(block.operations) - 1].attributes[_MARK] = ir.IntegerAttr.get(number, count)


def _is_meeting(op_name: str) -> bool:
    is_of_gpu = op_name.startswith(("gpu.", "rocdl."))
    return (is_of_gpu and any(word in op_name for word in _MEETINGS)) or op_name in (
        "llvm.inline_asm",
        "llvm.call_intrinsic",
    )
