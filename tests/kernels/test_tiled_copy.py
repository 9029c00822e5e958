"""Example 02 of the documents: a tile copied by the threads of a block, through registers; and copies like it."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.errors import LayoutError
from tests.kernels import examples
from tests.launchers import launcher_of


@flyc.kernel
def copy_kernel(
    A: fx.Tensor,
    B: fx.Tensor,
    op: fx.Constexpr,
    dtype: fx.Constexpr,
    tile: fx.Constexpr[tuple],
    thr: fx.Constexpr,
    val: fx.Constexpr,
    through_buffer: fx.Constexpr[bool],
    max_size: fx.Constexpr[bool],
):
    if through_buffer:
        A = fx.rocdl.make_buffer_tensor(A, max_size)
        B = fx.rocdl.make_buffer_tensor(B, max_size)
    tA = fx.slice(fx.zipped_divide(A, fx.make_tile(*tile)), (None, fx.block_idx.x))
    tB = fx.slice(fx.zipped_divide(B, fx.make_tile(*tile)), (None, fx.block_idx.x))
    copy_atom = fx.make_copy_atom(op, dtype)
    tile_mn, layout_tv = fx.make_layout_tv(thr, val)
    thr_copy = fx.make_tiled_copy(copy_atom, layout_tv, tile_mn).get_slice(fx.thread_idx.x)
    source, target = thr_copy.partition_S(tA), thr_copy.partition_D(tB)
    fragment = fx.make_fragment_like(source)
    fx.copy(copy_atom, source, fragment)
    fx.copy(copy_atom, fragment, target)


@flyc.jit
def launch(
    A: fx.Tensor,
    B: fx.Tensor,
    blocks: fx.Int32,
    op: fx.Constexpr,
    dtype: fx.Constexpr = fx.Float32,
    tile: fx.Constexpr[tuple] = (8, 24),
    thr: fx.Constexpr = fx.make_layout((4, 1), (1, 1)),
    val: fx.Constexpr = fx.make_layout((1, 8), (1, 1)),
    through_buffer: fx.Constexpr[bool] = True,
    max_size: fx.Constexpr[bool] = True,
):
    copy_kernel(A, B, op, dtype, tile, thr, val, through_buffer, max_size).launch(grid=blocks, block=fx.size(thr))


def copied(A: torch.Tensor, blocks: int, op: Any, **options: Any) -> torch.Tensor:
    B = torch.zeros_like(A)
    launch(A, B, blocks, op, **options)
    return B


@pytest.mark.checked
@pytest.mark.parametrize("max_size", [True, False])
@pytest.mark.parametrize("width", [32, 64, 128])
@pytest.mark.diagonal(2)
def test_buffer_copies(width: int, max_size: bool) -> None:
    A = torch.randn(24, 120)
    assert torch.equal(copied(A, 15, fx.rocdl.BufferCopy(width), max_size=max_size), A)


@pytest.mark.parametrize("width", [32, 64, 128])
def test_universal_copies(width: int) -> None:
    A = torch.randn(24, 120)
    assert torch.equal(copied(A, 15, fx.UniversalCopy(width), through_buffer=False), A)


@pytest.mark.parametrize(
    ("torch_dtype", "dtype"),
    [(torch.float16, fx.Float16), (torch.bfloat16, fx.BFloat16), (torch.int8, fx.Int8), (torch.int32, fx.Int32)],
)
@pytest.mark.parametrize("through_buffer", [True, False])
@pytest.mark.diagonal(2)
def test_element_types(torch_dtype: torch.dtype, dtype: type, through_buffer: bool) -> None:
    A = torch.randint(-100, 100, (32, 64)).to(torch_dtype)
    width = min(8 * dtype.width, 128)
    op = fx.rocdl.BufferCopy(width) if through_buffer else fx.UniversalCopy(width)
    options: dict[str, Any] = {"tile": (8, 32), "thr": fx.make_layout((4, 4), (4, 1)), "val": fx.make_layout((1, 8))}
    assert torch.equal(copied(A, 8, op, dtype=dtype, through_buffer=through_buffer, **options), A)


def test_a_transposed_tensor_takes_the_atom_of_one_value() -> None:
    A = torch.randn(120, 24).T
    B = torch.zeros(120, 24).T
    launch(A, B, 15, fx.rocdl.BufferCopy32b())
    assert torch.equal(B, A)


def test_machine_code_is_as_good_as_the_reference() -> None:
    """FlyDSL 0.2.2 takes 144 instructions and 52 VGPRs for this program."""
    A, B = torch.randn(24, 120), torch.zeros(24, 120)
    artifact = examples.tiledCopy.lower(A, B).artifact
    artifact(A, B)
    assert torch.equal(A, B)
    resources = artifact.kernels[0].resources
    lines = artifact.isa.splitlines()
    instructions = [line for line in lines if line.startswith("\t") and line.strip()[0] not in ".;"]
    assert len(instructions) <= 144
    assert resources.vgprs <= 52
    assert resources.scratch_bytes == 0


def test_wide_copies_need_values_side_by_side() -> None:
    A = torch.randn(120, 24).T
    with pytest.raises(LayoutError, match="side by side") as caught:
        launch(A, A, 15, fx.rocdl.BufferCopy128b())
    assert caught.value.at is not None
    assert caught.value.at.source_line is not None
    assert "fx.copy(copy_atom, source, fragment)" in caught.value.at.source_line


def test_a_buffer_copy_needs_a_buffer_tensor() -> None:
    with pytest.raises(LayoutError, match="make_buffer_tensor"):
        launch(torch.randn(24, 120), torch.randn(24, 120), 15, fx.rocdl.BufferCopy128b(), through_buffer=False)
    with pytest.raises(LayoutError, match="cannot address a buffer"):
        launch(torch.randn(24, 120), torch.randn(24, 120), 15, fx.UniversalCopy128b())


def test_the_atom_must_be_for_the_element_type() -> None:
    with pytest.raises(LayoutError, match="32-bit values"):
        launch(torch.randn(24, 120).half(), torch.randn(24, 120).half(), 15, fx.rocdl.BufferCopy128b())


@pytest.mark.parametrize("bits", [8, 32, 128])
@pytest.mark.parametrize("through_buffer", [True, False])
@pytest.mark.diagonal(2)
def test_booleans_take_a_byte(bits: int, through_buffer: bool) -> None:
    """Each thread moves its own through a buffer and LDS, in reverse order."""
    threads, each = 64, bits // 8
    tile = fx.make_layout(each, 1)

    @flyc.kernel
    def reversed_kernel(A: fx.Tensor, B: fx.Tensor):
        thread = fx.thread_idx.x
        whole = fx.make_layout(threads * each, 1)
        A, B = (fx.make_view(fx.recast_iter(fx.Boolean, fx.get_iter(tensor)), whole) for tensor in (A, B))
        if through_buffer:
            A, B = (fx.rocdl.make_buffer_tensor(tensor, max_size=False) for tensor in (A, B))
        plain = fx.make_copy_atom(fx.UniversalCopy(bits), fx.Boolean)
        outside = fx.make_copy_atom(fx.rocdl.BufferCopy(bits), fx.Boolean) if through_buffer else plain
        shared = fx.logical_divide(fx.make_view(fx.get_dyn_shared(fx.Boolean), whole), tile)
        first, second = (fx.make_rmem_tensor(each, fx.Boolean) for _ in range(2))
        fx.copy(outside, fx.logical_divide(A, tile)[None, thread], first)
        fx.copy(plain, first, shared[None, threads - 1 - thread])
        fx.gpu.barrier()
        fx.copy(plain, shared[None, thread], second)
        fx.copy(outside, second, fx.logical_divide(B, tile)[None, thread])

    run = launcher_of(reversed_kernel, grid=1, block=threads, smem=threads * each)
    A = torch.rand(threads, each, generator=torch.Generator().manual_seed(bits)) < 0.5
    B = torch.zeros_like(A)
    run(A.flatten(), B.view(-1))
    assert torch.equal(B, A.flip(0))


def test_a_buffer_tensor_of_more_than_4_gib_is_bounded_by_what_a_resource_can_hold() -> None:
    """Its size modulo 4 GiB is 16 bytes, behind which everything would read 0."""
    threads = 64

    @flyc.kernel
    def add_one(B: fx.Tensor, rows: fx.Int32, stride: fx.Int64):
        memory = fx.make_view(fx.get_iter(B), fx.make_layout((threads, rows), (1, stride)))
        atom = fx.make_copy_atom(fx.rocdl.BufferCopy32b(), fx.Int32)
        register = fx.make_rmem_tensor(1, fx.Int32)
        source = fx.rocdl.make_buffer_tensor(memory, max_size=False)
        fx.copy(atom, fx.logical_divide(source[None, 0], fx.make_layout(1, 1))[None, fx.thread_idx.x], register)
        B[fx.thread_idx.x] = register[0] + 1

    run = launcher_of(add_one, grid=1, block=threads)
    B = torch.arange(threads, dtype=torch.int32)
    run(B, 2, (2**32 - 4 * threads + 16) // 4)
    assert torch.equal(B, torch.arange(threads, dtype=torch.int32) + 1)
