"""Sweeps in this process: rows, errors, what is best; and that a file of results is taken for what it is."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import flydsl
from flydsl import Config
from flydsl.errors import ArchError, ArgumentError
from flydsl.sweeps import Row, Table
from flydsl.sweeps.bench import estimated
from flydsl.sweeps.journal import JournalError
from tests.sweeps.launchers import doubled, scale, sum_columns, tensors

BLOCKS = {"block": [64, 128]}
SHAPES = {"n": [100, 300]}


def swept(configs: Any = BLOCKS, shapes: Any = SHAPES, **options: Any) -> Table:
    return flydsl.sweep(scale, configs, shapes, **{"arguments": tensors, "check": doubled} | options)


def test_rows_are_the_points_in_order() -> None:
    table = swept(archs=["gfx942", "gfx950"])
    assert [(row["n"], row["block"], row.arch) for row in table] == [
        (n, block, arch) for n in (100, 300) for block in (64, 128) for arch in ("gfx942", "gfx950")
    ]
    assert not table.failures
    assert all(row["estimate_us"] > 0 and row["vgprs"] > 0 and row["waves_per_simd"] > 0 for row in table)
    assert {row["instructions"] for row in table.where(n=300)} != {row["instructions"] for row in table.where(n=100)}
    assert table.columns[:4] == ["arch", "n", "block", "estimate_us"]
    assert "8 rows" in repr(table)
    assert table.parameters == ["n", "block"]


def test_errors_are_rows() -> None:
    table = swept([Config(block=64), Config(block=2048), Config(block=64, factor=3)], {"n": [64]})
    assert [row.error is None for row in table] == [True, False, False]
    assert "takes at most 1024" in str(table[1].error)
    assert "check returned False" in str(table[2].error)
    assert table[2]["vgprs"] > 0  # it was compiled
    assert table[2]["estimate_us"] is None
    assert table.best() is table[0]
    assert f"first error: {table[1].error}" in repr(table)
    assert [row.error for row in table.failures] == [table[1].error, table[2].error]


def test_a_check_may_return_a_tensor() -> None:
    (only,) = swept(Config(block=64), {"n": [64]}, check=lambda x, y, n: (y == 3 * x).all())
    assert "check returned False" in str(only.error)


def test_a_fault_and_an_error_of_the_users_are_rows() -> None:
    def too_small(n: int) -> dict[str, Any]:
        return {**tensors(n), "n": 2 * n} if n < 200 else {"x": [][n]}

    table = swept(arguments=too_small, check=None)
    assert "outside of x" in str(table[0].error)
    assert str(table[2].error).startswith("IndexError")
    with pytest.raises(ArgumentError, match=r"4 with errors, none with estimate_us.*outside of x"):
        table.best()


def test_other_launchers() -> None:
    def twice(x: Any, y: Any, n: int, block: int) -> None:
        scale(x, y, n, block)
        scale(x, y, n, block)

    table = flydsl.sweep({"once": scale, "twice": twice}, BLOCKS, {"n": [64]}, arguments=tensors)
    assert [row.launcher for row in table] == ["once", "once", "twice", "twice"]
    assert table[2]["instructions"] == 2 * table[0]["instructions"]
    assert table[2]["code_bytes"] == 2 * table[0]["code_bytes"]
    in_order = flydsl.sweep(scale, BLOCKS, {"n": [64]}, arguments=lambda n: (torch.ones(n), torch.ones(n), n))
    assert [row.values for row in in_order] == [row.values for row in table[:2]]


def test_random_numbers_are_the_same_for_each_point_and_the_users_go_on() -> None:
    seen: list[float] = []

    def noted(n: int) -> dict[str, Any]:
        seen.append(float(torch.rand(1)) + np.random.rand() + random.random())
        return tensors(n)

    torch.manual_seed(7)
    expected = torch.rand(1)
    torch.manual_seed(7)
    swept(arguments=noted, check=None)
    assert len(seen) == 4
    assert len(set(seen)) == 1
    assert torch.equal(torch.rand(1), expected)
    swept(arguments=noted, check=None, seed=1)
    assert len(set(seen)) == 2


def test_compiler_hints_and_what_is_given_twice() -> None:
    table = swept([Config(block=64, maxnreg=24), Config(block=64), Config(block=64)], {"n": [64]})
    assert [row["maxnreg"] for row in table] == [24, None]
    assert table.total == 2


def table_of(*rows: tuple[int, float, int]) -> Table:
    made = [Row("f", {"n": 1}, Config(i=i), "a", {"estimate_us": t, "waves_per_simd": w}) for i, t, w in rows]
    return Table(made, len(made))


def test_best_and_pareto() -> None:
    table = table_of((0, 3.0, 8), (1, 2.0, 4), (2, 2.0, 4), (3, 1.0, 2), (4, 2.5, 4), (5, 3.0, 2))
    assert table.best()["i"] == 3
    assert table.best(waves_per_simd=4)["i"] == 1  # of equal ones the first
    assert table.best("estimate_us", i=5)["i"] == 5
    assert [row["i"] for row in table.pareto()] == [3, 1, 2, 0]
    with pytest.raises(ArgumentError, match="no row has wave"):
        table.best(wave=4)
    assert [row["n"] for row in swept().best_of_each()] == [100, 300]


def test_rows_say_what_limits_them() -> None:
    for row in swept():
        assert row["main_stall"].startswith("wait for ")
        assert 0 < row["roofline_percent"] <= 100
        assert 0 <= row["l1_hit_percent"] <= 100
        assert 0 <= row["l2_hit_percent"] <= 100
        assert row["hbm_bytes"] >= 2 * 4 * row["n"], "x is read, and y written"


def test_what_caches_hold_is_no_part_of_the_roofline() -> None:
    found = estimated(lambda: sum_columns(torch.ones(16, 64), torch.zeros(64, 64)))
    (launch,), (roofline,) = found.launches, found.rooflines
    assert launch.roofline().memory_bytes > 5 * roofline.memory_bytes
    assert roofline.memory_bytes >= 4 * (16 * 64 + 64 * 64), "x is read once, and y written"
    assert roofline.time_us < found.estimate.time_us


def test_a_comparison_says_why_a_row_is_faster() -> None:
    table = swept(shapes={"n": [300, 30_000]}, configs={"block": [64]})
    comparison = table.compare(1, 0)
    assert comparison.faster is table[0]
    few, many = comparison.differences["instructions"]
    assert few < many
    lines = repr(comparison).splitlines()
    assert lines[0].startswith("scale(n=300, block=64) on gfx942: ")
    assert "+" in lines[1]
    assert any(line.startswith("  bytes of HBM: ") for line in lines)
    assert "waves_per_simd" not in comparison.differences


def test_rows_without_a_time_cannot_be_compared() -> None:
    table = swept([Config(block=64), Config(block=2048)], {"n": [64]})
    with pytest.raises(ArgumentError, match="has no time to compare"):
        table.compare(0, 1)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"configs": {"block": 64}}, "must be a list of values"),
        ({"configs": [{"block": 64}]}, "must be flydsl.Config objects"),
        ({"shapes": [3]}, "shapes must be dicts"),
        ({"configs": {"n": [1]}}, "n: both a shape's and a configuration's"),
        ({"shapes": {"arch": [1]}}, "arch: the table has a column of that name"),
        ({"configs": []}, "nothing to sweep"),
        ({"seed": -1}, "seed must be an integer from 0 to 4294967295, got -1"),
        ({"retries": 0}, "retries must be at least 1, got 0"),
        ({"executor": 2}, "executor must be an Executor or a function that makes one, got 2"),
        ({"executor": lambda: 2}, "a function that makes one"),
    ],
)
def test_wrong_use(options: dict[str, Any], says: str) -> None:
    with pytest.raises(ArgumentError, match=says):
        swept(**options)


def test_wrong_names() -> None:
    with pytest.raises(ArchError, match="gfx999"):
        swept(archs="gfx999")
    with pytest.raises(ArgumentError, match="a launcher must be a function, got 3"):
        flydsl.sweep([3])  # type: ignore[list-item]
    with pytest.raises(ArgumentError, match="two launchers have the same name"):
        flydsl.sweep([scale, scale])


def test_a_file_keeps_results(tmp_path: Path) -> None:
    path, told = tmp_path / "sweep.jsonl", list[tuple[int, int]]()
    first = swept(path=path, progress=lambda table: told.append((len(table), table.total)))
    assert told == [(done, 4) for done in range(5)]
    assert len(path.read_text().splitlines()) == 4
    more = swept({"block": [64, 256, 128]}, path=path)
    assert (more.again, len(more)) == (4, 6)
    assert [row for row in more if row["block"] != 256] == list(first)
    assert len(path.read_text().splitlines()) == 6


def test_half_a_line_and_other_content_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "sweep.jsonl"
    expected = swept(path=path)
    lines = path.read_text().splitlines(keepends=True)
    wrong = json.loads(lines[1]) | {"values": {"vgprs": [1]}}
    other = "[]\nnothing\n" + "[" * 100_000 + '\n{"key": "a", "values": {}}\n'
    path.write_text(other + lines[0] + json.dumps(wrong) + "\n" + lines[2] + lines[3][:-9])
    again = swept(path=path)
    assert (again.again, again) == (2, expected)
    assert swept(path=path).again == 4


def launcher_times(factor: int) -> Callable[..., None]:
    def times(x: Any, y: Any, n: int, block: int) -> None:
        scale(x, y, n, block, factor)

    return times


def test_a_result_is_of_its_sources(tmp_path: Path) -> None:
    """What a function uses, the seed and the target count, and where it stands does not."""
    path = tmp_path / "sweep.jsonl"

    def again(**options: Any) -> int:
        given: dict[str, Any] = {"launchers": launcher_times(2), "check": doubled, **options}
        return flydsl.sweep(configs=BLOCKS, shapes={"n": [64]}, arguments=tensors, path=path, **given).again

    assert (again(), again()) == (0, 2)
    assert again(launchers=launcher_times(3)) == 0
    assert again(check=None) == 0
    assert again(seed=3) == 0
    assert again(launch=False) == 0
    assert again(archs="gfx950") == 0
    program = "def right(x, y, n):\n    return bool((y == 2 * x).all())\n"
    for name, before in (("one", ""), ("two", "\n\n")):  # a cell of a notebook that was started again
        names: dict[str, Any] = {"__name__": "__main__"}
        exec(compile(before + program, name, "exec"), names)
        assert again(check=names["right"]) == (0 if name == "one" else 2)


def test_files_that_cannot_be_used(tmp_path: Path) -> None:
    with pytest.raises(JournalError, match="No such file"):
        swept(path=tmp_path / "none" / "sweep.jsonl")
    with pytest.raises(JournalError, match="Is a directory"):
        swept(path=tmp_path)
    big = torch.zeros(1 << 21)
    with pytest.raises(ArgumentError, match="cannot be told apart from one of another process: a tensor is too large"):
        swept(path=tmp_path / "sweep.jsonl", check=lambda x, y, n: y is not big)
