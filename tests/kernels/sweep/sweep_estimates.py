"""Estimates of the library's cases: each has one, and none is faster than the published peaks of the hardware."""

from __future__ import annotations

import pytest

from flydsl.arch import get_arch
from flydsl.arch.instruction_costs import peaks
from flydsl.arch.timing import is_timed
from flydsl.sweeps.bench import estimated
from tests.kernels.cases import every_case

# A case takes seconds. One GPU of each, by turns.
PLACES = [
    (name, timed[number % len(timed)])
    for number, (name, case) in enumerate(every_case().items())
    if (timed := [arch for arch in case.archs if is_timed(get_arch(arch))])
]


@pytest.mark.parametrize(("name", "arch"), PLACES)
def test_every_launch_has_an_estimate_that_is_not_faster_than_the_peaks(
    name: str, arch: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of matrix cores, vector units and LDS on the SIMDs at work, and of HBM for the bytes that cross its bus."""
    monkeypatch.setenv("ARCH", arch)
    monkeypatch.setenv("FLYDSL_GPU_ARCH", arch)
    launcher, arguments = every_case()[name].make()
    launches = estimated(lambda: launcher(*arguments)).launches
    assert launches
    bytes_per_us = peaks(get_arch(arch)).memory_bytes_per_second * 1e-6
    for launch in launches:
        trace, least = launch.trace, launch.roofline()
        assert trace is not None, "the model times every launch of the library"
        assert trace.memory is not None
        assert trace.time_us >= max(least.mfma_us, least.valu_us, least.lds_us)
        assert trace.time_us >= trace.memory.hbm_bytes / bytes_per_us
