"""Vector float instructions against exact rational arithmetic and the rules of the ISA document."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from flydsl.simulator.arrays import Array

Run = Callable[..., Any]
DTYPE = {"f16": np.float16, "f32": np.float32, "f64": np.float64}
MANTISSA = {"f16": 10, "f32": 23, "f64": 52}
EXPONENT = {"f16": 5, "f32": 8, "f64": 11}
FLUSH_F32 = 0x3C0  # the MODE register with f32 denormals flushed
SATURATE = 0x3F0 | 1 << 23  # the MODE register with FP16_OVFL


def unsigned(type_: str) -> Any:
    return np.dtype(f"u{np.dtype(DTYPE[type_]).itemsize}")


def edges(type_: str) -> Array:
    """Zeros, denormals, ones, neighbours of powers of two, largest, infinities, NaNs of both kinds, and all negated."""
    mantissa, exponent = MANTISSA[type_], EXPONENT[type_]
    one = ((1 << (exponent - 1)) - 1) << mantissa
    infinity = ((1 << exponent) - 1) << mantissa
    quiet = 1 << (mantissa - 1)
    positive = [
        0,
        1,
        quiet,
        (1 << mantissa) - 1,
        1 << mantissa,
        one - 1,
        one,
        one + 1,
        one + quiet,
        one + (1 << mantissa),
    ]
    positive += [one + 3 * quiet + 5, infinity - 1, infinity, infinity | quiet, infinity | quiet | 5, infinity | 1]
    sign = 1 << (mantissa + exponent)
    return np.array(positive + [p | sign for p in positive], unsigned(type_)).view(DTYPE[type_])


def pairs(type_: str, seed: int = 1) -> tuple[Array, Array]:
    """All pairs of edges, then random bit patterns, then numbers of similar size: 4096 lanes."""
    x, y = np.meshgrid(edges(type_), edges(type_))
    rng = np.random.default_rng(seed)
    bits = rng.integers(0, 1 << 63, (2, 1024), dtype=np.uint64).astype(unsigned(type_)).view(DTYPE[type_])
    close = rng.standard_normal((2, 2048)).astype(DTYPE[type_])
    first, second = (np.concatenate([e.reshape(-1), b, c]) for e, b, c in zip((x, y), bits, close, strict=True))
    return first, second


def is_nan(x: Array) -> Array:
    return np.isnan(x)


def assert_same(got: Array, expected: Array) -> None:
    """Bit for bit, but any NaN equals any NaN."""
    expected = expected.astype(got.dtype)
    bits = f"u{got.dtype.itemsize}"
    np.testing.assert_array_equal(np.isnan(got), np.isnan(expected))
    number = ~np.isnan(expected)
    np.testing.assert_array_equal(got.view(bits)[number], expected.view(bits)[number])


def places(type_: str) -> tuple[str, str, str, str]:
    """Names of three source registers and a result, and its first register's number is 12."""
    if type_ == "f64":
        return "v[0:1]", "v[4:5]", "v[8:9]", "v[12:13]"
    return "v0", "v4", "v8", "v12"


def compute(run: Run, name: str, type_: str, *values: Array, mode: int | None = None, suffix: str = "") -> Array:
    *sources, result = places(type_)
    text = f"{name} {', '.join([result, *sources[: len(values)]])}{suffix}"
    options = {} if mode is None else {"mode": mode}
    return np.asarray(run(text, v={4 * i: x for i, x in enumerate(values)}, **options).v(12, DTYPE[type_]))


def to_type(exact: Fraction, type_: str) -> float:
    """Round a rational to nearest even, by integer arithmetic on the format's parameters."""
    if exact == 0:
        return 0.0
    mantissa, exponent_bits = MANTISSA[type_], EXPONENT[type_]
    smallest = 2 - (1 << (exponent_bits - 1))
    magnitude = abs(exact)
    exponent = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
    exponent -= Fraction(2) ** exponent > magnitude
    unit = Fraction(2) ** (max(exponent, smallest) - mantissa)
    units = round(magnitude / unit)  # Python rounds ties to even
    value = units * unit
    sign = -1.0 if exact < 0 else 1.0
    if value >= Fraction(2) ** (1 << (exponent_bits - 1)):
        return sign * math.inf
    return sign * float(value)


