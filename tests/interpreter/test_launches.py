"""What is interpreted computes what is compiled, where lanes part and where waves wait for one another, too."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import pytest
import torch

import flydsl
import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.errors import ArgumentError, DeviceAssertion, FlyError, SimulatorError, TraceError
from flydsl.simulator import MemoryFault, checking
from flydsl.simulator.errors import NotFinite
from tests.compiler.debugging import buggy_kernels as bugs


def both(launch: Callable[..., Any], *tensors: torch.Tensor, numbers: tuple[Any, ...] = ()) -> list[torch.Tensor]:
    """What a launcher writes into its tensors, compiled and interpreted, which must be the same."""
    compiled, interpreted = ([tensor.clone() for tensor in tensors] for _ in range(2))
    launch(*compiled, *numbers)
    with flydsl.interpreting():
        launch(*interpreted, *numbers)
    for one, other in zip(compiled, interpreted, strict=True):
        assert torch.equal(one, other)
    return interpreted


@flyc.kernel
def paths_kernel(a: fx.Tensor, out: fx.Tensor, n: fx.Int32):
    i = fx.block_idx.x * 64 + fx.thread_idx.x
    if i >= n:
        return
    x = a[i]
    steps = fx.Int32(0)
    if x > 0.0:
        x = x * 2.0
        if x > 1.0 and i % 2 == 0:
            x = x - 1.0
    else:
        x = -x
    for k in range(i):
        if k > 9:
            break
        if k % 3 == 0:
            continue
        x = x + 1.0
        steps = steps + k
    while x > 3.0:
        x = x / 2.0
        steps = steps + 1
    y = x if steps > 7 else fx.Float32(0.5)
    out[i] = y + steps.to(fx.Float32)


@flyc.jit
def paths(a: fx.Tensor, out: fx.Tensor, n: fx.Int32):
    paths_kernel(a, out, n).launch(grid=(n + 63) // 64, block=64)


def test_lanes_that_part():
    torch.manual_seed(0)
    both(paths, torch.randn(100), torch.zeros(100), numbers=(97,))


@flyc.kernel
def carried_kernel(a: fx.Tensor, out: fx.Tensor, n: fx.Int32):
    i = fx.thread_idx.x
    sums = [fx.Float32(0.0), fx.Float32(0.0)]
    fragment = fx.make_rmem_tensor(4, fx.Float32)
    fragment.fill(0.0)
    for k in range(n):
        if i % 2 == 0:
            sums[0] = sums[0] + a[k]
            fragment[k % 4] = a[k]
        else:
            sums[1] = sums[1] + a[k] * 2.0
    for k, (total,) in range(0, i, 1, init=[fx.Float32(1.0)]):
        results = yield [total + a[k]]
    for k in fx.range_constexpr(4):
        sums[0] = sums[0] + fragment[k]
    out[i] = sums[0] + sums[1] * 3.0 + results


@flyc.jit
def carried(a: fx.Tensor, out: fx.Tensor, n: fx.Int32):
    carried_kernel(a, out, n).launch(grid=1, block=64)


def test_lists_fragments_and_carried_values():
    torch.manual_seed(0)
    both(carried, torch.randn(64), torch.zeros(64), numbers=(7,))


@flyc.kernel
def parted_kernel(a: fx.Tensor, out: fx.Tensor):
    t = fx.thread_idx.x
    shared = fx.make_view(fx.SharedAllocator().allocate(fx.Array[fx.Float32, 128]).peek().ptr, fx.make_layout(128, 1))
    if t < 64:
        shared[t] = a[t]
        fx.gpu.barrier()
        x = shared[64 + t]
    else:
        shared[t] = a[t] * 2.0
        fx.gpu.barrier()
        x = shared[t - 64]
    out[t] = x


@flyc.jit
def parted(a: fx.Tensor, out: fx.Tensor):
    parted_kernel(a, out).launch(grid=1, block=128)


def test_waves_that_meet_at_barriers_of_different_branches():
    """Also in a process that traces programs ahead, which build MLIR's operations themselves."""
    importlib.import_module("flydsl._mlir")
    torch.manual_seed(0)
    both(parted, torch.randn(128), torch.zeros(128))


@flyc.kernel
def handover_kernel(flag: fx.Tensor, out: fx.Tensor):
    t = fx.thread_idx.x
    if fx.block_idx.x == 0:
        seen = fx.Int32(0)
        while seen == 0:
            seen = flag[0]
        out[t] = out[t] + 1.0
    elif t == 0:
        flag[0] = fx.Int32(1)


@flyc.jit
def handover(flag: fx.Tensor, out: fx.Tensor, blocks: fx.Int32):
    handover_kernel(flag, out).launch(grid=blocks, block=64)


def test_a_barrier_that_some_lanes_do_not_take():
    with flydsl.interpreting(), pytest.warns(UserWarning, match="without 24 of its 64 lanes, the first .* .40, 0, 0."):
        bugs.barrier_of_some_lanes(*bugs.ARGUMENTS["barrier_of_some_lanes"]())


