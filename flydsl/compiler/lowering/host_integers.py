"""Integer operations of LLVM's dialect as functions of Python's integers.

Operands may have a sign or not, and more bits than LLVM's, of which the low ones count; results have no sign.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence

from mlir import ir

Compute = Callable[..., int]

MOST_BITS = 64
"""The width of the widest integer that launchers compute with."""


def signed(width: int, x: int) -> int:
    """An integer with sign from its low `width` bits.

    >>> signed(8, 255), signed(8, 127), signed(8, -1)
    (-1, 127, -1)
    """
    return ((x & (1 << width) - 1) ^ 1 << width - 1) - (1 << width - 1)


def unsigned(width: int, x: int) -> int:
    """An integer without sign from its low `width` bits."""
    return x & (1 << width) - 1


Reading = Callable[[int, int], int]
_WITHOUT_REGARD: dict[str, Callable[[int, int], int]] = {
    "llvm.add": operator.add,
    "llvm.sub": operator.sub,
    "llvm.mul": operator.mul,
    "llvm.and": operator.and_,
    "llvm.or": operator.or_,
    "llvm.xor": operator.xor,
}
"""Operations whose low result bits depend on the low bits of the operands only."""

_EXTENSIONS: dict[str, Reading] = {"llvm.sext": signed, "llvm.zext": unsigned, "llvm.trunc": unsigned}

_BY_CONSTANTS: dict[str, tuple[Reading, Callable[[int, int], int]]] = {
    "llvm.shl": (unsigned, operator.lshift),
    "llvm.lshr": (unsigned, operator.rshift),
    "llvm.ashr": (signed, operator.rshift),
    "llvm.udiv": (unsigned, operator.floordiv),
    "llvm.urem": (unsigned, operator.mod),
    "llvm.sdiv": (signed, lambda x, y: (abs(x) // abs(y)) * (1 if (x < 0) == (y < 0) else -1)),
    "llvm.srem": (signed, lambda x, y: abs(x) % abs(y) * (1 if x >= 0 else -1)),
}
"""Operations that are undefined for some right operands, which a constant is known not to be."""

_COMPARISONS: Sequence[tuple[Reading, Callable[[int, int], bool]]] = (  # by the number of LLVM's predicate
    (unsigned, operator.eq),
    (unsigned, operator.ne),
    (signed, operator.lt),
    (signed, operator.le),
    (signed, operator.gt),
    (signed, operator.ge),
    (unsigned, operator.lt),
    (unsigned, operator.le),
    (unsigned, operator.gt),
    (unsigned, operator.ge),
)


def computation(op: ir.Operation, constants: Sequence[int | None]) -> Compute | None:
    """The function that computes the result of an operation; None for an operation that is not here.

    constants: the values of its operands as far as they are known.
    """
    widths = [operand.type.width if isinstance(operand.type, ir.IntegerType) else 0 for operand in op.operands]
    if op.name == "llvm.select" and widths[0] == 1:
        return lambda condition, x, y: x if condition & 1 else y
    if 0 in widths:
        return None
    if op.name in _EXTENSIONS:
        return _converted(_EXTENSIONS[op.name], widths[0], op.results[0].type.width)
    if op.name in _WITHOUT_REGARD:
        return _combined(_WITHOUT_REGARD[op.name], widths[0])
    if op.name in _BY_CONSTANTS and _is_defined(op.name, constants[1], widths[0]):
        read, combine = _BY_CONSTANTS[op.name]
        return _read_and_combined(read, combine, widths[0])
    if op.name == "llvm.icmp":
        read, compare = _COMPARISONS[ir.IntegerAttr(op.attributes["predicate"]).value]
        return _read_and_combined(read, compare, widths[0])
    return None


def _is_defined(name: str, right: int | None, width: int) -> bool:
    if right is None:
        return False
    is_shift = name in ("llvm.shl", "llvm.lshr", "llvm.ashr")
    return 0 <= right < width if is_shift else right not in (0, -1)


def _converted(read: Reading, width: int, result_width: int) -> Compute:
    return lambda x: unsigned(result_width, read(width, x))


def _combined(combine: Callable[[int, int], int], width: int) -> Compute:
    return lambda x, y: unsigned(width, combine(x, y))


def _read_and_combined(read: Reading, combine: Callable[[int, int], int], width: int) -> Compute:
    return lambda x, y: unsigned(width, combine(read(width, x), read(width, y)))
