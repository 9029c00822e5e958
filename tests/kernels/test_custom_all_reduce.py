"""The collectives of simulated GPUs, each in a process of its own."""

from __future__ import annotations

import os
import re
import time
from pathlib import Path

import pytest

from flydsl.errors import ArgumentError, DeviceError
from flydsl.runtime import ranks
from kernels import custom_all_reduce as host
from kernels import custom_all_reduce_kernel as kernel
from tests.kernels import collective_ranks as on_ranks

# Less than a pack, packs and a rest. More of them, and more often, in sweep_collectives.
CASES = [(1, "f32"), (7, "f16"), (1003, "bf16")]


@pytest.mark.slow
def test_collectives() -> None:
    for rank, wrong in enumerate(ranks.run(on_ranks.everything, 4, 4, CASES)):
        assert not any(wrong.values()), f"rank {rank}: {wrong}"


@pytest.mark.slow
def test_three_ranks() -> None:
    """Two to eight are in sweep_collectives."""
    assert ranks.run(on_ranks.sums, 3, 3, [(5, "f32"), (30_000, "f32")], 1 << 18) == [[]] * 3


@pytest.mark.slow
def test_a_rank_that_is_killed_is_an_error_in_the_others(tmp_path: Path) -> None:
    """Within seconds, with the number of the rank, and nothing is left of its memory."""
    before = set(os.listdir("/dev/shm"))
    reports = [tmp_path / str(rank) for rank in (0, 2, 3)]

    with pytest.raises(ranks.RankFailed) as caught:
        ranks.run(on_ranks.killed, 4, 4, 1, str(tmp_path), before_ending=lambda: wait_for(reports))
    assert caught.value.rank == 1
    for report in reports:
        lost, seconds = report.read_text().rsplit(" ", 1)
        assert lost == "(1,)"
        assert float(seconds) < 60  # two and a half, and what a loaded machine adds
    assert not left_by_dead(set(os.listdir("/dev/shm")) - before)


def left_by_dead(names: set[str]) -> list[str]:
    """Names of shared memory whose process has ended: other tests may have some of their own at the same time."""
    made_by = {name: re.search(r"_(\d+)_", name) for name in names}
    return [name for name, found in made_by.items() if found and not Path(f"/proc/{found[1]}").exists()]


def wait_for(reports: list[Path]) -> None:
    while not all(report.exists() for report in reports):
        time.sleep(0.05)


@pytest.mark.parametrize("world", [1, 9])
def test_a_group_of_another_size_is_refused(world: int) -> None:
    with pytest.raises(ArgumentError, match=f"world_size={world}"):
        host.FlyDSLAllreduce(group=None, device="cpu", world_size=world, rank=0, full_nvlink=True)


def test_without_torch_distributed_the_error_says_so() -> None:
    with pytest.raises(DeviceError, match="not initialized"):
        host.FlyDSLAllreduce(group=None, device="cpu", world_size=2, rank=0, full_nvlink=True)


@pytest.mark.parametrize(
    "options",
    [
        {"N": 7, "dtype_str": "f16", "world_size": 2},
        {"N": 8, "dtype_str": "i8", "world_size": 2},
        {"N": 8, "dtype_str": "f16", "world_size": 9},
        {"N": 8, "dtype_str": "f16", "world_size": 8, "threads": 7},
        {"N": 0, "dtype_str": "f16", "world_size": 8},
    ],
    ids=str,
)
def test_what_does_not_fit_is_refused(options: dict[str, object]) -> None:
    with pytest.raises(ArgumentError):
        kernel.make_allreduce_kernels(**options)


@pytest.mark.parametrize("shape", kernel.SHAPES)
def test_parts_are_all_packs(shape: tuple[int, int]) -> None:
    elements, world = shape
    plan = kernel.Plan(elements=elements, dtype="f16", world=world)
    assert plan.part * world + plan.rest == plan.packs == elements // 8
    assert 1 <= plan.blocks(plan.packs) <= kernel.MOST_BLOCKS
