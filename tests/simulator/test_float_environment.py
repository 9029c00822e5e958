"""What the host's thread does with floats has no say in what is simulated."""

from __future__ import annotations

import ctypes
import platform
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch

from flydsl.simulator.float_environment import IeeeFloats

Run = Callable[..., Any]
UPWARD = {"x86_64": 0x800, "aarch64": 0x400000, "arm64": 0x400000}
"""FE_UPWARD of <fenv.h>."""


@pytest.fixture
def flushing() -> Iterator[None]:
    if not torch.set_flush_denormal(True):
        pytest.skip("torch cannot flush denormals on this CPU")
    yield
    torch.set_flush_denormal(False)


@pytest.fixture
def rounding_up() -> Iterator[None]:
    library = ctypes.CDLL(None)
    before = library.fegetround()
    assert library.fesetround(UPWARD[platform.machine().lower()]) == 0
    yield
    library.fesetround(before)


@pytest.mark.usefixtures("flushing")
def test_denormals_are_kept_where_the_host_flushes_them(run: Run) -> None:
    after = run("v_add_f32 v2, v0, v1\nv_cvt_f64_f32 v[4:5], v0", v={0: np.uint32(5), 1: np.uint32(7)})
    assert (after.v(2) == 12).all()
    assert (after.v(5) == 0x36C40000).all()  # the upper half of 5 * 2**-149


@pytest.mark.usefixtures("rounding_up")
def test_numbers_round_to_nearest_where_the_host_rounds_up(run: Run) -> None:
    after = run("v_add_f32 v2, v0, v1\nv_sqrt_f32 v3, v0", v={0: np.float32(2), 1: np.float32(2.0**-40)})
    assert (after.v(2).view(np.float32) == 2).all()
    assert int(after.v(3)[0]) == 0x3FB504F3


@pytest.mark.usefixtures("flushing")
def test_the_environment_comes_back() -> None:
    smallest = np.array([5e-324])
    with IeeeFloats():
        assert (smallest * 1.0)[0] != 0
    assert (smallest * 1.0)[0] == 0
