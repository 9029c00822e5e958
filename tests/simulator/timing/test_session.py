"""What `tracing` does with launches, and what it leaves alone."""

from __future__ import annotations

import re
import struct
import warnings
from typing import Any

import numpy as np
import pytest
import torch

import flydsl
import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.arch import ARCHS, GFX942, get_arch
from flydsl.arch.timing import is_timed, timing
from flydsl.codegen import compile_llvm_ir
from flydsl.errors import ArchError, LaunchError, SimulatorError
from flydsl.simulator import Memory, MemoryFault, Program, checking, counting, launch, limited, tracing
from flydsl.simulator.arrays import Array
from flydsl.simulator.estimates import Estimate
from flydsl.simulator.memory.buffers import Buffer
from flydsl.simulator.timing import Stall, Unit, recording, sampling
from flydsl.simulator.timing.sampling import plan
from kernels.hgemm_splitk import half_plan, hgemm_launcher
from tests.simulator.timing.loops import copy_kernel, traced

DOUBLE = """
declare i32 @llvm.amdgcn.workitem.id.x()
declare i32 @llvm.amdgcn.workgroup.id.x()
define amdgpu_kernel void @double(ptr addrspace(1) %x, i32 %beyond) #0 {
entry:
  %t = call i32 @llvm.amdgcn.workitem.id.x()
  %w = call i32 @llvm.amdgcn.workgroup.id.x()
  %first = shl i32 %w, 8
  %own = add i32 %first, %t
  %i = add i32 %own, %beyond
  %place = getelementptr i32, ptr addrspace(1) %x, i32 %i
  %before = load i32, ptr addrspace(1) %place
  %after = shl i32 %before, 1
  store i32 %after, ptr addrspace(1) %place
  ret void
}
attributes #0 = { "amdgpu-flat-work-group-size"="256,256" }
"""


def double(x: Array, *, beyond: int = 0, by_address: bool = False, others: Array | None = None, **options: Any) -> None:
    """Launch a kernel that doubles the numbers of x, 256 for each workgroup. by_address: of the host. others: what the
    process has at an address, too."""
    place, data = x.ctypes.data, x.view(np.uint8)
    host = Buffer(place, data, "x", x.itemsize, "x") if by_address else None
    if others is not None:
        host = Buffer(others.ctypes.data, others.view(np.uint8), "others", 4, "others")
    memory = Memory([host] if host else ())
    kernarg = struct.pack("<QI", place if by_address else memory.map_array(x, name="x"), beyond)
    code = compile_llvm_ir(DOUBLE, GFX942)
    program = Program.load(code.hsaco, code.listing)
    grid = (len(x) // 256, 1, 1)
    launch(program, "double", grid=grid, block=(256, 1, 1), kernarg=kernarg, memory=memory, **options)


def test_a_timed_launch_leaves_tensors_alone() -> None:
    x = np.arange(1024, dtype=np.int32)
    with tracing() as traced:
        double(x)
    assert np.array_equal(x, np.arange(1024))
    (one,) = traced.launches
    assert (one.kernel, one.grid, one.block) == ("double", (4, 1, 1), (256, 1, 1))
    assert traced.time_us == one.time_us == one.trace.time_us > timing(GFX942).launch_us.value
    assert " us ± " in repr(traced)
    assert "4 of 4 workgroups" not in one.trace.sampling  # a die has one of the four
    assert "1 of 4 workgroups replayed" in repr(traced)


@pytest.mark.parametrize("backend", ["native", "lockstep"])
def test_a_launch_may_be_carried_out_too(backend: str) -> None:
    x = np.arange(1024, dtype=np.int32)
    with tracing(execute=True) as traced, counting() as counters:
        double(x, backend=backend)
    assert np.array_equal(x, 2 * np.arange(1024))
    assert counters.launches[0].trace is traced.launches[0].trace


def test_what_cannot_be_timed_is_carried_out_if_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recording, "_WORDS_PER_WAVE", 4)
    x = np.arange(256, dtype=np.int32)
    with tracing(), pytest.raises(SimulatorError, match="a wave executes too much for a trace"):
        double(x)
    with tracing(execute=True, only_known=True) as traced, counting() as counters:
        double(x)
    assert np.array_equal(x, 2 * np.arange(256))
    assert (traced.launches, counters.launches[0].estimate) == ([], None)
    assert "no estimate of the time: a wave executes too much" in repr(counters)


