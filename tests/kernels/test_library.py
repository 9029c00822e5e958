"""What every kernel of the library has: a definition, figures, shapes, a reference, a choice by measurement, tests."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from pathlib import Path
from typing import Any

import pytest

import kernels
from flydsl.autotune import Autotuner
from tests.kernels.cases import gemm, gfx1250, rdna, rows

HERE = Path(__file__).parent
# Rows and products; the families of attention and of experts have contracts of their own.
CASES = gemm.CASES | gfx1250.CASES | rdna.CASES | rows.CASES
KERNELS = sorted({case.kernel for case in CASES.values()})
# Of these families, what has a choice. Dispatch and combine have one for each object: all of its ranks choose alike.
OTHERS = (
    "flash_attn_generic", "mixed_moe_gemm_2stage", "mla_fwd_decode", "moe_blockscale_2stage", "moe_gemm_2stage",
    "moe_gemm_2stage_mxscale_gfx1250", "moe_gemm_2stage_wmma_gfx1250", "pa_decode_fp8", "pa_decode_swa",
)  # fmt: skip
# What kernels of one family share.
WITHOUT_CASES = {"fp8_gemm_utils", "norms"}
# A docstring says what the code takes: registers, instructions, waves.
FIGURES = re.compile(r"(\d|two|three|eight) (registers|VGPRs|instructions|waves|workgroups)")


def module(name: str) -> Any:
    return importlib.import_module(f"kernels.{name}")


@pytest.mark.parametrize("name", KERNELS)
def test_has_all_parts(name: str) -> None:
    kernel = module(name)
    assert kernel.SHAPES
    assert all(isinstance(extent, int) for shape in kernel.SHAPES for extent in shape)
    assert inspect.getdoc(kernel.reference)
    tests = {case.test_file for case in CASES.values() if case.kernel == name}
    assert all((HERE / test).is_file() for test in tests)


@pytest.mark.parametrize("name", [*KERNELS, *OTHERS])
def test_can_be_chosen_by_measurement(name: str) -> None:
    tuners = [value for value in vars(module(name)).values() if isinstance(value, Autotuner)]
    assert tuners
    assert all(len(tuner.configs) > 1 for tuner in tuners)


@pytest.mark.parametrize("name", KERNELS)
def test_docstring_has_definition_use_and_figures(name: str) -> None:
    text = module(name).__doc__
    first, blank, *rest = text.splitlines()
    assert first.endswith((".", ":"))
    assert blank == ""
    assert any(line.startswith("    ") for line in rest), "no example of its use"
    assert FIGURES.search(text), "no figures"


def test_every_kernel_has_cases() -> None:
    modules = [found.name for found in pkgutil.iter_modules(kernels.__path__)]
    named = [name for name in modules if re.search("gemm|norm|quant|softmax", name) and "moe" not in name]
    assert {name for name in named if hasattr(module(name), "SHAPES")} - WITHOUT_CASES <= set(KERNELS)
