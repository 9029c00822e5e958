"""MFMA against a plain product, with the register layouts written out as AMD's matrix instruction calculator shows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

Run = Callable[..., Any]
Array = np.ndarray[Any, Any]
Place = Callable[[int, int, int], tuple[int, int]]


@dataclass(frozen=True)
class Case:
    """place_a(i, k, block) is the lane and the element in the lane; place_d(i, j, block) the lane and the register."""

    name: str
    m: int
    n: int
    k: int
    blocks: int
    format: str
    place_a: Place
    place_d: Place


def d_32(i: int, j: int, block: int) -> tuple[int, int]:
    return j + 32 * (i // 4 % 2), 16 * block + 4 * (i // 8) + i % 4


def d_16(i: int, j: int, block: int) -> tuple[int, int]:
    return j + 16 * (i // 4), 4 * block + i % 4


def d_4(i: int, j: int, block: int) -> tuple[int, int]:
    return j + 4 * block, i


CASES = [
    Case("f32_32x32x2_f32", 32, 32, 2, 1, "f32", lambda i, k, b: (i + 32 * k, 0), d_32),
    Case("f32_16x16x4_f32", 16, 16, 4, 1, "f32", lambda i, k, b: (i + 16 * k, 0), d_16),
    Case("f32_32x32x1_2b_f32", 32, 32, 1, 2, "f32", lambda i, k, b: (i + 32 * b, 0), d_32),
    Case("f32_16x16x1_4b_f32", 16, 16, 1, 4, "f32", lambda i, k, b: (i + 16 * b, 0), d_16),
    Case("f32_4x4x1_16b_f32", 4, 4, 1, 16, "f32", lambda i, k, b: (i + 4 * b, 0), d_4),
    Case("f32_32x32x4_xf32", 32, 32, 4, 1, "f32", lambda i, k, b: (i + 32 * (k // 2), k % 2), d_32),
    Case("f32_16x16x8_xf32", 16, 16, 8, 1, "f32", lambda i, k, b: (i + 16 * (k // 2), k % 2), d_16),
    Case("f32_32x32x8_f16", 32, 32, 8, 1, "f16", lambda i, k, b: (i + 32 * (k // 4), k % 4), d_32),
    Case("f32_16x16x16_f16", 16, 16, 16, 1, "f16", lambda i, k, b: (i + 16 * (k // 4), k % 4), d_16),
    Case("f32_32x32x4_2b_f16", 32, 32, 4, 2, "f16", lambda i, k, b: (i + 32 * b, k), d_32),
    Case("f32_16x16x4_4b_f16", 16, 16, 4, 4, "f16", lambda i, k, b: (i + 16 * b, k), d_16),
    Case("f32_4x4x4_16b_f16", 4, 4, 4, 16, "f16", lambda i, k, b: (i + 4 * b, k), d_4),
    Case("f32_32x32x8_bf16", 32, 32, 8, 1, "bf16", lambda i, k, b: (i + 32 * (k // 4), k % 4), d_32),
    Case("f32_16x16x16_bf16", 16, 16, 16, 1, "bf16", lambda i, k, b: (i + 16 * (k // 4), k % 4), d_16),
    Case("f32_4x4x4_16b_bf16", 4, 4, 4, 16, "bf16", lambda i, k, b: (i + 4 * b, k), d_4),
    Case("i32_32x32x16_i8", 32, 32, 16, 1, "i8", lambda i, k, b: (i + 32 * (k // 8), k % 8), d_32),
    Case("i32_16x16x32_i8", 16, 16, 32, 1, "i8", lambda i, k, b: (i + 16 * (k // 8), k % 8), d_16),
    Case("i32_16x16x4_4b_i8", 16, 16, 4, 4, "i8", lambda i, k, b: (i + 16 * b, k), d_16),
    Case("f32_16x16x32_fp8_fp8", 16, 16, 32, 1, "fp8", lambda i, k, b: (i + 16 * (k // 8), k % 8), d_16),
    Case("f32_32x32x16_bf8_bf8", 32, 32, 16, 1, "bf8", lambda i, k, b: (i + 32 * (k // 8), k % 8), d_32),
    Case(
        "f64_16x16x4_f64",
        16,
        16,
        4,
        1,
        "f64",
        lambda i, k, b: (i + 16 * k, 0),
        lambda i, j, b: (j + 16 * (i % 4), i // 4),
    ),
    Case(
        "f64_4x4x4_4b_f64",
        4,
        4,
        4,
        4,
        "f64",
        lambda i, k, b: (i + 4 * b + 16 * k, 0),
        lambda i, j, b: (j + 4 * b + 16 * i, 0),
    ),
]
WIDTH = {"f64": 8, "f32": 4, "f16": 2, "bf16": 2, "i8": 1, "fp8": 1, "bf8": 1}


def encode(values: Array, format_: str) -> Array:
    """Small integers in the given format, as raw bytes."""
    if format_ in ("fp8", "bf8"):
        mantissa_bits, bias = (3, 8) if format_ == "fp8" else (2, 16)
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
    return values.astype({"f64": "f8", "f32": "f4", "f16": "f2", "i8": "i1"}[format_])


def source_registers(matrix: Array, case: Case, place: Place) -> Array:
    """(registers, 64) dwords from (blocks, rows, k)."""
    raw = encode(matrix, case.format)
    elements = case.k * matrix.shape[1] * case.blocks // 64
    lanes = np.zeros((64, elements), raw.dtype)
    for block, row, k in np.ndindex(*matrix.shape):
        lane, element = place(row, k, block)
        lanes[lane, element] = raw[block, row, k]
    return np.ascontiguousarray(lanes).view(np.uint32).reshape(64, -1).T


SPARSE = [
    ("f32_16x16x32_f16", 16, 32, "f16", 4),
    ("f32_32x32x16_bf16", 32, 16, "bf16", 4),
    ("i32_16x16x64_i8", 16, 64, "i8", 8),
    ("f32_32x32x32_fp8_fp8", 32, 32, "fp8", 8),
]


@pytest.mark.parametrize(("name", "m", "k", "format_", "stored"), SPARSE, ids=[s[0] for s in SPARSE])
@pytest.mark.parametrize("abid", [0, 1])
def test_sparse_product(run: Run, name: str, m: int, k: int, format_: str, stored: int, abid: int) -> None:
    """Of every four elements of A two are stored, with two bits each for their places."""
    rng = np.random.default_rng(2)
    limit = 8 if format_ == "fp8" else 50
    a, b = np.zeros((m, k), int), rng.integers(-limit, limit, (m, k))
    values = rng.integers(-limit, limit, (64, stored))
    index = np.zeros(64, np.uint32)
    for lane in range(64):
        for pair in range(stored // 2):
            places = sorted(rng.choice(4, 2, replace=False))
            for e, place in zip((2 * pair, 2 * pair + 1), places, strict=True):
                index[lane] |= int(place) << (2 * e + 2 * stored * abid)
                a[lane % m, lane // m * 2 * stored + 4 * pair + place] = values[lane, e]
    b_lanes = b[np.arange(64) % m].reshape(64, 64 // m, 2 * stored)[np.arange(64), np.arange(64) // m]
    registers_a, registers_b = (
        np.ascontiguousarray(encode(lanes, format_)).view(np.uint32).reshape(64, -1).T for lanes in (values, b_lanes)
    )
    count, place_d = m * m // 64, d_16 if m == 16 else d_32
    vectors = {**dict(enumerate(registers_a)), **dict(enumerate(registers_b, start=8)), 16: index}
    sizes = register_range(0, len(registers_a)), register_range(8, len(registers_b))
    text = f"v_smfmac_{name} {register_range(32, count)}, {sizes[0]}, {sizes[1]}, v16 abid:{abid}"
    after = run(text, v=vectors)
    expected = a @ b.T
    dtype = np.int32 if format_ == "i8" else np.float32
    for i, j in np.ndindex(m, m):
        lane, register = place_d(i, j, 0)
        assert after.v(32 + register, dtype)[lane] == expected[i, j]


def register_range(first: int, count: int) -> str:
    return f"v[{first}:{first + count - 1}]" if count > 1 else f"v{first}"


def multiply(
    run: Run, case: Case, a: Array, b: Array, c: Array, modifiers: str = "", exec_bits: int = (1 << 64) - 1
) -> Array:
    """Run the instruction on (blocks, m, k), (blocks, n, k) and (blocks, m, n); returns (blocks, m, n)."""
    dtype = {"f64": np.float64, "i32": np.int32}.get(case.name[:3], np.float32)
    dwords = np.dtype(dtype).itemsize // 4
    a_registers = source_registers(a, case, case.place_a)
    b_registers = source_registers(b, case, case.place_a)
    count = case.m * case.n * case.blocks // 64
    c_lanes = np.zeros((64, count), dtype)
    for block, i, j in np.ndindex(*c.shape):
        lane, register = case.place_d(i, j, block)
        c_lanes[lane, register] = c[block, i, j]
    c_registers = c_lanes.view(np.uint32).T
    vectors = dict(enumerate(a_registers)) | {8 + i: r for i, r in enumerate(b_registers)}
    vectors |= {16 + i: r for i, r in enumerate(c_registers)}
    size = len(a_registers)
    result = register_range(64, count * dwords)
    sources = [register_range(0, size), register_range(8, size), register_range(16, count * dwords)]
    text = f"v_mfma_{case.name} {result}, {', '.join(sources)}"
    after = run(text + modifiers, v=vectors, exec_bits=exec_bits)
    d = np.zeros(c.shape, dtype)
    for block, i, j in np.ndindex(*c.shape):
        lane, register = case.place_d(i, j, block)
        d[block, i, j] = after.v(64 + register * dwords, dtype)[lane]
    return d


def matrices(case: Case, seed: int = 1) -> tuple[Array, Array, Array]:
    rng = np.random.default_rng(seed)
    limit = 8 if case.format in ("fp8", "bf8") else 100
    limit = 5 if case.format == "bf8" else limit
    a = rng.integers(-limit, limit, (case.blocks, case.m, case.k))
    b = rng.integers(-limit, limit, (case.blocks, case.n, case.k))
    return a, b, rng.integers(-1000, 1000, (case.blocks, case.m, case.n))


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_product_of_integers_is_exact(run: Run, case: Case) -> None:
    a, b, c = matrices(case)
    expected = np.einsum("bik,bjk->bij", a, b) + c
    np.testing.assert_array_equal(multiply(run, case, a, b, c), expected)


def by_name(name: str) -> Case:
    return next(c for c in CASES if c.name == name)


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
    for value, rounded in ((1 + 2.0**-11, 1), (1 + 3 * 2.0**-11, 1 + 2.0**-9), (1 + 2.0**-11 + 2.0**-20, 1 + 2.0**-10)):
        a[..., 0] = value
        assert (multiply(run, case, a, b, np.zeros((1, 16, 16))) == rounded).all()


def test_f32_denormals_follow_the_mode_on_input_only(run: Run) -> None:
    tiny = np.full(64, 2.0**-130, np.float32)
    text = "v_mfma_f32_16x16x4_f32 v[8:11], v0, v1, v[4:7]\nv_mfma_f32_16x16x4_f32 v[12:15], v1, v0, v[4:7]"
    vectors = {0: tiny, 1: np.ones(64, "f4"), **dict.fromkeys(range(4, 8), tiny)}
    assert (run(text, v=vectors).v(8, np.float32) == 5 * tiny).all()
    assert (run(text, v=vectors, mode=0x3C0).v(12, np.float32) == tiny).all()
