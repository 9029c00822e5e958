"""The costs of instructions in SIMD cycles, and the peak rates of accelerators, as published by AMD.

Sources: the passes of matrix instructions in LLVM's SISchedule.td (a pass is four cycles; AMD's matrix instruction
calculator gives the same cycles), SIMD width and rates from the white papers of CDNA 2, 3 and 4, peaks from the data
sheets of the products. Of RDNA 4 AMD publishes the rates of a product alone, 195 TFLOPS of f16 matrices on 64 compute
units of two SIMDs at 2.97 GHz, which are 16 cycles for 16 x 16 x 16; a SIMD has 32 lanes, and 8 for transcendentals.
Of RDNA 3 a compute unit does 512 operations of f16, bf16 or i8 in a clock, and 1024 of i4 (AMD, "How to accelerate AI
applications on RDNA 3 using WMMA"): 32 and 16 cycles.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from flydsl.arch.base import Arch
from flydsl.arch.gfx90a import GFX90A
from flydsl.arch.gfx942 import GFX942
from flydsl.arch.gfx950 import GFX950
from flydsl.arch.gfx1201 import GFX1200, GFX1201
from flydsl.arch.products import Product, is_sold, product_of
from flydsl.arch.rdna3 import RDNA3
from flydsl.errors import ArchError

_CYCLES_PER_PASS = 4
_SIMD_LANES, _SIMD_LANES_OF_RDNA = 16, 32
_TRANSCENDENTAL_CYCLES = 4
"""For one of another instruction."""
_MATRIX = re.compile(
    r"v_(mfma|smfmac|wmma|swmmac)_(?:scale(?:16)?_)?[a-z]+\d+_(\d+)x(\d+)x(\d+)(?:_(\d+)b)?_?([a-z]\w*)(?:/([\w/]+))?"
)
_TRANSCENDENTAL = re.compile(r"v_(exp|log|rcp|rsq|sqrt|sin|cos)(_iflag|_legacy)?_f(16|32)$")
_FULL_RATE = re.compile(
    r"v_(pk_)?(mov|add|sub|subrev|addc|subb|subbrev|mul|fma|fmac|fmaak|fmamk|mac|mad|max|max3|min|min3|med3|and|or|or3"
    r"|xor|xor3|not|lshl|lshr|ashr|lshlrev|lshrrev|ashrrev|bfe|bfi|alignbit|alignbyte|perm|cndmask|cmp|cmpx"
    r"|add3|lshl_add|add_lshl|lshl_or|and_or|xad)_"
    r"(\w+_)?([biuf](16|32)|co_u32)$"
)
_FULL_RATE_F64 = re.compile(r"v_(fma|fmac|add|mul)_f64$")
"""Half as many operations as f32 at its packed rate of twice the lanes: a wave takes as long as with f32."""
_OPERATIONS = re.compile(
    r"v_(pk_)?(add|sub|subrev|mul|fma|fmac|fmaak|fmamk|mac|mad|dot2(?:c|acc)?)_(?:\w+_)?(f16|f32|f64)$"
)
_OF_BOTH_HALVES = re.compile(
    r"v_((fma|fmac|fmaak|fmamk|mul|add|sub|subrev|max|min)_f(16|32)|mov_b(16|32)|cndmask_b(16|32)"
    r"|(max|min|add|sub|mad)_[iu]16|mul_lo_u16|(not|and|or|xor)_b16|(lshl|lshr|ashr)rev_[bi]16"
    r"|dot2c?_(f32|f16|bf16)_(f16|bf16))$"
)
"""Operations that RDNA 3 and 4 execute for all 64 lanes at once: those that pairs of instructions are made of, and some
of 16 bits. Source: Mesa's ACO; measured by Chips and Cheese in "Microbenchmarking AMD's RDNA 3"."""
_NOT_FULL_RATE = re.compile(r"v_(mul_(lo|hi)|mad_(u64|i64))_")


@dataclass(frozen=True)
class Peaks:
    """The most that an accelerator does. product: the one that the figures are of."""

    product: str
    compute_units: int
    simds_per_compute_unit: int
    clock_hz: float
    memory_bytes_per_second: float
    source: str

    def operations_per_second(self, operations: int, cycles: int) -> float:
        """The rate of all SIMDs together for an instruction with this many operations in this many cycles."""
        return operations / cycles * self.compute_units * self.simds_per_compute_unit * self.clock_hz


