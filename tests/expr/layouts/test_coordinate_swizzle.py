"""Tensors seen through coordinate swizzles, in kernels on the simulator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.errors import LayoutError
from tests.launchers import launcher_of

ROWS, COLUMNS = 16, 64
COLUMN, ROW = torch.meshgrid(torch.arange(COLUMNS), torch.arange(ROWS), indexing="xy")
SWIZZLED_COLUMN = COLUMN ^ (ROW & 7) << 3


def swizzled_layout() -> Any:
    swizzle = fx.static(fx.CoordSwizzleType.get(3, 0, [0], 3, [1]))
    coordinates = fx.make_composed_layout(swizzle, fx.make_identity_layout((ROWS, COLUMNS)))
    return fx.make_composed_layout(fx.make_layout((ROWS, COLUMNS), (COLUMNS, 1)), coordinates)


def example() -> torch.Tensor:
    return torch.arange(ROWS * COLUMNS, dtype=torch.float32).reshape(ROWS, COLUMNS)


@pytest.mark.parametrize("indices", ["of the kernel", "known"])
def test_elements_of_shared_memory(indices: str) -> None:
    @flyc.kernel
    def kernel(A: fx.Tensor, Out: fx.Tensor):
        t = fx.thread_idx.x
        memory = fx.get_dyn_shared(fx.Float32)
        swizzled = fx.make_view(memory, swizzled_layout())
        for row in range(ROWS) if indices == "of the kernel" else fx.range_constexpr(ROWS):
            swizzled[row, t] = A[row, t]
        fx.barrier()
        plain = fx.make_view(memory, fx.make_layout((ROWS, COLUMNS), (COLUMNS, 1)))
        for row in fx.range_constexpr(ROWS):
            Out[row, t] = plain[row, t]

    a, out = example(), torch.zeros(ROWS, COLUMNS)
    launcher_of(kernel, grid=1, block=COLUMNS, smem=ROWS * COLUMNS * 4)(a, out)
    assert torch.equal(out, a[ROW, SWIZZLED_COLUMN])


def test_copies_of_several_values() -> None:
    """Each thread copies eight values, which the swizzle leaves side by side, from a place that it computes."""

    @flyc.kernel
    def kernel(A: fx.Tensor, Out: fx.Tensor):
        t = fx.thread_idx.x
        threads = fx.make_layout((8, (COLUMNS // 8, 8), ROWS // 8), (fx.E(1), (8 * fx.E(1), fx.E(0)), 8 * fx.E(0)))
        swizzled = fx.make_composed_layout(fx.CoordSwizzle(3, 0, [0], 3, [1]), threads)
        storage = fx.make_layout((ROWS, COLUMNS), (COLUMNS, 1))
        source = fx.make_view(fx.get_iter(A), fx.make_composed_layout(storage, swizzled))
        target = fx.make_view(fx.get_iter(Out), fx.make_composed_layout(storage, threads))
        copy = fx.make_copy_atom(fx.UniversalCopy128b(), fx.Float32)
        for half in fx.range_constexpr(ROWS // 8):
            here = (None, (t % 8, t // 8), half)
            registers = fx.make_rmem_tensor(8, fx.Float32)
            fx.copy(copy, source[here], registers)
            fx.copy(copy, registers, target[here])

    a, out = example(), torch.zeros(ROWS, COLUMNS)
    launcher_of(kernel, grid=1, block=64)(a, out)
    assert torch.equal(out, a[ROW, SWIZZLED_COLUMN])


def test_copies_that_go_to_shared_memory_by_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of a pitch known at run time: 64 pieces of 16 bytes land one after another, from swizzled places."""
    monkeypatch.setenv("FLYDSL_GPU_ARCH", "gfx950")
    rows, row_bytes, pieces = 16, 128, 8
    swizzle = fx.CoordSwizzle(3, 0, [0], 4, [1])

    @flyc.kernel
    def kernel(A: fx.Tensor, Out: fx.Tensor, pitch: fx.Int32):
        t = fx.thread_idx.x
        wave_rows = 64 // pieces
        places = fx.make_layout(
            (16, (pieces, wave_rows), rows // wave_rows), (fx.E(1), (16 * fx.E(1), fx.E(0)), wave_rows * fx.E(0))
        )
        storage = fx.make_layout((rows, row_bytes), (pitch, 1))
        source = fx.make_composed_layout(storage, fx.make_composed_layout(swizzle, places))
        pieces_of_a = fx.make_view(fx.get_iter(fx.rocdl.make_buffer_tensor(A)), source)
        memory = fx.get_dyn_shared(fx.Uint8)
        plain = fx.make_view(memory, fx.make_layout((16, rows // wave_rows), (1, 1024)))
        copy = fx.make_copy_atom(fx.rocdl.BufferCopyLDS128b(), fx.Uint8)
        for i in fx.range_constexpr(rows // wave_rows):
            fx.copy(copy, pieces_of_a[None, (t % pieces, t // pieces), i], plain[None, i])
        fx.rocdl.s_waitcnt(0)
        fx.barrier()
        coordinates = fx.make_composed_layout(swizzle, fx.make_identity_layout((rows, row_bytes)))
        whole = fx.make_composed_layout(fx.make_layout((rows, row_bytes), (row_bytes, 1)), coordinates)
        staged = fx.make_view(memory, whole)
        for row in fx.range_constexpr(rows):
            for half in fx.range_constexpr(2):
                Out[row, 64 * half + t] = staged[row, 64 * half + t]

    torch.manual_seed(0)
    a = torch.randint(0, 256, (rows, row_bytes + 48), dtype=torch.uint8)
    out = torch.zeros(rows, row_bytes, dtype=torch.uint8)
    launcher_of(kernel, grid=1, block=64, smem=rows * row_bytes)(a, out, row_bytes + 48)
    assert torch.equal(out, a[:, :row_bytes])


def test_partitions_of_a_tiled_copy() -> None:
    @flyc.kernel
    def kernel(A: fx.Tensor, Out: fx.Tensor):
        t = fx.thread_idx.x
        atom = fx.make_copy_atom(fx.UniversalCopy64b(), fx.Float32)
        lanes, values = fx.make_ordered_layout((2, 32), (1, 0)), fx.make_ordered_layout((1, 2), (1, 0))
        copy = fx.make_tiled_copy_tv(atom, lanes, values)
        mine = copy.get_slice(t)
        staged = fx.make_view(fx.get_dyn_shared(fx.Float32), swizzled_layout())
        registers = fx.make_fragment_like(mine.partition_D(staged))
        fx.copy(atom, mine.partition_S(fx.zipped_divide(A, (ROWS, COLUMNS))[None, 0]), registers)
        fx.copy(atom, registers, mine.partition_D(staged))
        fx.barrier()
        for row in fx.range_constexpr(ROWS):
            Out[row, t] = staged[row, 63 - t]

    a, out = example(), torch.zeros(ROWS, COLUMNS)
    launcher_of(kernel, grid=1, block=64, smem=ROWS * COLUMNS * 4)(a, out)
    assert torch.equal(out, a.flip(1))


def test_a_thread_is_named_by_its_coordinate() -> None:
    @flyc.kernel
    def kernel(A: fx.Tensor, Out: fx.Tensor):
        t = fx.thread_idx.x
        atom = fx.make_copy_atom(fx.UniversalCopy32b(), fx.Float32)
        copy = fx.make_tiled_copy(atom, fx.make_layout(((ROWS, 4), 4), ((1, ROWS), 4 * ROWS)), fx.make_tile(ROWS, 16))
        views = [fx.make_view(fx.get_iter(x), fx.make_layout((ROWS, COLUMNS), (COLUMNS, 1))) for x in (A, Out)]
        mine = copy.get_slice((t % ROWS, t // ROWS))
        source, target = mine.partition_S(views[0]), mine.partition_D(views[1])
        registers = fx.make_fragment_like(source)
        fx.copy(atom, source, registers)
        registers.store(registers.load() * 2)
        fx.copy(atom, registers, target)

    a, out = example(), torch.zeros(ROWS, COLUMNS)
    launcher_of(kernel, grid=1, block=64)(a, out)
    assert torch.equal(out, 2 * a)


def test_a_coordinate_of_a_thread_fits_the_threads(trace: Callable[..., Any]) -> None:
    def body(A: Any, Out: Any) -> None:
        atom = fx.make_copy_atom(fx.UniversalCopy32b(), fx.Float32)
        copy = fx.make_tiled_copy(atom, fx.make_layout(((16, 4), 1), ((1, 16), 0)), fx.make_tile(16, 4))
        copy.get_slice((0, 1, 2))

    with pytest.raises(LayoutError, match=r"the coordinate \(0,1,2\) does not fit \(16,4\)"):
        trace(body)


def test_values_that_the_swizzle_would_part_are_refused(trace: Callable[..., Any]) -> None:
    def body(A: Any, Out: Any) -> None:
        swizzle = fx.make_composed_layout(fx.CoordSwizzle(3, 0, [0], 1, [1]), fx.make_identity_layout((64, 64)))
        view = fx.make_view(fx.get_iter(A), fx.make_composed_layout(fx.make_layout((64, 64), (64, 1)), swizzle))
        atom = fx.make_copy_atom(fx.UniversalCopy128b(), fx.Float32)
        fx.copy(atom, fx.zipped_divide(view, (1, 4))[None, (3, 5)], fx.make_rmem_tensor(4, fx.Float32))

    with pytest.raises(LayoutError, match="side by side"):
        trace(body)


def test_a_view_needs_indices(trace: Callable[..., Any]) -> None:
    def body(A: Any, Out: Any) -> None:
        fx.make_view(
            fx.get_iter(A), fx.make_composed_layout(fx.CoordSwizzle(3, 0, [0], 1, [1]), fx.make_identity_layout((8, 8)))
        )

    with pytest.raises(LayoutError, match="gives coordinates"):
        trace(body)


def test_a_swizzle_has_the_numbers_it_was_made_of() -> None:
    swizzle = fx.static(fx.CoordSwizzleType.get(3, 1, [0], 4, [1]))
    assert (swizzle.mask, swizzle.base_row, swizzle.base_col) == (3, 1, 4)
    assert [list(mode) for mode in (swizzle.mode_row, swizzle.mode_col)] == [[0], [1]]
    assert str(fx.CoordSwizzleType.get(3, 1, [0], 4, [1])) == "!fly.coord_swizzle<CS<3,1,[0],4,[1]>>"
