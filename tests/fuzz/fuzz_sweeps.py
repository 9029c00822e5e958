"""Sweeps whose workers are killed at random: no point is lost, none is repeated, and every row is the right one."""

from __future__ import annotations

import json
import tempfile
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import flydsl
from tests.sweeps.killing import Killer
from tests.sweeps.launchers import scale, tensors

_MOST_CONFIGURATIONS = 500
_ROWS_BETWEEN_DEATHS = 8


def run(seed: int, count: int) -> None:
    """A sweep of `count` configurations, 500 at most."""
    count = min(count, _MOST_CONFIGURATIONS)
    factors = list(range(seed % 1000 + 2, seed % 1000 + 2 + count))
    killer = Killer(seed, _ROWS_BETWEEN_DEATHS)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "sweep.jsonl"
        table = flydsl.sweep(
            scale,
            {"block": [64], "factor": factors},
            {"n": [64]},
            arguments=tensors,
            executor=lambda: ProcessPoolExecutor(2),
            path=path,
            progress=killer,
        )
        lines = [json.loads(line) for line in path.read_text().splitlines()]
    told = f"{killer.killed} workers killed"
    assert killer.killed or count < 4 * _ROWS_BETWEEN_DEATHS, "no worker was killed"
    wrong = [row for row in table if row.error is not None or row["instructions"] != table[0]["instructions"]]
    assert not wrong, f"{told}; {wrong[0]}"
    assert [row["factor"] for row in table] == factors, f"{told}: rows are missing or repeated"
    kept = [int(line["config"]["factor"]) for line in lines]
    assert sorted(kept) == factors, f"{told}: the file has {len(kept)} results for {count}"
