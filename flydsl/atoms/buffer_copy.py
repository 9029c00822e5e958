"""Buffer loads and stores of CDNA 3: a copy through a buffer resource, with bounds checked by the hardware."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from flydsl.atoms.copy import CopyOp


@dataclass(frozen=True)
class BufferCopy(CopyOp):
    """One thread moves `bits` contiguous bits between a buffer tensor and registers: buffer_load, buffer_store.

    >>> print(BufferCopy(128))
    !fly_rocdl.cdna3.buffer_copy<128>
    """

    name = "fly_rocdl.cdna3.buffer_copy"
    widths = (8, 16, 32, 64, 128)
    # Word 3 of a resource: raw addressing of 32-bit data, bounds checked per byte (CDNA 3 ISA, "Buffer Resource").
    resource_flags: ClassVar[int] = 0x27000
