"""Sparse products: of each four elements of a row of A two are there, and an index says which."""

from __future__ import annotations

import numpy as np

from flydsl.simulator.arrays import Array
from tests.simulator.conformance.registry import conforms, execute

PAIRS = np.array([(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)])


def chosen_pairs(rng: np.random.Generator, rows: int, groups: int) -> Array:
    """(rows, groups, 2): the elements of each four that are there, the first one first."""
    return PAIRS[rng.integers(0, 6, (rows, groups))]


def product_of(a: Array, b: Array, c: Array, chosen: Array) -> Array:
    """a: (rows, compressed); b: (k, columns)."""
    rows, groups, _ = chosen.shape
    depth = (4 * np.arange(groups)[None, :, None] + chosen).reshape(rows, 2 * groups)
    return c + np.einsum("ic,icj->ij", a, b[depth])


def halves(values: Array) -> list[Array]:
    """Numbers (lanes, count) as registers of two f16."""
    bits = values.astype(np.float16).view(np.uint16).astype(np.uint32)
    return [bits[:, i] | bits[:, i + 1] << 16 for i in range(0, bits.shape[1], 2)]


def nibbles(chosen: Array) -> Array:
    """(lanes, groups, 2) as an index: four bits of each group, the first element lowest."""
    shifts = 4 * np.arange(chosen.shape[1])
    return ((chosen[..., 0] | chosen[..., 1] << 2) << shifts).sum(axis=1).astype(np.uint32)


# --- gfx950, as an MI350 has them


def smfmac_16x16x64(arch: str, modifiers: str = "") -> None:
    """A lane of group g holds the compressed columns 8g.. of A, and rows 8g.. and 32 + 8g.. of B."""
    rng = np.random.default_rng(64)
    chosen = chosen_pairs(rng, 16, 16)
    a, b, c = (
        rng.integers(-n, n + 1, shape).astype(float) for n, shape in ((3, (16, 32)), (2, (64, 16)), (4, (16, 16)))
    )
    lane = np.arange(64)
    group, column = lane // 16, lane % 16
    columns_of_a = 8 * group[:, None] + np.arange(8)
    rows_of_b = np.concatenate([8 * group[:, None] + np.arange(8), 32 + 8 * group[:, None] + np.arange(8)], axis=1)
    operands = dict(enumerate(halves(a[column[:, None], columns_of_a])))
    operands |= {8 + i: x for i, x in enumerate(halves(b[rows_of_b, column[:, None]]))}
    operands |= {20 + i: c[4 * group + i, column].astype(np.float32) for i in range(4)}
    operands[24] = nibbles(chosen[column[:, None], 4 * group[:, None] + np.arange(4)])
    after = execute(f"v_smfmac_f32_16x16x64_f16 v[20:23], v[0:3], v[8:15], v24 {modifiers}", arch, operands)
    wanted = product_of(a, b, c, chosen)
    for i in range(4):
        assert after.v(20 + i, np.float32).tolist() == wanted[4 * group + i, column].tolist(), modifiers


@conforms("cdna4/mfma_gfx950_smfmac (16x16x64)", "gfx950")
def sixteen_wide(arch: str) -> None:
    smfmac_16x16x64(arch)


@conforms("cdna4/mfma_gfx950_smfmac (CBSZ)", "gfx950")
def sixteen_wide_with_cbsz(arch: str) -> None:
    """With 16-bit elements, any CBSZ takes the first set of the index."""
    smfmac_16x16x64(arch, "cbsz:1 abid:3")