def test_memory_that_is_known_by_its_address_takes_the_same_time() -> None:
    x = np.arange(256 * 700, dtype=np.int32)
    with tracing() as traced:
        double(x)
        double(x, by_address=True)
    assert np.array_equal(x, np.arange(256 * 700))
    of_argument, by_address = traced.launches
    assert by_address.time_us == pytest.approx(of_argument.time_us, rel=0.01)  # its lines have other numbers


@flyc.kernel
def count_up(ends: fx.Tensor, n: fx.Int32):
    if fx.thread_idx.x == 0:
        ends[fx.block_idx.x] = n


@flyc.kernel
def loop_to_end(ends: fx.Tensor, y: fx.Tensor):
    for i in range(0, ends[fx.block_idx.x], 1):
        y[64 * fx.block_idx.x + fx.thread_idx.x] = i


@flyc.kernel
def copy_elements(x: fx.Tensor, y: fx.Tensor):
    y[64 * fx.block_idx.x + fx.thread_idx.x] = x[64 * fx.block_idx.x + fx.thread_idx.x]


@flyc.jit
def loop_as_counted(ends: fx.Tensor, y: fx.Tensor, z: fx.Tensor):
    count_up(ends, fx.Int32(50)).launch(grid=(2,), block=(64,))
    loop_to_end(ends, y).launch(grid=(2,), block=(64,))
    copy_elements(y, z).launch(grid=(2,), block=(64,))


def test_a_launch_that_depends_on_one_that_was_left_out_is_warned_of() -> None:
    ends, y, z = torch.zeros(2, dtype=torch.int32), torch.zeros(128, dtype=torch.int32), torch.zeros(128).int()
    with tracing() as traced, pytest.warns(UserWarning, match=r"loop_to_end_1: .* depends on ends"):
        loop_as_counted(ends, y, z)
    first, second, third = (one.trace.estimate.error_percent for one in traced.launches)
    assert second is None
    assert first is not None
    assert third is not None, "the values of y decide nothing"
    with warnings.catch_warnings(), tracing(execute=True) as carried_out:
        warnings.simplefilter("error")
        loop_as_counted(ends, y, z)
    assert carried_out.launches[1].trace.estimate.error_percent is not None
    assert carried_out.launches[1].time_us > traced.launches[1].time_us


@flyc.kernel
def start_lists(first: fx.Tensor, ends: fx.Tensor):
    if fx.thread_idx.x == 0:
        first[fx.block_idx.x] = fx.block_idx.x
        ends[fx.block_idx.x] = 3


@flyc.kernel
def follow_list(first: fx.Tensor, ends: fx.Tensor, y: fx.Tensor, beyond: fx.Int32):
    place = first[fx.block_idx.x] + beyond
    for i in range(0, ends[fx.block_idx.x] + 1, 1):
        y[place + i] = i


@flyc.jit
def lists(first: fx.Tensor, ends: fx.Tensor, y: fx.Tensor, beyond: fx.Int32):
    start_lists(first, ends).launch(grid=(2,), block=(64,))
    follow_list(first, ends, y, beyond).launch(grid=(2,), block=(64,))


# The end of a loop that executes too much for its limit; a place outside of y.
@pytest.mark.parametrize("unwritten", [(0, 1 << 30), (1 << 20, 3)])
def test_a_launch_that_fails_as_others_were_left_out_has_an_unknown_error(unwritten: tuple[int, int]) -> None:
    first, ends = (torch.full((2,), word, dtype=torch.int32) for word in unwritten)
    before = first.clone(), ends.clone()
    with limited(instructions=10_000), tracing() as traced, pytest.warns(UserWarning, match="which has zeros here"):
        lists(first, ends, torch.zeros(8, dtype=torch.int32), 0)
    writes, follows = traced.launches
    assert writes.trace.error_percent is not None
    assert follows.trace.error_percent is None
    assert re.search(r"depends on (first|ends), which an earlier launch", follows.trace.sampling)
    assert all(map(torch.equal, before, (first, ends)))


