"""What gfx950 adds to gfx942: narrow floats, scaled products, and instructions of all families.

The references are written from AMD's documents and LLVM's tests, with the numbers of a format listed one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np
import pytest

from flydsl.simulator import Memory, UnknownInstruction
from flydsl.simulator.arrays import Array
from flydsl.simulator.isa.forms import SCALED_FORMATS as CODES_IN_CBSZ

pytestmark = pytest.mark.slow

Run = Callable[..., Any]
LANE = np.arange(64)
SATURATING = 0x3F0 | 1 << 23  # MODE.FP16_OVFL


@dataclass(frozen=True)
class Format:
    """exponent_bits, mantissa_bits, bias, and the codes beyond the numbers."""

    exponent_bits: int
    mantissa_bits: int
    bias: int
    nans: tuple[int, ...] = ()
    infinity: int | None = None

    @property
    def bits(self) -> int:
        return 1 + self.exponent_bits + self.mantissa_bits

    def value(self, code: int) -> float:
        sign = -1.0 if code >> (self.bits - 1) else 1.0
        magnitude = code & ((1 << (self.bits - 1)) - 1)
        if magnitude in self.nans:
            return float("nan")
        if magnitude == self.infinity:
            return sign * float("inf")
        exponent, mantissa = divmod(magnitude, 1 << self.mantissa_bits)
        whole = mantissa / (1 << self.mantissa_bits) + (exponent > 0)
        return sign * whole * 2.0 ** (max(exponent, 1) - self.bias)

    @cache  # noqa: B019 - the formats live as long as the module
    def values(self) -> Array:
        return np.array([self.value(code) for code in range(1 << self.bits)])

    @property
    def largest(self) -> float:
        return float(np.nanmax(np.where(np.isinf(self.values()), 0, self.values())))

    def nearest(self, x: float, *, saturates: bool = False) -> int:
        """The code of a number, ties to even; what lies beyond the largest one as the OCP specifications say."""
        half = 1 << (self.bits - 1)
        sign = half if np.signbit(x) else 0
        if np.isnan(x):
            return sign | (self.nans[-1] if self.nans else half - 1)
        positive = [c for c in range(half) if c not in self.nans and c != self.infinity]
        step = self.value(positive[-1]) - self.value(positive[-2])
        magnitude = abs(x)
        beyond = magnitude >= self.largest + step / 2 and not (saturates and np.isfinite(x))
        if beyond and (self.nans or self.infinity):
            return sign | (self.infinity if self.infinity is not None else self.nans[-1])
        return sign | min(positive, key=lambda c: (abs(self.value(c) - min(magnitude, self.largest)), c & 1))


FORMATS = {
    "fp8": Format(4, 3, 7, nans=(0x7F,)),
    "bf8": Format(5, 2, 15, nans=(0x7D, 0x7E, 0x7F), infinity=0x7C),
    "fp6": Format(2, 3, 1),
    "bf6": Format(3, 2, 3),
    "fp4": Format(2, 1, 1),
}
EIGHT = ("fp8", "bf8")


@pytest.fixture
def on_gfx950(run: Run) -> Run:
    return partial(run, arch="gfx950")


def pack(codes: Sequence[int], bits: int) -> list[int]:
    """The dwords of consecutive fields."""
    number = sum(int(code) << bits * i for i, code in enumerate(codes))
    return [number >> 32 * i & 0xFFFFFFFF for i in range(-(-bits * len(codes) // 32))]


def unpack(dwords: Sequence[int], bits: int) -> list[int]:
    number = sum(int(dword) << 32 * i for i, dword in enumerate(dwords))
    return [number >> bits * i & ((1 << bits) - 1) for i in range(32 * len(dwords) // bits)]


def scale_bits(exponent: int) -> int:
    """An f32 of which only the exponent counts: its mantissa and sign are noise."""
    return 0x80123456 & 0x807FFFFF | (exponent + 127) << 23


# --- conversions


@pytest.mark.parametrize("name", EIGHT)
def test_float8_is_that_of_the_specification(on_gfx950: Run, name: str) -> None:
    codes = np.arange(256, dtype=np.uint32)
    got = on_gfx950(f"v_cvt_f32_{name} v1, v0", v={0: codes}).v(1, np.float32)
    np.testing.assert_array_equal(got, FORMATS[name].values())


def numbers(name: str) -> Array:
    """Every number of a format, the points half way between two and their neighbours, and what is not a number."""
    values = np.unique(FORMATS[name].values()[np.isfinite(FORMATS[name].values())])
    halves = (values[1:] + values[:-1]) / 2
    largest = FORMATS[name].largest
    beyond = np.array([largest * 1.01, largest * 1.2, largest * 4, np.inf, -np.inf, np.nan, 1e-30, -1e-40, -0.0])
    near = np.nextafter(halves.astype(np.float32), np.float32(np.inf))
    return np.concatenate([values, halves, near, beyond]).astype(np.float32)


@pytest.mark.parametrize("mode", [0x3F0, SATURATING], ids=["default", "saturating"])
@pytest.mark.parametrize("name", EIGHT)
@pytest.mark.diagonal(2)
def test_to_float8_rounds_to_nearest_even(on_gfx950: Run, name: str, mode: int) -> None:
    x = np.resize(numbers(name), -(-numbers(name).size // 64) * 64)
    got = on_gfx950(f"v_cvt_pk_{name}_f32 v2, v0, v1", v={0: x, 1: x[::-1].copy()}, mode=mode).v(2) & 0xFFFF
    expected = [FORMATS[name].nearest(float(v), saturates=mode == SATURATING) for v in x]
    np.testing.assert_array_equal(got & 0xFF, expected)
    np.testing.assert_array_equal(got >> 8, expected[::-1])


@pytest.mark.parametrize("name", EIGHT)
def test_a_quotient_beyond_f32_saturates_but_an_infinity_does_not(on_gfx950: Run, name: str) -> None:
    x, tiny = np.tile(np.float32([1e30, -1e30, np.inf, -np.inf]), 16), np.float32(2.0**-120)
    values = {0: x, 1: tiny, 2: np.uint32(0)}
    got = on_gfx950(f"v_cvt_scalef32_pk_{name}_f32 v2, v0, v0, v1", v=values, mode=SATURATING).v(2)[:4] & 0xFF
    largest = FORMATS[name].nearest(1e30, saturates=True)
    beyond = FORMATS[name].nearest(np.inf, saturates=True)
    assert got.tolist() == [largest, largest | 0x80, beyond, beyond | 0x80]


@pytest.mark.parametrize("exponent", [0, 3, -100])
@pytest.mark.parametrize("name", ["fp8", "bf8", "fp4"])
def test_pairs_become_wider_times_the_scale(on_gfx950: Run, name: str, exponent: int) -> None:
    f = FORMATS[name]
    rng = np.random.default_rng(1)
    x = rng.integers(0, 1 << 32, 256, dtype=np.uint32)
    places = 2 if f.bits == 8 else 4
    for place in range(places):
        select = f" op_sel:[{place & 1},{place >> 1},0]"
        text = "\n".join(
            f"v_cvt_scalef32_pk_{wide}_{name} {result}, v0, v1{select}"
            for wide, result in (("f32", "v[2:3]"), ("f16", "v4"), ("bf16", "v5"))
        )
        after = on_gfx950(text, v={0: x, 1: np.full(256, scale_bits(exponent), np.uint32)})
        for half in range(2):
            code = x >> (f.bits * (2 * place + half)) & ((1 << f.bits) - 1)
            value = f.values()[code] * 2.0**exponent
            np.testing.assert_array_equal(after.v(2 + half, np.float32), value.astype(np.float32))
            with np.errstate(over="ignore"):
                f16 = value.astype(np.float16)
            got = (after.v(4) >> 16 * half & 0xFFFF).astype(np.uint16)
            np.testing.assert_array_equal(got.view(np.float16), f16)
            as_bf16 = (after.v(5) >> 16 * half << 16).astype(np.uint32).view(np.float32)
            np.testing.assert_array_equal(as_bf16, value.astype(np.float32))  # a bf16 has all of their bits


@pytest.mark.parametrize("name", EIGHT)
def test_one_float8_becomes_wider(on_gfx950: Run, name: str) -> None:
    x = np.random.default_rng(2).integers(0, 1 << 32, 128, dtype=np.uint32)
    vectors = {0: x, 1: np.full(128, scale_bits(1), np.uint32), 3: np.full(128, 0xABCD1234, np.uint32)}
    for byte in range(4):
        low, high = byte & 1, byte >> 1
        text = f"v_cvt_scalef32_f32_{name} v2, v0, v1 op_sel:[{low},{high},0]"
        text += f"\nv_cvt_scalef32_f16_{name} v3, v0, v1 op_sel:[{low},{high},1]"
        after = on_gfx950(text, v=vectors)
        value = 2 * FORMATS[name].values()[x >> 8 * byte & 0xFF]
        np.testing.assert_array_equal(after.v(2, np.float32), value)
        with np.errstate(over="ignore"):
            expected = value.astype(np.float16)
        np.testing.assert_array_equal((after.v(3) >> 16).astype(np.uint16).view(np.float16), expected)
        assert (after.v(3) & 0xFFFF == 0x1234).all()


@pytest.mark.parametrize("name", ["fp8", "bf8", "fp4"])
@pytest.mark.diagonal(2)
def test_pairs_become_narrower_divided_by_the_scale(on_gfx950: Run, name: str) -> None:
    """The bytes that op_sel does not name stay."""
    f = FORMATS[name]
    x = np.resize(numbers(name), -(-numbers(name).size // 64) * 64)
    old, width = 0xA5C3_96F0, 2 * f.bits
    scaled = (x * np.float32(4)).astype(np.float32)
    vectors: dict[int, Array] = {0: scaled, 1: scaled[::-1].copy(), 2: np.full(x.size, scale_bits(2), np.uint32)}
    expected = np.array([f.nearest(float(v)) for v in x], np.uint32)
    pair = expected | expected[::-1] << f.bits
    for place in range(32 // width):
        select = f"op_sel:[0,0,0,{place}]" if f.bits == 8 else f"op_sel:[0,0,{place & 1},{place >> 1}]"
        after = on_gfx950(
            f"v_cvt_scalef32_pk_{name}_f32 v4, v0, v1, v2 {select}", v={**vectors, 4: np.full(x.size, old, np.uint32)}
        )
        mask = ((1 << width) - 1) << width * place
        np.testing.assert_array_equal(after.v(4), old & ~mask & 0xFFFFFFFF | pair << width * place)


@pytest.mark.parametrize("wide", ["f16", "bf16"])
@pytest.mark.parametrize("name", ["fp8", "bf8", "fp4"])
@pytest.mark.diagonal(2)
def test_pairs_of_halves_become_narrower(on_gfx950: Run, name: str, wide: str) -> None:
    f = FORMATS[name]
    raw = np.random.default_rng(3).integers(0, 1 << 16, (2, 512), dtype=np.uint32)
    if wide == "f16":
        values = raw.astype(np.uint16).view(np.float16).astype(np.float64)
    else:
        values = (raw << 16).view(np.float32).astype(np.float64)
    vectors = {0: raw[0] | raw[1] << 16, 1: np.full(512, scale_bits(-3), np.uint32), 2: np.zeros(512, np.uint32)}
    last = "op_sel:[0,0,1]" if f.bits == 8 else "op_sel:[0,0,1,0]"
    got = on_gfx950(f"v_cvt_scalef32_pk_{name}_{wide} v2, v0, v1 {last}", v=vectors).v(2)
    shift = 16 if f.bits == 8 else 8
    low, high = ([f.nearest(float(v) * 8) for v in row] for row in values)
    np.testing.assert_array_equal(got, (np.array(low) | np.array(high) << f.bits) << shift)


@pytest.mark.parametrize("name", EIGHT)
def test_stochastic_rounding_goes_up_as_often_as_the_number_is_near(on_gfx950: Run, name: str) -> None:
    f = FORMATS[name]
    low = 1.0
    high = f.value(f.nearest(low) + 1)
    x = np.full(1024, low + 0.25 * (high - low), np.float32)
    random = (np.arange(1024, dtype=np.uint32) << 22).astype(np.uint32)
    vectors = {0: x * 2, 1: random, 2: np.full(1024, scale_bits(1), np.uint32), 3: np.full(1024, 0x11111111, "u4")}
    got = on_gfx950(f"v_cvt_scalef32_sr_{name}_f32 v3, v0, v1, v2 op_sel:[0,0,1,1]", v=vectors).v(3)
    assert (got & 0xFFFFFF == 0x111111).all()
    assert np.bincount(got >> 24)[f.nearest(high)] == 256
    assert np.bincount(got >> 24)[f.nearest(low)] == 768


@pytest.mark.parametrize("wide", ["f16", "bf16"])
@pytest.mark.parametrize("name", EIGHT)
def test_stochastic_rounding_of_a_half(on_gfx950: Run, name: str, wide: str) -> None:
    """Without random bits it cuts off."""
    x = {"f16": 0x3DFF, "bf16": 0x3FBF}[wide]  # just below 1.5
    vectors = {0: np.full(64, 0xFFFF0000 | x, "u4"), 1: np.zeros(64, "u4"), 2: np.full(64, scale_bits(0), "u4"), 3: 0}
    got = on_gfx950(f"v_cvt_scalef32_sr_{name}_{wide} v3, v0, v1, v2", v={k: np.asarray(v) for k, v in vectors.items()})
    below = FORMATS[name].nearest(1.375 if name == "fp8" else 1.25)
    assert (got.v(3) == below).all()


@pytest.mark.parametrize("wide", ["f32", "f16", "bf16"])
@pytest.mark.parametrize("name", ["fp6", "bf6"])
@pytest.mark.diagonal(2)
def test_blocks_become_wider_and_narrower(on_gfx950: Run, name: str, wide: str) -> None:
    f = FORMATS[name]
    codes = np.random.default_rng(4).integers(0, 64, (64, 32))
    dwords = np.array([pack(row, 6) for row in codes], np.uint32).T
    vectors = dict(enumerate(dwords)) | {6: np.full(64, scale_bits(5), np.uint32)}
    registers = 32 if wide == "f32" else 16
    after = on_gfx950(f"v_cvt_scalef32_pk32_{wide}_{name} v[8:{7 + registers}], v[0:5], v6", v=vectors)
    raw = np.array([after.v(8 + i) for i in range(registers)], np.uint32)
    if wide == "f32":
        got = raw.view(np.float32)
    else:
        halves = np.stack([raw & 0xFFFF, raw >> 16], axis=1).reshape(32, 64)
        got = halves.astype(np.uint16).view(np.float16) if wide == "f16" else (halves << 16).view(np.float32)
    np.testing.assert_array_equal(got.T, f.values()[codes] * 32)
    back = {8 + i: raw[i] for i in range(registers)} | {6: vectors[6]}
    if wide == "f32":  # its two operands alternate
        back = {8 + i // 2 + 16 * (i % 2): raw[i] for i in range(32)} | {6: vectors[6]}
        text = f"v_cvt_scalef32_2xpk16_{name}_f32 v[0:5], v[8:23], v[24:39], v6"
    else:
        text = f"v_cvt_scalef32_pk32_{name}_{wide} v[0:5], v[8:23], v6"
    after = on_gfx950(text, v=back)
    np.testing.assert_array_equal([after.v(i) for i in range(6)], dwords)


def test_a_scale_of_all_ones_is_nan(on_gfx950: Run) -> None:
    vectors = {0: np.zeros(64, "u4"), 1: np.full(64, 0x7F800000, "u4")}
    assert np.isnan(on_gfx950("v_cvt_scalef32_f32_fp8 v2, v0, v1", v=vectors).v(2, np.float32)).all()


def test_halves_with_random_bits(on_gfx950: Run) -> None:
    x = np.array([1 + 2.0**-9, 1 + 3 * 2.0**-12, np.inf, np.nan], np.float32).repeat(16)
    random = np.tile(np.array([0, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF], np.uint32), 16)
    text = "v_cvt_sr_bf16_f32 v2, v0, v1\nv_cvt_sr_f16_f32 v2, v0, v1 op_sel:[0,0,1]\nv_cvt_f32_bf16 v3, v2"
    after = on_gfx950(text, v={0: x, 1: random, 2: np.zeros(64, "u4")})
    f16 = (after.v(2) >> 16).astype(np.uint16).view(np.float16).astype(np.float64)
    # A quarter and three quarters of the way to the next number.
    np.testing.assert_array_equal(after.v(3, np.float32)[:4], 1 + 2.0**-7 * np.array([0, 0, 0, 1]))
    np.testing.assert_array_equal(f16[16:20], 1 + 2.0**-10 * np.array([0, 1, 1, 1]))
    assert np.isinf(after.v(3, np.float32)[32:48]).all()
    assert np.isnan(after.v(3, np.float32)[48:]).all()
    assert np.isinf(f16[32:48]).all()
    assert np.isnan(f16[48:]).all()


def test_pairs_of_f16(on_gfx950: Run) -> None:
    x = np.random.default_rng(5).standard_normal(128).astype(np.float32) * 100
    got = on_gfx950("v_cvt_pk_f16_f32 v2, v0, v1", v={0: x[:64], 1: x[64:]}).v(2)
    np.testing.assert_array_equal(got.view(np.float16).reshape(64, 2).T, x.reshape(2, 64).astype(np.float16))


# --- products with scales


def product_of_scaled_blocks(run: Run, m: int, a_name: str, b_name: str, *, scaled: bool) -> tuple[Array, Array]:
    """What the instruction gives, and what a product in f64 gives, of random codes and scales."""
    rng = np.random.default_rng([m, *a_name.encode(), *b_name.encode()])
    k = 2048 // m
    vectors: dict[int, Array] = {}
    matrices, texts = [], []
    for first, name in ((0, a_name), (8, b_name)):
        f = FORMATS[name]
        pool = np.flatnonzero(np.isfinite(f.values()) & (np.abs(f.values()) < 64))
        codes = rng.choice(pool, (m, k))
        exponents = rng.integers(-3, 4, (m, k // 32))
        held = np.zeros((64, 32), int)
        for row, column in np.ndindex(m, k):
            lane, element = place(row, column, m, k, f.bits)
            held[lane, element] = codes[row, column]
        dwords = np.array([pack(lane, f.bits) for lane in held], np.uint32).T
        vectors |= {first + i: dword for i, dword in enumerate(dwords)}
        texts.append(f"v[{first}:{first + len(dwords) - 1}]")
        scales = (exponents[LANE % m, LANE // m] + 127).astype(np.uint32)
        vectors[50 + first] = scales << 8 | 0xAA0000AA if first == 0 else scales << 24 | 0x00BBBBBB
        matrices.append(f.values()[codes] * (2.0 ** exponents.repeat(32, axis=1) if scaled else 1))
    count = m * m // 64
    c = rng.integers(-8, 8, (m, m)).astype(np.float32)
    for i, lane in np.ndindex(count, 64):
        row, column = result_place(i, lane, m)
        vectors.setdefault(16 + i, np.zeros(64, np.float32))[lane] = c[row, column]
    result = f"v[16:{15 + count}]"
    formats = f"cbsz:{CODES_IN_CBSZ.index(a_name)} blgp:{CODES_IN_CBSZ.index(b_name)}"
    operands = f"{result}, {texts[0]}, {texts[1]}, {result}"
    if scaled:  # byte 1 of A's scales, byte 3 of B's
        text = f"v_mfma_scale_f32_{m}x{m}x{k}_f8f6f4 {operands}, v50, v58 op_sel:[1,1,0] op_sel_hi:[0,1,0] {formats}"
    else:
        text = f"v_mfma_f32_{m}x{m}x{k}_f8f6f4 {operands} {formats}"
    after = run(text, v=vectors)
    got = np.zeros((m, m), np.float32)
    for i, lane in np.ndindex(count, 64):
        got[result_place(i, lane, m)] = after.v(16 + i, np.float32)[lane]
    return got, (matrices[0] @ matrices[1].T + c).astype(np.float32)


def place(row: int, k: int, m: int, depth: int, bits: int) -> tuple[int, int]:
    """Lane, and element in the lane: 32 consecutive k, or for 8 bits two times 16."""
    if bits < 8:
        return row + m * (k // 32), k % 32
    half = depth // 2
    return row + m * (k % half // 16), k % 16 + 16 * (k // half)


def result_place(register: int, lane: int, m: int) -> tuple[int, int]:
    groups = 64 // m
    return 4 * groups * (register // 4) + 4 * (lane // m) + register % 4, lane % m


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        *("16 fp8_fp8 scaled", "16 fp4_fp4 scaled", "16 fp8_fp4 scaled", "16 bf6_bf8 scaled", "16 fp6_fp4 plain"),
        *("32 fp8_fp8 scaled", "32 bf8_fp6 scaled", "32 fp4_fp4 plain", "32 fp4_bf8 plain"),
    ],
)
@pytest.mark.diagonal(3)
def test_product_of_scaled_blocks(on_gfx950: Run, text: str) -> None:
    """All sums are exact in f64, and so have one rounding."""
    m, formats, kind = text.split()
    a_name, b_name = formats.split("_")
    got, expected = product_of_scaled_blocks(on_gfx950, int(m), a_name, b_name, scaled=kind == "scaled")
    np.testing.assert_array_equal(got, expected)


def test_a_nan_scale_reaches_its_row(on_gfx950: Run) -> None:
    one = np.full(64, 0x22222222, np.uint32)  # 1.0 in fp4
    scales = np.full(64, 127, np.uint32)
    scales[16 + 5] = 255  # row 5, elements 32 to 63
    text = "v_mfma_scale_f32_16x16x128_f8f6f4 v[8:11], v[0:3], v[0:3], 0, v4, v5 cbsz:4 blgp:4"  # op_sel_hi: zeros
    after = on_gfx950(text, v=dict.fromkeys(range(4), one) | {4: scales, 5: np.full(64, 127, np.uint32)})
    got = np.array([[after.v(8 + i, np.float32)[16 * g] for i in range(4)] for g in range(4)]).reshape(16)
    assert np.isnan(got[5])
    assert (np.delete(got, 5) == 128).all()


def test_formats_that_do_not_exist_are_refused(on_gfx950: Run) -> None:
    with pytest.raises(UnknownInstruction, match="f8f6f4"):
        on_gfx950("v_mfma_f32_16x16x128_f8f6f4 v[8:11], v[0:7], v[0:7], 0 cbsz:5")


# --- integers and bits


def test_any_function_of_three_bits(on_gfx950: Run) -> None:
    x, y, z = np.random.default_rng(6).integers(0, 1 << 32, (3, 64), dtype=np.uint32)
    for table in (0, 1, 0x96, 0xB1, 0xE8, 0xF0, 0xFF):
        text = f"v_bitop3_b32 v3, v0, v1, v2 bitop3:{table:#x}\nv_bitop3_b16 v4, v0, v1, v2 bitop3:{table:#x}"
        after = on_gfx950(text, v={0: x, 1: y, 2: z, 4: np.full(64, 0xAAAA0000, "u4")})
        expected = np.zeros(64, np.uint32)
        for bit in range(32):
            entry = (x >> bit & 1) << 2 | (y >> bit & 1) << 1 | z >> bit & 1
            expected |= (table >> entry & 1).astype(np.uint32) << bit
        np.testing.assert_array_equal(after.v(3), expected)
        np.testing.assert_array_equal(after.v(4), expected & 0xFFFF | 0xAAAA0000)


def test_shifted_and_saturated_bytes(on_gfx950: Run) -> None:
    x, y = np.random.default_rng(7).integers(-5000, 5000, (2, 64)).astype(np.int32)
    amount = np.tile(np.arange(32, 48, dtype=np.uint32), 4)  # of which five bits count
    old = np.full(64, 0x12345678, "u4")
    for letter, low, high in (("i", -128, 127), ("u", 0, 255)):
        text = f"v_ashr_pk_{letter}8_i32 v3, v0, v1, v2\nv_ashr_pk_{letter}8_i32 v4, v0, v1, v2 op_sel:[0,0,0,1]"
        after = on_gfx950(text, v={0: x, 1: y, 2: amount, 3: old, 4: old})
        pair = [np.clip(v >> (amount & 31).astype(np.int32), low, high) & 0xFF for v in (x, y)]
        expected = (pair[0] | pair[1] << 8).astype(np.uint32)
        np.testing.assert_array_equal(after.v(3), expected | 0x12340000)
        np.testing.assert_array_equal(after.v(4), expected << 16 | 0x5678)


def test_random_numbers(on_gfx950: Run) -> None:
    x = np.array([0, 1, 0x40000000, 0x80000000, 0xFFFFFFFF, 12345] * 11, np.uint32)[:64]
    expected = [(int(v) << 1 ^ (0xC5 if v >> 31 else 0)) & 0xFFFFFFFF for v in x]
    np.testing.assert_array_equal(on_gfx950("v_prng_b32 v1, v0", v={0: x}).v(1), expected)


# --- floats


def test_minimum_and_maximum_of_three(on_gfx950: Run) -> None:
    """A NaN wins, and -0 is less than +0."""
    pool = np.array([0.0, -0.0, 1.5, -2.0, np.inf, -np.inf, np.nan, 3.0], np.float32)
    x, y, z = (pool[i] for i in np.random.default_rng(8).integers(0, 8, (3, 256)))
    h = {10 + i: np.stack([v, np.roll(v, 1)], 1).astype(np.float16).view("u4")[:, 0] for i, v in enumerate((x, y, z))}
    for name, choose in (("minimum", min), ("maximum", max)):
        text = f"v_{name}3_f32 v3, v0, v1, v2\nv_pk_{name}3_f16 v13, v10, v11, v12"
        after = on_gfx950(text, v={0: x, 1: y, 2: z, **h})
        expected = []
        for triple in zip(x, y, z, strict=True):
            has_nan = any(np.isnan(v) for v in triple)
            expected.append(np.nan if has_nan else choose(triple, key=lambda v: (v, not np.signbit(v))))
        wanted = np.array(expected, np.float32)
        assert_same(after.v(3, np.float32), wanted)
        halves = after.v(13).view(np.float16).reshape(-1, 2)
        assert_same(halves[:, 0].astype(np.float32), wanted)
        assert_same(halves[:, 1].astype(np.float32), np.roll(wanted, 1))


def assert_same(got: Array, expected: Array) -> None:
    """Equal numbers of equal sign, or both NaN."""
    np.testing.assert_array_equal(got, expected)
    valid = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(got[valid]), np.signbit(expected[valid]))


def test_dot_product_of_bf16(on_gfx950: Run) -> None:
    rng = np.random.default_rng(9)
    values = rng.integers(-50, 50, (4, 64)).astype(np.float32)
    bits = values.view(np.uint32) >> 16
    total = rng.integers(-100, 100, 64).astype(np.float32)
    vectors = {0: bits[0] | bits[1] << 16, 1: bits[2] | bits[3] << 16, 2: total, 4: total}
    text = "v_dot2_f32_bf16 v3, v0, v1, v2\nv_dot2c_f32_bf16 v4, v0, v1\nv_dot2_f32_bf16 v5, v0, v1, v2 neg_lo:[1,0,0]"
    text += "\nv_mov_b32 v6, v2\nv_dot2c_f32_bf16 v6, 0.5, v1\nv_dot2_f32_bf16 v7, 0.5, v1, v2 op_sel_hi:[0,1,1]"
    after = on_gfx950(text, v=vectors)
    low, high = values[0] * values[2], values[1] * values[3]
    np.testing.assert_array_equal(after.v(3, np.float32), total + low + high)
    np.testing.assert_array_equal(after.v(4, np.float32), total + low + high)
    np.testing.assert_array_equal(after.v(5, np.float32), total - low + high)
    # a constant has a bf16 in its low half, and zeros above, unless op_sel_hi says to take that half twice
    np.testing.assert_array_equal(after.v(6, np.float32), total + values[2] / 2)
    np.testing.assert_array_equal(after.v(7, np.float32), total + values[2] / 2 + values[3] / 2)


# --- between lanes, and LDS


@pytest.mark.parametrize("lanes", [16, 32])
def test_rows_change_places(on_gfx950: Run, lanes: int) -> None:
    """The odd rows of the first register with the even rows of the second."""
    x, y = (1000 + LANE).astype("u4"), (2000 + LANE).astype("u4")
    after = on_gfx950(f"v_permlane{lanes}_swap_b32 v0, v1", v={0: x, 1: y})
    is_odd = LANE & lanes != 0
    np.testing.assert_array_equal(after.v(0), np.where(is_odd, y[LANE ^ lanes], x))
    np.testing.assert_array_equal(after.v(1), np.where(is_odd, y, x[LANE ^ lanes]))


@pytest.mark.parametrize(("modifier", "missing"), [("", None), (" bound_ctrl:1", 0), (" fi:1", "read")])
def test_rows_change_places_with_inactive_lanes(on_gfx950: Run, modifier: str, missing: Any) -> None:
    x, y = (1000 + LANE).astype("u4"), (2000 + LANE).astype("u4")
    after = on_gfx950(f"v_permlane32_swap_b32_e64 v0, v1{modifier}", v={0: x, 1: y}, exec_bits=0xFFFF0000_00000000)
    np.testing.assert_array_equal(after.v(0)[:48], x[:48])
    expected = y[16:32] if missing == "read" else np.zeros(16) if missing == 0 else x[48:]
    np.testing.assert_array_equal(after.v(0)[48:], expected)
    np.testing.assert_array_equal(after.v(1), y)


@pytest.mark.parametrize("bits", [16, 8, 6, 4])
@pytest.mark.diagonal(2)
def test_a_matrix_is_read_transposed(on_gfx950: Run, bits: int) -> None:
    """Each 16 lanes read rows of 16 elements; lane i gets column i."""
    dwords = 3 if bits == 6 else 2
    each = 32 * dwords // bits
    rows = np.random.default_rng(10).integers(0, 1 << bits, (4, each, 16))
    # The lanes of a row, and the rows, lie in LDS one after the other.
    held = [unpack_row for group in rows for unpack_row in group.reshape(-1, each)]
    content = np.array([pack(lane, bits) for lane in held], np.uint32)
    lds = b"\0" * 16 + content.tobytes()
    text = f"ds_read_b{32 * dwords}_tr_b{bits} v[2:{1 + dwords}], v0 offset:16"
    after = on_gfx950(text, v={0: (LANE * 4 * dwords).astype("u4")}, lds=lds)
    for lane in range(64):
        got = unpack([after.v(2 + i)[lane] for i in range(dwords)], bits)
        assert got == list(rows[lane // 16, :, lane % 16])


@pytest.mark.parametrize("dwords", [3, 4])
def test_wide_loads_go_straight_into_lds(on_gfx950: Run, dwords: int) -> None:
    """Also beyond the first 64 KiB. The lanes' dwords lie in LDS one after the other."""
    source = np.arange(64 * 4, dtype=np.uint32)
    memory = Memory()
    address = memory.map_array(source, name="source")
    place = 0x10100
    offsets = (16 * (63 - LANE)).astype(np.uint32)
    resource = address | (source.nbytes << 64) | (0x20000 << 96)
    scalars = {4 + i: resource >> 32 * i & 0xFFFFFFFF for i in range(4)} | {8: address, 10: place}
    text = f"s_mov_b32 m0, s10\nbuffer_load_dwordx{dwords} v0, s[4:7], 0 offen lds\n"
    text += f"s_add_u32 m0, s10, 0x1000\nglobal_load_lds_dwordx{dwords} v0, s[8:9]\ns_waitcnt vmcnt(0)"
    after = on_gfx950(text, v={0: offsets}, s=scalars, memory=memory, lds=bytes(place + 0x2000))
    expected = source.reshape(64, 4)[::-1, :dwords].reshape(-1)
    for start in (place, place + 0x1000):
        got = after.waves.lds[start : start + expected.nbytes].view(np.uint32)
        np.testing.assert_array_equal(got, expected)


def test_the_older_gpu_does_not_have_them(run: Run) -> None:
    with pytest.raises(UnknownInstruction, match="v_bitop3_b32"):
        run("v_bitop3_b32 v3, v0, v1, v2 bitop3:0x96")
