"""Stochastic rounding of several elements with one random number, and UE5M3, against numbers listed one by one.

The references take the exact numbers of a format, and find the two neighbours of each element among them: the random
number, as a fraction of their distance, is added to the element, and what lies above is cut off. Each element takes the
random number that follows the one before.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from flydsl.simulator.arrays import Array

Run = Callable[..., Any]
SATURATING = 0x3F0 | 1 << 23  # MODE.FP16_OVFL


@dataclass(frozen=True)
class Format:
    """The magnitudes of a format by their codes, ascending; after them NaN, or an infinity, or nothing."""

    exponent_bits: int
    mantissa_bits: int
    bias: int
    numbers: int
    has_sign: bool = True

    @property
    def bits(self) -> int:
        return self.exponent_bits + self.mantissa_bits + self.has_sign

    def magnitude(self, code: int) -> float:
        exponent, mantissa = divmod(code, 1 << self.mantissa_bits)
        whole = mantissa / (1 << self.mantissa_bits) + (exponent > 0)
        return float(whole * 2.0 ** (max(exponent, 1) - self.bias))

    def stochastic(self, x: float, random: int) -> int:
        """The code of a finite number below the largest."""
        magnitude = abs(float(x))
        below = max(code for code in range(self.numbers) if self.magnitude(code) <= magnitude)
        step = self.magnitude(below + 1) - self.magnitude(below)
        dropped = 23 - self.mantissa_bits
        fraction = int((magnitude - self.magnitude(below)) / step * 2**dropped)
        code = below + (fraction + (random >> (32 - dropped)) >= 2**dropped)
        return code | (int(np.signbit(x)) << (self.bits - 1) if self.has_sign else 0)

    def nearest(self, x: float) -> int:
        """The code of a number without a sign; 255 beyond half a step behind the largest."""
        codes = [c for c in range(self.numbers + 1) if abs(self.magnitude(c) - abs(x)) <= 1e30]
        return min(codes, key=lambda c: (abs(self.magnitude(c) - abs(x)), c % 2))


FORMATS = {
    "fp8": Format(4, 3, 7, 0x7F),
    "bf8": Format(5, 2, 15, 0x7C),
    "fp6": Format(2, 3, 1, 0x20),
    "bf6": Format(3, 2, 3, 0x20),
    "fp4": Format(2, 1, 1, 8),
    "f16": Format(5, 10, 15, 0x7C00),
}
UNSIGNED = Format(5, 3, 15, 0xFF, has_sign=False)


def randoms(first: int, count: int) -> list[int]:
    """A random number and those that v_prng_b32 makes of it, one after the other."""
    found = [first]
    while len(found) < count:
        found.append((found[-1] << 1 & 0xFFFFFFFF) ^ (0xC5 if found[-1] >> 31 else 0))
    return found


def elements(count: int, lanes: int, wide: str, scale: float) -> Array:
    """(elements, lanes) f32 that `wide` has exactly, of magnitudes from 2**-5 to 1.75 times the scale."""
    rng = np.random.default_rng(count)
    fractions = rng.integers(0, 128 if wide == "bf16" else 1024, (count, lanes)) / (128 if wide == "bf16" else 1024)
    signs = rng.choice([-1.0, 1.0], (count, lanes))
    return (signs * (1 + fractions * 0.75) * 2.0 ** rng.integers(-5, 1, (count, lanes)) * scale).astype(np.float32)


def narrowed(values: Array, wide: str) -> Array:
    """The same as `wide` has them."""
    if wide == "f16":
        return values.astype(np.float16).astype(np.float32)
    return (values.view(np.uint32) & 0xFFFF0000).view(np.float32) if wide == "bf16" else values


def registers_of(values: Array, wide: str) -> list[Array]:
    if wide == "f32":
        return list(values.view(np.uint32))
    halves = values.astype(np.float16).view(np.uint16) if wide == "f16" else (values.view(np.uint32) >> 16)
    halves = halves.astype(np.uint32)
    return [low | high << 16 for low, high in zip(halves[::2], halves[1::2], strict=True)]


def packed(codes: Array, bits: int) -> list[list[int]]:
    """The dwords of codes (elements, lanes)."""
    words = []
    for lane in codes.T.tolist():
        whole = sum(code << bits * i for i, code in enumerate(lane))
        words.append([whole >> 32 * i & 0xFFFFFFFF for i in range(len(lane) * bits // 32)])
    return np.array(words).T.tolist()


BLOCKS = [("gfx1250", 16 if "6" in name else 8, name) for name in ("fp8", "bf8", "fp6", "bf6", "fp4")]
BLOCKS += [("gfx950", 32, name) for name in ("fp6", "bf6")]


def span(first: int, count: int) -> str:
    return f"v[{first}:{first + count - 1}]" if count > 1 else f"v{first}"


@pytest.mark.slow
@pytest.mark.parametrize("wide", ["f32", "f16", "bf16"])
@pytest.mark.parametrize(("arch", "count", "name"), BLOCKS)
@pytest.mark.diagonal(3)
def test_each_element_of_a_block_has_a_random_number_of_its_own(
    run: Run, arch: str, count: int, name: str, wide: str
) -> None:
    lanes, format_ = 64 if arch == "gfx950" else 32, FORMATS[name]
    values = narrowed(elements(count, lanes, wide, 4.0), wide)
    seeds = np.random.default_rng(7).integers(0, 1 << 32, lanes, np.uint32)
    sources = registers_of(values, wide)
    v = {40 + i: register for i, register in enumerate(sources)} | {80: seeds, 81: np.full(lanes, 4.0, np.float32)}
    result = count * format_.bits // 32
    text = f"v_cvt_scalef32_sr_pk{count}_{name}_{wide} {span(90, result)}, {span(40, len(sources))}, v80, v81"
    found = run(text, v=v, arch=arch)
    codes = np.zeros((count, lanes), object)
    for lane in range(lanes):
        for i, random in enumerate(randoms(int(seeds[lane]), count)):
            codes[i, lane] = format_.stochastic(values[i, lane] / 4.0, random)
    assert [found.v(90 + i).tolist() for i in range(result)] == packed(codes, format_.bits)


@pytest.mark.parametrize("wide", ["f32", "f16", "bf16"])
def test_two_elements_of_4_bits_replace_a_byte(run: Run, wide: str) -> None:
    values = narrowed(elements(2, 64, wide, 1.0), wide)
    seeds, old = np.random.default_rng(7).integers(0, 1 << 32, (2, 64), np.uint32)
    sources = registers_of(values, wide)
    v = {4 + i: r for i, r in enumerate(sources)} | {8: seeds, 9: np.ones(64, np.float32), 10: old}
    text = f"v_cvt_scalef32_sr_pk_fp4_{wide} v10, {span(4, len(sources))}, v8, v9 op_sel:[0,0,0,1]"
    found = run(text, v=v, arch="gfx950").v(10)
    for lane in range(64):
        first, second = randoms(int(seeds[lane]), 2)
        low, high = (FORMATS["fp4"].stochastic(values[i, lane], r) for i, r in enumerate((first, second)))
        assert found[lane] == int(old[lane]) & 0xFF00FFFF | (low | high << 4) << 16


@pytest.mark.slow
@pytest.mark.parametrize("name", ["f16", "bf16"])
def test_pairs_of_16_bits(run: Run, name: str) -> None:
    values = np.random.default_rng(3).uniform(-3, 3, (2, 32)).astype(np.float32)
    seeds = np.random.default_rng(7).integers(0, 1 << 32, 32, np.uint32)
    found = run(f"v_cvt_sr_pk_{name}_f32 v3, v0, v1, v2", v={0: values[0], 1: values[1], 2: seeds}, arch="gfx1250").v(3)
    for lane in range(32):
        for i, random in enumerate(randoms(int(seeds[lane]), 2)):
            bits = int(values[i, lane].view(np.uint32))
            want = (
                (bits + (random >> 16)) >> 16 & 0xFFFF
                if name == "bf16"
                else FORMATS["f16"].stochastic(values[i, lane], random)
            )
            assert int(found[lane]) >> 16 * i & 0xFFFF == want


# --- UE5M3


def test_every_code_of_ue5m3(run: Run) -> None:
    codes = np.arange(256, dtype=np.uint32)
    text = "v_cvt_f32_fp8 v1, v0 byte_sel:2 clamp\nv_cvt_pk_fp8_f32 v2, -v1, v1 op_sel:[0,0,1] clamp"
    found = run(text, v={0: codes << 16 | 0x55, 2: np.full(256, 0xABCD, np.uint32)}, arch="gfx1250")
    values = found.v(1, np.float32)
    assert np.isnan(values[255])
    assert values[:255].tolist() == [UNSIGNED.magnitude(code) for code in range(255)]
    assert found.v(2).tolist() == [0xABCD | code << 16 | code << 24 for code in range(256)]


NUMBERS = (0.0, -0.0, 2.0**-18, 2.0**-18 * 1.01, 1.5 * 2.0**-17, -1.0, 1.0625, 1.1875, 114688.0, 122880.0)


def test_ue5m3_is_rounded_to_nearest_and_even(run: Run) -> None:
    x = np.resize(np.array([*NUMBERS, *np.random.default_rng(2).uniform(-3e4, 3e4, 54)], np.float32), 64)
    found = run("v_cvt_pk_fp8_f32 v1, v0, v0 clamp\nv_cvt_pk_fp8_f16 v2, v3 clamp",
                v={0: x, 3: x.astype(np.float16).view(np.uint16).astype(np.uint32)}, arch="gfx1250")  # fmt: skip
    want = [UNSIGNED.nearest(float(v)) for v in x]
    assert (found.v(1) & 0xFFFF).tolist() == [code | code << 8 for code in want]
    finite = np.isfinite(x.astype(np.float16))
    halves = [UNSIGNED.nearest(float(v)) for v in x.astype(np.float16)[finite]]
    assert (found.v(2) & 0xFF)[finite].tolist() == halves


@pytest.mark.parametrize(("mode", "beyond"), [(0x3F0, 0xFF), (SATURATING, 0xFE)])
def test_beyond_the_largest_ue5m3(run: Run, mode: int, beyond: int) -> None:
    x = np.resize(np.array([122881.0, 3e38, np.inf, -np.inf, np.nan], np.float32), 32)
    text = "v_cvt_pk_fp8_f32 v1, v0, v0 clamp\nv_cvt_sr_fp8_f32 v2, v0, v3 byte_sel:1 clamp"
    found = run(text, v={0: x, 3: np.full(32, 0xFFFFFFFF, np.uint32)}, mode=mode, arch="gfx1250")
    codes = [0xFF if np.isnan(v) else beyond for v in x]
    assert (found.v(1) & 0xFF).tolist() == codes
    assert (found.v(2) >> 8 & 0xFF).tolist() == codes


def test_ue5m3_rounded_at_random(run: Run) -> None:
    rng = np.random.default_rng(4)
    x = (rng.uniform(1, 2, 64) * 2.0 ** rng.integers(-13, 16, 64)).astype(np.float32)
    seeds = rng.integers(0, 1 << 32, 64, np.uint32)
    found = run("v_cvt_sr_fp8_f32 v2, v0, v1 byte_sel:3 clamp", v={0: x, 1: seeds}, arch="gfx1250").v(2)
    assert (found >> 24).tolist() == [UNSIGNED.stochastic(v, int(r)) for v, r in zip(x, seeds, strict=True)]
