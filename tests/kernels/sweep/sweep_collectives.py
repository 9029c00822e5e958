"""Collectives of 2, 4 and 8 simulated GPUs: all types, many sizes, a thousand times in a row: `make sweep`."""

from __future__ import annotations

import pytest

from flydsl.runtime import ranks
from tests.kernels import collective_ranks as on_ranks

# Elements: of less than a pack on, with rests, at the borders of the choice of kernels.
SIZES = (1, 2, 7, 8, 63, 1000, 4097, 20_479, 20_480, 40_961, 100_003)
LARGE_BYTES = 8 << 20


@pytest.mark.parametrize("dtype", ["f32", "f16", "bf16"])
@pytest.mark.parametrize("world", [2, 3, 4, 7, 8])
def test_sizes(world: int, dtype: str) -> None:
    cases = [(elements, dtype) for elements in SIZES]
    assert ranks.run(on_ranks.sums, world, world, cases, 1 << 20) == [[]] * world


@pytest.mark.parametrize("dtype", ["f32", "f16", "bf16"])
@pytest.mark.parametrize("world", [2, 3, 4, 7, 8])
def test_large(world: int, dtype: str) -> None:
    elements = LARGE_BYTES // (4 if dtype == "f32" else 2)
    assert ranks.run(on_ranks.sums, world, world, [(elements, dtype)] * 2, 2 * LARGE_BYTES) == [[]] * world


@pytest.mark.parametrize(("world", "elements"), [(2, 1000), (4, 4104), (8, 1000), (8, 30_000)])
def test_a_thousand_times_in_a_row(world: int, elements: int) -> None:
    cases = [(elements, "bf16")] * 1000
    assert ranks.run(on_ranks.sums, world, world, cases, 1 << 20) == [[]] * world