def _of_product(product: Product) -> Peaks:
    """The peaks of a product of RDNA, whose multiprocessors have two compute units each."""
    memory = 1e9 * product.memory_gb_per_s
    return Peaks(
        product.name.removeprefix("AMD "),
        2 * product.multiprocessors,
        2,
        1e6 * product.clock_mhz,
        memory,
        "AMD's specifications",
    )


_PEAKS: Mapping[str, Peaks] = {
    # product, compute units, SIMDs of each, clock in Hz, memory in bytes per second, source
    GFX942.name: Peaks("Instinct MI300X", 304, 4, 2.1e9, 5.3e12, "AMD Instinct MI300X data sheet"),
    GFX950.name: Peaks("Instinct MI355X", 256, 4, 2.4e9, 8.0e12, "AMD Instinct MI355X data sheet"),
    GFX90A.name: Peaks("one of the two dies of an Instinct MI250X", 110, 4, 1.7e9, 1.6e12,
                       "AMD Instinct MI250X data sheet"),
    **{arch.name: _of_product(product_of(arch.name)) for arch in RDNA3 if is_sold(arch.name)},
    GFX1201.name: Peaks("Radeon RX 9070 XT", 64, 2, 2.97e9, 640e9, "AMD Radeon RX 9070 XT specifications"),
    GFX1200.name: Peaks("Radeon RX 9060 XT", 32, 2, 3.13e9, 320e9, "AMD Radeon RX 9060 XT specifications"),
}  # fmt: skip


def peaks(arch: Arch) -> Peaks:
    """ArchError where the project has no published figures."""
    if arch.name not in _PEAKS:
        raise ArchError(f"the peak figures of {arch.name} are not known", hint=f"known: {', '.join(_PEAKS)}")
    return _PEAKS[arch.name]


def has_separate_transcendental_unit(arch: Arch) -> bool:
    """True where transcendental functions have lanes of their own, and products of matrices those of the vector ALU.

    So RDNA 3 and 4 are; on CDNA it is the other way round.

    >>> has_separate_transcendental_unit(GFX942), has_separate_transcendental_unit(GFX1201)
    (False, True)
    """
    return _PASSES.get(arch.name) in (_passes_of_rdna3, _passes_of_rdna4)


def mfma_cycles(arch: Arch, mnemonic: str) -> int | None:
    """Cycles for which a matrix instruction keeps the SIMD's matrix core busy; None where not known.

    A mnemonic whose modifiers name the formats is followed by them, as the entries of the simulator's table are.

    >>> mfma_cycles(GFX942, "v_mfma_f32_16x16x16_f16"), mfma_cycles(GFX942, "v_mfma_f32_32x32x2_f32")
    (16, 64)
    >>> [mfma_cycles(GFX950, f"v_mfma_f32_16x16x128_f8f6f4/{formats}") for formats in ("fp8_fp4", "fp6_fp4")]
    [32, 16]
    """
    match = _MATRIX.fullmatch(mnemonic)
    if arch.name not in _PASSES or match is None:
        return None
    passes = _PASSES[arch.name](_MatrixInstruction(match[1], int(match[2]), int(match[4]), match[6], match[7] or ""))
    return passes and _CYCLES_PER_PASS * passes


@dataclass(frozen=True)
class _MatrixInstruction:
    kind: str
    m: int
    k: int
    element: str
    formats: str


def _passes_of_cdna2(i: _MatrixInstruction) -> int | None:
    if i.element == "f64":
        return 4 if i.m == 4 else 8
    return {4: 2, 16: 8, 32: 16}[i.m]


def _passes_of_cdna3(i: _MatrixInstruction) -> int | None:
    if i.element == "f64" or i.m == 4:
        return _passes_of_cdna2(i)
    # Shapes that run at the full rate of their type.
    deep = i.kind == "smfmac" or i.k * i.m >= 256 or i.element == "xf32"
    return {16: 4, 32: 8}[i.m] if deep else {16: 8, 32: 16}[i.m]


def _passes_of_cdna4(i: _MatrixInstruction) -> int | None:
    if i.element == "f64":
        return 4 if i.m == 4 else 16
    if i.element != "f8f6f4":
        return _passes_of_cdna3(i)
    if not i.formats:
        return None
    has_float8 = "fp8" in i.formats or "bf8" in i.formats
    return {16: 8, 32: 16}[i.m] if has_float8 else {16: 4, 32: 8}[i.m]


