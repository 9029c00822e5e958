"""Dense products: the layouts of A, B, C and D in registers, for every type, with exact sums.

The corpus' tests are called LayoutMatchesHardware, and have small integers as elements.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from flydsl.simulator.arrays import Array
from tests.simulator.conformance.integer_products import registers as integers_in_registers
from tests.simulator.conformance.integer_products import span
from tests.simulator.conformance.registry import conforms, execute
from tests.simulator.conformance.sparse import chosen_pairs, codes, in_registers, product_of

_SHAPE = re.compile(
    r"v_(?:mfma|wmma)_(?P<d>[a-z]+\d+)_(?P<m>\d+)x(?P<n>\d+)x(?P<k>\d+)(?:_(?P<blocks>\d+)b)?"
    r"_(?P<a>[a-z]+\d+)(?:_(?P<b>[a-z]+\d+))?"
)
_PART = 5
"""`make test` has each fifth type, the sweep all of them."""


@dataclass(frozen=True)
class Dense:
    """A product: D = A B + C for `blocks` pairs of matrices, by a wave of so many lanes."""

    mnemonic: str
    m: int
    n: int
    k: int
    blocks: int
    a: str
    b: str
    d: str
    lanes: int

    @classmethod
    def named(cls, mnemonic: str) -> Dense:
        found = _SHAPE.fullmatch(mnemonic)
        assert found is not None, mnemonic
        m, n, k, blocks = (int(found[name] or 1) for name in ("m", "n", "k", "blocks"))
        lanes = 32 if "wmma" in mnemonic else 64
        return cls(mnemonic, m, n, k, blocks, found["a"], found["b"] or found["a"], found["d"], lanes)

    def places(self, rows: int) -> tuple[Array, Array, Array]:
        """(lanes, slots) each: the block, row and k of the elements of A, or of B by its columns."""
        groups = self.lanes // (rows * self.blocks)
        each = self.k // groups
        lane, slot = np.arange(self.lanes)[:, None], np.arange(each)[None]
        group = lane // (rows * self.blocks)
        run = each // 2 if self.lanes == 32 and self.k >= 32 else each  # gfx1250's groups take runs of k in turn
        k = groups * run * (slot // run) + run * group + slot % run
        return np.broadcast_to(lane // rows % self.blocks, k.shape), np.broadcast_to(lane % rows, k.shape), k

    def places_of_sums(self) -> tuple[Array, Array, Array]:
        """(lanes, slots) each: the block, row and column of the elements of C and D."""
        each = self.m * self.n * self.blocks // self.lanes
        lane, slot = np.arange(self.lanes)[:, None], np.arange(each)[None]
        if self.lanes == 32:
            block, row = 0 * lane, slot + 8 * (lane // 16)
        elif self.d == "f64":  # a register of all lanes is four rows
            block, row = lane // self.n % self.blocks, 4 * slot + lane // 16
        elif self.m == 4:
            block, row = lane // self.n, slot
        else:
            in_block, groups = self.m * self.n // 64, 64 // self.n
            block, within = slot // in_block, slot % in_block
            row = 4 * groups * (within // 4) + 4 * (lane // self.n) + within % 4
        shape = self.lanes, each
        return np.broadcast_to(block, shape), np.broadcast_to(row, shape), np.broadcast_to(lane % self.n, shape)


def operands_of(values: Array, kind: str) -> list[Array]:
    """Numbers (lanes, count) as registers of 32 or 64 bits."""
    if kind == "f64":
        return [column.astype(np.float64).view(np.uint64) for column in values.T.copy()]
    if kind in ("f32", "xf32"):
        return [column.astype(np.float32) for column in values.T.copy()]
    if kind == "i32":
        return [column.astype(np.int32) for column in values.T.copy()]
    return integers_in_registers(values, 8) if kind == "i8" else in_registers(values, kind)


def in_vectors(first: int, columns: list[Array]) -> dict[int, Array]:
    """Registers from the first one on."""
    result = {}
    for column in columns:
        result[first] = column
        first += column.itemsize // 4
    return result


def check(which: Dense, arch: str, modifiers: str = "", signs: tuple[int, int, int] = (1, 1, 1)) -> None:
    rng = np.random.default_rng(which.m + which.k)
    of_fnuz = arch == "gfx942"
    a = rng.integers(-3, 4, (which.blocks, which.m, which.k)).astype(float)
    b = rng.integers(-2, 3, (which.blocks, which.k, which.n)).astype(float)
    c = rng.integers(-4, 5, (which.blocks, which.m, which.n)).astype(float)
    block, row, k = which.places(which.m)
    left = elements(a[block, row, k], which.a, of_fnuz)
    block, column, k = which.places(which.n)
    right = elements(b[block, k, column], which.b, of_fnuz)
    at = which.places_of_sums()
    words = 2 if which.d == "f64" else 1
    sums = operands_of(c[at], which.d)
    at_b, at_c = 40, 80
    vectors = in_vectors(0, left) | in_vectors(at_b, right) | in_vectors(at_c, sums)
    counts = [sum(x.itemsize // 4 for x in part) for part in (left, right, sums)]
    texts = [span(first, count) for first, count in zip((0, at_b, at_c), counts, strict=True)]
    text = f"{which.mnemonic} {texts[2]}, {texts[0]}, {texts[1]}, {texts[2]} {modifiers}"
    after = execute(text, arch, vectors, lanes=which.lanes)
    sign_a, sign_b, sign_c = signs
    wanted = (sign_c * c + sign_a * sign_b * a @ b)[at]
    dtype = {"f64": np.float64, "f32": np.float32, "i32": np.int32}.get(which.d, np.uint32)
    got = [after.v(at_c + i * words, dtype) for i in range(len(sums))]
    expected = operands_of(wanted, which.d)
    for i, (register, numbers) in enumerate(zip(got, expected, strict=True)):
        assert register.tolist() == numbers.view(dtype).tolist(), f"{text}, register {i}"


def elements(values: Array, kind: str, of_fnuz: bool) -> list[Array]:
    """As registers; numbers of 8 bits have another bias on CDNA 3 than elsewhere."""
    if kind in ("fp8", "bf8") and not of_fnuz:
        mantissa = 3 if kind == "fp8" else 2
        bits = codes(values, kind)
        ocp = np.where(bits & 0x7F, bits - (1 << mantissa), bits)  # the exponent is one less
        return integers_in_registers(ocp, 8)
    return operands_of(values, kind)


OF_CDNA3 = """
    f32_32x32x8_f16 f32_16x16x16_f16 f32_32x32x8_bf16 f32_16x16x16_bf16 f32_32x32x4_2b_f16 f32_16x16x4_4b_f16
    f32_4x4x4_16b_f16 f32_32x32x4_2b_bf16 f32_16x16x4_4b_bf16 f32_4x4x4_16b_bf16 f32_32x32x2_f32 f32_16x16x4_f32
    f32_32x32x1_2b_f32 f32_16x16x1_4b_f32 f32_4x4x1_16b_f32 f64_16x16x4_f64 f64_4x4x4_4b_f64 f32_16x16x8_xf32
    f32_32x32x4_xf32 i32_32x32x16_i8 i32_16x16x32_i8 i32_32x32x4_2b_i8 i32_16x16x4_4b_i8 i32_4x4x4_16b_i8