def test_source_and_output_modifiers(run: Run) -> None:
    x, y = pairs("f32")
    with np.errstate(all="ignore"):
        checks = [
            ("v_add_f32_e64 v12, -v0, |v4|", -x + np.abs(y)),
            ("v_mul_f32_e64 v12, -|v0|, v4", -np.abs(x) * y),
            ("v_mov_b32_e64 v12, -v0", -x),
            ("v_add_f32_e64 v12, v0, v4 clamp", np.nan_to_num(np.clip(x + y, 0, 1)) + np.float32(0)),
            ("v_add_f32 v12, 0.5, v4", y + np.float32(0.5)),
            ("v_mul_f32 v12, 0x3e22f983, v4", y * np.array([0x3E22F983], "u4").view("f4")),
        ]
    for text, expected in checks:
        assert_same(run(text, v={0: x, 4: y}).v(12, np.float32), expected)


def test_output_modifiers_work_only_without_ieee_mode_and_denormals(run: Run) -> None:
    x = np.resize(np.array([3, -0.0, 2.0**-126, -1e30, np.inf], np.float32), 64)
    for text, factor in (("mul:2", 2), ("mul:4", 4), ("div:2", 0.5)):
        scaled = x * np.float32(factor)
        expected = np.where(np.abs(scaled) < 2.0**-126, np.float32(0), scaled)
        add = f"v_add_f32_e64 v12, v0, v4 {text}"
        vectors = {0: x, 4: np.full(64, -0.0, np.float32)}
        assert_same(run(add, v=vectors, mode=0x1C0).v(12, np.float32), expected)
        for mode in (0x3C0, 0x1F0, 0x3F0):
            assert_same(run(add, v=vectors, mode=mode).v(12, np.float32), x)


def test_f32_denormals_are_flushed_where_the_mode_says_so(run: Run) -> None:
    tiny = np.float32(2.0**-126)
    x = np.resize(np.array([tiny / 2, -tiny / 2, tiny, 1.5 * tiny], np.float32), 64)
    y = np.resize(np.array([tiny, 0, -1.5 * tiny, -tiny], np.float32), 64)
    assert_same(
        compute(run, "v_add_f32", "f32", x, y, mode=FLUSH_F32), np.resize(np.array([tiny, 0, -0.0, 0], "f4"), 64)
    )
    text = "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 4, 2), 0\nv_mul_f32 v12, 1.0, v0\n"
    text += "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 4, 2), 3\nv_mul_f32 v13, 1.0, v0"
    after = run(text, v={0: x})
    assert_same(after.v(12, np.float32), np.where(np.abs(x) < tiny, np.copysign(np.float32(0), x), x))
    assert_same(after.v(13, np.float32), x)


def test_sine_and_cosine_take_turns(run: Run) -> None:
    x = np.linspace(-3, 3, 1024).astype(np.float32)
    np.testing.assert_allclose(compute(run, "v_sin_f32", "f32", x), np.sin(2 * np.pi * x.astype("f8")), atol=1e-7)
    np.testing.assert_allclose(compute(run, "v_cos_f32", "f32", x), np.cos(2 * np.pi * x.astype("f8")), atol=1e-7)
    far = np.full(64, 257.25, np.float32)
    assert (compute(run, "v_sin_f32", "f32", far) == 1).all()
    assert (compute(run, "v_cos_f32", "f32", far) == 0).all()
    assert np.isnan(compute(run, "v_sin_f32", "f32", np.full(64, np.inf, "f4"))).all()


@pytest.mark.parametrize("type_", ["f32", "f64"])
def test_the_division_sequence_divides(run: Run, type_: str) -> None:
    """The sequence that LLVM emits for an IEEE division, on edges and on operands far apart."""
    n, d = pairs(type_)
    wide = "f64" in type_
    names = [f"v[{2 * i}:{2 * i + 1}]" if wide else f"v{2 * i}" for i in range(12)]
    N, D, DS, NS, R, E, Q, X = names[:8]
    steps = 2 if wide else 1
    refine = f"v_fma_{type_} {E}, -{DS}, {R}, 1.0\nv_fma_{type_} {R}, {E}, {R}, {R}\n" * steps
    text = f"""v_div_scale_{type_} {DS}, s[4:5], {D}, {D}, {N}
        v_div_scale_{type_} {NS}, vcc, {N}, {D}, {N}
        v_rcp_{type_} {R}, {DS}
        {refine}
        v_mul_{type_} {Q}, {NS}, {R}
        v_fma_{type_} {E}, -{DS}, {Q}, {NS}
        v_fma_{type_} {Q}, {E}, {R}, {Q}
        v_fma_{type_} {E}, -{DS}, {Q}, {NS}
        v_div_fmas_{type_} {X}, {E}, {R}, {Q}
        v_div_fixup_{type_} {X}, {X}, {D}, {N}"""
    got = run(text, v={0: n, 2: d}).v(14, DTYPE[type_])
    with np.errstate(all="ignore"):
        assert_same(got, n / d)


