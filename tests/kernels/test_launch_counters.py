"""Counters of what a launcher launches."""

from __future__ import annotations

import torch

from flydsl.simulator import counting
from tests.kernels import examples


def test_a_launcher_is_counted_by_source_line() -> None:
    n = 4096
    A, B, C = examples.vectors(n, torch.float32)
    with counting() as counters:
        examples.vectorAdd(A, B, C, n, n + 1, examples.SCALARS[A.dtype])
    assert torch.equal(C, A + B)
    (launch,) = counters.launches
    totals = launch.totals
    # Two loads and a store of four bytes for each element.
    assert totals.global_bytes == 3 * 4 * n
    assert 3 * n // 16 <= totals.global_lines <= 3 * (n // 16 + launch.statistics.waves)
    sources = {location.file for location in launch.by_source_line}
    assert examples.__file__ in sources
    assert sum(c.global_bytes for c in launch.by_source_line.values()) == totals.global_bytes
    assert "roofline of" in repr(counters)