"""
OF_CDNA4 = """
    f32_16x16x32_f16 f32_16x16x32_bf16 f32_32x32x16_f16 f32_32x32x16_bf16 f64_16x16x4_f64 f64_4x4x4_4b_f64
    i32_16x16x64_i8 i32_32x32x32_i8 f32_16x16x4_4b_f16 f32_32x32x4_2b_bf16 f32_4x4x1_16b_f32
"""
FLOATS_OF_8_BITS = [f"{a}_{b}" for a in ("fp8", "bf8") for b in ("fp8", "bf8")]
OF_CDNA5 = """
    f32_16x16x32_f16 f16_16x16x32_f16 f32_16x16x32_bf16 bf16_16x16x32_bf16 f32_16x16x4_f32
"""


def list_all() -> None:
    eight = [f"f32_{shape}_{pair}" for shape in ("16x16x32", "32x32x16") for pair in FLOATS_OF_8_BITS]
    newest = [f"{d}_16x16x{k}_{pair}" for k in (64, 128) for d in ("f32", "f16") for pair in FLOATS_OF_8_BITS]
    lists = (
        ("cdna3/mfma_cdna3", "gfx942", "v_mfma_", [*OF_CDNA3.split(), *eight]),
        ("cdna4/mfma_gfx950", "gfx950", "v_mfma_", [*OF_CDNA4.split(), *eight]),
        ("gfx1250/wmma", "gfx1250", "v_wmma_", [*OF_CDNA5.split(), *newest]),
    )
    for folder, arch, prefix, names in lists:
        for i, name in enumerate(names):

            def layout(gpu: str, mnemonic: str = prefix + name) -> None:
                check(Dense.named(mnemonic), gpu)

            layout.__name__ = name
            conforms(f"{folder} ({name})", arch, in_sweep=i % _PART > 0)(layout)


list_all()


@conforms("cdna4/mfma_gfx950 (f64, NEG)", "gfx942 gfx950")
def negated_operands_of_f64(arch: str) -> None:
    check(Dense.named("v_mfma_f64_16x16x4_f64"), arch, "neg:[1,0,1]", (-1, 1, -1))
    check(Dense.named("v_mfma_f64_4x4x4_4b_f64"), arch, "neg:[0,1,0]", (1, -1, 1))


def list_sparse() -> None:
    for d in ("f32", "f16"):
        for pair in FLOATS_OF_8_BITS:

            def sparse(arch: str, d: str = d, pair: str = pair) -> None:
                check_sparse(arch, d, *pair.split("_"))

            sparse.__name__ = f"swmmac_{d}_{pair}"
            name = f"gfx1250/swmmac_16x16x128_fp8 ({d}, {pair})"
            conforms(name, "gfx1250", in_sweep=pair != "fp8_bf8")(sparse)


def check_sparse(arch: str, d: str, a_kind: str, b_kind: str) -> None:
    """Pairs of stored elements, and fours of B, alternate between the two halves of the lanes; the index has 16
    pairs of a row in each half, those of even numbers in the first register."""
    rng = np.random.default_rng(128)
    chosen = chosen_pairs(rng, 16, 32)
    a = rng.integers(-2, 3, (16, 64)).astype(float)
    b = rng.integers(-2, 3, (128, 16)).astype(float)
    c = rng.integers(-4, 5, (16, 16)).astype(float)
    lane = np.arange(32)[:, None]
    half, slot = lane // 16, np.arange(32)[None]
    stored = slot % 2 + 2 * half + 4 * (slot // 2)
    slot = np.arange(64)[None]
    depth = slot % 4 + 4 * half + 8 * (slot // 4)
    of_word = 16 * half + 2 * np.arange(8)[None]
    index = [nibbles_of(chosen, lane % 16, of_word + word) for word in range(2)]
    vectors = in_vectors(0, elements(a[lane % 16, stored], a_kind, False))
    vectors |= in_vectors(16, elements(b[depth, lane % 16], b_kind, False)) | in_vectors(60, index)
    at = np.arange(8)[None] + 8 * half, np.broadcast_to(lane % 16, (32, 8))
    sums = operands_of(c[at], d)
    after = execute(
        f"v_swmmac_{d}_16x16x128_{a_kind}_{b_kind} {span(40, len(sums))}, v[0:7], v[16:31], v[60:61]",
        arch,
        vectors | in_vectors(40, sums),
    )
    for i, numbers in enumerate(operands_of(product_of(a, b, c, chosen)[at], d)):
        assert after.v(40 + i).tolist() == numbers.view(np.uint32).tolist()


def nibbles_of(chosen: Array, row: Array, groups: Array) -> Array:
    pairs = chosen[np.broadcast_to(row, groups.shape), groups].astype(np.uint32)
    fields = (pairs[..., 0] | pairs[..., 1] << 2) << (4 * np.arange(groups.shape[1], dtype=np.uint32))
    return np.bitwise_or.reduce(fields.astype(np.uint32), axis=1)


list_sparse()
