"""8-bit floats, all of them, wherever they lie in a register; the other conversions are in test_differential."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from flydsl.simulator.arrays import Array

Run = Callable[..., Any]
SATURATE = 0x3F0 | 1 << 23  # the MODE register with FP16_OVFL


def same(got: Array, expected: Array) -> None:
    np.testing.assert_array_equal(np.isnan(got), np.isnan(expected))
    bits = f"u{got.dtype.itemsize}"
    number = ~np.isnan(expected)
    np.testing.assert_array_equal(got[number].view(bits), expected.astype(got.dtype)[number].view(bits))


FORMATS = {"fp8": (4, 3, 8), "bf8": (5, 2, 16)}


def float8_value(code: int, name: str) -> float:
    """FNUZ: no infinities, 0x80 is NaN."""
    _, mantissa_bits, bias = FORMATS[name]
    if code == 0x80:
        return math.nan
    exponent, mantissa = (code & 0x7F) >> mantissa_bits, code & ((1 << mantissa_bits) - 1)
    sign = -1.0 if code & 0x80 else 1.0
    if exponent == 0:
        return sign * mantissa * 2.0 ** (1 - bias - mantissa_bits)
    return sign * (1 + mantissa / (1 << mantissa_bits)) * 2.0 ** (exponent - bias)


@pytest.mark.parametrize("name", FORMATS)
def test_every_8_bit_float_is_decoded(run: Run, name: str) -> None:
    codes = np.arange(256, dtype=np.uint32)
    expected = np.array([float8_value(c, name) for c in range(256)], np.float32)
    packed = codes | (255 - codes) << 8
    text = f"v_cvt_f32_{name} v1, v0\nv_cvt_f32_{name}_sdwa v2, v0 src0_sel:BYTE_1\nv_cvt_pk_f32_{name} v[4:5], v0\n"
    text += f"v_lshlrev_b32 v6, 16, v0\nv_cvt_pk_f32_{name}_sdwa v[8:9], v6 src0_sel:WORD_1"
    after = run(text, v={0: packed})
    for register, values in ((1, expected), (2, expected[::-1]), (4, expected), (5, expected[::-1])):
        same(after.v(register, np.float32), values)
    same(after.v(8, np.float32), expected)


def nearest_float8(x: float, name: str, saturate: bool) -> int:
    """By searching all codes: the nearest one, the even one of two; beyond the largest as if there were one more."""
    if math.isnan(x):
        return 0x80
    values = [(float8_value(c, name), c) for c in range(128)]
    largest, step = values[-1][0], values[-1][0] - values[-2][0]
    magnitude = min(abs(x), 1e6)
    code = min([*values, (largest + step, 128)], key=lambda vc: (abs(vc[0] - magnitude), vc[1] & 1))[1]
    if code == 128:
        if not saturate:
            return 0x80
        code = 127
    return code | (0x80 if math.copysign(1, x) < 0 and code else 0)


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("saturate", [False, True])
def test_8_bit_floats_round_to_nearest_even(run: Run, name: str, saturate: bool) -> None:
    rng = np.random.default_rng(3)
    x = (rng.standard_normal(448) * np.exp2(rng.integers(-20, 18, 448))).astype("f4")
    middles = [(float8_value(c, name) + float8_value(c + 1, name)) / 2 for c in range(127)]
    special = np.array([0, -0.0, np.inf, -np.inf, np.nan, 240, 248, 247.9, 57344, 61440, -61439, 1e38, 1e-40], "f4")
    x = np.resize(np.concatenate([x, special, np.array(middles, "f4")]), 640)
    text = f"v_mov_b32 v2, -1\nv_cvt_pk_{name}_f32 v2, v0, v1\n"
    text += f"v_mov_b32 v3, 0\nv_cvt_pk_{name}_f32 v3, v1, v0 op_sel:[0,0,1]"
    after = run(text, v={0: x, 1: -x}, mode=SATURATE if saturate else 0x3F0)
    low = np.array([nearest_float8(float(v), name, saturate) for v in x], "u4")
    high = np.array([nearest_float8(-float(v), name, saturate) for v in x], "u4")
    np.testing.assert_array_equal(after.v(2), low | high << 8 | 0xFFFF0000)
    np.testing.assert_array_equal(after.v(3), (high | low << 8) << 16)


@pytest.mark.parametrize("name", FORMATS)
def test_stochastic_rounding_brackets_the_number_and_places_a_byte(run: Run, name: str) -> None:
    rng = np.random.default_rng(4)
    x = (rng.standard_normal(512) * np.exp2(rng.integers(-14, 5, 512))).astype("f4")
    for random, direction in ((0, "down"), (0xFFFFFFFF, "up")):
        after = run(
            f"v_cvt_sr_{name}_f32 v2, v0, v1 op_sel:[0,0,0,1]", v={0: x, 1: np.full(512, random, "u4"), 2: 0x44332211}
        )
        assert ((after.v(2) & 0xFF00FFFF) == 0x44002211).all()
        got = np.abs([float8_value(int(c), name) for c in after.v(2) >> 16 & 0xFF])
        magnitudes = np.array([float8_value(c, name) for c in range(128)])
        below = np.searchsorted(magnitudes, np.abs(x.astype("f8")), side="right") - 1
        if direction == "down":
            np.testing.assert_array_equal(got, magnitudes[below])
        else:
            exactly = magnitudes[below] == np.abs(x)
            assert (got[~exactly] >= magnitudes[below][~exactly]).all()
            assert (got <= magnitudes[below + 1]).all()
            assert np.mean(got[~exactly] == magnitudes[below + 1][~exactly]) > 0.9