def _passes_of_rdna4(i: _MatrixInstruction) -> int | None:
    """Half the bits take half as long, as does half the depth; of a sparse A the zeros take no time."""
    depth = i.k // 2 if i.kind == "swmmac" else i.k
    bits = {"f16": 16, "bf16": 16, "iu4": 4}.get(i.element, 8)
    return 4 * bits * depth // (16 * 16)


def _passes_of_rdna3(i: _MatrixInstruction) -> int | None:
    return 4 if i.element == "iu4" else 8


_PASSES: Mapping[str, Callable[[_MatrixInstruction], int | None]] = {
    **{arch.name: _passes_of_rdna3 for arch in RDNA3},
    GFX1200.name: _passes_of_rdna4,
    GFX1201.name: _passes_of_rdna4,
    GFX90A.name: _passes_of_cdna2,
    GFX942.name: _passes_of_cdna3,
    GFX950.name: _passes_of_cdna4,
}


def matrix_element(mnemonic: str) -> str | None:
    """The element type in the name of a matrix instruction; None for others.

    >>> matrix_element("v_mfma_f32_16x16x16_bf16"), matrix_element("v_mfma_f32_16x16x32_fp8_fp8")
    ('bf16', 'fp8_fp8')
    """
    match = _MATRIX.fullmatch(mnemonic)
    return match and match[6]


def mfma_operations(mnemonic: str) -> int:
    """Multiplications and additions of a matrix instruction, those with a sparse A's zeros included; 0 for others.

    >>> mfma_operations("v_mfma_f32_16x16x16_f16"), mfma_operations("v_mfma_f32_4x4x4_16b_f16")
    (8192, 2048)
    """
    match = _MATRIX.fullmatch(mnemonic)
    if match is None:
        return 0
    m, n, k, blocks = int(match[2]), int(match[3]), int(match[4]), int(match[5] or 1)
    return 2 * m * n * k * blocks


def valu_operations(mnemonic: str) -> int:
    """Floating-point additions and multiplications of one lane in a vector instruction; 0 for others.

    >>> [valu_operations(f"v_{name}") for name in ("add_f32", "fma_f64", "pk_fma_f32", "dot2_f32_f16", "add_u32")]
    [1, 2, 4, 4, 0]
    """
    if "::" in mnemonic:
        return sum(map(valu_operations, _of_pair(mnemonic)))
    match = _OPERATIONS.match(mnemonic)
    if match is None:
        return 0
    operations = 2 if match[2].startswith(("f", "ma")) else 4 if match[2].startswith("dot2") else 1
    return 2 * operations if match[1] else operations


def _of_pair(mnemonic: str) -> list[str]:
    """The two operations of a VOPD instruction."""
    return [name.replace("v_dual_", "v_") for name in mnemonic.split("::")]


def valu_cycles(arch: Arch, mnemonic: str, wave_size: int | None = None) -> int | None:
    """Cycles for which a vector instruction of a wave keeps its SIMD busy; None where not known.

    Not known are conversions, multiplications of integers, divisions, most of f64, and what moves data between lanes.
    wave_size: lanes of the wave, by default as many as waves of the GPU have.

    >>> valu_cycles(GFX942, "v_fma_f32"), valu_cycles(GFX942, "v_exp_f32"), valu_cycles(GFX942, "v_mul_lo_u32")
    (4, 16, None)
    >>> [valu_cycles(GFX1201, f"v_{name}") for name in ("fma_f32", "add_u32", "exp_f32")]
    [1, 1, 4]
    >>> [valu_cycles(GFX1201, f"v_{name}", 64) for name in ("fma_f32", "add_u32", "exp_f32")]
    [1, 2, 8]
    """
    if arch.name not in _PASSES:
        return None
    if "::" in mnemonic:
        both = [valu_cycles(arch, name, wave_size) for name in _of_pair(mnemonic)]
        return both[0] if None not in both else None
    is_rdna = has_separate_transcendental_unit(arch)
    cycles = (wave_size or arch.wave_size) // (_SIMD_LANES_OF_RDNA if is_rdna else _SIMD_LANES)
    if _NOT_FULL_RATE.match(mnemonic):
        return None
    if _TRANSCENDENTAL.match(mnemonic):
        return _TRANSCENDENTAL_CYCLES * cycles
    if is_rdna and _OF_BOTH_HALVES.match(mnemonic):
        return 1
    if _FULL_RATE.match(mnemonic) or (_FULL_RATE_F64.match(mnemonic) and not is_rdna):
        return cycles
    return None
