"""MFMA atoms: their layouts are the calculator's, and what an instruction computes through them is a product."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl import layout as algebra
from flydsl.atoms import MFMA, UniversalFMA, parse_mma_op
from flydsl.atoms.mfma import INSTRUCTIONS
from flydsl.errors import ArgumentError, CompileError, LayoutError
from tests.launchers import launcher_of

pytestmark = pytest.mark.slow

OPS = [MFMA(*row.key, row.c) for row in INSTRUCTIONS.values()]
ON_GFX942 = [op for op in OPS if "gfx942" in op.instruction.archs]

DTYPES = {
    "f32": (fx.Float32, torch.float32),
    "f16": (fx.Float16, torch.float16),
    "bf16": (fx.BFloat16, torch.bfloat16),
    "i8": (fx.Int8, torch.int8),
    "i32": (fx.Int32, torch.int32),
    "f64": (fx.Float64, torch.float64),
    "f8E4M3FNUZ": (fx.Float8E4M3FNUZ, torch.float8_e4m3fnuz),
    "f8E5M2FNUZ": (fx.Float8E5M2FNUZ, torch.float8_e5m2fnuz),
}


def operand_element(op: MFMA, rows: int, lane: int, value: int) -> tuple[int, int]:
    """(row, k) of what a lane holds of A or B, by the calculator's rule; blocks stand below each other."""
    values = rows * op.k * op.blocks // 64
    row, block, group = lane % rows, lane // rows % op.blocks, lane // (rows * op.blocks)
    return block * rows + row, values * group + value


def result_element(op: MFMA, lane: int, value: int) -> tuple[int, int]:
    """(row, column) of what a lane holds of C, by the calculator's rules."""
    if op.c == "f64":
        block, group = lane // op.n % op.blocks, lane // (op.n * op.blocks)
        return block * op.m + group + 4 * value, lane % op.n
    if op.m == 4:
        return 4 * (lane // 4) + value, lane % 4
    rows_at_once = 4 * (64 // op.n)
    block, rest = divmod(value, op.m // (64 // op.n))
    return block * op.m + rows_at_once * (rest // 4) + 4 * (lane // op.n) + rest % 4, lane % op.n


def elements(layout: algebra.Layout, height: int) -> Iterator[tuple[int, int, tuple[int, int]]]:
    """(lane, value, (row, column)) of a thread-value layout into a tile of that height."""
    lanes, values = (algebra.size(mode) for mode in layout)
    for lane in range(lanes):
        for value in range(values):
            index = layout((lane, value))
            yield lane, value, (index % height, index // height)


@pytest.mark.parametrize("op", OPS, ids=str)
def test_layouts_are_those_of_the_calculator(op: MFMA) -> None:
    for layout, rows in ((op.layout_tv_a, op.m), (op.layout_tv_b, op.n)):
        assert algebra.size(layout) == rows * op.k * op.blocks
        for lane, value, where in elements(layout, rows * op.blocks):
            assert where == operand_element(op, rows, lane, value)
    assert algebra.size(op.layout_tv_c) == op.m * op.n * op.blocks
    for lane, value, where in elements(op.layout_tv_c, op.m * op.blocks):
        assert where == result_element(op, lane, value)


@pytest.mark.parametrize("op", OPS, ids=str)
def test_layouts_reach_every_element_once(op: MFMA) -> None:
    for operand in "abc":
        layout = op.layout_tv(operand)
        size = algebra.size(layout)
        assert sorted(layout(i) for i in range(size)) == list(range(size))


@pytest.mark.parametrize("op", [*OPS, UniversalFMA("f32")], ids=str)
def test_an_op_is_read_back_from_its_text(op: MFMA) -> None:
    assert parse_mma_op(str(op)) == op


@flyc.kernel
def one_call(A: fx.Tensor, B: fx.Tensor, C: fx.Tensor, atom: fx.MmaAtom):
    """One wave multiplies one block-stacked tile, each lane loading and storing what the atom's layouts say."""
    lane = fx.thread_idx.x
    op = atom.type.op
    frags = []
    for tensor, operand in ((A, "a"), (B, "b"), (C, "c")):
        values = algebra.size(op.layout_tv(operand)[1])
        frag = fx.make_rmem_tensor(values, tensor.dtype)
        for value in fx.range_constexpr(values):
            frag[value] = tensor[fx.crd2idx((lane, value), op.layout_tv(operand))]
        frags.append(frag)
    a, b, c = frags
    fx.mma_atom_call(atom, c, a, b, c)
    for value in fx.range_constexpr(algebra.size(op.layout_tv("c")[1])):
        C[fx.crd2idx((lane, value), op.layout_tv("c"))] = c[value]


launch_one_call = launcher_of(one_call, grid=1, block=64)


def integers(shape: tuple[int, ...], dtype: torch.dtype, seed: int) -> torch.Tensor:
    """Small whole numbers, of which every type holds the products exactly."""
    return torch.randint(-3, 4, shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


@pytest.mark.parametrize("op", ON_GFX942, ids=str)
@pytest.mark.diagonal(3)
def test_an_instruction_through_its_layouts_is_a_product(op: MFMA) -> None:
    a = integers((op.blocks, op.m, op.k), DTYPES[op.a][1], 1)
    b = integers((op.blocks, op.n, op.k), DTYPES[op.b][1], 2)
    c = integers((op.blocks, op.m, op.n), DTYPES[op.c][1], 3)
    expected = torch.einsum("zmk,znk->zmn", a.double(), b.double()) + c.double()
    # Tiles are stored with their first mode fastest, blocks below each other.
    flat = [x.reshape(-1, x.shape[-1]).T.contiguous().reshape(-1) for x in (a, b, c)]
    launch_one_call(*flat, fx.make_mma_atom(op))
    result = flat[2].reshape(op.n, op.blocks * op.m).T.reshape(op.blocks, op.m, op.n)
    assert torch.equal(result.double(), expected)


def test_a_shape_that_no_architecture_has_is_refused() -> None:
    with pytest.raises(ArgumentError, match="there is no MFMA 16x16x5 of f16") as caught:
        fx.rocdl.MFMA(16, 16, 5, fx.Float16)
    assert "16x16x16" in str(caught.value.hint)


def test_an_instruction_that_the_target_lacks_is_refused() -> None:
    op = fx.rocdl.MFMA(16, 16, 32, fx.Float16)
    tensors = [torch.zeros(16 * 32, dtype=torch.float16)] * 2 + [torch.zeros(256)]
    with pytest.raises(CompileError, match="gfx942 has no") as caught:
        launch_one_call(*tensors, fx.make_mma_atom(op))
    assert "gfx950" in str(caught.value.hint)
    assert "mma_atom_call" in caught.value.at.source_line


def test_an_instruction_of_several_blocks_makes_no_tiled_mma() -> None:
    with pytest.raises(LayoutError, match="multiplies 4 blocks"):
        fx.make_tiled_mma(fx.make_mma_atom(fx.rocdl.MFMA(16, 16, 4, fx.Float16)))
