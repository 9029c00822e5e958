"""Conversions to and from floats of 8, 6 and 4 bits, with scales, clamped, and with random bits."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from flydsl.simulator.arrays import Array
from tests.simulator.conformance.registry import conforms, execute, expect


@dataclass(frozen=True)
class Format:
    """A float of few bits: `numbers` codes without a sign are finite, those above stand for infinity and NaN."""

    exponent_bits: int
    mantissa_bits: int
    bias: int
    numbers: int

    @property
    def bits(self) -> int:
        return 1 + self.exponent_bits + self.mantissa_bits

    def magnitude(self, code: int) -> float:
        exponent, mantissa = divmod(code, 1 << self.mantissa_bits)
        return math.ldexp((exponent > 0) + mantissa / (1 << self.mantissa_bits), max(exponent, 1) - self.bias)

    def number(self, code: int) -> float:
        magnitude = code & ((1 << (self.bits - 1)) - 1)
        return math.copysign(self.magnitude(magnitude), -1 if code >> (self.bits - 1) else 1)

    def code(self, x: float) -> int:
        """Of a number that the format has."""
        magnitude = next(code for code in range(self.numbers) if self.magnitude(code) == abs(x))
        return magnitude | (math.copysign(1, x) < 0) << (self.bits - 1)


FP8, BF8 = Format(4, 3, 7, 0x7F), Format(5, 2, 15, 0x7C)
FP6, BF6, FP4 = Format(2, 3, 1, 32), Format(3, 2, 3, 32), Format(2, 1, 1, 8)
ONE_SCALE = np.float32(1)
EIGHT = (0.5, -1.0, 1.5, -2.0, 3.0, -4.0, 6.0, -0.5)
SIXTEEN = (*EIGHT, 1.0, 2.0, 4.0, -1.5, -3.0, -6.0, 0.0, -2.0)


def bits_of(numbers: Array, wide: str) -> Array:
    """The bits of f32 as f16, or else their own, of which a bf16 is the upper half."""
    return numbers.astype(np.float16).view(np.uint16).astype(np.uint32) if wide == "f16" else numbers.view(np.uint32)


def as_words(numbers: Sequence[float], wide: str) -> dict[int, Array]:
    """Numbers in consecutive registers, the same in every lane: f32, or two f16 or bf16 in a register."""
    bits = bits_of(np.float32(numbers), wide)
    if wide == "f32":
        return dict(enumerate(bits))
    halves = [int(x) >> (16 if wide == "bf16" else 0) for x in bits]
    return {i: np.uint32(halves[2 * i] | halves[2 * i + 1] << 16) for i in range(len(halves) // 2)}


def together(codes: Sequence[int], bits: int) -> list[int]:
    """Codes one after another, as dwords."""
    whole = sum(code << bits * i for i, code in enumerate(codes))
    return [whole >> 32 * i & 0xFFFFFFFF for i in range(len(codes) * bits // 32)]


def registers_from(first: int, count: int) -> str:
    return f"v{first}" if count == 1 else f"v[{first}:{first + count - 1}]"


# --- gfx950


@conforms("cdna4/cvt_scalef32_fp4 (all codes)", "gfx950")
def every_fp4(arch: str) -> None:
    codes = np.arange(16, dtype=np.uint32)
    after = execute("v_cvt_scalef32_pk_f32_fp4 v[4:5], v0, v1", arch, {0: codes | codes << 4, 1: ONE_SCALE})
    for register in (4, 5):
        assert after.v(register, np.float32)[:16].tolist() == [FP4.number(code) for code in range(16)]
        assert np.signbit(after.v(register, np.float32)[8])


@conforms("cdna4/cvt_scalef32_fp4 (packs)", "gfx950")
def packs_of_fp4(arch: str) -> None:
    """op_sel names the byte that is written; the others stay."""
    for select in range(4):
        pairs = list(product(range(8), repeat=2))
        x, y = (np.float32([FP4.number(pair[i]) for pair in pairs]) for i in range(2))
        text = f"v_cvt_scalef32_pk_fp4_f32 v9, v0, v1, v2 op_sel:[0,0,{select & 1},{select >> 1}]"
        got = execute(text, arch, {0: x, 1: y, 2: ONE_SCALE, 9: 0xA5A5A5A5}).v(9)
        kept = 0xA5A5A5A5 & ~(0xFF << 8 * select)
        expect(got, [kept | (a | b << 4) << 8 * select for a, b in pairs], text)


@conforms("cdna4/cvt_scalef32_fp4 (scales)", "gfx950")
def directions_of_scales(arch: str) -> None:
    """What widens multiplies, what narrows divides."""
    after = execute("v_cvt_scalef32_pk_f32_fp4 v[4:5], v0, v1", arch, {0: 2, 1: np.float32(4)})
    assert after.v(4, np.float32)[0] == 4
    after = execute("v_cvt_scalef32_pk_fp4_f32 v4, v0, v1, v2", arch, {0: np.float32(8), 1: 0, 2: np.float32(2), 4: 0})
    assert after.v(4)[0] & 15 == 6


@conforms("cdna4/cvt (all bytes)", "gfx950")
def every_byte(arch: str) -> None:
    """E4M3 has one NaN of each sign, E5M2 infinities too."""
    codes = np.arange(256, dtype=np.uint32)
    for name, format_ in (("fp8", FP8), ("bf8", BF8)):
        got = execute(f"v_cvt_pk_f32_{name} v[4:5], v0", arch, {0: codes}).v(4, np.float32)
        for code, x in enumerate(got.tolist()):
            magnitude = code & 0x7F
            if magnitude < format_.numbers:
                assert x == format_.number(code), (name, code)
            else:
                assert math.isinf(x) if (name, magnitude) == ("bf8", 0x7C) else math.isnan(x), (name, code)


@conforms("cdna4/cvt (words)", "gfx942 gfx950 gfx1201 gfx1250")
def words_of_packs(arch: str) -> None:
    """A pack writes the half that op_sel names, of which the other conversion reads the same numbers."""
    numbers = np.arange(-4, 4).astype(np.float32)
    for name, (select, shift) in product(("fp8", "bf8"), (("", 0), ("op_sel:[0,0,1]", 16))):
        text = f"v_cvt_pk_{name}_f32 v2, v0, v1 {select}"
        read = f"v_cvt_pk_f32_{name}_sdwa v[4:5], v2 src0_sel:WORD_1" if shift else f"v_cvt_pk_f32_{name} v[4:5], v2"
        if shift and arch.startswith("gfx12"):
            read = f"v_cvt_pk_f32_{name}_e64 v[4:5], v2 op_sel:[1,0]"
        after = execute(f"{text}\n{read}", arch, {0: numbers, 1: numbers[::-1].copy(), 2: 0})
        assert not np.any(after.v(2) & (0xFFFF0000 >> shift)), text
        assert after.v(4, np.float32)[:8].tolist() == numbers.tolist(), text
        assert after.v(5, np.float32)[:8].tolist() == numbers[::-1].tolist(), text


@conforms("cdna4/cvt (random bits)", "gfx942 gfx950")
def exact_numbers_with_random_bits(arch: str) -> None:
    numbers = np.arange(-4, 5).astype(np.float32)
    for name in ("fp8", "bf8"):
        seeds = np.arange(9, dtype=np.uint32) + 0x1234
        after = execute(f"v_cvt_sr_{name}_f32 v2, v0, v1\nv_cvt_f32_{name} v3, v2", arch, {0: numbers, 1: seeds, 2: 0})
        assert after.v(3, np.float32)[:9].tolist() == numbers.tolist()


@conforms("cdna4/cvt (scaled)", "gfx950")
def one_byte_times_a_scale(arch: str) -> None:
    numbers = np.arange(-4, 5).astype(np.float32)
    for name in ("fp8", "bf8"):
        text = f"v_cvt_sr_{name}_f32 v2, v0, v1\nv_cvt_scalef32_f32_{name} v3, v2, v4"
        after = execute(text, arch, {0: numbers, 1: 0, 2: 0, 4: np.float32(4)})
        assert after.v(3, np.float32)[:9].tolist() == (4 * numbers).tolist()


# --- gfx1250


def list_packs_of_gfx1250() -> None:
    """Eight or sixteen numbers that every format has, from each type, with random bits and without."""
    formats = {"fp8": (8, FP8), "bf8": (8, BF8), "fp4": (8, FP4), "fp6": (16, FP6), "bf6": (16, BF6)}
    for stochastic, (name, (count, format_)), wide in product(("", "sr_"), formats.items(), ("f32", "f16", "bf16")):
        numbers = EIGHT if count == 8 else SIXTEEN
        words = as_words(numbers, wide)
        wanted = together([format_.code(x) for x in numbers], format_.bits)
        source, result = registers_from(0, len(words)), registers_from(32, len(wanted))
        mnemonic = f"v_cvt_scalef32_{stochastic}pk{count}_{name}_{wide}"
        text = f"{mnemonic} {result}, {source}, {'v28, ' * bool(stochastic)}v30"
        operands = words | {28: 0x1234ABCD, 30: ONE_SCALE}
        conforms(f"gfx1250/cvt_scalef32_pk ({mnemonic})", "gfx1250")(_pack(text, operands, wanted))


def _pack(text: str, operands: dict[int, Array], wanted: list[int]) -> Callable[[str], None]:
    def pack(arch: str) -> None:
        after = execute(text, arch, operands)
        for i, word in enumerate(wanted):
            expect(after.v(32 + i), [word] * 32, text)

    return pack


list_packs_of_gfx1250()


@conforms("gfx1250/cvt_sr_pk_f16 (exact)", "gfx1250")
def exact_halves_with_random_bits(arch: str) -> None:
    x, y = np.float32([0, 1, -2, 0.5, 3, -0.25, 16, -1.5]), np.float32([1, -1, 2, -0.5, 4, 0.125, -8, 6])
    seeds = np.arange(8, dtype=np.uint32) + 0xABCD
    for name in ("f16", "bf16"):
        got = execute(f"v_cvt_sr_pk_{name}_f32 v3, v0, v1, v2", arch, {0: x, 1: y, 2: seeds}).v(3)
        shift = 0 if name == "f16" else 16
        low, high = (bits_of(numbers, name) >> shift for numbers in (x, y))
        wanted = (low | high << 16).tolist()
        expect(got, wanted, name)


@conforms("gfx1250/cvt_sr_pk_f16 (between two)", "gfx1250")
def a_half_between_two_becomes_either(arch: str) -> None:
    seeds = np.array([(0x10000 * (i + 1) + 0x9E3779B9 * i) & 0xFFFFFFFF for i in range(256)], np.uint32)
    for name, bits, one in (("f16", 10, 0x3C00), ("bf16", 7, 0x3F80)):
        x = np.float32(1 + 2.0 ** -(bits + 1))
        got = execute(f"v_cvt_sr_pk_{name}_f32 v3, v0, v0, v2", arch, {0: np.full(256, x), 2: seeds}).v(3) & 0xFFFF
        assert set(got.tolist()) == {one, one + 1}


UE5M3_NUMBERS = np.float32(
    [0, 2.0**-17, 1.5 * 2.0**-17, 1.75 * 2.0**-15, 0.5, 1, 1.0625, 1.1875, 1.5, 1.875 * 2.0**15, 1.75 * 2.0**16,
     1.875 * 2.0**16, np.inf, np.nan, -0.0, -1, 2, 4, 8, 16, 32]
)  # fmt: skip
UE5M3_SEEDED = (
    (1.03125 * 2.0**-8, 0), (1.03125 * 2.0**-8, 0xFFFFFFFF), (1.125 * 2.0**-16, 0), (1.125 * 2.0**-16, 0xFFFFFFFF),
    (2.0**-17, 0x12345678), (2.0**-17, 0xABCDEF01), (1.75 * 2.0**-15, 0), (1.75 * 2.0**-15, 0xFFFFFFFF),
    (0.5, 0x13579BDF), (0.5, 0x2468ACE0), (120000.0, 0), (120000.0, 0xFFFFFFFF), (1.875 * 2.0**16, 0),
    (1.875 * 2.0**16, 0xFFFFFFFF), (1.0, 0x55555555), (1.5, 0xAAAAAAAA),
)  # fmt: skip
UE5M3 = Format(5, 3, 15, 0xFF)


def ue5m3(x: float, largest: int) -> int:
    """The nearest code; `largest`, or NaN, beyond all numbers and for infinity."""
    if math.isnan(x):
        return 0xFF
    top, below = UE5M3.magnitude(0xFE), UE5M3.magnitude(0xFD)
    if abs(x) > top + (top - below) / 2:
        return largest
    return min(range(0xFF), key=lambda code: (abs(UE5M3.magnitude(code) - abs(x)), code & 1))


def ue5m3_stochastic(x: float, seed: int, largest: int) -> int:
    """The code below, or the next one if the dropped bits and the random ones carry. Zero far below the smallest."""
    exponent = math.frexp(x)[1] - 1
    if x == 0 or exponent < -20:
        return 0
    if exponent > 16:
        return largest
    below = max(code for code in range(0xFF) if UE5M3.magnitude(code) <= x)
    dropped = 20 + max(0, -14 - exponent)
    unit = math.ldexp(1, max(exponent, -14) - 3)
    rest = int((x - UE5M3.magnitude(below)) / unit * (1 << dropped))
    code = below + (rest + (seed >> (32 - dropped)) >= 1 << dropped)
    return largest if code == 0xFF else code


def check_ue5m3(arch: str, saturates: bool) -> None:
    mode, largest = 0x3F0 | saturates << 23, 0xFE if saturates else 0xFF
    x, y = UE5M3_NUMBERS, np.roll(UE5M3_NUMBERS, -1)
    pairs = [(ue5m3(float(a), largest), ue5m3(float(b), largest)) for a, b in zip(x, y, strict=True)]
    text = """v_cvt_pk_fp8_f32 v4, v0, v1 op_sel:[0,0,0] clamp
        v_cvt_pk_fp8_f32 v5, v0, v1 op_sel:[0,0,1] clamp
        v_cvt_pk_fp8_f32 v6, -|v0|, |v1| clamp"""
    after = execute(text, arch, {0: x, 1: y, 4: 0xA5A50000, 5: 0x5A5A, 6: 0}, mode=mode)
    expect(after.v(4), [0xA5A50000 | a | b << 8 for a, b in pairs], "low")
    expect(after.v(5), [0x5A5A | a << 16 | b << 24 for a, b in pairs], "high")
    expect(after.v(6) & 0xFFFF, [a | b << 8 for a, b in pairs], "signs")
    numbers, seeds = (list(column) for column in zip(*UE5M3_SEEDED, strict=True))
    operands = {0: np.float32(numbers), 1: np.uint32(seeds), 4: 0x5A5AA5A5}
    after = execute("v_cvt_sr_fp8_f32 v4, v0, v1 byte_sel:3 clamp", arch, operands, mode=mode)
    expect(after.v(4) >> 24, [ue5m3_stochastic(n, s, largest) for n, s in UE5M3_SEEDED], "random bits")
    expect(after.v(4) & 0xFFFFFF, [0x5AA5A5] * 16, "other bytes")


@conforms("semantics/fp8_e5m3_pack", "gfx1250")
def unsigned_floats(arch: str) -> None:
    check_ue5m3(arch, saturates=False)


@conforms("semantics/fp8_e5m3_pack (FP16_OVFL)", "gfx1250")
def unsigned_floats_that_saturate(arch: str) -> None:
    check_ue5m3(arch, saturates=True)


@conforms("semantics/fp8_e5m3_unpack", "gfx1250")
def unsigned_floats_become_f32(arch: str) -> None:
    codes = [0x00, 0x01, 0x07, 0x08, 0x38, 0x3C, 0x78, 0x80, 0xB7, 0xF0, 0xF7, 0xF8, 0xFA, 0xFC, 0xFE, 0xFF]
    words = np.uint32([sum(codes[(i + j) % 16] << 8 * j for j in range(4)) for i in range(16)])
    for select in range(4):
        got = execute(f"v_cvt_f32_fp8 v1, v0 byte_sel:{select} clamp", arch, {0: words}).v(1, np.float32)[:16]
        wanted = [UE5M3.magnitude(codes[(i + select) % 16]) for i in range(16)]
        wanted[(15 - select) % 16] = math.nan
        np.testing.assert_array_equal(got, np.float32(wanted))
