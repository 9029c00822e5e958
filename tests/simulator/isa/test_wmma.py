"""WMMA and SWMMAC against plain products, with the register layouts of AMD's documents."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from flydsl.simulator import UnknownInstruction
from flydsl.simulator.arrays import Array
from tests.simulator.reference.wmma import (
    BITS,
    DENSE,
    FINELY_SCALED,
    MIXED,
    RESULT_BITS,
    SCALED,
    SPARSE,
    SPARSE_OF_GFX1250,
    Case,
)

pytestmark = pytest.mark.slow

Run = Callable[..., Any]
DESTINATION = 96
"""The first register of D."""


def execute(run: Run, text: str, registers: dict[int, Array], case: Case, first: int = DESTINATION) -> list[Array]:
    """The registers of D, from `first` on, after an instruction that all lanes execute, active or not."""
    after = run(text, v=registers, arch=case.arch, lanes=case.lanes, exec_bits=0)
    return [after.v(first + i) for i in range(case.results_per_lane * case.result_bits(case.result) // 32)]


# --- formats

MANTISSAS = {"f16": (10, 15), "bf16": (7, 127), "fp8": (3, 7), "bf8": (2, 15), "f32": (23, 127)} | {
    "fp6": (3, 1), "bf6": (2, 3), "fp4": (1, 1),
}  # fmt: skip
"""Bits of the mantissa, and the bias of the exponent."""


def code_of(value: int | float, format_: str) -> int:
    """A number that is exact in the format, as its bits; of a format of integers modulo its range."""
    if format_ in ("i32", "iu8", "iu4"):
        return int(value) & ((1 << {"i32": 32, "iu8": 8, "iu4": 4}[format_]) - 1)
    bits = {**BITS, **RESULT_BITS}[format_]
    sign = (1 << (bits - 1)) if np.signbit(value) else 0
    if value == 0:
        return sign
    mantissa_bits, bias = MANTISSAS[format_]
    exponent = max(int(np.floor(np.log2(abs(value)))), 1 - bias)
    scaled = Fraction(abs(value)) / Fraction(2) ** (exponent - mantissa_bits)
    assert scaled.denominator == 1, f"{value} is not exact as {format_}"
    whole = int(scaled)
    if whole >> mantissa_bits == 0:
        return sign | whole
    return sign | (exponent + bias) << mantissa_bits | (whole - (1 << mantissa_bits))


def value_of(code: int, format_: str) -> float:
    if format_ == "i32":
        return code - ((code >> 31) << 32)
    mantissa_bits, bias = MANTISSAS[format_]
    bits = RESULT_BITS[format_]
    exponent = code >> mantissa_bits & ((1 << (bits - 1 - mantissa_bits)) - 1)
    mantissa = code & ((1 << mantissa_bits) - 1)
    sign = -1 if code >> (bits - 1) else 1
    if exponent == (1 << (bits - 1 - mantissa_bits)) - 1:
        return float("nan") if mantissa else sign * float("inf")
    whole = mantissa + ((1 << mantissa_bits) if exponent else 0)
    return sign * whole * 2.0 ** (max(exponent, 1) - bias - mantissa_bits)


def pack(fields: Sequence[Sequence[int]], bits: int) -> list[Array]:
    """Registers, one number per lane, of which consecutive fields are those of each lane (fields: by lane)."""
    count = -(-len(fields[0]) * bits // 32)
    registers = np.zeros((count, len(fields)), np.uint64)
    for lane, codes in enumerate(fields):
        number = sum(int(code) << bits * e for e, code in enumerate(codes))
        for r in range(count):
            registers[r, lane] = number >> 32 * r & 0xFFFFFFFF
    return list(registers.astype(np.uint32))


def unpack(registers: Sequence[Array], bits: int) -> list[list[int]]:
    """The fields of each lane."""
    numbers = [sum(int(r[lane]) << 32 * i for i, r in enumerate(registers)) for lane in range(len(registers[0]))]
    count = 32 * len(registers) // bits
    return [[number >> bits * e & ((1 << bits) - 1) for e in range(count)] for number in numbers]


# --- matrices and registers


def source_registers(matrix: Array, format_: str, case: Case) -> list[Array]:
    """(16, k), the rows of A or the columns of B, as registers."""
    fields = [[0] * case.per_lane for _ in range(case.lanes)]
    for i, k in np.ndindex(*matrix.shape):
        for lane, element in case.places_source(i, k):
            fields[lane][element] = code_of(matrix[i, k], format_)
    return pack(fields, BITS[format_])


def result_registers(matrix: Array, format_: str, case: Case) -> list[Array]:
    """(m, 16) as the registers of C."""
    fields = [[0] * case.results_per_lane for _ in range(case.lanes)]
    for i, j in np.ndindex(*matrix.shape):
        lane, element = case.place_result(i, j)
        fields[lane][element] = code_of(matrix[i, j], format_)
    return pack(fields, case.result_bits(format_))


def result_matrix(registers: Sequence[Array], case: Case) -> Array:
    """The registers of D as (m, 16)."""
    fields = unpack(registers, case.result_bits(case.result))
    places = {(i, j): case.place_result(i, j) for i in range(case.m) for j in range(16)}
    return np.array(
        [[value_of(fields[places[i, j][0]][places[i, j][1]], case.result) for j in range(16)] for i in range(case.m)]
    )


def register_range(first: int, count: int) -> str:
    return f"v[{first}:{first + count - 1}]" if count > 1 else f"v{first}"


def multiply(
    run: Run, case: Case, a: Array, b: Array, c: Array | str, modifiers: str = "", scales: Sequence[Array] = ()
) -> Array:
    """A * B + C of (m, k), (16 columns, k) and (m, 16); c may be the text of a constant. scales: registers of A and of
    B, one each or two."""
    left = [r for tile in range(case.m // 16) for r in source_registers(a[16 * tile :][:16], case.a, case)]
    right = source_registers(b, case.b, case.of_b)
    registers = {**dict(enumerate(left)), **{32 + i: r for i, r in enumerate(right)}}
    count = case.results_per_lane * case.result_bits(case.result) // 32
    c_text = c if isinstance(c, str) else ""
    if not isinstance(c, str):
        rows = result_registers(c, case.c, case)
        registers |= {64 + i: r for i, r in enumerate(rows)}
        c_text = register_range(64, len(rows))
    registers |= {60 + i: scale for i, scale in enumerate(scales)}
    sources = [register_range(0, len(left)), register_range(32, len(right)), c_text]
    of_scales = [register_range(60 + i, len(scales) // 2) for i in range(0, len(scales), len(scales) // 2 or 1)]
    operands = [register_range(DESTINATION, count), *sources, *of_scales]
    return result_matrix(execute(run, f"{case.mnemonic} {', '.join(operands)}{modifiers}", registers, case), case)


LIMITS = {"fp8": 8, "bf8": 5, "iu8": 256, "iu4": 16, "fp4": 5, "fp6": 8, "bf6": 9}
"""Whole numbers of the format below these are exact."""


def numbers(rng: np.random.Generator, format_: str, shape: tuple[int, ...]) -> Array:
    """Small whole numbers of either sign; those of integers without a sign."""
    limit = LIMITS.get(format_, 12)
    return rng.integers(0 if format_.startswith("iu") else 1 - limit, limit, shape)


def matrices(case: Case, seed: int = 1) -> tuple[Array, Array, Array]:
    rng = np.random.default_rng(seed)
    largest = 100 if case.c in ("f16", "bf16") else 1000
    c = rng.integers(-largest, largest, (case.m, 16))
    return numbers(rng, case.a, (case.m, case.k)), numbers(rng, case.b, (16, case.k)), c


def rounded(value: Fraction, format_: str) -> float:
    """A number in the format, to nearest even."""
    if format_ == "i32":
        return int(value)
    if format_ != "bf16":
        return float({"f16": np.float16, "f32": np.float32}[format_](float(value)))
    if value == 0:
        return 0.0
    unit = Fraction(2) ** (int(np.floor(np.log2(float(abs(value))))) - 7)
    return float(round(value / unit) * unit)  # round() takes ties to even


def by_name(name: str, lanes: int = 32, arch: str = "gfx1201") -> Case:
    return next(c for c in (*DENSE, *SPARSE) if (c.mnemonic, c.lanes, c.arch) == (name, lanes, arch))


# --- dense products


@pytest.mark.parametrize("case", DENSE, ids=lambda c: c.id)
@pytest.mark.diagonal(2)
def test_product_of_small_numbers(run: Run, case: Case) -> None:
    a, b, c = matrices(case)
    exact = a @ b.T + c
    expected = [[rounded(Fraction(int(x)), case.result) for x in row] for row in exact]
    np.testing.assert_array_equal(multiply(run, case, a, b, c), expected)


@pytest.mark.parametrize("result", ["f32", "f16", "bf16"])
def test_a_float_result_is_the_exact_sum_rounded_once(run: Run, result: str) -> None:
    case = by_name(f"v_wmma_{result}_16x16x16_{'f16' if result == 'f32' else result}")
    rng = np.random.default_rng(3)
    steps = 2.0 ** rng.integers(-5, 6, (2, 16, 16))
    a, b = rng.integers(-100, 101, (2, 16, 16)) * steps
    c = rng.integers(-100, 101, (16, 16)).astype(float)
    got = multiply(run, case, a, b, c)
    for i, j in np.ndindex(16, 16):
        products = (Fraction(x) * Fraction(y) for x, y in zip(a[i].tolist(), b[j].tolist(), strict=True))
        assert got[i, j] == rounded(sum(products, Fraction(c[i, j])), result)


@pytest.mark.parametrize("result", ["f16", "bf16"])
def test_a_16_bit_result_is_not_rounded_twice(run: Run, result: str) -> None:
    """1, half a unit in the last place, and a bit that an f32 in between would lose: it decides which way to go."""
    case = by_name(f"v_wmma_{result}_16x16x16_{result}")
    half_unit = 2.0 ** -(MANTISSAS[result][0] + 1)
    a, b = np.zeros((2, 16, 16))
    a[:, :3], b[:, :3] = [1, half_unit, 2.0**-13], [1, 1, 2.0**-13]
    for sign in (1, -1):
        got = multiply(run, case, sign * a, b, np.zeros((16, 16)))
        assert (got == sign * (1 + 2 * half_unit)).all()


@pytest.mark.parametrize("lanes", [32, 64])
@pytest.mark.parametrize("name", ["f16", "bf16"])
def test_signs_of_halves(run: Run, name: str, lanes: int) -> None:
    """neg_lo of A and B is for even k, neg_hi for odd k; of C the two are {negate, absolute value}."""
    case = by_name(f"v_wmma_f32_16x16x16_{name}", lanes)
    a, b, c = matrices(case)
    odd = np.arange(16) % 2
    signs = {"low": np.where(odd, 1, -1), "high": np.where(odd, -1, 1)}
    assert (multiply(run, case, a, b, c, " neg_lo:[1,0,0]") == (a * signs["low"]) @ b.T + c).all()
    assert (multiply(run, case, a, b, c, " neg_hi:[0,1,0]") == (a * signs["high"]) @ b.T + c).all()
    assert (multiply(run, case, a, b, c, " neg_lo:[1,1,0] neg_hi:[1,0,0]") == (-a * signs["low"]) @ b.T + c).all()
    assert (multiply(run, case, a, b, c, " neg_lo:[0,0,1]") == a @ b.T - c).all()
    assert (multiply(run, case, a, b, c, " neg_hi:[0,0,1]") == a @ b.T + abs(c)).all()
    assert (multiply(run, case, a, b, c, " neg_lo:[0,0,1] neg_hi:[0,0,1]") == a @ b.T - abs(c)).all()


def test_c_of_16_bits_has_signs_too(run: Run) -> None:
    case = by_name("v_wmma_f16_16x16x16_f16")
    a, b, c = matrices(case)
    a, b = np.sign(a), np.sign(b)
    assert (multiply(run, case, a, b, c, " neg_lo:[0,0,1] neg_hi:[0,0,1]") == a @ b.T - abs(c)).all()


def test_elements_of_8_bits_cannot_be_negated(run: Run) -> None:
    case = by_name("v_wmma_f32_16x16x16_fp8_bf8")
    a, b, c = matrices(case)
    assert (multiply(run, case, a, b, c, " neg_lo:[0,0,1] neg_hi:[0,0,1]") == a @ b.T - abs(c)).all()
    with pytest.raises(UnknownInstruction, match="the negation of elements of 8 bits"):
        multiply(run, case, a, b, c, " neg_lo:[1,0,0]")


@pytest.mark.parametrize("lanes", [32, 64])
@pytest.mark.parametrize(("name", "bits"), [("16x16x16_iu8", 8), ("16x16x16_iu4", 4), ("16x16x32_iu4", 4)])
def test_integers_are_signed_where_neg_lo_says_so(run: Run, name: str, bits: int, lanes: int) -> None:
    case = by_name(f"v_wmma_i32_{name}", lanes)
    a, b, c = matrices(case)
    signed_a, signed_b = ((x ^ (1 << (bits - 1))) - (1 << (bits - 1)) for x in (a, b))
    assert (multiply(run, case, a, b, c, " neg_lo:[1,0,0]") == signed_a @ b.T + c).all()
    assert (multiply(run, case, a, b, c, " neg_lo:[0,1,0]") == a @ signed_b.T + c).all()
    assert (multiply(run, case, a, b, c, " neg_lo:[1,1,0]") == signed_a @ signed_b.T + c).all()


def test_clamp_saturates_the_addition_of_c(run: Run) -> None:
    case = by_name("v_wmma_i32_16x16x16_iu8")
    a, b, c = matrices(case)
    c[:8], c[8:] = 2**31 - 5, -(2**31) + 5
    a[8:] = 0
    a[8:, 0], b[:, 0] = 128, 200  # -128 where it is signed
    wrapped = (a @ b.T + c + 2**31) % 2**32 - 2**31
    assert (multiply(run, case, a, b, c) == wrapped).all()
    assert (multiply(run, case, a, b, c, " clamp") == np.clip(a @ b.T + c, -(2**31), 2**31 - 1)).all()
    signed = (a ^ 128) - 128
    expected = np.clip(signed @ b.T + c, -(2**31), 2**31 - 1)
    assert (multiply(run, case, a, b, c, " neg_lo:[1,0,0] clamp") == expected).all()


@pytest.mark.parametrize("lanes", [32, 64])
def test_a_constant_is_every_element_of_c(run: Run, lanes: int) -> None:
    for name, text, value in (
        ("v_wmma_f32_16x16x16_f16", "1.0", 1),
        ("v_wmma_f16_16x16x16_f16", "-2.0", -2),
        ("v_wmma_bf16_16x16x16_bf16", "0", 0),
        ("v_wmma_i32_16x16x16_iu8", "-7", -7),
    ):
        case = by_name(name, lanes)
        a, b, _ = matrices(case)
        a, b = np.sign(a), np.sign(b)
        assert (multiply(run, case, a, b, text) == a @ b.T + value).all()


def test_a_constant_of_bf16_is_refused(run: Run) -> None:
    case = by_name("v_wmma_bf16_16x16x16_bf16")
    a, b, _ = matrices(case)
    with pytest.raises(UnknownInstruction, match="v_wmma_bf16_16x16x16_bf16"):
        multiply(run, case, a, b, "1.0")


@pytest.mark.parametrize("lanes", [32, 64])
@pytest.mark.parametrize("registers", ["v[8:{}], v[0:{}], v[0:{}], v[8:{}]", "v[8:{}], v[0:{}], v[0:{}], v2"])
def test_registers_of_other_waves_are_refused(run: Run, lanes: int, registers: str) -> None:
    name = "v_wmma_f32_16x16x16_f16" if registers.count("{}") == 4 else "v_swmmac_i32_16x16x32_iu8"
    d, a, b = (11, 1, 1) if lanes == 32 else (15, 3, 3)
    if "swmmac" in name:
        a, b = (0, 1) if lanes == 32 else (1, 3)
    text = f"{name} {registers.format(d, a, b, d)}".replace("v[0:0]", "v0")
    with pytest.raises(UnknownInstruction, match=f"the registers of {96 - lanes} lanes in waves of {lanes}"):
        run(text, arch="gfx1201", lanes=lanes)


@pytest.mark.parametrize("result", ["f32", "f16"])
def test_infinities_and_nans_spread_over_their_row(run: Run, result: str) -> None:
    case = by_name(f"v_wmma_{result}_16x16x16_f16")
    a, b, c = matrices(case)
    left, right = source_registers(a, "f16", case), source_registers(b, "f16", case)
    left[0] = left[0].copy()
    left[0][3] = left[0][3] & 0xFFFF0000 | 0x7E01  # a NaN with a payload at [3, 0]
    left[0][5] = left[0][5] & 0xFFFF0000 | 0x7C00  # infinity at [5, 0]
    rows = result_registers(c, case.c, case)
    registers = {**dict(enumerate(left)), **{32 + i: r for i, r in enumerate(right)}}
    registers |= {64 + i: r for i, r in enumerate(rows)}
    last = 64 + len(rows) - 1
    raw = execute(run, f"{case.mnemonic} v[96:{96 + len(rows) - 1}], v[0:3], v[32:35], v[64:{last}]", registers, case)
    got = result_matrix(raw, case)
    assert np.isnan(got[3]).all()
    assert (np.isinf(got[5]) == (b[:, 0] != 0)).all()
    assert np.isfinite(np.delete(got, [3, 5], axis=0)).all()
    fields = unpack(raw, RESULT_BITS[result])
    lane, element = case.place_result(3, 0)
    assert fields[lane][element] == {"f32": 0x7FC00000, "f16": 0x7E00}[result]


def test_denormals_are_kept(run: Run) -> None:
    case = by_name("v_wmma_f16_16x16x16_f16")
    a, b = np.zeros((2, 16, 16))
    a[:, 0], b[:, 0] = 2.0**-24, 1
    assert (multiply(run, case, a, b, np.full((16, 16), 2.0**-24)) == 2.0**-23).all()


# --- RDNA 3: A and B in every lane, 16 bits of C and D in halves of registers

RDNA3 = [case for case in DENSE if case.arch == "gfx1100"]


@pytest.mark.parametrize("name", ["v_wmma_f32_16x16x16_f16", "v_wmma_i32_16x16x16_iu8", "v_wmma_i32_16x16x16_iu4"])
@pytest.mark.parametrize("lanes", [32, 64])
def test_a_copy_that_differs_is_seen(run: Run, name: str, lanes: int) -> None:
    """Every group of lanes counts, whichever the other ones hold."""
    case = by_name(name, lanes, "gfx1100")
    a, b, _ = (abs(x) + 1 for x in matrices(case))
    for group in range(case.groups):
        for first, count in ((0, len(left := source_registers(a, case.a, case))), (32, len(left))):
            right = source_registers(b, case.b, case)
            registers = {**dict(enumerate(left)), **{32 + i: r for i, r in enumerate(right)}}
            for i in range(count):
                registers[first + i] = registers[first + i].copy()
                registers[first + i][16 * group : 16 * group + 16] = 0
            text = f"{case.mnemonic} {', '.join(register_range(n, c) for n, c in ((96, 256 // lanes), (0, count)))}"
            found = result_matrix(execute(run, f"{text}, {register_range(32, count)}, 0", registers, case), case)
            assert (found < a @ b.T).all()


@pytest.mark.parametrize("lanes", [32, 64])
@pytest.mark.parametrize("name", ["f16", "bf16"])
def test_op_sel_names_the_half_of_c_and_d(run: Run, name: str, lanes: int) -> None:
    """The other half of D stays as it is."""
    case = by_name(f"v_wmma_{name}_16x16x16_{name}", lanes, "gfx1100")
    a, b, c = matrices(case)
    a, b = np.sign(a), np.sign(b)
    left, right = source_registers(a, name, case), source_registers(b, name, case)
    rows = [r << 16 | 0x1234 for r in result_registers(c, name, case)]
    count = len(rows)
    registers = {**dict(enumerate(left)), **{32 + i: r for i, r in enumerate(right)}}
    registers |= {64 + i: r for i, r in enumerate(rows)} | {96 + i: np.full(lanes, 0xABCD5678) for i in range(count)}
    text = f"{case.mnemonic} v[96:{95 + count}], v[0:7], v[32:39], v[64:{63 + count}] op_sel:[0,0,1]"
    after = execute(run, text, registers, case)
    assert all((r & 0xFFFF == 0x5678).all() for r in after)
    np.testing.assert_array_equal(result_matrix([r >> 16 for r in after], case), a @ b.T + c)


@pytest.mark.parametrize("lanes", [32, 64])
def test_signs_and_constants_of_rdna_3(run: Run, lanes: int) -> None:
    case = by_name("v_wmma_f16_16x16x16_f16", lanes, "gfx1100")
    a, b, c = matrices(case)
    a, b = np.sign(a), np.sign(b)
    signs = np.where(np.arange(16) % 2, 1, -1)
    got = multiply(run, case, a, b, c, " neg_lo:[1,0,1] neg_hi:[0,0,1]")
    assert (got == (a * signs) @ b.T - abs(c)).all()
    assert (multiply(run, case, a, b, "-2.0") == a @ b.T - 2).all()
    case = by_name("v_wmma_i32_16x16x16_iu4", lanes, "gfx1100")
    a, b, c = matrices(case)
    assert (multiply(run, case, a, b, c, " neg_lo:[0,1,0]") == a @ ((b ^ 8) - 8).T + c).all()


# --- formats of gfx1250, and scales


# Of the 25 combinations, whose handlers are long: each format on each side, and both orders of pieces.
SOME_FORMATS = ("fp8_fp8", "bf8_fp4", "fp4_bf8", "bf6_fp6", "fp8_bf6", "fp6_fp8", "fp4_fp4")


def some(cases: list[Case]) -> list[Any]:
    return [pytest.param(c, id=c.id, marks=pytest.mark.slow) for c in cases if f"{c.a}_{c.b}" in SOME_FORMATS]


def text_of_formats(case: Case) -> str:
    return (
        ""
        if case.m == 32
        else "".join(
            f" matrix_{side}_fmt:MATRIX_FMT_{name.upper()}"
            for side, name in (("a", case.a), ("b", case.b))
            if name != "fp8"  # as LLVM prints them
        )
    )


@pytest.mark.parametrize("case", some(MIXED))
@pytest.mark.diagonal(2)
def test_product_of_two_formats(run: Run, case: Case) -> None:
    a, b, c = matrices(case)
    modifiers = f"{text_of_formats(case)} neg_lo:[0,0,1]"
    np.testing.assert_array_equal(multiply(run, case, a, b, c, modifiers), a @ b.T - c)


@pytest.mark.parametrize("case", some(SCALED)[::2])
@pytest.mark.diagonal(2)
def test_blocks_have_scales(run: Run, case: Case) -> None:
    """Byte j of a lane's register is the scale of k from 32 j on, for the row (or column) that the lane has."""
    a, b, c = matrices(case)
    rng = np.random.default_rng(4)
    codes = [rng.integers(124, 131, (rows, 4)) for rows in (case.m, 16)]
    upper = (case.m == 16, case.a == "fp4")  # which lanes the two are in
    registers = []
    for scales, second in zip(codes, upper, strict=True):
        register = rng.integers(0, 1 << 32, 32, dtype=np.uint32)
        for i, row in enumerate(scales):
            register[case.place_scale(i, second)] = sum(int(code) << 8 * j for j, code in enumerate(row))
        registers.append(register)
    rows = "".join(f" matrix_{s}_scale:MATRIX_SCALE_ROW1" for s, second in zip("ab", upper, strict=True) if second)
    got = multiply(run, case, a, b, c, text_of_formats(case) + rows, registers)
    left, right = (x * 2.0 ** (s.repeat(32, 1) - 127) for x, s in zip((a, b), codes, strict=True))
    np.testing.assert_array_equal(got, (left @ right.T + c).astype(np.float32))


