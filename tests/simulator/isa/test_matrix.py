"""MFMA against a plain product, with the register layouts of AMD's matrix instruction calculator."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from flydsl.simulator import UnknownInstruction
from flydsl.simulator.arrays import Array
from tests.simulator.reference.matrix import DENSE, DENSE_OF_GFX90A, DENSE_OF_GFX950, SPARSE, SPARSE_OF_GFX950, Case

pytestmark = pytest.mark.slow

Run = Callable[..., Any]


BIAS = {"gfx90a": {}, "gfx942": {"fp8": 8, "bf8": 16}, "gfx950": {"fp8": 7, "bf8": 15}}


def name_of(case: Case) -> str:
    return case.mnemonic if case.arch == "gfx942" else f"{case.mnemonic}-{case.arch}"


def encode(values: Array, format_: str, arch: str) -> Array:
    """Small integers in the given format, as raw bytes."""
    if format_ in ("fp8", "bf8"):
        mantissa_bits, bias = 3 if format_ == "fp8" else 2, BIAS[arch][format_]
        codes = []
        for value in values.reshape(-1):
            if value == 0:
                codes.append(0)
                continue
            exponent = abs(int(value)).bit_length() - 1
            mantissa = (abs(int(value)) << mantissa_bits >> exponent) - (1 << mantissa_bits)
            codes.append((exponent + bias) << mantissa_bits | mantissa | (128 if value < 0 else 0))
        return np.array(codes, np.uint8).reshape(values.shape)
    if format_ == "bf16":
        return (values.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
    return values.astype({"f64": "f8", "f32": "f4", "xf32": "f4", "f16": "f2", "i8": "i1"}[format_])


def source_registers(matrix: Array, case: Case, format_: str) -> Array:
    """(registers, 64) dwords from (blocks, rows, k)."""
    raw = encode(matrix, format_, case.arch)
    lanes = np.zeros((64, case.k_per_lane), raw.dtype)
    for block, row, k in np.ndindex(*matrix.shape):
        lane, element = case.place_source(row, k, block)
        lanes[lane, element] = raw[block, row, k]
    return np.ascontiguousarray(lanes).view(np.uint32).reshape(64, -1).T


LIMITS = {"fp8": 8, "bf8": 5, "i8": 100}
"""Integers below these are exact in the format."""


def limit(*formats: str) -> int:
    return min(LIMITS.get(f, 50) for f in formats)


def sets_of_indices() -> Iterator[Any]:
    """Each instruction with a set of indices that a register holds, two at most; `make sweep` has all sets."""
    for i, case in enumerate((*SPARSE, *SPARSE_OF_GFX950)):
        sets = [abid for abid in (0, 1) if case.k_per_lane * (abid + 1) <= 32]
        for abid in sets:
            marks = () if abid == sets[i % len(sets)] else pytest.mark.sweep
            yield pytest.param(case, abid, id=f"{name_of(case)}-{abid}", marks=marks)


@pytest.mark.parametrize(("case", "abid"), list(sets_of_indices()))
@pytest.mark.diagonal(2)
def test_sparse_product(run: Run, case: Case, abid: int) -> None:
    """Two of every four elements of A are stored, with two bits each for their places; ABID picks a set of indices."""
    rng = np.random.default_rng(2)
    largest = limit(case.format_a, case.format_b)
    m, stored = case.m, case.k_per_lane // 2
    a, b = np.zeros((m, case.k), int), rng.integers(-largest, largest, (1, m, case.k))
    values = rng.integers(-largest, largest, (64, stored))
    index = np.zeros(64, np.uint32)
    for lane in range(64):
        for pair in range(stored // 2):
            places = sorted(rng.choice(4, 2, replace=False))
            for e, place in zip((2 * pair, 2 * pair + 1), places, strict=True):
                index[lane] |= int(place) << (2 * e + 2 * stored * abid)
                a[lane % m, case.fours_of_pair(lane, pair) + place] = values[lane, e]
    registers_a = np.ascontiguousarray(encode(values, case.format_a, case.arch)).view(np.uint32).reshape(64, -1).T
    registers_b = source_registers(b, case, case.format_b)
    vectors = {**dict(enumerate(registers_a)), **dict(enumerate(registers_b, start=8)), 16: index}
    sizes = register_range(0, len(registers_a)), register_range(8, len(registers_b))
    result = register_range(32, case.results_per_lane)
    after = run(f"{case.mnemonic} {result}, {sizes[0]}, {sizes[1]}, v16 abid:{abid}", v=vectors, arch=case.arch)
    expected = a @ b[0].T
    dtype = np.int32 if case.result == "i32" else np.float32
    for i, j in np.ndindex(m, m):
        lane, register = case.place_result(i, j, 0)
        assert after.v(32 + register, dtype)[lane] == expected[i, j]


@pytest.mark.parametrize("case", [SPARSE[0], SPARSE[5], SPARSE[-1], SPARSE_OF_GFX950[0]], ids=name_of)
def test_both_elements_of_a_pair_with_equal_indices_count(run: Run, case: Case) -> None:
    """The sum of both, even where the type of A cannot hold it, times the one element of B."""
    stored, largest = case.k_per_lane // 2, {"f16": 2048, "i8": 127}.get(case.format_a, limit(case.format_a))
    values = np.full((64, stored), largest)
    values[:, 1::2] = 1
    places = np.random.default_rng(5).integers(0, 4, (64, stored // 2))
    index = sum((places[:, i] * 5).astype(np.uint32) << np.uint32(4 * i) for i in range(stored // 2))
    a, b = np.zeros((case.m, case.k), int), np.random.default_rng(6).integers(-3, 4, (1, case.m, case.k))
    for lane, pair in np.ndindex(64, stored // 2):
        a[lane % case.m, case.fours_of_pair(lane, pair) + places[lane, pair]] = largest + 1
    registers_a = np.ascontiguousarray(encode(values, case.format_a, case.arch)).view(np.uint32).reshape(64, -1).T
    registers_b = source_registers(b, case, case.format_b)
    vectors = {**dict(enumerate(registers_a)), **dict(enumerate(registers_b, start=8)), 16: index}
    sizes = register_range(0, len(registers_a)), register_range(8, len(registers_b))
    result = register_range(32, case.results_per_lane)
    after = run(f"{case.mnemonic} {result}, {sizes[0]}, {sizes[1]}, v16", v=vectors, arch=case.arch)
    dtype = np.int32 if case.result == "i32" else np.float32
    got = np.array([after.v(32 + register, dtype) for register in range(case.results_per_lane)])
    expected = a @ b[0].T
    for i, j in np.ndindex(case.m, case.m):
        lane, register = case.place_result(i, j, 0)
        assert got[register, lane] == expected[i, j]


@pytest.mark.parametrize("shape", ["16x16x128", "32x32x64"])
def test_a_sparse_product_of_integers_whose_layout_nobody_has_published_is_refused(run: Run, shape: str) -> None:
    result = register_range(32, 4 if shape == "16x16x128" else 16)
    with pytest.raises(UnknownInstruction, match="does not know v_smfmac_i32"):
        run(f"v_smfmac_i32_{shape}_i8 {result}, v[0:3], v[8:15], v16", arch="gfx950")


def register_range(first: int, count: int) -> str:
    return f"v[{first}:{first + count - 1}]" if count > 1 else f"v{first}"


def multiply(
    run: Run, case: Case, a: Array, b: Array, c: Array, modifiers: str = "", exec_bits: int = (1 << 64) - 1
) -> Array:
    """Run the instruction on (blocks, m, k), (blocks, n, k) and (blocks, m, n); returns (blocks, m, n)."""
    dtype = {"f64": np.float64, "i32": np.int32, "f32": np.float32}[case.result]
    dwords = np.dtype(dtype).itemsize // 4
    a_registers = source_registers(a, case, case.format_a)
    b_registers = source_registers(b, case, case.format_b)
    count = case.results_per_lane
    c_lanes = np.zeros((64, count), dtype)
    for block, i, j in np.ndindex(*c.shape):
        lane, register = case.place_result(i, j, block)
        c_lanes[lane, register] = c[block, i, j]
    c_registers = c_lanes.view(np.uint32).T
    vectors = dict(enumerate(a_registers)) | {8 + i: r for i, r in enumerate(b_registers)}
    vectors |= {16 + i: r for i, r in enumerate(c_registers)}
    size = len(a_registers)
    result = register_range(64, count * dwords)
    sources = [register_range(0, size), register_range(8, size), register_range(16, count * dwords)]
    text = f"{case.mnemonic} {result}, {', '.join(sources)}"
    after = run(text + modifiers, v=vectors, exec_bits=exec_bits, arch=case.arch)
    d = np.zeros(c.shape, dtype)
    for block, i, j in np.ndindex(*c.shape):
        lane, register = case.place_result(i, j, block)
        d[block, i, j] = after.v(64 + register * dwords, dtype)[lane]
    return d


def matrices(case: Case, seed: int = 1) -> tuple[Array, Array, Array]:
    rng = np.random.default_rng(seed)
    largest = limit(case.format_a, case.format_b)
    a = rng.integers(-largest, largest, (case.blocks, case.m, case.k))
    b = rng.integers(-largest, largest, (case.blocks, case.m, case.k))
    return a, b, rng.integers(-1000, 1000, (case.blocks, case.m, case.m))


@pytest.mark.parametrize("case", [*DENSE, *DENSE_OF_GFX950, *DENSE_OF_GFX90A], ids=name_of)
def test_product_of_integers_is_exact(run: Run, case: Case) -> None:
    a, b, c = matrices(case)
    expected = np.einsum("bik,bjk->bij", a, b) + c
    np.testing.assert_array_equal(multiply(run, case, a, b, c), expected)


@pytest.mark.parametrize("name", ["f32_16x16x16_f16", "f32_32x32x8_bf16", "f32_16x16x4_f32", "f32_4x4x4_16b_f16"])
def test_a_float_result_is_the_exact_sum_rounded(run: Run, name: str) -> None:
    """Hardware may round in between: neither its order nor its precision is documented."""
    case = by_name(name)
    rng = np.random.default_rng(3)
    a, b = (decoded(rng.standard_normal((case.blocks, case.m, case.k)), case.format_a) for _ in range(2))
    c = rng.standard_normal((case.blocks, case.m, case.m)).astype(np.float32)
    got = multiply(run, case, a, b, c)
    for block, i, j in np.ndindex(1, case.m, case.m):
        products = [Fraction(x) * Fraction(y) for x, y in zip(a[block, i].tolist(), b[block, j].tolist(), strict=True)]
        # Exact, then f64, then f32: the second rounding is innocuous but for a chance of 2**-29.
        assert got[block, i, j] == np.float32(float(sum(products, Fraction(float(c[block, i, j])))))


def decoded(values: Array, format_: str) -> Array:
    """Rounded to the format, in f64."""
    if format_ == "bf16":
        bits = values.astype(np.float32).view(np.uint32) & np.uint32(0xFFFF0000)
        return bits.view(np.float32).astype(np.float64)
    return values.astype(np.float16 if format_ == "f16" else np.float32).astype(np.float64)


def test_infinities_and_nans_spread_over_their_row(run: Run) -> None:
    case = by_name("f32_16x16x16_f16")
    a, b, c = (x.astype(np.float64) for x in matrices(case))
    a[0, 3, 5], a[0, 7, 1], b[0, 2, 1] = np.nan, np.inf, 0
    got = multiply(run, case, a, b, c)[0]
    assert np.isnan(got[3]).all()
    assert np.isnan(got[7, 2])
    assert np.isinf(np.delete(got[7], np.flatnonzero(b[0, :, 1] == 0))).all()
    rest = np.delete(got, [3, 7], axis=0)
    assert np.isfinite(rest).all()


def by_name(name: str) -> Case:
    return next(c for c in DENSE if c.mnemonic == f"v_mfma_{name}")


def test_inactive_lanes_take_part(run: Run) -> None:
    case = by_name("f32_16x16x16_f16")
    a, b, c = matrices(case)
    expected = np.einsum("bik,bjk->bij", a, b) + c
    np.testing.assert_array_equal(multiply(run, case, a, b, c, exec_bits=1), expected)


def test_blocks_of_a_are_broadcast(run: Run) -> None:
    case = by_name("f32_4x4x4_16b_f16")
    a, b, c = matrices(case)
    got = multiply(run, case, a, b, c, " cbsz:2 abid:1")
    chosen = a[(np.arange(16) & ~3) + 1]
    np.testing.assert_array_equal(got, np.einsum("bik,bjk->bij", chosen, b) + c)


def test_lanes_of_b_are_broadcast_or_rotated(run: Run) -> None:
    case = by_name("f32_32x32x1_2b_f32")
    a, b, c = matrices(case)
    for pattern, chosen in ((1, b[[0, 0]]), (2, b[[1, 1]])):
        got = multiply(run, case, a, b, c, f" blgp:{pattern}")
        np.testing.assert_array_equal(got, np.einsum("bik,bjk->bij", a, chosen) + c)
    rotated = np.roll(b.reshape(64, 1), -16, axis=0).reshape(b.shape)
    np.testing.assert_array_equal(multiply(run, case, a, b, c, " blgp:3"), np.einsum("bik,bjk->bij", a, rotated) + c)


def test_signs_of_f64_operands(run: Run) -> None:
    case = by_name("f64_16x16x4_f64")
    a, b, c = matrices(case)
    expected = -np.einsum("bik,bjk->bij", a, b) - c
    np.testing.assert_array_equal(multiply(run, case, a, b, c, " neg:[1,0,1]"), expected)


def test_constant_accumulator_and_accumulation_registers(run: Run) -> None:
    ones = np.full(64, 0x3C003C00, np.uint32)
    text = "v_mfma_f32_16x16x16_f16 a[0:3], v[0:1], v[0:1], 0\nv_mfma_f32_16x16x16_f16 a[0:3], v[0:1], v[0:1], a[0:3]\n"
    after = run(text + "v_mfma_f32_16x16x16_f16 v[4:7], v[0:1], v[0:1], 1.0", v={0: ones, 1: ones})
    assert (after.v(256, np.float32) == 32).all()
    assert (after.v(7, np.float32) == 17).all()


def test_sum_is_rounded_once(run: Run) -> None:
    """1 + 2**-24 + 2**-24 of products is 1 + 2**-23 in one rounding, 1 if every addition rounded."""
    case = by_name("f32_16x16x4_f32")
    a = np.zeros((1, 16, 4))
    a[0, :, :3] = [1, 2.0**-12, 2.0**-12]
    got = multiply(run, case, a, a, np.zeros((1, 16, 16)))
    assert (got == np.float32(1 + 2.0**-23)).all()


def test_xf32_keeps_ten_bits_of_the_mantissa(run: Run) -> None:
    case = by_name("f32_16x16x8_xf32")
    a, b = np.zeros((2, 1, 16, 8))
    b[..., 0] = 1
    below_two = 2 - 2.0**-23
    for value, cut in ((1 + 2.0**-11, 1), (1 + 3 * 2.0**-11, 1 + 2.0**-10), (-below_two, -2 + 2.0**-10)):
        a[..., 0] = value
        assert (multiply(run, case, a, b, np.zeros((1, 16, 16))) == cut).all()


@pytest.mark.parametrize("modifiers", ["cbsz:1 abid:2", "cbsz:2 abid:4", "cbsz:3"])
def test_a_block_to_broadcast_that_there_is_not_is_refused(run: Run, modifiers: str) -> None:
    with pytest.raises(UnknownInstruction, match="which the ISA does not define"):
        run(f"v_mfma_f32_16x16x4_4b_f16 v[0:15], v[16:17], v[18:19], v[20:35] {modifiers}")


def test_f32_denormals_follow_the_mode_on_input_only(run: Run) -> None:
    tiny = np.full(64, 2.0**-130, np.float32)
    text = "v_mfma_f32_16x16x4_f32 v[8:11], v0, v1, v[4:7]\nv_mfma_f32_16x16x4_f32 v[12:15], v1, v0, v[4:7]"
    vectors = {0: tiny, 1: np.ones(64, "f4"), **dict.fromkeys(range(4, 8), tiny)}
    assert (run(text, v=vectors).v(8, np.float32) == 5 * tiny).all()
    assert (run(text, v=vectors, mode=0x3C0).v(12, np.float32) == tiny).all()


def test_f32_result_does_not_saturate_with_halves(run: Run) -> None:
    """MODE.FP16_OVFL, which Triton sets for conversions to 8-bit floats, is about results of 16 bits and less."""
    large = np.full(64, 0x7BFF7BFF, np.uint32)  # 65504, the largest f16
    text = "v_mfma_f32_16x16x16_f16 v[8:11], v[0:1], v[0:1], v[4:7]"
    vectors = {0: large, 1: large, **dict.fromkeys(range(4, 8), np.full(64, np.inf, np.float32))}
    found = run(text, v=vectors, mode=0x3F0 | 1 << 23)
    assert np.isinf(found.v(8, np.float32)).all()
    vectors |= dict.fromkeys(range(4, 8), np.zeros(64, np.float32))
    assert (run(text, v=vectors, mode=0x3F0 | 1 << 23).v(8, np.float32) == np.float32(16 * 65504.0**2)).all()
