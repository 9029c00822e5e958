"""Operations that a launcher does not compute: quotients of 128-bit integers, and these from and to floats.

For them LLVM calls functions of the compiler's library, which a process need not have loaded; where one is missing,
MLIR's engine ends the process.
"""

from __future__ import annotations

from mlir import ir

from flydsl.dialect.elements import scalar_of
from flydsl.dialect.location import source_location
from flydsl.dialect.walk import operations
from flydsl.errors import CompileError

_DIVISIONS = {f"arith.{name}" for name in ("divsi", "divui", "remsi", "remui", "floordivsi", "ceildivsi", "ceildivui")}
_CONVERSIONS = {f"arith.{name}" for name in ("sitofp", "uitofp", "fptosi", "fptoui")}
_WIDEST_BITS = 64


def refuse(function: ir.Operation) -> None:
    """Raise CompileError for such an operation of a launcher."""
    for op in operations(function):
        if op.name in _DIVISIONS | _CONVERSIONS and any(map(_is_wide, (op.operands[0].type, op.result.type))):
            what = "a division of" if op.name in _DIVISIONS else "a conversion between a float and"
            raise CompileError(
                f"unsupported in a launcher: {what} an integer of more than {_WIDEST_BITS} bits",
                at=source_location(op.location),
                hint="compute it in the kernel, or with fx.Int64",
            )


def _is_wide(kind: ir.Type) -> bool:
    element = scalar_of(kind)
    return isinstance(element, ir.IntegerType) and element.width > _WIDEST_BITS
