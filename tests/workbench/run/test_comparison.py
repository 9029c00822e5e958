"""Two runs side by side: the amounts of both, the change, and what only one of them has."""

from __future__ import annotations

import pytest
import torch

import workbench
from flydsl.binary import capture_binary_launches, compile_hip
from flydsl.errors import ArgumentError
from flydsl.simulator import counting

SOURCE = """\
__global__ void scale(const float *x, float *y, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) y[i] = 2 * x[i];
}
"""


@pytest.fixture(scope="module")
def runs():
    module = compile_hip(SOURCE)
    x, y = torch.randn(512), torch.zeros(512)
    found = []
    for n in (256, 512):
        with capture_binary_launches(counted=True) as launches:
            module.scale(x, y, n, grid=2, block=64)
        found.append(launches[0])
    return found


def test_amounts_of_both_and_the_change(runs) -> None:
    comparison = workbench.compare(*runs)
    ((_, rows),) = comparison.kernels()
    changes = {row.name: (row.before, row.after, row.change) for row in rows}
    assert changes["VMEM store instructions"] == (4, 8, "+100.0%")
    assert changes["% of lanes active"][2] == ""
    assert any(name.startswith("estimated time in us (± ") for name in changes)
    assert "us at peak rates, by the roofline" in changes
    for shown in (comparison._repr_html_(), repr(comparison)):
        assert "VMEM store instructions" in shown
        assert "+100.0%" in shown


def test_a_run_with_more_launches(runs) -> None:
    x, y = torch.randn(64), torch.zeros(64)
    with counting() as twice:
        for _ in range(2):
            runs[0].kernel(x, y, 64, grid=1, block=64)
    comparison = workbench.compare(twice, runs[0].counters[0])
    assert len(list(comparison.kernels())) == 1
    assert comparison.alone == [f"only the baseline has {twice.launches[1].heading}"]


def test_the_page_of_a_comparison_and_of_a_launch(runs, tmp_path) -> None:
    page = workbench.export([workbench.compare(*runs), runs[0], runs[0].kernel.module], tmp_path / "page.html")
    text = page.read_text()
    for heading in ("Counters of both", "Machine code", "Occupancy", "LLVM IR"):
        assert heading in text


def test_what_was_not_counted_is_refused(runs) -> None:
    with pytest.raises(ArgumentError, match="no launch was counted"), counting() as nothing:
        workbench.compare(nothing, runs[0])
    with pytest.raises(ArgumentError, match="a run has no stages"):
        workbench.compare(*runs, stage=1)
