"""layernorm_kernel and rmsnorm_kernel: every variant on the simulator, with every check."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from flydsl.errors import ArgumentError
from kernels import layernorm_kernel, rmsnorm_kernel
from kernels.norms import Norm, build
from tests.kernels.checks import checking
from tests.kernels.norms import VARIANTS, check, operands
from tests.kernels.rows import around, assert_close, matrix, odd_rows

MODULES = {"layernorm": layernorm_kernel, "rmsnorm": rmsnorm_kernel}
EVERY_NORM = pytest.mark.parametrize("name", MODULES)


def run(norm: Norm, given: dict[str, Any], m: int) -> None:
    x = given["Input"].clone()
    with checking():
        build(norm)(*given.values(), m)
    check(norm, given, x)


@pytest.mark.checked("all")
@EVERY_NORM
@pytest.mark.parametrize(("number", "shape"), [*enumerate(rmsnorm_kernel.SHAPES)], ids=str)
@pytest.mark.diagonal(3)
def test_equals_torch(name: str, number: int, shape: tuple[int, int]) -> None:
    """The types take turns; all of them at all lengths are in the sweep."""
    m, n = shape
    norm = Norm(columns=n, dtype=("bf16", "f32", "f16")[number % 3], mean=name == "layernorm")
    run(norm, operands(norm, m), m)


@EVERY_NORM
@pytest.mark.parametrize("variant", VARIANTS, ids=str)
@pytest.mark.diagonal(3)
def test_variants_with_tails_and_strides(name: str, variant: tuple[bool, bool, str | None]) -> None:
    residual, smooth, quant = variant
    n, dtype = (100, "bf16") if (name == "rmsnorm") == smooth else (517, "f32")
    norm = Norm(columns=n, dtype=dtype, mean=name == "layernorm", residual=residual, smooth=smooth, quant=quant)
    given = operands(norm, 3, extra=5)
    run(norm, given, 3)
    assert not residual or around(given["ResidualOut"]).isnan().all()


@pytest.mark.parametrize(
    ("name", "dtype"), [("layernorm", "bf16"), ("layernorm", "f16"), ("rmsnorm", "f32"), ("rmsnorm", "bf16")]
)
def test_rows_of_every_kind(name: str, dtype: str) -> None:
    module, x = MODULES[name], odd_rows(517, dtype)[:6]
    norm = Norm(columns=517, dtype=dtype, mean=name == "layernorm")
    given = operands(norm, 6, x=x)
    build(norm)(*given.values(), 6)
    expected = module.reference(x, *(given[v] for v in ("Gamma", "Beta") if v in given))
    assert_close(given["Output"], expected, dtype)


def test_the_variance_survives_a_large_mean() -> None:
    x = matrix(4, 1000, "f32") + 1000
    norm = Norm(columns=1000, dtype="f32", mean=True)
    given = operands(norm, 4, x=x)
    layernorm_kernel.build_layernorm_module(4, 1000, "f32")(*given.values(), 4)
    torch.testing.assert_close(
        given["Output"], layernorm_kernel.reference(x, given["Gamma"], given["Beta"]), rtol=1e-3, atol=1e-3
    )


@EVERY_NORM
def test_rows_of_zeros_and_denormals_quantise_to_zero_and_nan_to_nan(name: str) -> None:
    norm = Norm(columns=64, dtype="f32", mean=False, quant="i8")
    x = torch.zeros(3, 64)
    x[2, 5] = torch.nan
    given = operands(norm, 3, x=x)
    given["Gamma"][:] = torch.tensor([1.0, 1e-40]).repeat(32)
    build(norm)(*given.values(), 3)
    assert not given["Output"][:2].any()
    assert torch.equal(given["YScale"][:2], torch.ones(2))
    assert given["YScale"][2].isnan()


def test_the_residual_in_place_in_rows_too_long_for_registers() -> None:
    n = 65_600
    norm = Norm(columns=n, dtype="bf16", mean=False, residual=True)
    given = operands(norm, 1)
    residual = given["ResidualIn"].clone()
    given["ResidualOut"] = given["ResidualIn"]
    rmsnorm_kernel.build_fused_add_rmsnorm_module(1, n, "bf16")(*given.values(), 1)
    check(norm, {**given, "ResidualIn": residual}, given["Input"])


@EVERY_NORM
def test_the_builders_have_the_documented_parameters(name: str) -> None:
    beta = ("Beta",) if name == "layernorm" else ()
    parameters = {
        f"build_{name}_module": ("Input", "Gamma", *beta, "Output"),
        f"build_fused_add_{name}_module": ("Input", "ResidualIn", "Gamma", *beta, "Output", "ResidualOut"),
        f"build_{name}_dynamicquant_module": ("Input", "Gamma", *beta, "Output", "YScale"),
        f"build_{name}_smoothquant_module": ("Input", "Gamma", *beta, "XScale", "Output", "YScale"),
        f"build_fused_add_{name}_dynamicquant_module":
            ("Input", "ResidualIn", "Gamma", *beta, "Output", "ResidualOut", "YScale"),
        f"build_fused_add_{name}_smoothquant_module":
            ("Input", "ResidualIn", "Gamma", *beta, "XScale", "Output", "ResidualOut", "YScale"),
    }  # fmt: skip
    for builder, expected in parameters.items():
        launcher = getattr(MODULES[name], builder)(4, 64, "bf16")
        assert [p.name for p in launcher.signature.parameters] == [*expected, "m_in", "stream"]


@pytest.mark.sweep
@EVERY_NORM
def test_threads_chosen_by_measurement(name: str) -> None:
    module = MODULES[name]
    norm = Norm(columns=1000, dtype="f16", mean=name == "layernorm")
    given = operands(norm, 2)
    getattr(module, name)(*given.values(), 1000)
    check(norm, given, given["Input"])


def test_wrong_arguments() -> None:
    with pytest.raises(ArgumentError, match=r"'i4'[\s\S]*i8"):
        rmsnorm_kernel.build_rmsnorm_dynamicquant_module(1, 8, "f32", "i4")
