"""Tiled copies of the tensor data mover: what arrives, at the edges and by several waves, and what they refuse."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.errors import ArgumentError, FlyError
from flydsl.expr.rocdl import cdna5
from flydsl.simulator import checking
from tests.launchers import launcher_of


@pytest.fixture(autouse=True)
def on_gfx1250(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLYDSL_GPU_ARCH", "gfx1250")


@flyc.kernel
def through_kernel(
    A: fx.Tensor, B: fx.Tensor, box: fx.Constexpr, tile: fx.Constexpr, waves: fx.Constexpr, check: fx.Constexpr
):
    """Every tile to LDS and from there to B, by `waves` waves."""
    storage = fx.SharedAllocator().allocate(fx.Array[fx.Int32, fx.cosize(box), 128]).peek()
    load, from_a = cdna5.make_tiled_tdm_atom(fx.rocdl.TensorLoad(), A, box, tile, waves)
    store, to_b = cdna5.make_tiled_tdm_atom(
        fx.rocdl.TensorStore(), B, box, tile, num_warps=waves, init_boundary_check=check
    )
    place = fx.make_view(storage.ptr, box)
    at = (fx.block_idx.x, fx.block_idx.y)
    wave = fx.thread_idx.x // 32
    s, g = cdna5.tdm_partition(load, wave, fx.make_layout(waves, 1), place, fx.zipped_divide(from_a, tile)[None, at])
    fx.copy(load, g, s)
    fx.rocdl.s_wait_tensorcnt(0)
    fx.barrier()
    s, g = cdna5.tdm_partition(store, wave, fx.make_layout(waves, 1), place, fx.zipped_divide(to_b, tile)[None, at])
    fx.copy(store, s, g)
    fx.rocdl.s_wait_tensorcnt(0)


@flyc.jit
def through(
    A: fx.Tensor,
    B: fx.Tensor,
    m: fx.Int32,
    n: fx.Int32,
    box: fx.Constexpr,
    tile: fx.Constexpr,
    waves: fx.Constexpr,
    check: fx.Constexpr = True,
):
    grid = ((m + tile[0] - 1) // tile[0], (n + tile[1] - 1) // tile[1])
    through_kernel(A, B, box, tile, waves, check).launch(grid=grid, block=32 * waves)


BOXES = {
    "rows": fx.make_layout((16, 32), (32, 1)),
    "padded rows": fx.make_layout((16, 32), (36, 1)),
    "split rows": fx.make_layout(((4, 4), 32), ((36, 144), 1)),
}


@pytest.mark.slow
@pytest.mark.parametrize("waves", [1, 4])
@pytest.mark.parametrize("box", BOXES)
def test_what_is_inside_of_a_tensor_arrives_and_nothing_else(box: str, waves: int) -> None:
    A = torch.arange(40 * 72, dtype=torch.int32).view(40, 72) + 1
    backing = torch.full((48, 96), -1, dtype=torch.int32)
    B = backing[:40, :72]
    with checking() as found:
        through(flyc.from_dlpack(A).mark_layout_dynamic(), B, 40, 72, BOXES[box], (16, 32), waves)
    assert not str(found)
    assert torch.equal(B, A)
    backing[:40, :72] = -1
    assert (backing == -1).all()


def test_columns_of_a_tensor_that_has_them_side_by_side() -> None:
    A = torch.arange(48 * 20, dtype=torch.int32).view(20, 48).t()
    B = torch.zeros(20, 48, dtype=torch.int32).t()
    through(A, B, 48, 20, fx.make_layout((16, 8), (1, 20)), (16, 8), 2)
    assert torch.equal(A, B)


def test_padding_after_several_rows() -> None:
    @flyc.kernel
    def kernel(A: fx.Tensor, B: fx.Tensor):
        box = fx.make_layout(((4, 4), 32), ((32, 136), 1))
        storage = fx.SharedAllocator().allocate(fx.Array[fx.Int32, 4 * 136, 128]).peek()
        load, a = cdna5.make_tiled_tdm_atom(fx.rocdl.TensorLoad(), A, box, (16, 32), 2)
        place, tile = fx.make_view(storage.ptr, box), fx.zipped_divide(a, (16, 32))[None, (0, 0)]
        s, g = cdna5.tdm_partition(load, fx.thread_idx.x // 32, fx.make_layout(2, 1), place, tile)
        fx.copy(load, g, s)
        fx.rocdl.s_wait_tensorcnt(0)
        fx.barrier()
        for i in fx.range_constexpr(8):
            row, column = i * 2 + fx.thread_idx.x // 32, fx.thread_idx.x % 32
            B[row, column] = storage[row // 4 * 136 + row % 4 * 32 + column]

    A = torch.arange(16 * 32, dtype=torch.int32).view(16, 32) + 1
    B = torch.zeros_like(A)
    launcher_of(kernel, grid=1, block=64)(A, B)
    assert torch.equal(A, B)


def test_what_is_not_checked_goes_on_behind_the_end_of_a_row() -> None:
    @flyc.kernel
    def kernel(A: fx.Tensor, B: fx.Tensor):
        box = fx.make_layout((16, 32), (32, 1))
        storage = fx.SharedAllocator().allocate(fx.Array[fx.Int32, 16 * 32, 128]).peek()
        load, a = cdna5.make_tiled_tdm_atom(fx.rocdl.TensorLoad(), A, box, (16, 32))
        narrow = fx.make_view(fx.get_iter(B), fx.make_layout((10, 20), (64, 1)))
        store, _ = cdna5.make_tiled_tdm_atom(fx.rocdl.TensorStore(), narrow, box, (16, 32))
        tile = fx.zipped_divide(a, (16, 32))[None, (0, 0)]
        s, g = cdna5.tdm_partition(load, 0, fx.make_layout(1, 1), fx.make_view(storage.ptr, box), tile)
        fx.copy(load, g, s)
        fx.rocdl.s_wait_tensorcnt(0)
        _, h = cdna5.tdm_partition(
            store, 0, fx.make_layout(1, 1), fx.make_view(storage.ptr, box), fx.make_identity_tensor((16, 32))
        )
        fx.copy(fx.atom_set_value(store, "boundary_check", (1, fx.Int32(fx.block_idx.x))), s, h)
        fx.rocdl.s_wait_tensorcnt(0)

    A = torch.arange(16 * 32, dtype=torch.int32).view(16, 32) + 1
    B = torch.zeros(16, 64, dtype=torch.int32)
    launcher_of(kernel, grid=1, block=32)(A, B)
    assert torch.equal(B[:10, :32], A[:10])
    assert B.sum() == A[:10].sum()


@flyc.kernel
def steps_kernel(A: fx.Tensor, B: fx.Tensor, steps: fx.Int32):
    """The second mode's planes one after the other: stages of LDS that a loop goes through."""
    storage = fx.SharedAllocator().allocate(fx.Array[fx.Float16, 2 * 8 * 32, 128]).peek()
    place = fx.make_view(storage.ptr, fx.make_layout(((8, 1, 32), 2), ((32, 0, 1), 8 * 32)))
    box = fx.make_layout((8, 1, 32), (32, 0, 1))
    load, a = cdna5.make_tiled_tdm_atom(fx.rocdl.TensorLoad(), A, box, (8, 1, 32), num_warps=2)
    store, b = cdna5.make_tiled_tdm_atom(fx.rocdl.TensorStore(), B, box, (8, 1, 32), num_warps=2)
    waves = fx.make_layout(2, 1)
    wave = fx.thread_idx.x // 32
    s, g = cdna5.tdm_partition(load, wave, waves, place, fx.zipped_divide(a, (8, 1, 32))[None, (0, None, 0)])
    _, h = cdna5.tdm_partition(store, wave, waves, place, fx.zipped_divide(b, (8, 1, 32))[None, (0, None, 0)])
    for step in range(steps):
        fx.copy(load, g[None, step], s[None, step % 2], workgroup_mask=0)
        fx.rocdl.s_wait_tensorcnt(0)
        fx.barrier()
        fx.copy(store, s[None, step % 2], h[None, step])
        fx.rocdl.s_wait_tensorcnt(0)
        fx.barrier()


