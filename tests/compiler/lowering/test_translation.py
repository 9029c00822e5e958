"""What has no LLVM IR is an error with MLIR's words and the user's line, and the process lives on."""

from __future__ import annotations

import pytest
import torch

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.errors import CompileError
from flydsl.expr.rocdl.intrinsic import call_intrinsic
from tests.launchers import launcher_of


@flyc.kernel
def calling(A: fx.Tensor, intrinsic: fx.Constexpr[str]):
    value = A[fx.thread_idx.x].ir_value()
    A[fx.thread_idx.x] = fx.Float32(call_intrinsic(intrinsic, [value], value.type))  # the line


call = launcher_of(calling, grid=1, block=64)


@pytest.mark.parametrize(
    ("intrinsic", "message"),
    [
        ("llvm.amdgcn.nonsense", 'could not find LLVM intrinsic: "llvm.amdgcn.nonsense"'),
        ("llvm.amdgcn.permlane16.var", 'returns float but "llvm.amdgcn.permlane16.var" actually returns i32'),
    ],
)
def test_an_intrinsic_that_llvm_does_not_know_so(intrinsic: str, message: str) -> None:
    pipeline = call.lower(torch.ones(64), intrinsic)
    with pytest.raises(CompileError, match=message) as error:
        pipeline.run()
    assert "LLVM Translation failed" not in str(error.value)
    assert error.value.at is not None
    assert "# the line" in str(error.value)
    assert [stage.state for stage in pipeline][-2:] == ["done", "failed"]
    assert pipeline[len(pipeline)].before  # its input can be looked at
    A = torch.full((64,), 4.0)
    call(A, "llvm.amdgcn.rcp")
    assert (A == 0.25).all()
