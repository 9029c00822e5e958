"""Transposing reads from LDS of CDNA 4, ds_read_b64_tr_b16 and the like, as copies of one lane."""

from __future__ import annotations

import re
from dataclasses import dataclass

from flydsl.atoms.copy import CopyOp, Lowering
from flydsl.atoms.instruction_sets import CDNA4
from flydsl.errors import ArgumentError

_BODY = re.compile(r"trans = (\d+)b, (\d+)$")
_ELEMENT_BITS = {4: 64, 6: 96, 8: 64, 16: 64}


@dataclass(frozen=True)
class LDSReadTrans(CopyOp):
    """A read of `bits` bits per lane from LDS, with the elements of each block of 16 lanes exchanged.

    element_bits: 4, 6, 8 or 16. Lanes give the addresses of rows of a block, each `bits` long, and get columns of it
    (CDNA 4 ISA, "LDS Transpose Load").

    >>> print(LDSReadTrans(64, 16))
    !fly_rocdl.cdna4.lds_read_trans<trans = 16b, 64>
    """

    name = "fly_rocdl.cdna4.lds_read_trans"
    widths = (64, 96)
    spaces = frozenset({("shared", "register")})
    moves = "copies from shared memory to registers"
    hint = "a store to shared memory takes fx.UniversalCopy64b()"
    lowering = Lowering.LDS_TRANSPOSE
    threads = 16
    transposes = True

    element_bits: int = 16

    def __post_init__(self) -> None:
        super().__post_init__()
        if _ELEMENT_BITS.get(self.element_bits) != self.bits:
            known = ", ".join(f"{element}-bit elements in {bits}" for element, bits in _ELEMENT_BITS.items())
            raise ArgumentError(
                f"there is no transposing read of {self.element_bits}-bit elements in {self.bits} bits", hint=known
            )

    @property
    def archs(self) -> tuple[str, ...]:
        return CDNA4

    @property
    def operation(self) -> str:
        """The name of the ROCDL operation."""
        return f"rocdl.ds.read.tr{self.element_bits}.b{self.bits}"

    @classmethod
    def from_body(cls, body: str) -> LDSReadTrans:
        match = _BODY.match(body)
        if match is None:
            raise ArgumentError(f"{cls.name}<{body}> is not a copy", hint="write <trans = 16b, 64>, for example")
        return cls(int(match[2]), int(match[1]))

    def __str__(self) -> str:
        return f"!{self.name}<trans = {self.element_bits}b, {self.bits}>"
