"""The tiles of products that are launched without one: their rough times, and what these are made of."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import Any

import numpy as np
import pytest

from kernels import hgemm_splitk, preshuffle_gemm, tuned
from kernels.tuned.rough_time import Workgroup, rough_time_us

TABLES = [("hgemm", "bf16", 16), ("preshuffle_gemm", "fp8", 8), ("preshuffle_gemm", "bf16", 16)]
DIES = 8


def work_of(family: str, kind: str, row: Mapping[str, Any]) -> Workgroup:
    if family == "hgemm":
        return hgemm_splitk.Tile.of(dict(row["options"])).work(row["N"], row["K"])
    return preshuffle_gemm.Tile(**row["options"]).work(row["K"], kind)


@pytest.mark.parametrize(("family", "kind", "bits"), TABLES)
@pytest.mark.parametrize("arch", ["gfx942", "gfx950"])
def test_rough_times_are_near_those_of_the_model(family: str, kind: str, bits: int, arch: str) -> None:
    rows = tuned.table(family, arch)[kind]
    sizes = [(row["M"], row["N"], row["K"]) for row in rows]
    found = [rough_time_us(size, bits, work_of(family, kind, row), arch) for size, row in zip(sizes, rows, strict=True)]
    off = np.abs(np.array(found) / [row["us"] for row in rows] - 1)
    assert np.median(off) < 0.1
    assert off.max() < 0.5


def workgroup(group: int, by_rows: bool) -> Workgroup:
    return Workgroup(
        tile=(64, 64), waves=(1, 4, 1), k_bytes=512, step_bytes=128, parts=1, ahead=1, b_to_lds=False, lds_bytes=1,
        group=group, by_rows=by_rows,
    )  # fmt: skip


@pytest.mark.parametrize("by_rows", [False, True])
@pytest.mark.parametrize("grid", [*product((1, 3, 4, 12, 16), (8, 20, 36, 128))], ids=str)
def test_dies_read_the_rows_of_their_workgroups(grid: tuple[int, int], by_rows: bool) -> None:
    """As many as one finds by walking the grid, where no die is idle."""
    order = list(product(*map(range, grid))) if by_rows else [place[::-1] for place in product(*map(range, grid[::-1]))]
    read = [{(place[operand], number % DIES) for number, place in enumerate(order)} for operand in (0, 1)]
    found = workgroup(0, by_rows).dies_that_read(grid, DIES)
    assert found == tuple(len(pairs) / count for pairs, count in zip(read, grid, strict=True))


def test_groups_of_rows_are_read_by_fewer_dies() -> None:
    """What is read of A grows as long as B shrinks by more."""
    in_turn, grouped = (workgroup(group, True).dies_that_read((16, 64), DIES) for group in (0, 4))
    assert sum(grouped) < sum(in_turn)


@pytest.mark.parametrize("arch", ["gfx942", "gfx950"])
def test_fewer_rows_take_no_more_time(arch: str) -> None:
    """Roughly, within what the tables do not know."""
    for n, k in ((4096, 4096), (1280, 8192), (7168, 2048)):
        times = []
        for m in (1, 16, 48, 100, 500, 3000):
            tile = hgemm_splitk.tile_of(m, n, k, arch)
            times.append(rough_time_us((m, n, k), 16, tile.work(n, k), arch))
        assert times == sorted(times)


def test_steps_divide_an_odd_k() -> None:
    """2880 is 45 times 64: of 512 bytes along K, 320 remain, not 64."""
    assert preshuffle_gemm.tile_of(640, 5120, 2880, "fp8", "gfx950").row_bytes > 64
    assert hgemm_splitk.tile_of(640, 5120, 2880, "gfx950").tile[2] > 64