def halves(low: Array, high: Array) -> Array:
    return low.view(np.uint16).astype(np.uint32) | high.view(np.uint16).astype(np.uint32) << 16


def test_packed_f16_with_selected_and_negated_halves(run: Run) -> None:
    rng = np.random.default_rng(5)
    a, b, c, d = rng.standard_normal((4, 64)).astype(np.float16)
    vectors = {0: halves(a, b), 1: halves(c, d)}
    after = run("v_pk_add_f16 v2, v0, v1\nv_pk_mul_f16 v3, v0, v1 op_sel:[1,0] op_sel_hi:[0,1] neg_lo:[1,0]", v=vectors)
    np.testing.assert_array_equal(after.v(2), halves(a + c, b + d))
    np.testing.assert_array_equal(after.v(3), halves(-b * c, a * d))
    after = run("v_pk_add_f16 v2, v0, 1.0 op_sel_hi:[1,0]\nv_pk_max_f16 v3, v0, v1", v=vectors)
    np.testing.assert_array_equal(after.v(2), halves(a + np.float16(1), b + np.float16(1)))
    np.testing.assert_array_equal(after.v(3), halves(np.maximum(a, c), np.maximum(b, d)))


@pytest.mark.parametrize("name", ["v_add_f16", "v_sub_f16", "v_mul_f16", "v_fma_f16"])
def test_f16_that_overflows_is_the_largest_number_where_the_mode_saturates(run: Run, name: str) -> None:
    x, y = pairs("f16")
    sources = (x, y, -y) if name == "v_fma_f16" else (x, y)
    plain, saturated = compute(run, name, "f16", *sources), compute(run, name, "f16", *sources, mode=SATURATE)
    overflows = np.isinf(plain) & np.all(np.isfinite(sources), axis=0)
    assert overflows.any()
    assert (np.isinf(plain) & ~overflows).any()
    np.testing.assert_array_equal(saturated, np.where(overflows, np.copysign(np.float16(65504), plain), plain))


def test_packed_and_elementary_f16_saturate_but_for_a_division_by_zero(run: Run) -> None:
    large, few = np.full(64, 60000, np.float16), np.full(64, 2, np.float16)
    after = run(
        "v_pk_mul_f16 v2, v0, v1 neg_lo:[1,0]\nv_pk_fma_f16 v3, v0, v1, v0\nv_exp_f16 v4, v1\nv_rcp_f16 v5, v6\n"
        "v_rcp_f16 v7, 0\nv_ldexp_f16 v8, v0, v1\nv_mul_f32 v9, v10, v10",
        v={0: halves(large, large), 1: halves(few * 50, few), 6: np.uint32(1), 10: np.float32(2.0**100)},
        mode=SATURATE,
    )
    np.testing.assert_array_equal(after.v(2), halves(np.float16([-65504]), np.float16([65504])).repeat(64))
    np.testing.assert_array_equal(after.v(3), halves(np.float16([65504]), np.float16([65504])).repeat(64))
    for register, value in ((4, 65504), (5, 65504), (7, np.inf), (8, 65504)):
        np.testing.assert_array_equal(after.v(register, np.float16), np.float16(value))
    assert np.isinf(after.v(9, np.float32)).all()  # f32 is as ever