def test_a_loop_over_stages_reads_zeros_behind_the_last_plane() -> None:
    A = torch.randn(6, 3, 32).half()
    backing = torch.full((6, 5, 32), 7.0).half()
    launcher_of(steps_kernel, grid=1, block=64)(A, backing, 5)
    assert torch.equal(backing[:, :3], A)
    assert (backing[:, 3:] == 0).all()


def test_all_parts_of_a_tile_by_one_copy() -> None:
    @flyc.kernel
    def kernel(A: fx.Tensor, B: fx.Tensor):
        storage = fx.SharedAllocator().allocate(fx.Array[fx.Float32, 3 * 64, 128]).peek()
        place = fx.make_view(storage.ptr, fx.make_layout(((4, 16), 3), ((16, 1), 64)))
        matrix = fx.make_view(fx.get_iter(A), fx.make_layout((12, 16), (16, 1)))
        load, a = cdna5.make_tiled_tdm_atom(fx.rocdl.TensorLoad(), matrix, fx.make_layout((4, 16), (16, 1)), (4, 16))
        tiles = fx.zipped_divide(a, (4, 16))[None, (None, 0)]
        s, g = cdna5.tdm_partition(load, 0, fx.make_layout(1, 1), place, tiles)
        fx.copy(load, g, s)
        fx.rocdl.s_wait_tensorcnt(0)
        for i in fx.range_constexpr(6):
            B[fx.thread_idx.x + 32 * i] = storage[fx.thread_idx.x + 32 * i]

    A, B = torch.randn(12, 16), torch.zeros(192)
    launcher_of(kernel, grid=1, block=32)(A, B)
    assert torch.equal(B, A.flatten())


