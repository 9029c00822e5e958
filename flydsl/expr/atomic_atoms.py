"""Atomic updates of memory as copy atoms: `fx.copy(fx.make_copy_atom(fx.UniversalAtomicAdd(fx.Float32), ...), r, g)`.

The registers' elements update the memory's, one by one; what the memory held is not returned.
"""

from __future__ import annotations

from enum import Enum
from typing import Any

from flydsl import atoms
from flydsl.atoms import CopyOp
from flydsl.dialect.location import user_location
from flydsl.errors import ArgumentError
from flydsl.expr.numeric import require_numeric
from flydsl.expr.operands import located

__all__ = [
    "AtomicOp", "UniversalAtomic", "UniversalAtomicAdd", "UniversalAtomicAnd", "UniversalAtomicDec",
    "UniversalAtomicInc", "UniversalAtomicMax", "UniversalAtomicMin", "UniversalAtomicOr",
]  # fmt: skip


class AtomicOp(Enum):
    """What an atomic does. Inc: 0 where memory holds the operand or more, else one more; Dec the other way round."""

    Add = "add"
    Max = "max"
    Min = "min"
    And = "and"
    Or = "or"
    Inc = "inc"
    Dec = "dec"


def UniversalAtomic(op: AtomicOp, val_type: Any) -> CopyOp:
    """An atomic update of an element in global or shared memory.

    val_type: fx.Int32, Uint32, Int64, Uint64, Float32, Float64; for Add also Float16 and BFloat16. Unsigned integers
    compare without a sign. Floats that the hardware cannot update are, by a loop.
    """
    return atomic_of(atoms.UniversalAtomic, op, val_type)


def UniversalAtomicAdd(val_type: Any) -> CopyOp:
    """memory + operand."""
    return UniversalAtomic(AtomicOp.Add, val_type)


def UniversalAtomicMax(val_type: Any) -> CopyOp:
    """The larger of memory and operand."""
    return UniversalAtomic(AtomicOp.Max, val_type)


def UniversalAtomicMin(val_type: Any) -> CopyOp:
    """The smaller of memory and operand."""
    return UniversalAtomic(AtomicOp.Min, val_type)


def UniversalAtomicAnd(val_type: Any) -> CopyOp:
    """memory & operand."""
    return UniversalAtomic(AtomicOp.And, val_type)


def UniversalAtomicOr(val_type: Any) -> CopyOp:
    """memory | operand."""
    return UniversalAtomic(AtomicOp.Or, val_type)


def UniversalAtomicInc(val_type: Any) -> CopyOp:
    """memory + 1, or 0 where memory >= operand, unsigned."""
    return UniversalAtomic(AtomicOp.Inc, val_type)


def UniversalAtomicDec(val_type: Any) -> CopyOp:
    """memory - 1, or operand where memory is 0 or larger than it, unsigned."""
    return UniversalAtomic(AtomicOp.Dec, val_type)


def atomic_of(family: type[atoms.AtomicCopy], op: AtomicOp, val_type: Any, values: int = 1) -> CopyOp:
    """The atomic of a family on `values` elements of a type."""
    if not isinstance(op, AtomicOp):
        raise ArgumentError(f"{op!r} is not an atomic operation", at=user_location(), hint="such as fx.AtomicOp.Add")
    dtype = require_numeric(family.__name__, val_type)
    signed = op in (AtomicOp.Max, AtomicOp.Min) and not dtype.is_float
    name = ("s" if dtype.signed else "u") + op.value if signed else op.value
    width: int = dtype.width
    if width not in family.widths:
        raise ArgumentError(f"{family.__name__} of {dtype.__name__}: 16 to 64 bits", at=user_location())
    return located(family, values * width, name, dtype.mlir_name)
