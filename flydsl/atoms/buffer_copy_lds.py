"""Buffer loads of CDNA straight into LDS, past the registers."""

from __future__ import annotations

from dataclasses import dataclass

from flydsl.atoms.copy import CopyOp
from flydsl.atoms.instruction_sets import CDNA, CDNA4


@dataclass(frozen=True)
class BufferCopyLDS(CopyOp):
    """Each lane reads `bits` contiguous bits of a buffer tensor; the wave's lie side by side in LDS.

    The instruction has one address in LDS, that of the first lane; lane i's bits are i * `bits` after it.

    >>> print(BufferCopyLDS(32))
    !fly_rocdl.cdna3.buffer_copy_lds<32>
    """

    name = "fly_rocdl.cdna3.buffer_copy_lds"
    widths = (8, 16, 32, 96, 128)
    has_soffset = True
    passes_registers = True

    @property
    def archs(self) -> tuple[str, ...]:
        return CDNA if self.bits <= 32 else CDNA4
