"""Atomic updates of memory, as copies from registers: `memory = operation(memory, register)`, element by element."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar

from flydsl.atoms.copy import BUFFER, CopyOp, Lowering
from flydsl.atoms.instruction_sets import CDNA, CDNA4
from flydsl.errors import ArgumentError

SCOPES = (
    "agent", "workgroup", "wavefront", "singlethread", "system",
    "one-as", "agent-one-as", "workgroup-one-as", "wavefront-one-as", "singlethread-one-as",
)  # fmt: skip
_INTEGERS = ("i32", "i64")
# Operation -> its element types. `s` and `u` read integers with and without a sign; inc and dec wrap around.
_ELEMENTS = {
    "add": (*_INTEGERS, "f16", "bf16", "f32", "f64"),
    "max": ("f32", "f64"),
    "min": ("f32", "f64"),
    **dict.fromkeys(("smax", "smin", "umax", "umin", "and", "or", "inc", "dec"), _INTEGERS),
}


@dataclass(frozen=True)
class AtomicCopy(CopyOp):
    """An atomic update of `bits` bits by one thread: one element, or a pair of 16-bit floats.

    bits: of all elements. operation: add, max, min, smax, smin, umax, umin, and, or, inc, dec. element: by MLIR's name.
    """

    widths = (16, 32, 64)
    hint = "fx.rocdl.BufferAtomic is for buffer tensors, fx.UniversalAtomic for others"

    operation: str
    element: str

    def __post_init__(self) -> None:
        super().__post_init__()
        known = _ELEMENTS.get(self.operation, ())
        if self.element not in known:
            hint = f"of {', '.join(known)}" if known else f"operations: {', '.join(_ELEMENTS)}"
            raise ArgumentError(f"there is no atomic {self.operation} of {self.element}", hint=hint)
        if self.bits != self.element_bits and (self.bits, self.element_bits, self.operation) != (32, 16, "add"):
            raise ArgumentError(
                f"there is no atomic {self.operation} of {self.bits // self.element_bits} {self.element}",
                hint="use an element type that the hardware updates, or a loop with compare and swap",
            )

    @property
    def element_bits(self) -> int:
        """Bits of one element."""
        return int(re.sub(r"\D", "", self.element))

    @property
    def only_element(self) -> str:
        return self.element

    def __str__(self) -> str:
        return f"!{self.name}<{self.bits}, {self.operation}, {self.element}>"


@dataclass(frozen=True)
class UniversalAtomic(AtomicCopy):
    """An atomic update of global or shared memory: one instruction if the target has it, else a loop.

    scope: the threads that see updates in one order, by LLVM's name, or "system" for all of all devices.

    >>> print(UniversalAtomic(32, "add", "f32"), UniversalAtomic(32, "add", "f32", "workgroup"))
    !fly.universal_atomic<32, add, f32> !fly.universal_atomic<32, add, f32, workgroup>
    """

    scope: str = "agent"

    name = "fly.universal_atomic"
    spaces = frozenset({("register", "global"), ("register", "shared")})
    moves = "updates global or shared memory by registers"
    lowering = Lowering.ATOMIC

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.scope not in SCOPES:
            raise ArgumentError(f"an atomic in the scope {self.scope!r}", hint=f"there is {', '.join(SCOPES)}")

    @classmethod
    def from_text(cls, bits: int, parameters: list[str]) -> CopyOp:
        return super().from_text(bits, [*parameters, "agent"] if len(parameters) == 2 else parameters)

    def __str__(self) -> str:
        plain = super().__str__()
        return plain if self.scope == "agent" else f"{plain[:-1]}, {self.scope}>"


@dataclass(frozen=True)
class BufferAtomic(AtomicCopy):
    """An atomic update through a buffer resource, with bounds checked by the hardware: buffer_atomic_add_f32, ...

    >>> print(BufferAtomic(32, "add", "f16"))
    !fly_rocdl.cdna3.buffer_atomic<32, add, f16>
    """

    name = "fly_rocdl.cdna3.buffer_atomic"
    spaces = frozenset({("register", BUFFER)})
    moves = "updates a buffer tensor by registers"
    lowering = Lowering.BUFFER_ATOMIC
    value_names = ("soffset",)
    # Source: LLVM, BUFInstructions.td and AMDGPU.td.
    _packed_archs: ClassVar[dict[str, tuple[str, ...]]] = {"f16": CDNA, "bf16": CDNA4}

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.bits == 16 or (self.operation, self.element) in (("max", "f32"), ("min", "f32")):
            raise ArgumentError(
                f"there is no buffer atomic {self.operation} of one {self.element}",
                hint="fx.UniversalAtomic is there for it; two 16-bit floats: fx.rocdl.BufferAtomicPkAdd",
            )

    @property
    def archs(self) -> tuple[str, ...]:
        return self._packed_archs[self.element] if self.element_bits == 16 else CDNA
