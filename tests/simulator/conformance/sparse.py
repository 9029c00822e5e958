"""Sparse products: of each four elements of a row of A two are there, and an index says which."""

from __future__ import annotations

from itertools import product

import numpy as np

from flydsl.simulator.arrays import Array
from tests.simulator.conformance.registry import conforms, execute, expect

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
    """Of 16-bit elements any CBSZ takes the first set of the index."""
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


# --- gfx1250: integers

ROWS, DEPTH = 16, 128


def integers(is_signed: bool, row: Array, column: Array, seed: int) -> Array:
    raw = (row * 11 + column * 7 + seed) % 9
    return raw - 4 if is_signed else raw + 1


def bytes_in_registers(values: Array) -> list[Array]:
    """Integers (lanes, count) as registers of four bytes."""
    data = values.astype(np.int64).astype(np.uint8).astype(np.uint32)
    return [sum((data[:, i + j] << 8 * j for j in range(1, 4)), data[:, i]) for i in range(0, data.shape[1], 4)]


def swmmac_iu8(arch: str, a_signed: bool, b_signed: bool, saturates: bool) -> None:
    """Blocks of 8 of A, and of its index, and of 16 of B go to the halves of the wave in turn."""
    chosen = chosen_pairs(np.random.default_rng(127), ROWS, DEPTH // 4)
    depth = (4 * np.arange(DEPTH // 4)[None, :, None] + chosen).reshape(ROWS, DEPTH // 2)
    a = integers(a_signed, np.arange(ROWS)[:, None], depth, 150)
    b = integers(b_signed, np.arange(DEPTH)[:, None], np.arange(ROWS)[None], 144)
    c = (np.arange(ROWS)[:, None] * 3 + np.arange(ROWS)[None] * 5 + 127) % 13 - 6
    a[0], b[:, 0], c[0, 0] = 1, 1, (1 << 31) - 5  # beyond the largest number
    if a_signed:
        a[1], c[1, 0] = -1, -(1 << 31) + 4
    if b_signed:
        b[:, 1], c[0, 1] = -1, -(1 << 31) + 4
    lane = np.arange(32)
    half, column = lane[:, None] // 16, lane[:, None] % 16
    slots_of_a, slots_of_b = np.arange(32)[None], np.arange(64)[None]
    at_a = 16 * (slots_of_a // 8) + 8 * half + slots_of_a % 8
    at_b = 32 * (slots_of_b // 16) + 16 * half + slots_of_b % 16
    operands = dict(enumerate(bytes_in_registers(a[column, at_a])))
    operands |= {8 + i: x for i, x in enumerate(bytes_in_registers(b[at_b, column]))}
    selectors = chosen.reshape(ROWS, DEPTH // 2)[column, at_a].astype(np.uint64)
    operands[32] = (selectors << (2 * slots_of_a.astype(np.uint64))).sum(axis=1)
    operands |= {24 + i: c[i + 8 * (lane // 16), lane % 16].astype(np.int32) for i in range(8)}
    modifiers = f"neg_lo:[{int(a_signed)},{int(b_signed)},0] {'clamp' * saturates}"
    text = f"v_swmmac_i32_16x16x128_iu8 v[24:31], v[0:7], v[8:23], v[32:33] {modifiers}"
    after = execute(text, arch, operands)
    wanted = product_of(a, b, c, chosen).astype(np.int64)
    if saturates:
        wanted = wanted.clip(-(1 << 31), (1 << 31) - 1)
    for i in range(8):
        expect(after.v(24 + i), wanted[i + 8 * (lane // 16), lane % 16].tolist(), text)


def list_integers() -> None:
    for signs in product((False, True), repeat=3):
        name = "gfx1250/int_isa/swmmac_i32_16x16x128_iu8 (signs {:d} {:d}, clamp {:d})".format(*signs)
        conforms(name, "gfx1250")(lambda arch, signs=signs: swmmac_iu8(arch, *signs))  # type: ignore[misc]


list_integers()