def test_packed_f32(run: Run) -> None:
    rng = np.random.default_rng(6)
    a, b, c, d = rng.standard_normal((4, 64)).astype(np.float32)
    text = """v_pk_mul_f32 v[8:9], v[0:1], v[2:3]
        v_pk_add_f32 v[10:11], v[0:1], v[2:3] op_sel_hi:[1,0] neg_lo:[0,1]
        v_pk_fma_f32 v[12:13], v[0:1], v[2:3], s[4:5] op_sel:[1,0,0]
        v_pk_mov_b32 v[14:15], v[0:1], v[2:3] op_sel:[1,0]"""
    s4, s5 = struct.unpack("<2I", struct.pack("<2f", 2.5, -0.75))
    after = run(text, v={0: a, 1: b, 2: c, 3: d}, s={4: s4, 5: s5})
    expected = [a * c, b * d, a - c, b + c]
    fused = [(b.astype("f8") * c + 2.5).astype("f4"), (b.astype("f8") * d - 0.75).astype("f4"), b, c]
    for register, value in enumerate([*expected, *fused], start=8):
        np.testing.assert_array_equal(after.v(register, np.float32), value)


def test_half_registers_of_vop3(run: Run) -> None:
    rng = np.random.default_rng(7)
    a, b, c = rng.standard_normal((3, 64)).astype(np.float16)
    text = "v_fma_f16 v2, v0, v0, v1 op_sel:[0,1,0,1]\nv_pack_b32_f16 v3, v0, v1 op_sel:[1,0]\nv_add_f16 v4, v0, v1"
    after = run(text, v={0: halves(a, b), 1: c, 2: 0x12345678, 4: 0xFFFFFFFF})
    product = (a.astype("f8") * b + c).astype("f2")
    np.testing.assert_array_equal(after.v(2), halves(np.full(64, 0x5678, "u2"), product))
    np.testing.assert_array_equal(after.v(3), halves(b, c))
    np.testing.assert_array_equal(after.v(4), halves(a + c, np.zeros(64, "u2")))


def test_mixed_precision_fma(run: Run) -> None:
    rng = np.random.default_rng(8)
    a, b = rng.standard_normal((2, 64)).astype(np.float16)
    x, y = rng.standard_normal((2, 64)).astype(np.float32)
    text = """v_fma_mix_f32 v4, v0, v1, v2 op_sel:[1,0,0] op_sel_hi:[1,0,0]
        v_fma_mixlo_f16 v5, -v0, v1, |v2| op_sel_hi:[1,0,0]
        v_fma_mixhi_f16 v5, v0, v1, v2 op_sel_hi:[1,0,0]"""
    after = run(text, v={0: halves(a, b), 1: x, 2: y})

    def fused(p: Array, q: Array, r: Array) -> Array:
        exact = [
            to_type(Fraction(float(i)) * Fraction(float(j)) + Fraction(float(k)), "f32")
            for i, j, k in zip(p, q, r, strict=True)
        ]
        return np.array(exact, "f4")

    np.testing.assert_array_equal(after.v(4, np.float32), fused(b, x, y))
    expected = halves(fused(-a, x, np.abs(y)).astype("f2"), fused(a, x, y).astype("f2"))
    np.testing.assert_array_equal(after.v(5), expected)


def test_dot_products_of_halves(run: Run) -> None:
    rng = np.random.default_rng(9)
    a, b, c, d = rng.integers(-20, 20, (4, 64)).astype(np.float16)
    z = rng.integers(-20, 20, 64).astype(np.float32)
    after = run("v_dot2_f32_f16 v4, v0, v1, v2\nv_dot2c_f32_f16 v2, v0, v1", v={0: halves(a, b), 1: halves(c, d), 2: z})
    expected = a.astype("f4") * c + b.astype("f4") * d + z
    np.testing.assert_array_equal(after.v(4, np.float32), expected)
    np.testing.assert_array_equal(after.v(2, np.float32), expected)


def test_dot_products_flush_denormals_whatever_the_mode(run: Run) -> None:
    one, tiny = np.ones(64, np.float16), np.full(64, 2.0**-20, np.float16)
    vectors = {0: halves(one, tiny), 1: halves(tiny, one), 2: np.full(64, 2.0**-130, np.float32)}
    assert (run("v_dot2_f32_f16 v4, v0, v1, v2", v=vectors).v(4, np.float32) == 0).all()


def test_packed_fma_accumulates(run: Run) -> None:
    rng = np.random.default_rng(10)
    a, b, c, d, e, f = rng.integers(-9, 9, (6, 64)).astype(np.float16)
    after = run("v_pk_fmac_f16 v2, v0, v1", v={0: halves(a, b), 1: halves(c, d), 2: halves(e, f)})
    np.testing.assert_array_equal(after.v(2), halves(a * c + e, b * d + f))