def test_a_workgroup_that_waits_for_another_one():
    out = torch.zeros(64)
    with flydsl.interpreting():
        handover(torch.zeros(1, dtype=torch.int32), out, 2)
    assert torch.equal(out, torch.ones(64))  # what the first attempt wrote is undone


def test_a_loop_that_never_ends_is_an_error():
    with (
        flydsl.interpreting(),
        pytest.raises(SimulatorError, match=r"loops do not end: wave 0 of workgroup \(0, 0, 0\)"),
    ):
        handover(torch.zeros(1, dtype=torch.int32), torch.zeros(64), 1)


@flyc.kernel
def past_kernel(a: fx.Tensor, out: fx.Tensor):
    t = fx.thread_idx.x
    out[t] = a[t + 1]


@flyc.jit
def past(a: fx.Tensor, out: fx.Tensor):
    past_kernel(a, out).launch(grid=1, block=64)


def test_an_access_outside_names_lane_tensor_and_line():
    with flydsl.interpreting(), pytest.raises(SimulatorError) as failed:
        past(torch.zeros(64), torch.zeros(64))
    assert isinstance(failed.value, MemoryFault)
    assert "reads 4 bytes outside of a (float32[64], 256 bytes): element 64" in str(failed.value)
    assert (failed.value.access.lane, failed.value.access.buffer, failed.value.access.element_index) == (63, "a", 64)
    assert "a[t + 1]" in str(failed.value)
    assert "put breakpoint() before this line" in failed.value.hint


@flyc.kernel
def asserting_kernel(a: fx.Tensor):
    t = fx.thread_idx.x
    assert a[t] < 5.0, f"a is {a[t]} in {t}"
    fx.printf("{}", t)


@flyc.jit
def asserting(a: fx.Tensor):
    asserting_kernel(a).launch(grid=1, block=4)


def test_assertions_and_output(capsys: pytest.CaptureFixture[str]):
    with flydsl.interpreting():
        asserting(torch.zeros(4))
        assert capsys.readouterr().out == "0\n1\n2\n3\n"
        with pytest.raises(DeviceAssertion, match=r"a is 9.0 in 2: workgroup \(0, 0, 0\), thread \(2, 0, 0\)"):
            asserting(torch.tensor([0.0, 0.0, 9.0, 0.0]))


@flyc.kernel
def assembly_kernel(out: fx.Tensor):
    from flydsl._mlir.dialects import llvm

    t = fx.thread_idx.x
    llvm.inline_asm(None, [], "s_nop 0", "", has_side_effects=True)
    out[t] = t.to(fx.Float32)


@flyc.jit
def assembly(out: fx.Tensor):
    assembly_kernel(out).launch(grid=1, block=64)


def test_inline_assembly_is_refused_by_line():
    with flydsl.interpreting(), pytest.raises(TraceError, match="does not execute inline assembly: s_nop 0") as failed:
        assembly(torch.zeros(64))
    assert "llvm.inline_asm" in str(failed.value)


@flyc.kernel
def ratio_kernel(a: fx.Tensor, out: fx.Tensor):
    t = fx.thread_idx.x
    largest = fx.Float32(float("-inf"))  # a constant is not made of numbers, nor is what is loaded
    for _ in range(1):
        largest = fx.max(a[t], largest)
    out[t] = a[t] / largest


@flyc.jit
def ratio(a: fx.Tensor, out: fx.Tensor):
    ratio_kernel(a, out).launch(grid=1, block=64)


@pytest.mark.parametrize("before", [0.0, float("nan")])
def test_the_operation_that_makes_a_nan(before: float):
    a = torch.ones(64)
    with flydsl.interpreting(), checking("nan"):
        ratio(a, torch.full((64,), before))
        a[7] = 0.0
        with pytest.raises(NotFinite) as failed:
            ratio(a, torch.full((64,), before))
    (made,) = failed.value.made
    assert (failed.value.tensor, failed.value.element, failed.value.count) == ("out", 7, 1)
    assert (made.lane, made.operands) == (7, (0.0, 0.0))
    assert "a[t] / largest" in str(failed.value)


def test_the_environment_variable(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("FLYDSL_INTERPRET", "1")
    with pytest.raises(SimulatorError, match="lane 63"):
        past(torch.zeros(64), torch.zeros(64))
    with flydsl.interpreting(False):
        past(torch.zeros(65), torch.zeros(64))


def test_values_end_with_their_launch():
    kept: list[Any] = []

    @flyc.kernel
    def keeping_kernel(out: fx.Tensor):
        kept.append(fx.thread_idx.x)
        out[fx.thread_idx.x] = 0.0

    @flyc.jit
    def keeping(out: fx.Tensor):
        keeping_kernel(out).launch(grid=1, block=64)

    with flydsl.interpreting():
        keeping(torch.zeros(64))
    with pytest.raises(FlyError, match="traced before"):
        kept[0] + 1


def test_checks_of_the_machine_code_are_refused():
    with flydsl.interpreting(), checking("races"), pytest.raises(ArgumentError, match=r"checking\('races'\)"):
        parted(torch.zeros(128), torch.zeros(128))
    with flydsl.interpreting(), checking("index"), pytest.raises(DeviceAssertion, match="index 64 of a tensor of 64"):
        past(torch.zeros(64), torch.zeros(64))