def test_a_scale_of_255_is_nan(run: Run) -> None:
    case = next(c for c in SCALED if (c.a, c.b) == ("fp8", "fp8"))
    a, b, c = matrices(case)
    one = np.full(32, 0x7F7F7F7F, np.uint32)
    bad = one.copy()
    bad[5] |= 0x80 << 16
    got = multiply(run, case, a, b, c, scales=(bad, one))
    assert np.isnan(got[5]).all()
    np.testing.assert_array_equal(np.delete(got, 5, 0), np.delete(a @ b.T + c, 5, 0))


@pytest.mark.parametrize(
    ("modifiers", "said"),
    [
        ("matrix_a_scale_fmt:MATRIX_SCALE_FMT_E5M2", "MATRIX_SCALE_FMT_E5M2"),
        ("matrix_b_fmt:MATRIX_FMT_FP3", "MATRIX_FMT_FP3"),
        ("matrix_a_scale:MATRIX_SCALE_ROW2", "MATRIX_SCALE_ROW2"),
        ("neg_lo:[1,0,0]", "negation of elements of 8 bits or less"),
    ],
)
def test_what_is_not_known_of_scales_is_refused(run: Run, modifiers: str, said: str) -> None:
    case = next(c for c in SCALED if (c.a, c.b) == ("fp8", "fp8"))
    a, b, c = matrices(case)
    with pytest.raises(UnknownInstruction, match=said):
        multiply(run, case, a, b, c, f" {modifiers}", [np.full(32, 0x7F7F7F7F, np.uint32)] * 2)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mnemonic", "a", "b"),
    [("v_wmma_scale16_f32_16x16x128_f8f6f4", "fp8", "bf6"), ("v_wmma_scale16_f32_32x16x128_f4", "fp4", "fp4")],
)
def test_scales_of_blocks_of_16_and_of_other_formats(run: Run, mnemonic: str, a: str, b: str) -> None:
    """Byte j of a pair of registers is the scale of k from 16 j on: floats of 8 bits with a sign, or without one."""
    case = next(c for c in FINELY_SCALED if (c.mnemonic, c.a, c.b) == (mnemonic, a, b))
    left, right, c = matrices(case)
    rng = np.random.default_rng(4)
    codes = [rng.integers(0x2C, 0x48, (rows, 8)) for rows in (case.m, 16)]
    codes[0][3, 2], codes[1][5, 1] = 0xC0, 0xC1  # with E4M3 negative, with E5M3 large
    registers = rng.integers(0, 1 << 32, (2, 2, 32), dtype=np.uint32)
    for pair, scales in zip(registers, codes, strict=True):
        for i, row in enumerate(scales):
            for half in range(2):
                pair[half, i] = sum(int(code) << 8 * j for j, code in enumerate(row[4 * half :][:4]))
    formats = " matrix_a_scale_fmt:MATRIX_SCALE_FMT_E4M3 matrix_b_scale_fmt:MATRIX_SCALE_FMT_E5M3"
    got = multiply(run, case, left, right, c, text_of_formats(case) + formats, list(registers.reshape(4, 32)))
    factors = [
        np.vectorize(lambda x: (8 + x % 8) * 2.0 ** (x // 8 % 16 - 10) * (-1) ** (x // 128))(codes[0]),
        (8 + codes[1] % 8) * 2.0 ** (codes[1] // 8 - 18),
    ]
    exact = (left * factors[0].repeat(16, 1)) @ (right * factors[1].repeat(16, 1)).T + c
    np.testing.assert_array_equal(got, exact.astype(np.float32))


def test_signs_of_f32(run: Run) -> None:
    case = by_name("v_wmma_f32_16x16x4_f32", arch="gfx1250")
    a, b, c = matrices(case)
    got = multiply(run, case, a, b, c, " matrix_a_reuse neg_lo:[1,0,1] neg_hi:[0,0,1]")
    assert (got == -a @ b.T - abs(c)).all()
    with pytest.raises(UnknownInstruction, match="neg_hi of elements of 32 bits"):
        multiply(run, case, a, b, c, " neg_hi:[0,1,0]")


# --- sparse products


def parts_of_an_index() -> Iterator[Any]:
    """Each instruction with a part of a register of indices, another one each time; `make sweep` has all parts."""
    for i, case in enumerate(SPARSE):
        keys = [key for key in range(4) if case.per_lane * (key + 1) <= 32]
        for key in keys:
            marks = () if key == keys[i % len(keys)] else pytest.mark.sweep
            yield pytest.param(case, key, id=f"{case.id}-{key}", marks=marks)


@pytest.mark.parametrize(("case", "key"), list(parts_of_an_index()))
@pytest.mark.diagonal(2)
def test_sparse_product(run: Run, case: Case, key: int) -> None:
    """Two of every four elements of A are stored, with two bits each for their places; index_key picks a part."""
    rng = np.random.default_rng(2)
    stored = case.per_lane // 2
    a, b = np.zeros((16, case.k), int), numbers(rng, case.b, (16, case.k))
    c = rng.integers(-100, 100, (16, 16))
    values = numbers(rng, case.a, (case.lanes, stored))
    index = rng.integers(0, 2**32, case.lanes, dtype=np.uint32) & ~np.uint32(
        ((1 << 2 * stored) - 1) << 2 * stored * key
    )
    where = {case.place_source(i, k): (i, k) for i in range(16) for k in range(case.k)}
    for lane in range(case.lanes):
        for pair in range(stored // 2):
            places = sorted(rng.choice(4, 2, replace=False))
            for e, place in zip((2 * pair, 2 * pair + 1), places, strict=True):
                index[lane] |= np.uint32(int(place) << 2 * (e + stored * key))
                a[where[lane, 4 * pair + int(place)]] = values[lane, e]
    left = pack([[code_of(x, case.a) for x in row] for row in values], BITS[case.a])
    right, rows = source_registers(b, case.b, case), result_registers(c, case.c, case)
    registers = {**dict(enumerate(left)), **{32 + i: r for i, r in enumerate(right)}, 60: index}
    registers |= {64 + i: r for i, r in enumerate(rows)}
    operands = (register_range(64, len(rows)), register_range(0, len(left)), register_range(32, len(right)), "v60")
    key_text = f" index_key:{key}" if key else ""
    got = result_matrix(execute(run, f"{case.mnemonic} {', '.join(operands)}{key_text}", registers, case, 64), case)
    expected = [[rounded(Fraction(int(x)), case.result) for x in row] for row in a @ b.T + c]
    np.testing.assert_array_equal(got, expected)


@pytest.mark.slow
@pytest.mark.parametrize("case", [*SPARSE_OF_GFX1250[::5], SPARSE_OF_GFX1250[-1]], ids=lambda c: c.id)
def test_sparse_product_of_gfx1250(run: Run, case: Case) -> None:
    """The indices of a row of A stand in the order of k, in two lanes, whichever lane has the elements.

    Those of integers are in the lane of their elements."""
    rng = np.random.default_rng(2)
    stored = case.k // 4
    a, b = np.zeros((16, case.k), int), numbers(rng, case.b, (16, case.k))
    c, values = rng.integers(-100, 100, (16, 16)), numbers(rng, case.a, (16, case.k // 2))
    places = np.sort(rng.permuted(np.broadcast_to(np.arange(4), (16, stored, 4)), axis=2)[..., :2]).reshape(16, -1)
    index, fields = [0] * 32, [[0] * stored for _ in range(32)]
    for row, i in np.ndindex(16, case.k // 2):
        a[row, i // 2 * 4 + places[row, i]] = values[row, i]
        turn, within = divmod(i, case.run)
        lane = row + 16 * (within // (case.run // 2))
        slot = turn * (case.run // 2) + within % (case.run // 2)
        fields[lane][slot] = code_of(values[row, i], case.a)
        of_index, at = (lane, slot) if case.a == "iu8" else (row + 16 * (i // stored), i % stored)
        index[of_index] |= int(places[row, i]) << 2 * at
    left, right = pack(fields, BITS[case.a]), source_registers(b, case.b, case)
    rows, words = result_registers(c, case.c, case), stored // 16
    registers = {**dict(enumerate(left)), **{32 + i: r for i, r in enumerate(right)}}
    registers |= {60 + i: np.array([word >> 32 * i & 0xFFFFFFFF for word in index], np.uint32) for i in range(words)}
    registers |= {64 + i: r for i, r in enumerate(rows)}
    operands = [register_range(*r) for r in ((64, len(rows)), (0, len(left)), (32, len(right)), (60, words))]
    text = f"{case.mnemonic} {', '.join(operands)} matrix_a_reuse"
    got = result_matrix(execute(run, text, registers, case, 64), case)
    expected = [[rounded(Fraction(int(x)), case.result) for x in row] for row in a @ b.T + c]
    np.testing.assert_array_equal(got, expected)