def test_partitions_are_flydsls(trace: Callable[..., Any]) -> None:
    """The layouts of FlyDSL 0.4.2, whose (part, 1) is part here."""

    def body(A: Any, Out: Any) -> list[str]:
        storage = fx.SharedAllocator().allocate(fx.Array[fx.Float16, 8192]).peek()
        matrix = fx.make_view(fx.get_iter(A), fx.make_layout((64, 64), (64, 1)))
        load, _ = cdna5.make_tiled_tdm_atom(fx.rocdl.TensorLoad(), matrix, fx.make_layout((8, 32), (32, 1)), (8, 32))
        place = fx.make_view(storage.ptr, fx.make_layout(((8, 32), 3), ((32, 1), 256)))
        tiles = fx.zipped_divide(fx.make_identity_tensor((8, 160)), (8, 32))[None, (0, None)]
        s, g = cdna5.tdm_partition(load, 0, fx.make_layout(1, 1), place, tiles)
        return [str(fx.get_layout(s)), str(g.layout)]

    assert trace(body) == ["(256,3):(1,256)", "((32,8),5):((1E1,1E0),32E1)"]


REFUSED = {
    "a gap": (fx.make_layout((16, 32), (32, 2)), (16, 32), 1, "its elements lie side by side"),
    "another tile": (fx.make_layout((16, 16), (16, 1)), (16, 32), 1, "as many elements as the tile"),
    "columns of rows": (fx.make_layout((16, 32), (1, 16)), (16, 32), 1, "its stride in the tensor is"),
    "short rows": (fx.make_layout((16, 2), (2, 1)), (16, 2), 1, "rows of 8 bytes"),
    "no whole parts": (fx.make_layout((16, 32), (32, 1)), (16, 32), 3, "512 elements by 3 waves"),
    "no box": (fx.make_layout((6, 32), (32, 1)), (6, 32), 4, "is no box of the tile"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_parts_that_are_no_box_are_refused(case: str) -> None:
    box, tile, waves, text = REFUSED[case]
    A = torch.zeros(64, 64, dtype=torch.int32)
    with pytest.raises(ArgumentError, match=text):
        through(A, A.clone(), 64, 64, box, tile, waves)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda A, atom, s: fx.copy(atom, s, s), "one side is a part of the coordinates"),
        (lambda A, atom, s: atom.set_value("imm_offset", 1), "has no value 'imm_offset'"),
        (lambda A, atom, s: atom.set_value({"boundary_check": (1,)}), "one for each"),
        (lambda A, atom, s: cdna5.make_tiled_tdm_atom("load", A, s, (4, 16)), r"fx\.rocdl\.TensorLoad"),
        (
            lambda A, atom, s: cdna5.tdm_partition(atom, 0, fx.make_layout(2, 1), s, fx.make_identity_tensor((4, 16))),
            "num_warps=1",
        ),
    ],
)
def test_wrong_calls_name_what_belongs_there(call: Any, text: str, trace: Callable[..., Any]) -> None:
    def body(A: Any, Out: Any) -> None:
        matrix = fx.make_view(fx.get_iter(A), fx.make_layout((64, 16), (16, 1)))
        storage = fx.SharedAllocator().allocate(fx.Array[fx.Float32, 64]).peek()
        box = fx.make_layout((4, 16), (16, 1))
        atom, _ = cdna5.make_tiled_tdm_atom(cdna5.TensorLoad(), matrix, box, (4, 16))
        call(matrix, atom, fx.make_view(storage.ptr, box))

    with pytest.raises(FlyError, match=text):
        trace(body)


