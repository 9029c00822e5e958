"""A plain load or store by one thread, in any address space."""

from __future__ import annotations

from dataclasses import dataclass

from flydsl.atoms.copy import CopyOp


@dataclass(frozen=True)
class UniversalCopy(CopyOp):
    """One thread moves `bits` contiguous bits: global_load/store, ds_read/write or a register move.

    >>> print(UniversalCopy(128))
    !fly.universal_copy<128>
    """

    name = "fly.universal_copy"
    widths = (8, 16, 32, 64, 128)
