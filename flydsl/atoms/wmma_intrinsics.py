"""The matrix instructions of RDNA and gfx1250 by their ROCDL names: operand types in a wave of 32 lanes.

The same name takes other operands on each generation. RDNA 3 gives every lane a whole row of A, so that lanes 16 to
31 repeat lanes 0 to 15, and spreads 16-bit results over 32-bit registers; from RDNA 4 on nothing is repeated.
Source: LLVM, IntrinsicsAMDGPU.td, and the RDNA 3 and RDNA 4 ISA documents, "Wave Matrix Multiply Accumulate".
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from flydsl.atoms.instruction_sets import GFX1250, RDNA3, RDNA4

_WAVE = 32
_GENERATIONS = (RDNA3, RDNA4, GFX1250)

_FLOAT8 = ("fp8_fp8", "fp8_bf8", "bf8_fp8", "bf8_bf8")
_OF_16_BITS = """
    wmma_f32_16x16x16_f16 wmma_f32_16x16x16_bf16 wmma_f16_16x16x16_f16 wmma_bf16_16x16x16_bf16 wmma_i32_16x16x16_iu8
    wmma_i32_16x16x16_iu4
"""
_BY_ARCHS = {
    RDNA3: _OF_16_BITS,
    RDNA4: f"""
        {_OF_16_BITS} wmma_i32_16x16x32_iu4 {" ".join(f"wmma_f32_16x16x16_{pair}" for pair in _FLOAT8)}
        swmmac_f32_16x16x32_f16 swmmac_f32_16x16x32_bf16 swmmac_f16_16x16x32_f16 swmmac_bf16_16x16x32_bf16
        swmmac_i32_16x16x32_iu8 swmmac_i32_16x16x32_iu4 swmmac_i32_16x16x64_iu4
        {" ".join(f"swmmac_f32_16x16x32_{pair}" for pair in _FLOAT8)}
    """,
    GFX1250: f"""
        wmma_f32_16x16x4_f32 wmma_f32_16x16x32_f16 wmma_f32_16x16x32_bf16 wmma_f16_16x16x32_f16 wmma_bf16_16x16x32_bf16
        wmma_bf16f32_16x16x32_bf16 wmma_i32_16x16x64_iu8
        {" ".join(f"wmma_{d}_16x16x{k}_{pair}" for d in ("f32", "f16") for k in (64, 128) for pair in _FLOAT8)}
        swmmac_f32_16x16x64_f16 swmmac_f32_16x16x64_bf16 swmmac_f16_16x16x64_f16 swmmac_bf16_16x16x64_bf16
        swmmac_bf16f32_16x16x64_bf16 swmmac_i32_16x16x128_iu8
        {" ".join(f"swmmac_{d}_16x16x128_{pair}" for d in ("f32", "f16") for pair in _FLOAT8)}
    """,
}
_NAME = re.compile(r"(s?)wmmac?_(bf16f32|bf16|f16|f32|i32)_(\d+)x(\d+)x(\d+)_([a-z]+)(\d+)(?:_(fp8|bf8))?$")


@dataclass(frozen=True)
class WmmaIntrinsic:
    """A matrix instruction of one generation.

    a, b, c, d: the type of each operand of a lane and of the result, as MLIR writes it. elements: what A, B and the
    result hold, as the name says it (`iu8`, `fp8`). sparse: A holds 2 of every 4 elements, and an index operand of
    k / 2 bits says which. modifiers: names of immediates that it takes. archs: who has it in this form.
    """

    name: str
    m: int
    n: int
    k: int
    a: str
    b: str
    c: str
    d: str
    elements: tuple[str, str, str]
    sparse: bool
    modifiers: tuple[str, ...]
    archs: tuple[str, ...]

    @classmethod
    def named(cls, name: str, archs: tuple[str, ...]) -> WmmaIntrinsic:
        """The instruction of a ROCDL name, as a generation has it.

        >>> WmmaIntrinsic.named("wmma_f32_16x16x16_f16", RDNA3).a, WmmaIntrinsic.named("wmma_f32_16x16x16_f16", RDNA4).a
        ('vector<16xf16>', 'vector<8xf16>')
        """
        match = _NAME.match(name)
        assert match, name
        m, n, k = (int(match[i]) for i in (3, 4, 5))
        sparse, a, result = bool(match[1]), match[6] + match[7], match[2]
        b = match[8] or a
        accumulator, result = ("f32", "bf16") if result == "bf16f32" else (result, result)
        returned = accumulator if sparse else result  # sparse ones write the registers of C
        lanes = _WAVE // 2 if archs == RDNA3 else _WAVE  # that hold different rows and columns
        spread = 2 if archs == RDNA3 and result in ("f16", "bf16") else 1
        c, d = (_registers(element, m * n * spread // _WAVE, archs) for element in (accumulator, returned))
        return cls(
            name, m, n, k,
            _registers(a, m * k // lanes // (1 + sparse), archs), _registers(b, n * k // lanes, archs),
            c, d, (a, b, result), sparse, _modifiers(a, result, sparse, archs), archs,
        )  # fmt: skip

    @property
    def operation(self) -> str:
        """The name of the ROCDL operation; sparse ones have an LLVM intrinsic only."""
        kind, result, shape, elements = self.name.split("_", 3)
        return f"rocdl.{kind}.{result}.{shape}.{elements}"

    @property
    def index_bits(self) -> int:
        """Bits of a lane's index operand: 4 for each 4 elements of k in half a row."""
        return self.k // 2


