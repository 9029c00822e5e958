"""Estimates of the library's cases against published peaks: nothing is faster than the hardware."""

from __future__ import annotations

import pytest

from flydsl.arch import get_arch
from flydsl.arch.instruction_costs import peaks
from flydsl.sweeps.bench import estimated
from tests.kernels.cases import ARCHS, every_case

# A case takes seconds.
TIMED = [name for name, case in every_case().items() if ARCHS[0] in case.archs][::4]


@pytest.mark.parametrize("name", TIMED)
def test_no_launch_is_faster_than_the_peaks(name: str) -> None:
    """Of matrix cores, vector units and LDS on the SIMDs at work, and of HBM for the bytes that cross its bus."""
    launcher, arguments = every_case()[name].make()
    launches = estimated(lambda: launcher(*arguments)).launches
    assert launches
    bytes_per_us = peaks(get_arch(ARCHS[0])).memory_bytes_per_second * 1e-6
    for launch in launches:
        trace, least = launch.trace, launch.roofline()
        assert trace is not None, "the model times every launch of the library"
        assert trace.memory is not None
        assert trace.time_us >= max(least.mfma_us, least.valu_us, least.lds_us)
        assert trace.time_us >= trace.memory.hbm_bytes / bytes_per_us
