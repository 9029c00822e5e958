"""Products of integer matrices, dense and sparse, with each choice of signs, and with sums beyond 32 bits.

The corpus lays out matrices of RDNA 4 in runs of k: a group of 16 lanes holds those that follow the group before; in
waves of 64 lanes with four runs, groups 1 and 2 change places. The layouts of gfx1250 are those of its document.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from flydsl.simulator.arrays import Array
from tests.simulator.conformance.registry import conforms, execute, expect
from tests.simulator.conformance.sparse import PAIRS, product_of

ROWS = 16
LARGEST = (1 << 31) - 1


@dataclass(frozen=True)
class Product:
    """An instruction: its depth, the bits of an element, and the lanes of a wave."""

    arch: str
    depth: int
    bits: int
    lanes: int = 32
    is_sparse: bool = False

    @property
    def mnemonic(self) -> str:
        return f"v_{'sw' if self.is_sparse else 'w'}mma{'c' * self.is_sparse}_i32_16x16x{self.depth}_iu{self.bits}"


def numbers(is_signed: bool, bits: int, row: Array, column: Array, seed: int) -> Array:
    raw = (row * 11 + column * 7 + seed) % 9
    if bits == 4:
        return raw % 7 - 3 if is_signed else raw % 7 + 1
    return raw - 4 if is_signed else raw + 1


def places(lanes: int, depth: int, run: int) -> Array:
    """(lanes, slots): which of `depth` elements a lane holds. run: how many follow each other in a lane, 0 for all."""
    groups = lanes // 16
    slots, group = np.arange(depth // groups)[None], np.arange(lanes)[:, None] // 16
    if groups == 4:
        group = (group & 1) << 1 | group >> 1
    run = run or depth // groups
    return groups * run * (slots // run) + run * group + slots % run


def registers(values: Array, bits: int) -> list[Array]:
    """Integers (lanes, count) in registers."""
    fields = (values.astype(np.int64) & ((1 << bits) - 1)).astype(np.uint32)
    each = 32 // bits
    parts = [
        fields[:, i : i + each] << (bits * np.arange(each, dtype=np.uint32)) for i in range(0, values.shape[1], each)
    ]
    return [np.bitwise_or.reduce(part, axis=1) for part in parts]


def span(first: int, count: int) -> str:
    return f"v{first}" if count == 1 else f"v[{first}:{first + count - 1}]"


def check(which: Product, a_signed: bool, b_signed: bool, saturates: bool) -> None:
    row, depth = np.arange(ROWS)[:, None], np.arange(which.depth)
    chosen = PAIRS[np.random.default_rng(which.depth).integers(0, 6, (ROWS, which.depth // 4))]
    held = (
        (4 * np.arange(which.depth // 4)[None, :, None] + chosen).reshape(ROWS, -1) if which.is_sparse else depth[None]
    )
    a = np.broadcast_to(numbers(a_signed, which.bits, row, held, 61), (ROWS, held.shape[1])).copy()
    b = numbers(b_signed, which.bits, depth[:, None], row.T, 64)
    c = (row * 5 + row.T * 3 + 61) % 11 - 5
    a[0], b[:, 0], c[0, 0] = 1, 1, LARGEST - 4
    if a_signed:
        a[1], c[1, 0] = -1, -LARGEST + 3
    if b_signed:
        b[:, 1], c[0, 1] = -1, -LARGEST + 3
    newest = which.arch == "gfx1250"
    at_a = places(which.lanes, held.shape[1], 8 if newest else 0)
    at_b = places(which.lanes, which.depth, (16 if which.is_sparse else 8) if newest else 0)
    lane = np.arange(which.lanes)
    left = registers(a[lane[:, None] % 16, at_a], which.bits)
    right = registers(b[at_b, lane[:, None] % 16], which.bits)
    count = 256 // which.lanes
    rows = 8 * (lane // 16 % 2) + 4 * (lane // 32) if which.lanes == 64 else 8 * (lane // 16)
    operands = dict(enumerate(left)) | {16 + i: x for i, x in enumerate(right)}
    operands |= {40 + i: c[rows + i, lane % 16].astype(np.int32) for i in range(count)}
    index = ""
    if which.is_sparse:
        selectors = chosen.reshape(ROWS, -1)[lane[:, None] % 16, at_a].astype(np.uint64)
        whole = (selectors << (2 * np.arange(at_a.shape[1], dtype=np.uint64))).sum(axis=1)
        operands[60] = whole if at_a.shape[1] > 16 else whole.astype(np.uint32)
        index = ", v[60:61]" if at_a.shape[1] > 16 else ", v60"
    sums = span(40, count)
    modifiers = f"neg_lo:[{int(a_signed)},{int(b_signed)},0] {'clamp' * saturates}"
    addend = index or f", {sums}"
    text = f"{which.mnemonic} {sums}, {span(0, len(left))}, {span(16, len(right))}{addend} {modifiers}"
    after = execute(text, which.arch, operands, lanes=which.lanes)
    exact = product_of(a, b, c, chosen) if which.is_sparse else c + a @ b
    wanted = exact.clip(-LARGEST - 1, LARGEST) if saturates else exact
    for i in range(count):
        expect(after.v(40 + i), wanted[rows + i, lane % 16].tolist(), f"{text}, waves of {which.lanes}")


PRODUCTS = (
    Product("gfx1201", 16, 8), Product("gfx1201", 16, 4), Product("gfx1201", 32, 4),
    Product("gfx1201", 16, 8, lanes=64), Product("gfx1201", 32, 4, lanes=64),
    Product("gfx1201", 32, 8, is_sparse=True), Product("gfx1201", 32, 4, is_sparse=True),
    Product("gfx1201", 64, 4, is_sparse=True), Product("gfx1250", 64, 8), Product("gfx1250", 128, 8, is_sparse=True),
)  # fmt: skip


def list_products() -> None:
    for which in PRODUCTS:
        folder = "gfx1250" if which.arch == "gfx1250" else "rdna4"
        name = f"{folder}/int_isa/{which.mnemonic[2:]}, waves of {which.lanes}"

        def every_sign(_: str, which: Product = which) -> None:
            for signs in ((False, False), (True, True), (True, False), (False, True)):
                check(which, *signs, saturates=signs[0])

        conforms(name, which.arch)(every_sign)


list_products()
