"""Atomic updates of buffer tensors as copy atoms."""

from __future__ import annotations

from typing import Any

from flydsl import atoms
from flydsl.atoms import CopyOp
from flydsl.expr.memory.atomics import AtomicOp, atomic_of, with_operation

__all__ = ["BufferAtomic", "BufferAtomicAdd", "BufferAtomicMax", "BufferAtomicMin", "BufferAtomicPkAdd"]


def BufferAtomic(atomic_op: AtomicOp, val_type: Any) -> CopyOp:
    """An atomic update of an element of a buffer tensor. Beyond its end it does nothing.

    val_type: integers of 32 and 64 bits; Float32 for Add, Float64 for Add, Max and Min.
    """
    return atomic_of(atoms.BufferAtomic, atomic_op, val_type)


BufferAtomicAdd = with_operation(BufferAtomic, AtomicOp.Add)
BufferAtomicMax = with_operation(BufferAtomic, AtomicOp.Max)
BufferAtomicMin = with_operation(BufferAtomic, AtomicOp.Min)


def BufferAtomicPkAdd(val_type: Any) -> CopyOp:
    """memory + operand, for two adjacent 16-bit floats. BFloat16: CDNA 4 only."""
    return atomic_of(atoms.BufferAtomic, AtomicOp.Add, val_type, values=2)
