"""A benchmark's launches wait, and whoever asks for what they write finds it."""

# mypy: ignore-errors

from __future__ import annotations

import ctypes
from collections.abc import Iterator

import pytest
import torch

import flydsl.compiler as flyc
import flydsl.expr as fx
import flydsl.gpu
from flydsl.errors import SimulatorError
from flydsl.gpu.of_triton import chosen_by, do_bench
from flydsl.gpu.waiting import WAITING
from kernels.vector_add import vector_add

N = 1 << 11


@pytest.fixture(autouse=True)
def posing() -> Iterator[None]:
    with flydsl.gpu.pose("mi300x"):
        yield
        WAITING.forget()


def benchmarked(x: torch.Tensor, y: torch.Tensor, z: torch.Tensor) -> None:
    assert 0.001 < do_bench(lambda: vector_add(x, y, z)) < 0.1
    assert WAITING


ASKED = {
    "operator": lambda z: z.sum().item(),
    "view": lambda z: z[1:].sum().item() + z[0].item(),
    "copy": lambda z: z.cpu().sum().item(),
    "other GPU": lambda z: torch.zeros(N, device="cuda:1").copy_(z).sum().item(),
    "list": lambda z: sum(z.tolist()),
    "dlpack": lambda z: torch.utils.dlpack.from_dlpack(z.__dlpack__()).sum().item(),
    "address": lambda z: sum((ctypes.c_float * N).from_address(z.data_ptr())),
    "launch": lambda z: (vector_add(z, torch.zeros_like(z), found := torch.empty_like(z)), found.sum().item())[1],
}


@pytest.mark.parametrize("ask", ASKED.values(), ids=ASKED)
def test_results_are_there_for_whoever_asks(ask) -> None:
    flydsl.gpu.use("mi300x", 2)
    x, y, z = torch.ones(N, device="cuda"), torch.ones(N, device="cuda"), torch.zeros(N, device="cuda")
    benchmarked(x, y, z)
    assert ask(z) == 2 * N


def test_operands_are_read_before_they_change() -> None:
    x, y, z = torch.ones(N, device="cuda"), torch.ones(N, device="cuda"), torch.zeros(N, device="cuda")
    benchmarked(x, y, z)
    x.fill_(5)
    assert z.sum().item() == 2 * N


def test_results_are_there_when_no_gpu_poses_any_more() -> None:
    x, z = torch.ones(N, device="cuda"), torch.zeros(N, device="cuda")
    benchmarked(x, x, z)
    flydsl.gpu.off()
    assert z.cpu().sum().item() == 2 * N


def test_what_nobody_can_ask_for_is_forgotten() -> None:
    x, y = torch.ones(N, device="cuda"), torch.ones(N, device="cuda")
    before = torch.cuda.memory_allocated()
    do_bench(lambda x=x, y=y: vector_add(x, y, torch.empty_like(x)))
    WAITING.forget()
    assert len(WAITING) == 2  # as x may have changed
    del x, y
    WAITING.forget()
    assert not WAITING
    assert torch.cuda.memory_allocated() < before


def test_launches_that_follow_each_other() -> None:
    x, y, z = torch.ones(N, device="cuda"), torch.empty(N, device="cuda"), torch.empty(N, device="cuda")

    def both() -> None:
        vector_add(x, x, y)
        vector_add(y, x, z)

    do_bench(both)
    assert len(WAITING) == 4
    assert z.sum().item() == 3 * N


@flyc.kernel
def repeat_kernel(counts: fx.Tensor, y: fx.Tensor):
    for _ in range(counts[0]):
        y[fx.thread_idx.x] = y[fx.thread_idx.x] + 1.0


@flyc.jit
def repeat(counts: fx.Tensor, y: fx.Tensor):
    repeat_kernel(counts, y).launch(grid=(1,), block=(64,))


@flyc.kernel
def count_kernel(counts: fx.Tensor, n: fx.Int32):
    counts[0] = n


@flyc.jit
def count(counts: fx.Tensor, n: fx.Int32):
    count_kernel(counts, n).launch(grid=(1,), block=(1,))


@pytest.mark.slow
def test_a_launch_is_timed_after_those_that_decide_what_it_does() -> None:
    counts, y = torch.zeros(1, dtype=torch.int32, device="cuda"), torch.zeros(64, device="cuda")

    def time_ms(n: int) -> float:
        def call() -> None:
            count(counts, n)
            repeat(counts, y)

        return do_bench(call)

    assert time_ms(1000) > 0.02
    y.zero_()
    repeat(counts, y)
    assert y.tolist() == [1000.0] * 64


def test_a_trial_leaves_memory_as_it_was() -> None:
    x, z = torch.ones(N, device="cuda"), torch.zeros(N, device="cuda")
    assert chosen_by(lambda: vector_add(x, x, z), quantiles=(0.5, 0.2, 0.8))[0] > 0.001
    assert not WAITING
    assert z.sum().item() == 0
    assert flydsl.gpu.summary().launches == 0


@pytest.mark.parametrize("time", [do_bench, chosen_by])
def test_a_benchmark_leaves_the_clock_as_it_was(time) -> None:
    x, z = torch.ones(N, device="cuda"), torch.zeros(N, device="cuda")
    time(lambda: vector_add(x, x, z))
    timed = flydsl.gpu.summary().launches
    vector_add(x, x, z)
    assert flydsl.gpu.summary().launches == timed  # the program itself measures no time yet


@flyc.kernel
def far_kernel(y: fx.Tensor):
    past = (fx.block_idx.x == 2001).select(1 << 20, 0)  # no workgroup that the estimate needs
    y[fx.block_idx.x * 64 + fx.thread_idx.x + past] = 1.0


@flyc.jit
def far(y: fx.Tensor):
    far_kernel(y).launch(grid=(4096,), block=(64,))


@pytest.mark.slow
def test_a_fault_is_told_to_whoever_asks_first() -> None:
    y = torch.zeros(4096 * 64, device="cuda")
    do_bench(lambda: far(y))
    with pytest.raises(SimulatorError, match=r"outside"):
        y.sum()
    assert not WAITING


@flyc.kernel
def of_table_kernel(places: fx.Tensor):
    lane = fx.thread_idx.x
    numbers = fx.PointerType.get(fx.Int32.ir_type, fx.AddressSpace.Global, 4)
    fx.ptr_store(fx.ptr_load(fx.inttoptr(numbers, places[0]) + lane) + 1, fx.inttoptr(numbers, places[1]) + lane)


@flyc.jit
def of_table(places: fx.Tensor):
    of_table_kernel(places).launch(grid=1, block=64)


@pytest.mark.parametrize("is_timed_before", [True, False])
def test_a_launch_whose_memory_is_in_a_table_of_addresses_does_not_wait(is_timed_before: bool) -> None:
    x, y = torch.arange(64, dtype=torch.int32, device="cuda"), torch.zeros(64, dtype=torch.int32, device="cuda")
    places = torch.tensor([x.data_ptr(), y.data_ptr()], device="cuda")
    if is_timed_before:
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        of_table(places)
        end.record()
        assert start.elapsed_time(end) > 0.001
    assert do_bench(lambda: of_table(places)) > 0.001
    assert not WAITING  # it cannot be known whether its memory is still there
    assert y.tolist() == list(range(1, 65))