@flyc.kernel
def rings_kernel(A: fx.Pointer, B: fx.Tensor, m: fx.Int32, k: fx.Int32, stride: fx.Int32, mask: fx.Int32):
    """Waves that each load tiles of their own, from a pointer, into stages of dynamic shared memory."""
    arena = fx.SharedAllocator(static=False)
    arena.allocate(2 * 1024)
    base = arena.base_ptr
    whole = fx.make_view(fx.recast_iter(fx.Int8, A), fx.make_layout((m, k), (fx.Int64(stride), 1)))
    load, tiles = cdna5.make_tiled_tdm_atom(fx.rocdl.TensorLoad(), whole, fx.make_layout((8, 64), (80, 1)), (8, 64))
    load = fx.atom_set_value(load, "workgroup_mask", mask)
    tiles = fx.zipped_divide(tiles, (8, 64))[None, (fx.block_idx.x, None)]
    place = fx.make_view(fx.recast_iter(fx.Int8, base), fx.make_layout(((8, 64), 2), ((80, 1), 1024)))
    s, g = cdna5.tdm_partition(load, 0, fx.make_layout(1, 1), place, tiles)
    wave = fx.rocdl.readfirstlane(fx.T.i32, fx.thread_idx.x // 32)

    def issue(stage: Any, step: Any) -> None:
        if wave == stage % 2:
            fx.copy(load, g[None, step], s[None, stage])

    for step in range(k // 64):
        issue(step % 2, step)
        fx.rocdl.s_wait_tensorcnt(0)
        fx.barrier()
        for i in fx.range_constexpr(8):
            row = fx.block_idx.x * 8 + i
            if row < m:
                element = fx.recast_iter(fx.Int8, base) + (step % 2 * 1024 + i * 80 + fx.thread_idx.x)
                B[row, step * 64 + fx.thread_idx.x] = fx.ptr_load(element)
        fx.barrier()


@pytest.mark.slow
def test_tiles_of_a_pointer_in_a_ring_of_dynamic_shared_memory() -> None:
    @flyc.jit
    def launch(A: fx.Pointer, B: fx.Tensor, m: fx.Int32, k: fx.Int32, stride: fx.Int32, mask: fx.Int32):
        rings_kernel(A, B, m, k, stride, mask).launch(grid=(m + 7) // 8, block=64)

    A = torch.randint(-99, 99, (20, 256), dtype=torch.int8)
    B = torch.zeros(20, 192, dtype=torch.int8)
    launch(flyc.from_c_void_p(fx.Int8, A.data_ptr()), B, 20, 192, 256, 0)
    assert torch.equal(B, A[:, :192])
