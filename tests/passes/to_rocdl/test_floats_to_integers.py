"""A float outside of an integer type's range becomes what the hardware's instruction makes of it, at any opt level."""

from __future__ import annotations

import pytest
import torch

import flydsl.compiler as flyc
import flydsl.expr as fx
from tests.launchers import launcher_of

NUMBERS = [1e20, -1e20, float("nan"), float("inf"), -float("inf"), 300.0, -300.0, 70000.0, 2.0**31, -1.5]
LIMITS = torch.iinfo(torch.int32)


def saturated(x: float, low: int, high: int) -> int:
    return 0 if x != x else int(max(min(x, high), low))


@flyc.kernel
def kernel(A: fx.Tensor, Wide: fx.Tensor, Narrow: fx.Tensor, Unsigned: fx.Tensor, known: fx.Constexpr[float]):
    t = fx.thread_idx.x
    Wide[t] = A[t].to(fx.Int32)
    Narrow[t] = A[t].to(fx.Int8).to(fx.Int32)
    Unsigned[t] = A[t].to(fx.Uint32).to(fx.Int64)
    if (A[0] == A[0]).select(fx.Float32(known), fx.Float32(known)).to(fx.Int32) > 5:  # which LLVM folds
        Wide[10] = 1
    else:
        Wide[10] = 2


launch = launcher_of(kernel, grid=1, block=len(NUMBERS))


@pytest.mark.parametrize("opt_level", range(4))
@pytest.mark.parametrize(("known", "branch"), [(1e20, 1), (-1e20, 2), (float("nan"), 2)])
@pytest.mark.diagonal(2)
def test_out_of_range(known: float, branch: int, opt_level: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLYDSL_COMPILE_OPT_LEVEL", str(opt_level))
    wide, narrow = torch.zeros(11, dtype=torch.int32), torch.zeros(10, dtype=torch.int32)
    unsigned = torch.zeros(10, dtype=torch.int64)
    launch(torch.tensor(NUMBERS), wide, narrow, unsigned, known)
    expected = [saturated(x, LIMITS.min, LIMITS.max) for x in NUMBERS]
    assert wide.tolist() == [*expected, branch]
    assert narrow.tolist() == torch.tensor(expected, dtype=torch.int32).to(torch.int8).tolist()
    assert unsigned.tolist() == [saturated(x, 0, 2**32 - 1) for x in NUMBERS]


def test_it_costs_no_instruction() -> None:
    @flyc.kernel
    def convert(A: fx.Tensor, Out: fx.Tensor):
        Out[fx.thread_idx.x] = A[fx.thread_idx.x].to(fx.Int32)

    run = launcher_of(convert, grid=1, block=64)
    isa = flyc.compile(run, torch.zeros(64), torch.zeros(64, dtype=torch.int32)).isa
    vector = [line.split()[0] for line in isa.splitlines() if line.startswith("\tv_")]
    assert vector == ["v_lshlrev_b32_e32", "v_cvt_i32_f32_e32"]


TYPES = (fx.Int8, fx.Uint8, fx.Int16, fx.Uint16, fx.Int32, fx.Uint32)


@flyc.kernel
def compare_kernel(Out: fx.Tensor, x: fx.Float32, by_launcher: list[fx.Int64]):
    converted = [*(x.to(dtype) for dtype in TYPES), x.to(fx.Float16).to(fx.Int16)]
    for place, (number, other) in enumerate(zip(converted, by_launcher, strict=True)):
        Out[0, place], Out[1, place] = number.to(fx.Int64), other


@flyc.jit
def compare(Out: fx.Tensor, x: fx.Float32):
    converted = [*(x.to(dtype) for dtype in TYPES), x.to(fx.Float16).to(fx.Int16)]
    compare_kernel(Out, x, [number.to(fx.Int64) for number in converted]).launch(grid=1, block=1)


@pytest.mark.parametrize("x", NUMBERS)
def test_a_launcher_converts_as_a_kernel_does(x: float) -> None:
    out = torch.zeros(2, len(TYPES) + 1, dtype=torch.int64)
    compare(out, x)
    assert out[0].tolist() == out[1].tolist()
