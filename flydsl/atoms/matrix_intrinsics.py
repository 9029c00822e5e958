"""The matrix instructions of CDNA by their ROCDL names: operand types, and the architectures that have them.

Types follow from the name. `mfma_f32_16x16x16f16` multiplies M x K by K x N; each of the 64 lanes of a wave holds
as many elements of A as its registers take, and where that is more than M * K / 64, the instruction computes several
independent products ("blocks"). Source: LLVM, IntrinsicsAMDGPU.td, and the CDNA 3 and CDNA 4 ISA documents, "Matrix
Arithmetic Instructions".
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from flydsl.atoms.instruction_sets import CDNA, CDNA4, FROM_CDNA3

_WAVE = 64

# Architectures -> instructions that these have, and the others do not.
_BY_ARCHS = {
    CDNA: """
        mfma_f32_32x32x1f32 mfma_f32_16x16x1f32 mfma_f32_4x4x1f32 mfma_f32_32x32x2f32 mfma_f32_16x16x4f32
        mfma_f32_32x32x4f16 mfma_f32_16x16x4f16 mfma_f32_4x4x4f16 mfma_f32_32x32x8f16 mfma_f32_16x16x16f16
        mfma_i32_32x32x4i8 mfma_i32_16x16x4i8 mfma_i32_4x4x4i8
        mfma_f32_32x32x4bf16_1k mfma_f32_16x16x4bf16_1k mfma_f32_4x4x4bf16_1k mfma_f32_32x32x8bf16_1k
        mfma_f32_16x16x16bf16_1k mfma_f64_16x16x4f64 mfma_f64_4x4x4f64
    """,
    ("gfx90a",): """
        mfma_i32_32x32x8i8 mfma_i32_16x16x16i8 mfma_f32_32x32x2bf16 mfma_f32_16x16x2bf16 mfma_f32_4x4x2bf16
        mfma_f32_32x32x4bf16 mfma_f32_16x16x8bf16
    """,
    ("gfx942",): "mfma_f32_16x16x8_xf32 mfma_f32_32x32x4_xf32",
    FROM_CDNA3: """
        mfma_i32_16x16x32_i8 mfma_i32_32x32x16_i8
        mfma_f32_16x16x32_bf8_bf8 mfma_f32_16x16x32_bf8_fp8 mfma_f32_16x16x32_fp8_bf8 mfma_f32_16x16x32_fp8_fp8
        mfma_f32_32x32x16_bf8_bf8 mfma_f32_32x32x16_bf8_fp8 mfma_f32_32x32x16_fp8_bf8 mfma_f32_32x32x16_fp8_fp8
        smfmac_f32_16x16x32_f16 smfmac_f32_32x32x16_f16 smfmac_f32_16x16x32_bf16 smfmac_f32_32x32x16_bf16
        smfmac_i32_16x16x64_i8 smfmac_i32_32x32x32_i8
        smfmac_f32_16x16x64_bf8_bf8 smfmac_f32_16x16x64_bf8_fp8 smfmac_f32_16x16x64_fp8_bf8
        smfmac_f32_16x16x64_fp8_fp8 smfmac_f32_32x32x32_bf8_bf8 smfmac_f32_32x32x32_bf8_fp8
        smfmac_f32_32x32x32_fp8_bf8 smfmac_f32_32x32x32_fp8_fp8
    """,
    CDNA4: """
        mfma_f32_16x16x32_f16 mfma_f32_16x16x32_bf16 mfma_f32_32x32x16_f16 mfma_f32_32x32x16_bf16
        mfma_i32_16x16x64_i8 mfma_i32_32x32x32_i8
        smfmac_f32_16x16x64_f16 smfmac_f32_32x32x32_f16 smfmac_f32_16x16x64_bf16 smfmac_f32_32x32x32_bf16
        smfmac_i32_16x16x128_i8 smfmac_i32_32x32x64_i8
        smfmac_f32_16x16x128_bf8_bf8 smfmac_f32_16x16x128_bf8_fp8 smfmac_f32_16x16x128_fp8_bf8
        smfmac_f32_16x16x128_fp8_fp8 smfmac_f32_32x32x64_bf8_bf8 smfmac_f32_32x32x64_bf8_fp8
        smfmac_f32_32x32x64_fp8_bf8 smfmac_f32_32x32x64_fp8_fp8
    """,
}

# A lane's A of the first-generation instructions: elements, and the type that the operand has.
_FIRST_GENERATION = {"f32": (1, "f32"), "f64": (1, "f64"), "f16": (4, "f16"), "i8": (4, "i32"), "bf16": (2, "i16")}
_EIGHT_BITS = ("fp8", "bf8")
_NAME = re.compile(r"(s?)mfmac?_(f32|i32|f64)_(\d+)x(\d+)x(\d+)(_?)([a-z]+\d+)(?:_(bf8|fp8|1k))?$")


@dataclass(frozen=True)
class MatrixIntrinsic:
    """A matrix instruction.

    a, b, c: the type of each operand of a lane, as MLIR writes it: `f32`, `vector<4xf16>`. The result has the type
    of c. elements: what A and B hold, as the name says it (`xf32`, `fp8`), and the result's type. sparse: A holds 2
    of every 4 elements, and an index operand says which. archs: who has it.
    """

    name: str
    m: int
    n: int
    k: int
    blocks: int
    a: str
    b: str
    c: str
    elements: tuple[str, str, str]
    sparse: bool
    archs: tuple[str, ...]

    @classmethod
    def named(cls, name: str, archs: tuple[str, ...]) -> MatrixIntrinsic:
        """The instruction of a ROCDL name.

        >>> i = MatrixIntrinsic.named("mfma_f32_16x16x4f16", ("gfx942",))
        >>> i.a, i.c, i.blocks
        ('vector<4xf16>', 'vector<16xf32>', 4)
        """
        match = _NAME.match(name)
        assert match, name
        m, n, k = (int(match[i]) for i in (3, 4, 5))
        sparse, element = bool(match[1]), match[7]
        if match[6]:
            per_lane = k * m // _WAVE
            a, b = (_packed(element, count, sparse, archs) for count in (per_lane // (1 + sparse), per_lane))
            blocks = 1
        else:
            per_lane, register = (4, "i16") if match[8] == "1k" else _FIRST_GENERATION[element]
            a = b = "i32" if element == "i8" else _vector(register, per_lane)
            blocks = per_lane * _WAVE // (m * k)
        c = _vector(match[2], m * n * blocks // _WAVE)
        elements = (element, match[8] if match[8] in _EIGHT_BITS else element, match[2])
        return cls(name, m, n, k, blocks, a, b, c, elements, sparse, archs)

    @property
    def operation(self) -> str:
        """The name of the ROCDL operation."""
        return f"rocdl.{self.name.replace('_', '.')}"


def _packed(element: str, count: int, sparse: bool, archs: tuple[str, ...]) -> str:
    """The operand type of `count` elements. 8-bit elements are passed as integers; bf16 too before CDNA 4."""
    if element in ("i8", "bf8", "fp8"):
        return "i64" if count == 8 and not sparse else _vector("i32", count // 4)
    if element == "bf16" and archs != CDNA4:
        return _vector("i16", count)
    return _vector(element.removeprefix("x"), count)


def _vector(element: str, count: int) -> str:
    return element if count == 1 else f"vector<{count}x{element}>"


MATRIX_INTRINSICS = {
    name: MatrixIntrinsic.named(name, archs) for archs, names in _BY_ARCHS.items() for name in names.split()
}
SCALED_MATRIX_INTRINSICS = ("mfma_scale_f32_16x16x128_f8f6f4", "mfma_scale_f32_32x32x64_f8f6f4")
SCALED_ARCHS = CDNA4
