"""Compiled and interpreted, kernels of the library and random programs compute the same; what differs is found."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import flydsl
import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl import env
from flydsl.compiler.debugging.second_opinion import Disagreement
from flydsl.expr.tracing.executing import executing
from tests.compiler.debugging import buggy_kernels as bugs
from tests.fuzz.__main__ import fuzzers
from tests.kernels import cases, checked

# Of each sort a case that takes few operations.
KERNELS = {
    "rdnafp8_32x128x128": "gfx1201",
    "moe2_fp8_16x64x256": "gfx950",
    "topk_gating_e8k2_bf16": "gfx950",
}
PROGRAMS = {"control_flow": 10, "lanes": 3, "vectors": 3, "atomics": 3, "conversions": 12, "floats": 4, "staging": 4}


@pytest.mark.slow
@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.diagonal(3)
def test_kernels_of_the_library(name: str):
    torch.manual_seed(0)
    with env.replaced({"ARCH": KERNELS[name]}):
        launcher, arguments = cases.every_case()[name].make()
        flydsl.compare_interpreted(launcher, *arguments)


CHECKED = sorted(path.stem for path in Path(checked.__path__[0]).glob("*.py") if path.stem != "norm_cases")
IN_EVERY_RUN = ("hgemm_splitk", "rdna_f16_gemm", "softmax_kernel", "moe_sorting_kernel", "fused_rope_cache_kernel")
ON_GFX950 = ("fp8_gemm_8wave", "flash_attn_gfx950")


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name in IN_EVERY_RUN else pytest.mark.sweep) for name in CHECKED]
)
def test_the_library_is_interpreted(name: str):
    """The first case that `workbench check` has of a kernel, against its reference."""
    torch.manual_seed(0)
    kernel = importlib.import_module(f"kernels.{name}")
    with env.replaced({"FLYDSL_GPU_ARCH": "gfx950" if name in ON_GFX950 else "gfx942"}):
        case = next(importlib.import_module(f"{checked.__name__}.{name}").cases(*kernel.SHAPES[0]))
    with env.replaced({"FLYDSL_GPU_ARCH": (case.gpus or ("gfx942",))[0]}):
        expected = case.results(getattr(kernel, "reference", None))
        with flydsl.interpreting():
            case.launcher(*case.operands.values())
        case.compare(expected)


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
def test_random_programs(name: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("FLYDSL_INTERPRET", "1")
    fuzzers()[name](3, PROGRAMS[name])


@flyc.kernel
def differing_kernel(a: fx.Tensor, out: fx.Tensor):
    i = fx.thread_idx.x
    out[i, 0] = a[i]
    out[i, 1] = a[i] + _three_where_interpreted(i)


def _three_where_interpreted(i: Any) -> Any:
    return (i == 5).select(3.0, 0.0) if executing.get() is not None else 0.0


@flyc.jit
def differing(a: fx.Tensor, out: fx.Tensor):
    differing_kernel(a, out).launch(grid=1, block=8)


def test_the_first_difference_has_its_line_and_lane():
    a, out = torch.arange(8.0), torch.zeros(8, 2)
    with pytest.raises(Disagreement) as found:
        flydsl.compare_interpreted(differing, a, out)
    assert "out[5, 1] is 5.0 compiled and 8.0 interpreted" in str(found.value)
    assert "written last by lane 5, thread (5, 0, 0) of workgroup (0, 0, 0)" in str(found.value)
    assert "out[i, 1] = a[i] + _three_where_interpreted(i)" in str(found.value)
    assert "one of the two is wrong" in found.value.hint
    assert np.all(out.numpy() == 0)  # nothing is written to what is given


def test_where_a_race_makes_the_difference():
    with pytest.raises(Disagreement) as found:
        flydsl.compare_interpreted(bugs.missing_barrier, *bugs.ARGUMENTS["missing_barrier"]())
    assert f'race at {found.value.at}: flydsl.simulator.checking("races")' in found.value.hint