def test_a_launch_that_fails_in_any_case_is_an_error() -> None:
    first, ends = torch.zeros(2, dtype=torch.int32), torch.zeros(2, dtype=torch.int32)
    with tracing(), pytest.raises(MemoryFault, match="outside of y") as caught:
        lists(first, ends, torch.zeros(8, dtype=torch.int32), 1 << 20)
    assert "execute=True" in str(caught.value)


def test_what_parts_are_added_to_decides_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARCH", "gfx950")
    plan_of_product = half_plan("bf16", 128, 512, (16, 64, 128), (1, 2, 1), split=2)
    a, b, c = (torch.zeros(rows, dtype=torch.bfloat16) for rows in (4 * 512, 128 * 512, 4 * 128))
    with warnings.catch_warnings(), tracing() as traced:
        warnings.simplefilter("error")
        hgemm_launcher(plan_of_product)(c, a, b, c, 4, c, c)
    assert len(traced.launches) == 2, "one fills C"
    assert all(launch.trace.error_percent is not None for launch in traced.launches)


def test_products_of_an_architecture_differ_in_compute_units_and_memory() -> None:
    times = {}
    for gpu in (None, "mi300x", "MI325X", "mi308x"):
        with tracing(gpu=gpu) as traced:
            double(np.zeros(256 * 100_000, np.int32))
        times[gpu] = traced.time_us
    assert times[None] == times["mi300x"]
    assert times["MI325X"] < times["mi300x"] < times["mi308x"]
    assert traced.estimate.is_compared is False
    assert "on 20 of 80 compute units of an AMD Instinct MI308X" in traced.launches[0].trace.sampling


def test_a_product_of_another_architecture() -> None:
    with tracing(gpu="mi355x"), pytest.raises(ArchError, match="gfx942 is not timed on an AMD Instinct MI355X"):
        double(np.zeros(256, np.int32))


def test_addresses_that_are_nowhere_are_faults() -> None:
    x = np.arange(256, dtype=np.int32)
    with tracing(), pytest.raises(MemoryFault):
        double(x, by_address=True, beyond=1 << 20)


def test_memory_that_a_launch_does_not_use_leaves_its_time_alone() -> None:
    times = []
    for others in (None, np.zeros(64, np.int32)):
        with tracing() as traced:
            double(np.zeros(1024, np.int32), others=others)
        times.append(traced.time_us)
    assert times[0] == times[1]


def test_the_same_launch_has_the_same_trace() -> None:
    texts = []
    for _ in range(2):
        with tracing() as traced:
            double(np.zeros(256 * 700, np.int32), threads=2)
        texts.append(traced.launches[0].trace.to_json())
    assert texts[0] == texts[1]


def test_every_instruction_of_a_wave_is_there_in_order() -> None:
    with tracing() as traced:
        double(np.zeros(256, np.int32))
    trace = traced.launches[0].trace
    assert len(trace.waves) == 4
    for wave in range(4):
        events = trace.events[trace.events["wave"] == wave]
        assert events["instruction"].tolist() == sorted(events["instruction"].tolist())
        assert (np.diff(events["issue"].astype(np.int64)) >= 4).all()
        assert trace.instructions[int(events["instruction"][-1])].text == "s_endpgm"
    waits = trace.events[trace.events["reason"] == Stall.WAIT_VECTOR_MEMORY]
    assert len(waits) == 4
    memory_cycles = timing(GFX942).memory_latency_ns.value * 2.1
    assert (waits["stall"] > 0.8 * memory_cycles).all()
    loads = [i for i in trace.instructions if i.unit == Unit.VECTOR_MEMORY]
    assert [i.text.split()[0] for i in loads] == ["global_load_dword", "global_store_dword"]


