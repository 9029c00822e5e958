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
from tests.kernels.cases import every_case, gemm, gfx1250, rdna, rows

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
# Modules with a kernel that lack one of the four parts, and why.
LACKING = {
    ("dispatch_combine_intranode_kernel", "case"): "nobody has published figures to compare with",
    ("dispatch_combine_intranode_kernel", "test"): "test_dispatch_combine.py has several processes",
    ("fp8_gemm_utils", "case"): "those of fp8_gemm_4wave and fp8_gemm_8wave",
    ("fp8_gemm_utils", "test"): "test_fp8_gemm.py",
    ("mixed_moe_gemm_2stage", "reference"): "that of moe_gemm_2stage, with other scales",
    ("mla_fwd_decode_m16x8_fp8_fp8", "reference"): "that of mla_fwd_decode, which launches it",
    ("mla_fwd_decode_m16x8_fp8_fp8", "SHAPES"): "likewise",
    ("moe_gemm_2stage_common_gfx1250", "reference"): "that of moe_gemm_2stage",
    ("moe_gemm_2stage_common_gfx1250", "SHAPES"): "those of moe_gemm_2stage_mxscale_gfx1250 and _wmma_gfx1250",
    ("moe_gemm_2stage_common_gfx1250", "case"): "likewise",
    ("moe_gemm_2stage_common_gfx1250", "test"): "test_moe_gemm_2stage_gfx1250.py",
    ("norms", "case"): "those of layernorm_kernel and rmsnorm_kernel",
    ("paged_attention_launch", "reference"): "that of pa_decode_fp8",
    ("paged_attention_launch", "SHAPES"): "likewise",
    ("paged_attention_launch", "case"): "likewise",
    ("paged_attention_launch", "test"): "test_pa_decode_fp8.py",
    ("vector_add", "case"): "an example, whose figures nobody compares",
    ("wmma_pipeline", "reference"): "those of rdna_f16_gemm and rdna3_f16_gemm",
    ("wmma_pipeline", "SHAPES"): "likewise",
    ("wmma_pipeline", "case"): "likewise",
    ("wmma_pipeline", "test"): "test_rdna_f16_gemm.py",
}
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


def test_a_module_with_a_kernel_has_reference_shapes_case_and_test() -> None:
    cases = {case.kernel: case.test_file for case in every_case().values()}
    lacking = set()
    for path in Path(*kernels.__path__).glob("*.py"):
        if "@flyc.kernel" not in path.read_text() and "flyc.kernel(" not in path.read_text():
            continue
        name = path.stem
        parts = {
            "reference": any(part.startswith("reference") for part in vars(module(name))),
            "SHAPES": hasattr(module(name), "SHAPES"),
            "case": name in cases,
            "test": (HERE / cases.get(name, f"test_{name}.py")).is_file(),
        }
        lacking |= {(name, part) for part, is_there in parts.items() if not is_there}
    assert lacking == LACKING.keys()


def test_every_kernel_has_cases() -> None:
    modules = [found.name for found in pkgutil.iter_modules(kernels.__path__)]
    named = [name for name in modules if re.search("gemm|norm|quant|softmax", name) and "moe" not in name]
    assert {name for name in named if hasattr(module(name), "SHAPES")} - WITHOUT_CASES <= set(KERNELS)
