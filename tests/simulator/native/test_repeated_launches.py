"""Launches of a kernel with the same sizes: they share what the first one has prepared, and nothing else."""

from __future__ import annotations

import gc
import struct
import sys
import threading
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.errors import LaunchError
from flydsl.simulator import (
    InstructionLimit,
    Memory,
    MemoryFault,
    Program,
    checking,
    counting,
    launch,
    limited,
    tracing,
)
from flydsl.simulator.arrays import Array

MOST_CALLS = 210
"""Of Python's functions, by a launch like the one before."""


@flyc.kernel
def scale_kernel(x: fx.Tensor, y: fx.Tensor, factor: fx.Float32, n: fx.Int32):
    start = fx.block_idx.x * 256 + fx.thread_idx.x
    for i in range(start, n, 256 * fx.grid_dim.x):
        y[i] = x[i] * factor


@flyc.jit
def scale(x: fx.Tensor, y: fx.Tensor, factor: fx.Float32, n: fx.Int32):
    scale_kernel(x, y, factor, n).launch(grid=(4,), block=(256,))


@flyc.kernel
def reverse_kernel(x: fx.Tensor, y: fx.Tensor):
    """Reverses what it adds to LDS, where a first launch finds 0."""
    places = fx.SharedAllocator().allocate(fx.Array[fx.Int32, 64]).peek().ptr
    i = fx.thread_idx.x
    before = fx.ptr_load(places + i)
    fx.ptr_store(before + x[i], places + i)
    fx.barrier()
    y[i] = fx.ptr_load(places + (63 - i))


@flyc.jit
def reverse(x: fx.Tensor, y: fx.Tensor):
    reverse_kernel(x, y).launch(grid=(1,), block=(64,))


def assert_scaled(seed: int, factor: float = 2.0, n: int = 1000) -> None:
    x, y = torch.randn(n, generator=torch.Generator().manual_seed(seed)), torch.full((n,), float("nan"))
    scale(x, y, factor, n)
    assert torch.equal(y, x * factor)


def test_a_warm_launch_makes_few_calls() -> None:
    x, y = torch.randn(1000), torch.empty(1000)
    for _ in range(3):
        scale(x, y, 2.0, 1000)
    calls = []
    sys.setprofile(lambda frame, event, argument: calls.append(frame.f_code.co_name) if event == "call" else None)
    try:
        scale(x, y, 2.0, 1000)
    finally:
        sys.setprofile(None)
    assert len(calls) <= MOST_CALLS


def test_arguments_and_memory_are_those_of_the_launch() -> None:
    for seed, n in enumerate((1000, 1000, 17, 1, 3000, 1000)):
        assert_scaled(seed, factor=seed + 0.5, n=n)


def test_gaps_of_a_view_are_those_of_the_launch() -> None:
    rows, y = torch.randn(8, 100), torch.empty(8)
    for step in (1, 2, 4):
        x = rows[::step, 0]  # between its elements is memory that is not the kernel's
        scale(x, y, 3.0, len(x))
        assert torch.equal(y[: len(x)], x * 3)
        with pytest.raises(MemoryFault, match="x"):
            scale(x, y, 3.0, len(x) + 1)


def test_a_fault_leaves_the_next_launch_as_it_was() -> None:
    short, y = torch.randn(900), torch.empty(1000)
    assert_scaled(0)
    for _ in range(2):
        with pytest.raises(MemoryFault, match="900"):
            scale(short, y, 2.0, 1000)
        assert_scaled(1)


def test_lds_is_as_at_the_first_launch() -> None:
    for seed in range(3):
        x = torch.arange(64, dtype=torch.int32) * (seed + 1)
        y = torch.full((64,), -1, dtype=torch.int32)
        reverse(x, y)
        assert torch.equal(y, x.flip(0))


def test_contexts_hold_for_their_launches_only() -> None:
    assert_scaled(0)
    with counting() as counters:
        assert_scaled(1)
    with checking():
        assert_scaled(2)
    with tracing(execute=True) as traced:
        assert_scaled(3)
    assert_scaled(4)
    with counting() as again:
        assert_scaled(5)
    assert len(counters.launches) == len(again.launches) == len(traced.launches) == 1
    assert counters.launches[0].statistics == again.launches[0].statistics


