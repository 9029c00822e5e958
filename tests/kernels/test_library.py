"""What every kernel of the library has: cases that are right, a docstring with figures, a choice by measurement."""

from __future__ import annotations

import importlib
import pkgutil
import re
from pathlib import Path
from typing import Any

import pytest

import flydsl.runtime.simulated
import kernels
from flydsl.autotune import Autotuner
from flydsl.simulator import launch
from flydsl.testing import Checker
from flydsl.testing.check import Outcome, load, modules_in
from tests.kernels.cases import gemm, gfx1250, rdna, rows

HERE = Path(__file__).parent
LIBRARY = Path(kernels.__file__).parent
# Kernels of several stages, or for several ranks, and parts of kernels: not one call, and compared in these.
COMPARED_ELSEWHERE = {
    "attention_common": "test_flash_attn_gfx950.py",  # a part of several
    "attention_heads": "test_flash_attn_generic.py",  # a part of it
    "attention_wmma": "test_flash_attn_generic.py",  # a part of it
    "custom_all_reduce_kernel": "test_custom_all_reduce.py",
    "dispatch_combine_intranode_kernel": "test_dispatch_combine.py",
    "gemm_fp8fp4_gfx1250": "test_gemm_fp8fp4_gfx1250.py",
    "mixed_moe_gemm_2stage": "test_mixed_moe_gemm_2stage.py",
    "mla_fwd_decode": "test_mla_fwd_decode.py",
    "mla_fwd_decode_m16x8_fp8_fp8": "test_mla_fwd_decode.py",
    "moe_blockscale_2stage": "test_moe_blockscale_2stage.py",
    "moe_gemm_2stage": "test_moe_gemm_2stage.py",
    "moe_gemm_2stage_common_gfx1250": "test_moe_gemm_2stage_gfx1250.py",
    "moe_gemm_2stage_mxscale_gfx1250": "test_moe_gemm_2stage_gfx1250.py",
    "moe_gemm_2stage_wmma_gfx1250": "test_moe_gemm_2stage_gfx1250.py",
    "moe_routes": "test_moe_gemm_2stage.py",  # a part of these
    "pa_decode_swa": "test_pa_decode_swa.py",
}
# One GPU of each kind that the kernels are for; `make sweep` has all, and more shapes.
GPUS = ("gfx942", "gfx950", "gfx1100", "gfx1201", "gfx1250")
# Rows and products; the families of attention and of experts have contracts of their own.
CASES = gemm.CASES | gfx1250.CASES | rdna.CASES | rows.CASES
KERNELS = sorted({case.kernel for case in CASES.values()})
# Of these families, what has a choice. Dispatch and combine have one for each object: all of its ranks choose alike.
OTHERS = (
    "flash_attn_generic", "mixed_moe_gemm_2stage", "mla_fwd_decode", "moe_blockscale_2stage", "moe_gemm_2stage",
    "moe_gemm_2stage_mxscale_gfx1250", "moe_gemm_2stage_wmma_gfx1250", "pa_decode_fp8", "pa_decode_swa",
)  # fmt: skip
# A docstring says what the code takes: registers, instructions, waves.
FIGURES = re.compile(r"(\d|two|three|eight) (registers|VGPRs|instructions|waves|workgroups)")


def module(name: str) -> Any:
    return importlib.import_module(f"kernels.{name}")


def check(gpus: tuple[str, ...], shapes: int, path: Path = LIBRARY) -> list[Outcome]:
    """`workbench check kernels --cases tests/kernels/checked`, without what is compared elsewhere."""
    found = Checker(gpus, ("races", "uninitialized"), shapes, HERE / "checked").check(path)
    return [outcome for outcome in found if outcome.module.removeprefix("kernels.") not in COMPARED_ELSEWHERE]


@pytest.fixture
def _one_backend(monkeypatch: pytest.MonkeyPatch) -> None:
    """Launches are counted, which those on both backends are not."""
    monkeypatch.setattr(flydsl.runtime.simulated, "launch", launch)


def test_every_kernel_has_cases() -> None:
    """Or a test of its own; without running them."""
    with_shapes = {file.stem for file in modules_in(LIBRARY) if hasattr(load(file), "SHAPES")}
    assert "softmax_kernel" in with_shapes
    assert with_shapes <= {*COMPARED_ELSEWHERE, *(file.stem for file in (HERE / "checked").glob("*.py"))}


@pytest.mark.usefixtures("_one_backend")
@pytest.mark.parametrize("name", ["softmax_kernel", "preshuffle_gemm", "flash_attn_generic"])
def test_a_kernel_is_right_in_its_cases(name: str) -> None:
    """The first of its shapes. All kernels, which have tests of their own, are checked so by `make sweep`."""
    outcomes = check(GPUS[:1], 1, LIBRARY / f"{name}.py")
    assert {outcome.state for outcome in outcomes} == {"ok"}, [str(outcome) for outcome in outcomes]


@pytest.mark.sweep
@pytest.mark.usefixtures("_one_backend")
def test_every_kernel_is_right_on_its_gpus() -> None:
    """The first of its shapes. A new kernel without cases fails, too."""
    outcomes = check(GPUS[:1], 1)
    checked = {outcome.module for outcome in outcomes if outcome.state == "ok"}
    assert not [str(outcome) for outcome in outcomes if outcome.state == "failed"]
    assert {f"kernels.{name}" for name in ("softmax_kernel", "preshuffle_gemm", "flash_attn_generic")} <= checked


@pytest.mark.sweep
@pytest.mark.usefixtures("_one_backend")
@pytest.mark.parametrize("gpu", GPUS[1:])
def test_every_kernel_is_right_on_other_gpus(gpu: str) -> None:
    assert not [str(outcome) for outcome in check((gpu,), 2) if outcome.state == "failed"]


@pytest.mark.parametrize(("name", "test"), COMPARED_ELSEWHERE.items())
def test_what_is_compared_elsewhere(name: str, test: str) -> None:
    assert (HERE / test).is_file()
    assert not (HERE / "checked" / f"{name}.py").exists()
    assert module(name)


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


def test_every_kernel_is_in_the_table() -> None:
    """Which is made of `cases`."""
    modules = [found.name for found in pkgutil.iter_modules(kernels.__path__)]
    named = [name for name in modules if re.search("gemm|norm|quant|softmax", name) and "moe" not in name]
    assert {name for name in named if hasattr(module(name), "SHAPES")} - {"fp8_gemm_utils", "norms"} <= set(KERNELS)