@conforms("cdna4/mfma_gfx950_smfmac (32x32x32)", "gfx950")
def thirty_two_wide(arch: str) -> None:
    rng = np.random.default_rng(32)
    chosen = chosen_pairs(rng, 32, 8)
    a, b, c = (
        rng.integers(-n, n + 1, shape).astype(float) for n, shape in ((3, (32, 16)), (2, (32, 32)), (4, (32, 32)))
    )
    lane = np.arange(64)
    group, column = lane // 32, lane % 32
    rows_of_b = np.concatenate([8 * group[:, None] + np.arange(8), 16 + 8 * group[:, None] + np.arange(8)], axis=1)
    operands = dict(enumerate(halves(a[column[:, None], 8 * group[:, None] + np.arange(8)])))
    operands |= {8 + i: x for i, x in enumerate(halves(b[rows_of_b, column[:, None]]))}
    row_of = [8 * (i // 4) + 4 * group + i % 4 for i in range(16)]
    operands |= {32 + i: c[row_of[i], column].astype(np.float32) for i in range(16)}
    operands[24] = nibbles(chosen[column[:, None], 4 * group[:, None] + np.arange(4)])
    after = execute("v_smfmac_f32_32x32x32_f16 v[32:47], v[0:3], v[8:15], v24", arch, operands)
    wanted = product_of(a, b, c, chosen)
    for i in range(16):
        assert after.v(32 + i, np.float32).tolist() == wanted[row_of[i], column].tolist()


@conforms("cdna4/mfma_gfx950_smfmac (A is zero)", "gfx950")
def nothing_is_added(arch: str) -> None:
    lane = np.arange(64)
    for text, count in (("16x16x64_f16 v[32:35]", 4), ("32x32x32_f16 v[32:47]", 16)):
        accumulators = {32 + i: ((lane * count + i) % 17 - 8).astype(np.float32) for i in range(count)}
        after = execute(f"v_smfmac_f32_{text}, v[0:3], v[8:15], v24", arch, dict.fromkeys(range(25), 0) | accumulators)
        for register, values in accumulators.items():
            assert after.v(register, np.float32).tolist() == values.tolist()


# --- gfx942


def codes(values: Array, kind: str) -> Array:
    """Small integers as numbers of a type, of which the bits are given."""
    if kind == "f16":
        return values.astype(np.float16).view(np.uint16).astype(np.uint32)
    bits = values.astype(np.float32).view(np.uint32)
    if kind == "bf16":
        return bits >> 16
    mantissa, bias = (3, 8) if kind == "fp8" else (2, 16)  # without a negative zero
    exponent = (bits >> 23 & 0xFF).astype(np.int64) - 127 + bias
    code = exponent << mantissa | (bits >> (23 - mantissa) & ((1 << mantissa) - 1))
    return np.where(values == 0, 0, code | (bits >> 31) << 7).astype(np.uint32)


def in_registers(values: Array, kind: str) -> list[Array]:
    """Numbers (lanes, count) as registers."""
    bits = 16 if "16" in kind else 8
    data, each = codes(values, kind), 32 // bits
    shifts = bits * np.arange(each, dtype=np.uint32)
    return [np.bitwise_or.reduce(data[:, i : i + each] << shifts, axis=1) for i in range(0, data.shape[1], each)]


def smfmac_of_cdna3(arch: str, rows: int, left: str, right: str) -> None:
    """A lane holds runs of 4 compressed elements of A and of 8 of B; those of 8 bits have two runs of each."""
    runs = 1 if "16" in left else 2
    depth = (32 if rows == 16 else 16) * runs
    groups, lane = depth // 4, np.arange(64)
    group, column, of_wave = lane // rows, lane % rows, 64 // rows
    rng = np.random.default_rng(depth)
    chosen = chosen_pairs(rng, rows, groups)
    shapes = ((3, (rows, depth // 2)), (2, (depth, rows)), (4, (rows, rows)))
    a, b, c = (rng.integers(-n, n + 1, shape).astype(float) for n, shape in shapes)
    run = np.arange(runs)[None, :, None] * of_wave + group[:, None, None]
    columns_of_a = (4 * run + np.arange(4)).reshape(64, -1)
    rows_of_b = (8 * run + np.arange(8)).reshape(64, -1)
    of_index = (2 * run + np.arange(2)).reshape(64, -1)
    operands = dict(enumerate(in_registers(a[column[:, None], columns_of_a], left)))
    operands |= {8 + i: x for i, x in enumerate(in_registers(b[rows_of_b, column[:, None]], right))}
    count = rows * rows // 64
    row_of = [4 * group + i if rows == 16 else 8 * (i // 4) + 4 * group + i % 4 for i in range(count)]
    operands |= {32 + i: c[row_of[i], column].astype(np.float32) for i in range(count)}
    operands[24] = nibbles(chosen[column[:, None], of_index])
    kinds = left if runs == 1 else f"{left}_{right}"
    text = f"v_smfmac_f32_{rows}x{rows}x{depth}_{kinds} v[32:{31 + count}], v[0:1], v[8:11], v24"
    after = execute(text, arch, operands)
    wanted = product_of(a, b, c, chosen)
    for i in range(count):
        assert after.v(32 + i, np.float32).tolist() == wanted[row_of[i], column].tolist(), text


def list_of_cdna3() -> None:
    kinds = [("f16", "f16"), ("bf16", "bf16"), *((x, y) for x in ("fp8", "bf8") for y in ("fp8", "bf8"))]
    for rows, (left, right) in ((rows, kind) for rows in (16, 32) for kind in kinds):

        def product_of_cdna3(arch: str, rows: int = rows, left: str = left, right: str = right) -> None:
            smfmac_of_cdna3(arch, rows, left, right)

        conforms(f"cdna3/smfmac_cdna3 ({rows} rows, {left} {right})", "gfx942")(product_of_cdna3)


list_of_cdna3()