def test_the_backend_is_asked_for_at_each_launch(monkeypatch: pytest.MonkeyPatch) -> None:
    assert_scaled(0)
    monkeypatch.setenv("FLYDSL_SIMULATOR_BACKEND", "lockstep")
    assert_scaled(1)
    monkeypatch.setenv("FLYDSL_SIMULATOR_BACKEND", "none such")
    with pytest.raises(Exception, match="none such"):
        assert_scaled(2)
    monkeypatch.delenv("FLYDSL_SIMULATOR_BACKEND")
    assert_scaled(3)


def test_the_instruction_limit_is_that_of_the_launch() -> None:
    assert_scaled(0)
    with limited(instructions=3), pytest.raises(InstructionLimit):
        assert_scaled(1)
    assert_scaled(2)


def test_threads_do_not_share_a_launch() -> None:
    assert_scaled(0)
    errors: list[BaseException] = []

    def work(seed: int) -> None:
        try:
            for round_ in range(20):
                assert_scaled(seed, factor=float(round_))
        except BaseException as error:  # noqa: BLE001 - raised below
            errors.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors


COPY = """
declare i32 @llvm.amdgcn.workitem.id.x()
@table = internal addrspace(4) constant [4 x i32] [i32 3, i32 1, i32 4, i32 1], align 64
define amdgpu_kernel void @k(ptr addrspace(1) inreg %x, ptr addrspace(1) inreg %y, i32 inreg %n) #0 {
  %t = call i32 @llvm.amdgcn.workitem.id.x()
  %p = getelementptr i32, ptr addrspace(1) %x, i32 %t
  %q = getelementptr i32, ptr addrspace(1) %y, i32 %t
  %v = load i32, ptr addrspace(1) %p
  %i = and i32 %t, 3
  %c = getelementptr [4 x i32], ptr addrspace(4) @table, i32 0, i32 %i
  %w = load i32, ptr addrspace(4) %c
  %s = add i32 %v, %w
  %r = mul i32 %s, %n
  store i32 %r, ptr addrspace(1) %q
  ret void
}
attributes #0 = { "amdgpu-flat-work-group-size"="64,64" }
"""


def start(program: Program, x: Array, y: Array, n: int, grid: Any = (1, 1, 1)) -> None:
    memory = Memory()
    pointers = [memory.map_array(a, name=name) for a, name in ((x, "x"), (y, "y"))]
    launch(program, "k", grid=grid, block=(64, 1, 1), kernarg=struct.pack("<2Qi", *pointers, n), memory=memory)


@pytest.fixture
def copy(compile_ir: Callable[[str], tuple[bytes, str]]) -> Program:
    return Program.load(*compile_ir(COPY))


def test_arguments_that_are_loaded_into_registers_are_those_of_the_launch(copy: Program) -> None:
    assert any(register.name == "kernarg_preload" for register in copy.kernels["k"].descriptor.user_sgprs)
    x, y = np.arange(64, dtype=np.int32), np.zeros(64, np.int32)
    for n in (1, 7, -3):
        start(copy, x, y, n)
        np.testing.assert_array_equal(y, (x + np.tile([3, 1, 4, 1], 16)) * n)


@pytest.mark.slow
def test_nothing_of_a_launch_is_kept_alive(copy: Program) -> None:
    for _ in range(2):
        x, y = np.arange(64, dtype=np.int32), np.zeros(64, np.int32)
        kept = weakref.ref(x), weakref.ref(y)
        start(copy, x, y, 1)
        del x, y
        gc.collect()
        assert kept[0]() is None
        assert kept[1]() is None


def test_extents_that_equal_those_of_an_earlier_launch_are_checked(copy: Program) -> None:
    x, y = np.arange(64, dtype=np.int32), np.zeros(64, np.int32)
    start(copy, x, y, 1)
    for grid in ((1.0, 1, 1), [1, 1, 1]):
        with pytest.raises(LaunchError, match="tuple of three integers"):
            start(copy, x, y, 1, grid)


def test_programs_of_many_sizes_keep_few(copy: Program) -> None:
    x, y = np.arange(64, dtype=np.int32), np.zeros(64, np.int32)
    for blocks in range(1, 100):
        start(copy, x, y, 1, (blocks, 1, 1))
    assert len(copy.prepared) < 20


def test_what_kernels_only_read_begins_where_a_page_does() -> None:
    memory = Memory()
    addresses = [memory.map_constant(bytes(size), name="c", label="constants") for size in (8, 100, 5000, 3)]
    assert all(address % 4096 == 0 for address in addresses)
