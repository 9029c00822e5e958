"""What several dies read is read from memory once: tiles of an operand of a product, above all."""

from __future__ import annotations

import pytest
import torch

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.simulator import tracing

THREADS, STEPS = 64, 32
TILE_BYTES = THREADS * STEPS * 4
BLOCKS = 216

pytestmark = pytest.mark.slow


@flyc.kernel
def add_tiles_kernel(x: fx.Tensor, y: fx.Tensor, run: fx.Constexpr[int], tiles: fx.Constexpr[int]) -> None:
    block = fx.block_idx.x
    total = fx.Float32(0.0)
    for step in range(STEPS):
        total += x[(block // run % tiles * STEPS + step) * THREADS + fx.thread_idx.x]
    y[block * THREADS + fx.thread_idx.x] = total


@flyc.jit
def add_tiles(x: fx.Tensor, y: fx.Tensor, run: fx.Constexpr[int], tiles: fx.Constexpr[int]) -> None:
    add_tiles_kernel(x, y, run, tiles).launch(grid=(BLOCKS,), block=(THREADS,))


def bytes_read(run: int, tiles: int) -> int:
    x, y = torch.empty(tiles * STEPS * THREADS), torch.empty(BLOCKS * THREADS)
    with tracing(gpu="mi300x") as traced:
        add_tiles(x, y, run, tiles)
    memory = traced.launches[0].trace.memory
    assert memory is not None
    return memory.hbm_read_bytes


@pytest.mark.parametrize("run", [3, 8, 24])
def test_workgroups_in_a_row_share_a_tile(run: int) -> None:
    """As those of a column of tiles share the tile of the right operand."""
    tiles = BLOCKS // run
    assert bytes_read(run, tiles) == pytest.approx(tiles * TILE_BYTES, rel=0.05, abs=2048)


@pytest.mark.parametrize("tiles", [3, 27, 72])
def test_workgroups_far_apart_share_a_tile(tiles: int) -> None:
    """As those of a row of tiles share the tile of the left operand."""
    assert bytes_read(1, tiles) == pytest.approx(tiles * TILE_BYTES, rel=0.05, abs=2048)