def _registers(element: str, count: int, archs: tuple[str, ...]) -> str:
    """The operand type of `count` elements. bf16 is passed as 16-bit integers before gfx1250, 8 and 4 bits as words."""
    bits = int(re.sub(r"\D", "", element))
    if bits < 16:
        element, count = "i32", count * bits // 32
    elif element == "bf16" and archs != GFX1250:
        element = "i16"
    return element if count == 1 else f"vector<{count}x{element}>"


def _modifiers(a: str, result: str, sparse: bool, archs: tuple[str, ...]) -> tuple[str, ...]:
    reuse = ("reuseA", "reuseB") if archs == GFX1250 else ()
    if a.startswith("iu"):
        return ("signA", "signB", *reuse, "clamp")
    if archs != GFX1250:
        return ("opsel",) if result in ("f16", "bf16") and not sparse else ()
    modifiers = () if a in ("fp8", "bf8") else ("signA", "signB")
    return (*modifiers, *(() if sparse else ("modC",)), *reuse)


WMMA_INTRINSICS = {
    (name, archs): WmmaIntrinsic.named(name, archs) for archs, names in _BY_ARCHS.items() for name in names.split()
}
SCALED_WMMA = {
    f"{scale}_{shape}": bits
    for scale, bits in (("wmma_scale", 32), ("wmma_scale16", 64))
    for shape in ("f32_16x16x128_f8f6f4", "f32_32x16x128_f4")
}
"""Scaled instructions of gfx1250 -> bits of each scale operand: 4 or 8 scales of 8 bits, for 32 or 16 elements each."""
WMMA_NAMES = tuple(dict.fromkeys(name for name, _ in WMMA_INTRINSICS))


def wmma_archs(name: str) -> tuple[str, ...]:
    """The architectures that have an instruction of that name."""
    return tuple(arch for archs in _GENERATIONS if (name, archs) in WMMA_INTRINSICS for arch in archs)


def wmma_intrinsic(name: str, arch: str | None) -> WmmaIntrinsic:
    """An instruction as an architecture has it; the oldest form if the architecture is unknown."""
    forms = [form for (other, _), form in WMMA_INTRINSICS.items() if other == name]
    return next((form for form in forms if arch in form.archs), forms[0])
