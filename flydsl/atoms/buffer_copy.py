"""Buffer loads and stores of CDNA 3: copies through a buffer resource, with bounds checked by the hardware."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from flydsl.atoms.copy import BUFFER, CopyOp, Lowering
from flydsl.atoms.instruction_sets import CDNA, CDNA4, WAVE32
from flydsl.errors import ArgumentError

_LARGEST_MODIFIER = 0x1F
# What the offset field of a buffer instruction holds (CDNA 3 ISA, "MUBUF Instructions").
LARGEST_OFFSET_BYTES = 0xFFF

# Word 3 of a resource: raw addressing of 32-bit data, bounds checked per byte (CDNA 3 ISA, "Buffer Resource").
_RESOURCE_FLAGS = 0x27000
# From RDNA on it also holds a format that is valid (bits 24 on), and how bounds are checked (bits 28 and 29): 3, by
# bytes. With 2 they are not (MLIR, AMDGPUToROCDL).
_RESOURCE_FLAGS_RDNA = _RESOURCE_FLAGS | 1 << 24 | 3 << 28


def resource_flags(arch_name: str | None) -> int:
    """Word 3 of a buffer resource on an architecture; CDNA's if the architecture is unknown.

    >>> hex(resource_flags("gfx942")), hex(resource_flags("gfx1201"))
    ('0x27000', '0x31027000')
    """
    return _RESOURCE_FLAGS_RDNA if arch_name in WAVE32 else _RESOURCE_FLAGS


@dataclass(frozen=True)
class BufferCopy(CopyOp):
    """A move of `bits` contiguous bits by one thread between a buffer tensor and registers: buffer_load, buffer_store.

    cache_modifier: bits of the instruction, as the CDNA 3 ISA has them: 1 sc0, 2 nt (non-temporal), 16 sc1.

    >>> print(BufferCopy(128), BufferCopy(32, 2))
    !fly_rocdl.cdna3.buffer_copy<128> !fly_rocdl.cdna3.buffer_copy<32, 2>
    """

    name = "fly_rocdl.cdna3.buffer_copy"
    widths = (8, 16, 32, 64, 96, 128)
    spaces = frozenset({(BUFFER, "register"), ("register", BUFFER)})
    moves = "copies between a buffer tensor and registers"
    hint = "make the buffer tensor with fx.rocdl.make_buffer_tensor(tensor)"
    lowering = Lowering.BUFFER
    value_names = ("soffset",)

    cache_modifier: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        if type(self.cache_modifier) is not int or not 0 <= self.cache_modifier <= _LARGEST_MODIFIER:
            raise ArgumentError(
                f"BufferCopy with cache_modifier={self.cache_modifier!r}", hint=f"bits from 0 to {_LARGEST_MODIFIER}"
            )

    @classmethod
    def from_text(cls, bits: int, parameters: list[str]) -> BufferCopy:
        if len(parameters) > 1 or not all(map(str.isdecimal, parameters)):
            raise ArgumentError(f"{cls.name} of {bits} bits with {parameters}: at most a cache modifier")
        return cls(bits, *map(int, parameters))

    def __str__(self) -> str:
        return f"!{self.name}<{self.bits}, {self.cache_modifier}>" if self.cache_modifier else super().__str__()


@dataclass(frozen=True)
class BufferCopyLDS(CopyOp):
    """A read of `bits` contiguous bits per lane from a buffer tensor into LDS, where the wave's data is contiguous.

    They go past the registers. The instruction has one address in LDS, that of the first lane; lane i's bits are
    i * `bits` after it.

    >>> print(BufferCopyLDS(32))
    !fly_rocdl.cdna3.buffer_copy_lds<32>
    """

    name = "fly_rocdl.cdna3.buffer_copy_lds"
    widths: ClassVar[tuple[int, ...]] = (8, 16, 32, 96, 128)
    spaces = frozenset({(BUFFER, "shared")})
    moves = "copies from a buffer tensor to shared memory"
    hint = "fx.rocdl.make_buffer_tensor(tensor) makes the one, fx.SharedAllocator the other"
    lowering = Lowering.BUFFER_TO_LDS
    value_names = ("soffset", "imm_offset")
    immediates: ClassVar[dict[str, int]] = {"imm_offset": LARGEST_OFFSET_BYTES}
    passes_registers = True

    @property
    def archs(self) -> tuple[str, ...]:
        return CDNA if self.bits <= 32 else CDNA4


@dataclass(frozen=True)
class BufferLoadAsyncLDS(BufferCopyLDS):
    """CDNA 4's asynchronous read from a buffer tensor into LDS: the same move, for which the program itself waits.

    >>> print(BufferLoadAsyncLDS(128))
    !fly_rocdl.cdna4.buffer_load_async_lds<128>
    """

    name = "fly_rocdl.cdna4.buffer_load_async_lds"
    widths = (32, 96, 128)
    is_asynchronous = True

    @property
    def archs(self) -> tuple[str, ...]:
        return CDNA4


@dataclass(frozen=True)
class GlobalLoadAsyncLDS(CopyOp):
    """CDNA 4's asynchronous read from global memory into LDS, where the wave's data is contiguous.

    >>> print(GlobalLoadAsyncLDS(32))
    !fly_rocdl.cdna4.global_load_async_lds<32>
    """

    name = "fly_rocdl.cdna4.global_load_async_lds"
    widths = (32, 96, 128)
    spaces = frozenset({("global", "shared")})
    moves = "copies from global to shared memory"
    hint = "of a buffer tensor, fx.rocdl.cdna4.BufferLoadAsyncLDS does"
    lowering = Lowering.GLOBAL_TO_LDS
    passes_registers = True
    is_asynchronous = True

    @property
    def archs(self) -> tuple[str, ...]:
        return CDNA4
