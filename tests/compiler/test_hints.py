"""Compile hints, kernels' attributes and names."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.compiler.kernel_function import CompilationContext
from flydsl.errors import ArgumentError, CompileError
from tests.launchers import launcher_of


@flyc.kernel(name="doubled")
def kernel(A: fx.Tensor):
    A[fx.thread_idx.x] = A[fx.thread_idx.x] * 2.0


launch = launcher_of(kernel, grid=1, block=64)


@pytest.fixture
def a() -> torch.Tensor:
    return torch.ones(64)


def test_hints_of_the_with_blocks_around_reach_the_machine_code(a: torch.Tensor) -> None:
    outer = {"waves_per_eu": 3, "maxnreg": 64, "fast_fp_math": True}
    with CompilationContext.compile_hints(outer), CompilationContext.compile_hints({"waves_per_eu": 2}):
        assert CompilationContext.get_compile_hints() == {**outer, "waves_per_eu": 2}
        llvm_ir = flyc.compile(launch, a).code.llvm_ir
    assert CompilationContext.get_compile_hints() == {}
    assert '"amdgpu-waves-per-eu"="2"' in llvm_ir
    assert '"amdgpu-num-vgpr"="64"' in llvm_ir
    assert "amdgpu-waves-per-eu" not in flyc.compile(launch, a).code.llvm_ir


def test_hints_are_part_of_what_a_launcher_is_compiled_for(a: torch.Tensor) -> None:
    hinted = flyc.compile[{"waves_per_eu": 2}](launch, a)
    assert hinted is not flyc.compile(launch, a)
    assert hinted is flyc.compile[{"waves_per_eu": 2}](launch, a)
    try:
        launch.compile_hints = {"waves_per_eu": 2}
        assert hinted is flyc.compile(launch, a)
    finally:
        launch.compile_hints = {}


def test_options_of_llvm_hold_for_one_compilation(a: torch.Tensor) -> None:
    plain = flyc.compile(launch, a)
    options = {"amdgpu-load-store-vectorizer": False, "enable-post-misched": True}
    assert flyc.compile[{"llvm_options": options}](launch, a).code.hsaco
    with pytest.raises(CompileError, match="no-such-option"):
        flyc.compile[{"llvm_options": {"no-such-option": 1}}](launch, a)
    assert flyc.compile(launch, a) is plain


@pytest.mark.parametrize(
    "hints", [{"waves": 2}, {"waves_per_eu": 0}, {"maxnreg": "64"}, {"llvm_options": ["x"]}, {"waves_per_eu": True}]
)
def test_hints_that_are_none(hints: dict[str, Any], a: torch.Tensor) -> None:
    with pytest.raises(ArgumentError, match="compile hint"):
        flyc.compile[hints](launch, a)


def test_the_name_of_a_kernel(a: torch.Tensor) -> None:
    @flyc.kernel
    def other(A: fx.Tensor):
        A[fx.thread_idx.x] = 1.0

    other._func.__name__ = "renamed"

    @flyc.jit
    def launch_both(A: fx.Tensor):
        kernel(A).launch(grid=1, block=64)
        other(A).launch(grid=1, block=64)

    artifact = flyc.compile(launch_both, a)
    assert [k.name.rstrip("_0123456789") for k in artifact.kernels] == ["doubled", "renamed"]


def test_attributes_of_a_kernel(a: torch.Tensor) -> None:
    @flyc.jit
    def launch_with(A: fx.Tensor, attributes: fx.Constexpr[tuple]):
        kernel(A, value_attrs=dict(attributes)).launch(grid=1, block=64)

    passed = (("passthrough", (("amdgpu-num-vgpr", "32"), "noinline")), ("rocdl.waves_per_eu", None))
    llvm_ir = flyc.compile(launch_with, a, passed).code.llvm_ir
    assert '"amdgpu-num-vgpr"="32"' in llvm_ir
    assert "noinline" in llvm_ir
    assert "amdgpu-waves-per-eu" not in llvm_ir


@pytest.mark.parametrize("attribute", [
    ("sym_name", "x"), ("rocdl.waves_per_eu", "two"), ("passthrough", ((1, 2, 3),)), ("my.thing", 2.5),
])  # fmt: skip
def test_unknown_attributes_of_a_kernel_are_refused(attribute: tuple[str, Any], a: torch.Tensor) -> None:
    @flyc.jit
    def launch_with(A: fx.Tensor, attributes: fx.Constexpr[tuple]):
        kernel(A, value_attrs=dict(attributes)).launch(grid=1, block=64)

    with pytest.raises(ArgumentError, match=r"value_attrs|passthrough"):
        launch_with(a, (attribute,))