def test_what_is_too_much_is_left_to_fewer_compute_units(monkeypatch: pytest.MonkeyPatch) -> None:
    times = []
    for words in (sampling._WORDS, 10_000):
        monkeypatch.setattr(sampling, "_WORDS", words)
        with tracing() as traced:
            double(np.zeros(256 * 304 * 32, np.int32))
        times.append(traced.time_us)
    assert "on 4 of 304 compute units" in traced.launches[0].trace.sampling
    assert times[0] == pytest.approx(times[1], rel=0.2)


@pytest.mark.parametrize(("workgroups", "idle"), [(64, 304 - 64), (400, 0)])
def test_compute_units_without_a_workgroup_are_counted(workgroups: int, idle: int) -> None:
    with tracing() as traced:
        double(np.zeros(256 * workgroups, np.int32))
    assert traced.launches[0].trace.idle_compute_units == idle


def test_errors_of_the_launch_are_raised() -> None:
    x = np.zeros(256, np.int32)
    with tracing() as traced, pytest.raises(MemoryFault, match="outside of x"):
        double(x, beyond=1 << 20)
    assert traced.launches == []
    with tracing(), checking(), pytest.raises(LaunchError, match="checked and timed at once"):
        double(x)


def test_a_gpu_without_figures_is_named() -> None:
    with pytest.raises(ArchError, match="latencies and bandwidths of gfx1250 are not known"):
        timing(get_arch("gfx1250"))


def test_every_figure_has_a_source() -> None:
    for arch in filter(is_timed, ARCHS):
        for name, figure in timing(arch).figures():
            assert figure.source, name
            assert figure.sure in ("published", "measured", "fitted", "scaled", "assumed"), name
            assert figure.value > 0 or name.startswith("infinity_cache"), name


@pytest.mark.parametrize("workgroups", [1, 7, 64, 65, 128, 129, 1000])
def test_a_plan_accounts_for_every_workgroup(workgroups: int) -> None:
    found = plan(range(workgroups), 32, 2)
    assert len(found.chosen) + found.skipped_rounds * found.round_size == workgroups
    assert sorted(set(found.chosen)) == list(found.chosen)
    assert found.chosen[-1] == workgroups - 1 or found.skipped_rounds


@pytest.mark.slow
def test_the_error_follows_what_was_compared() -> None:
    """A stream that the Infinity Cache could have kept is said to be further off; of RDNA 4 nothing was compared."""

    def copied(mebibytes: int, arch: str) -> Estimate:
        size = mebibytes << 20
        return traced(copy_kernel(), size // 16384, size, size, arch=arch).estimate

    assert [copied(size, "gfx942").error for size in (16, 192)] == ["± 50 %", "± 20 %"]
    on_rdna = copied(192, "gfx1201")
    assert 90 < (on_rdna.error_percent or 0) <= 110  # the bandwidth of its memory is assumed
    assert on_rdna.error.startswith("± ~")


@pytest.mark.slow
def test_sweeps_take_the_time_of_the_model_on_rdna(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARCH", "gfx1201")
    table = flydsl.sweep(copied_by_blocks, {"blocks": [1, 16]}, {"n": [16384]}, arguments=tensors_of)
    one, many = (table[i]["estimate_us"] for i in range(2))
    assert timing(get_arch("gfx1201")).launch_us.value < many < one / 2


@flyc.kernel
def copy_by_blocks(x: fx.Tensor, y: fx.Tensor, n: fx.Int32) -> None:
    for i in range(fx.block_idx.x * 256 + fx.thread_idx.x, n, 256 * fx.grid_dim.x):
        y[i] = x[i]


@flyc.jit
def copied_by_blocks(x: fx.Tensor, y: fx.Tensor, n: fx.Int32, blocks: fx.Constexpr[int]) -> None:
    copy_by_blocks(x, y, n).launch(grid=(blocks,), block=(256,))


def tensors_of(n: int) -> dict[str, Any]:
    return {"x": torch.zeros(n), "y": torch.empty(n), "n": n}
