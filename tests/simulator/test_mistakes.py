"""Mistakes of kernel authors: each is found, and reported with everything that is known of it."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import pytest
import torch

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl import simulator
from flydsl.errors import SimulatorError
from flydsl.simulator import (
    GlobalRace,
    InstructionLimit,
    LdsRace,
    MemoryFault,
    UninitializedLds,
    UninitializedRegister,
    checking,
)
from tests.launchers import launcher_of
from tests.pythons import NEEDS_COLUMNS
from tests.simulator import mistaken_kernels as kernels
from tests.simulator.mistaken_kernels import line_of, operands


def failing(kind: type[SimulatorError], launcher: Callable[..., None], *more: Any) -> Any:
    """The error of a launch, after which A is as it was and the next launch works."""
    a, out = operands()
    before = a.clone()
    with pytest.raises(kind) as caught:
        launcher(a, out, *more)
    assert type(caught.value) is kind
    assert torch.equal(a, before)
    kernels.reverse(a, out)
    assert torch.equal(out, a.flip(0))
    return caught.value


def assert_says(error: SimulatorError, comment: str, *parts: str) -> None:
    """The error names the line with the comment, and every part."""
    assert (error.at.file, error.at.line) == (kernels.__file__, line_of(comment))
    text = str(error)
    for part in (f"mistaken_kernels.py:{error.at.line}", "(ISA line ", "workgroup (0, 0, 0)", "^^^", *parts):
        assert part in text, part


def test_one_element_past_a_tensor() -> None:
    error = failing(MemoryFault, kernels.past_the_end)
    assert_says(
        error, "reads one element past A", "wave 1, lane 63, thread (127, 0, 0)", "instruction: global_load_dword"
    )
    assert "outside of A (float32[128], 512 bytes): element 128, address 0x" in str(error)
    access = error.access
    assert (access.buffer, access.element_index, access.is_write) == ("A", 128, False)


def test_a_barrier_that_not_every_wave_reaches() -> None:
    a, out = operands()
    kernels.half_a_barrier(a, out)
    assert torch.equal(out, a)  # the barrier does not wait for waves that have ended
    with checking() as found:
        kernels.half_a_barrier(a, out)
    (hint,) = found.hints
    assert (hint.at.file, hint.at.line) == (kernels.__file__, line_of("only one wave comes here"))
    assert (hint.waiting, hint.ended) == ((0,), (1,))
    assert "waves [0] wait, and waves [1] ended" in str(found)


def test_a_barrier_does_not_order_what_a_wave_did_that_missed_it() -> None:
    a, out = operands()
    with checking("races"), pytest.raises(LdsRace, match="no barrier"):
        kernels.missed_barrier(a, out)


@pytest.mark.slow
def test_workgroups_that_wait_for_each_other() -> None:
    """A flag, and a barrier of a grid of more waves than a batch has: with checks and without."""
    for check in (nullcontext(), checking("races")):
        with check:
            kernels.hand_over(zeros(kernels.THREADS), zeros(1), out := zeros(kernels.THREADS))
            kernels.grid_barrier(zeros(600), zeros(1), neighbours := zeros(600), 600)
        assert torch.equal(out, torch.arange(1, 1 + kernels.THREADS).int())
        assert torch.equal(neighbours, torch.arange(1, 601).int() % 600)


@pytest.mark.parametrize("check", ["nothing", "races", "late"])
def test_a_wave_that_sleeps_between_looks_at_a_flag(check: str) -> None:
    with nullcontext() if check == "nothing" else checking(check), simulator.limited(instructions=1_000_000):
        kernels.hand_over_to_a_sleeper(zeros(kernels.THREADS), zeros(1), out := zeros(kernels.THREADS))
    assert torch.equal(out, torch.arange(1, 1 + kernels.THREADS).int())


@pytest.mark.slow
@pytest.mark.parametrize("arch", ["gfx90a", "gfx1100", pytest.param("gfx1201", marks=pytest.mark.sweep)])
def test_a_flag_where_nothing_marks_an_atomic_store(arch: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """CDNA 2 and RDNA 3 store a flag as they store anything else."""
    monkeypatch.setenv("FLYDSL_GPU_ARCH", arch)
    with checking("races"):
        kernels.hand_over(zeros(kernels.THREADS), zeros(1), out := zeros(kernels.THREADS))
    assert torch.equal(out, torch.arange(1, 1 + kernels.THREADS).int())
    with checking("races"), pytest.raises(GlobalRace, match="nothing that orders"):
        kernels.hand_over_too_soon(zeros(kernels.THREADS), zeros(1), out)


def zeros(length: int) -> torch.Tensor:
    return torch.zeros(length, dtype=torch.int32)


@NEEDS_COLUMNS  # without them, LLVM takes the loop's first instructions for those of no line
def test_a_loop_that_never_ends() -> None:
    with simulator.limited(instructions=2000):
        error = failing(InstructionLimit, kernels.endless)
    assert line_of("and so on") - 1 <= error.at.line <= line_of("and so on")
    for part in ("2000 instructions", "instruction: ", "(ISA line ", "workgroup (0, 0, 0), wave 0"):
        assert part in str(error)
    assert "it reads element 0 of A (float32[128]), which is 1: global_load" in str(error)
    assert "2 of its workgroup's 2 waves go round this loop" in str(error)


@pytest.mark.parametrize("backend", ["native", "lockstep"])
def test_a_flag_that_nobody_sets(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLYDSL_SIMULATOR_BACKEND", backend)
    with simulator.limited(instructions=20_000), pytest.raises(InstructionLimit) as caught:
        kernels.wait_for_flag(zeros(1), zeros(kernels.THREADS))
    text = str(caught.value)
    assert "it reads element 0 of Flag (int32[1]), which is 0: global_load_dword" in text
    assert "1 of its workgroup's 2 waves goes round this loop, 1 at a barrier (ISA line " in text
    assert f"mistaken_kernels.py:{line_of('the others wait here')}" in text


@flyc.kernel
def short_tile_kernel(Out: fx.Tensor):
    t = fx.thread_idx.x
    tile = fx.make_view(fx.get_dyn_shared(fx.Float32), fx.make_layout((8, 16), (16, 1)))
    if t < 70:
        tile[t // 16, t % 16] = 1.0
    fx.barrier()
    Out[t] = tile[t // 16, t % 16]


def test_a_fault_in_lds_names_the_element_of_the_kernels_view() -> None:
    launch = launcher_of(short_tile_kernel, grid=1, block=128, smem=512)
    with checking("uninitialized"), pytest.raises(UninitializedLds) as caught:
        launch(torch.zeros(128))
    assert "LDS at 0x118 is element [4, 6] of the view (8,16):(16,1) of f32, from byte 0" in str(caught.value)


@flyc.jit
def seen(flag: fx.Pointer) -> Any:
    return fx.generic_load(flag, memory_order="acquire", syncscope="agent")


@flyc.kernel
def impatient_kernel(Flag: fx.Tensor):
    while seen(fx.get_iter(Flag)) == 0:
        pass


@NEEDS_COLUMNS
def test_a_loop_whose_helper_reads_names_the_lines_of_both() -> None:
    with simulator.limited(instructions=20_000), pytest.raises(InstructionLimit) as caught:
        launcher_of(impatient_kernel, grid=1, block=64)(zeros(1))
    loop = impatient_kernel.function.__code__.co_firstlineno + 2
    assert f"the loop's instructions come from lines {loop - 5} and {loop} of {__file__}" in str(caught.value)


def test_a_barrier_of_all_workgroups_at_which_one_never_arrives() -> None:
    with simulator.limited(instructions=5_000_000), pytest.raises(InstructionLimit) as caught:
        kernels.wait_for_all(zeros(1), zeros(5 * kernels.THREADS), 5)
    text = str(caught.value)
    assert "it reads element 0 of Arrived (int32[1]), which is 4: " in text
    assert re.search(rf"what writes it: global_atomic_add .*mistaken_kernels\.py:{line_of('arrives')}\)", text)
    assert "of the launch's 5 workgroups: 5 are in this loop" in text


def test_checks_know_who_wrote_what_an_endless_loop_reads() -> None:
    with simulator.limited(instructions=20_000), checking("races"), pytest.raises(InstructionLimit) as caught:
        kernels.wait_for_all(zeros(1), zeros(5 * kernels.THREADS), 5)
    text = str(caught.value)
    assert re.search(
        r"element 0 of Arrived was written last by wave \d of workgroup \(\d, 0, 0\): global_atomic_add", text
    )
    assert "4 of 5 workgroups have written it, not " in text


def test_a_race() -> None:
    with checking("races"):
        error = failing(LdsRace, kernels.reverse, False)
    assert_says(
        error, "reads what the other wave writes", "wave 0, lane 0, thread (0, 0, 0)", "instruction: ds_read_b32"
    )
    parts = "reads 4 bytes at LDS address 0x1fc", "which wave 1, lane 63 wrote with no barrier in between: ds_write_b32"
    assert ", ".join(parts) in str(error)
    assert f"mistaken_kernels.py:{line_of('writes')})" in str(error)
    assert (error.access.space, error.access.address, error.access.buffer) == ("lds", 508, None)


def test_shared_memory_that_nothing_wrote() -> None:
    with checking("uninitialized"):
        error = failing(UninitializedLds, kernels.neighbour)
    assert_says(error, "reads what nothing wrote", "wave 1, lane 63, thread (127, 0, 0)", "instruction: ds_read_b32")
    assert "reads 4 bytes at LDS address 0x200, which no thread of the workgroup has written" in str(error)


def test_a_private_array_that_nothing_filled() -> None:
    with checking("uninitialized"):
        error = failing(UninitializedRegister, kernels.unfilled)
    assert_says(error, "stores what nothing set", "wave 0, lane 0, thread (0, 0, 0)", "instruction: global_store_dword")
    assert "a value in global memory (Out, float32[128]: element 0, address 0x" in str(error)


def test_without_the_checks_a_launch_goes_on() -> None:
    a, out = operands()
    kernels.neighbour(a, out)
    assert torch.equal(out[:-1], a[1:])
    with checking("alignment"):
        kernels.neighbour(a, out)
