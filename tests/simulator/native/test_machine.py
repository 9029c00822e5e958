"""Threads, slices and interrupts of native execution. That results are right, the tests of instructions show."""

from __future__ import annotations

import _thread
import struct
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from flydsl.simulator import InstructionLimit, Memory, MemoryFault, Program, launch
from flydsl.simulator.arrays import Array

Compile = Callable[[str], tuple[bytes, str]]

HEADER = """
declare i32 @llvm.amdgcn.workitem.id.x()
declare i32 @llvm.amdgcn.workgroup.id.x()
define amdgpu_kernel void @k(ptr addrspace(1) %x, ptr addrspace(1) %y, i32 %n) #0 {
entry:
  %t = call i32 @llvm.amdgcn.workitem.id.x()
  %w = call i32 @llvm.amdgcn.workgroup.id.x()
"""
FOOTER = """
}
attributes #0 = { "amdgpu-flat-work-group-size"="1,256" }
"""
FOR_EVER = """  br label %loop
loop:
  %v = load volatile i32, ptr addrspace(1) %x
  br label %loop"""


def start(compiled: tuple[bytes, str], x: Array, y: Array, blocks: int, **options: Any) -> Any:
    memory = Memory()
    pointers = [memory.map_array(a, name=name) for a, name in ((x, "x"), (y, "y"))]
    options = {"block": (256, 1, 1), "backend": "native", **options}
    kernarg = struct.pack("<2QI", *pointers, x.size)
    return launch(Program.load(*compiled), "k", grid=(blocks, 1, 1), kernarg=kernarg, memory=memory, **options)


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_results_and_statistics_do_not_depend_on_the_number_of_threads(
    compiled_double: tuple[bytes, str], threads: int
) -> None:
    x = np.random.default_rng(0).standard_normal(500_000).astype("f4")
    y = np.full_like(x, np.nan)
    statistics = start(compiled_double, x, y, 2000, threads=threads)
    np.testing.assert_array_equal(y, x + x)
    assert statistics.waves == 8000
    alone = start(compiled_double, x, y, 2000, threads=1)
    assert statistics == alone


@pytest.mark.parametrize("threads", [1, 3])
def test_of_several_faults_that_of_the_first_workgroup_is_reported(
    compiled_double: tuple[bytes, str], threads: int
) -> None:
    x, y = np.zeros(300_000, "f4"), np.zeros(200_001, "f4")
    with pytest.raises(MemoryFault) as caught:
        start(compiled_double, x, y, 1172, threads=threads)
    access = caught.value.access
    assert (access.workgroup, access.element_index, access.buffer) == ((781, 0, 0), 200_001, "y")


def test_atomics_count_right_on_any_number_of_threads(compile_ir: Compile) -> None:
    body = '  %old = atomicrmw add ptr addrspace(1) %y, i32 1 syncscope("agent") monotonic\n  ret void'
    counter = np.zeros(1, "u4")
    start(compile_ir(HEADER + body + FOOTER), np.zeros(1, "u4"), counter, 700, threads=4)
    assert counter[0] == 700 * 256


def test_a_workgroup_may_wait_for_one_that_starts_later(compile_ir: Compile) -> None:
    """The first one waits in a loop for what the second one writes, on one thread."""
    body = """  %first = icmp eq i32 %w, 0
  br i1 %first, label %wait, label %tell
wait:
  %v = load atomic volatile i32, ptr addrspace(1) %y syncscope("agent") monotonic, align 4
  %there = icmp eq i32 %v, 7
  br i1 %there, label %end, label %wait
tell:
  store atomic volatile i32 7, ptr addrspace(1) %y syncscope("agent") monotonic, align 4
  br label %end
end:
  ret void"""
    flag = np.zeros(1, "u4")
    compiled = compile_ir(HEADER + body + FOOTER)
    start(compiled, np.zeros(1, "u4"), flag, 2, threads=1, block=(64, 1, 1), instruction_limit=10**9)
    assert flag[0] == 7


@pytest.mark.slow
def test_workgroups_wait_for_all_of_the_grid(compile_ir: Compile) -> None:
    """Each counts itself and waits until all have: a barrier of the grid."""
    body = """  %old = atomicrmw add ptr addrspace(1) %y, i32 1 syncscope("agent") monotonic
  br label %wait
wait:
  %v = load atomic volatile i32, ptr addrspace(1) %y syncscope("agent") monotonic, align 4
  %there = icmp uge i32 %v, 19200
  br i1 %there, label %end, label %wait
end:
  ret void"""
    counter = np.zeros(1, "u4")
    start(compile_ir(HEADER + body + FOOTER), np.zeros(1, "u4"), counter, 300, block=(64, 1, 1))
    assert counter[0] == 300 * 64


def test_other_threads_run_and_ctrl_c_ends_a_launch(compile_ir: Compile) -> None:
    compiled = compile_ir(HEADER + FOR_EVER + FOOTER)
    ticks: list[float] = []

    def interrupt() -> None:
        end = time.perf_counter() + 0.5
        while time.perf_counter() < end:
            ticks.append(time.perf_counter())
        _thread.interrupt_main()
        ticks.append(time.perf_counter())

    thread = threading.Thread(target=interrupt)
    thread.start()
    before = threading.active_count()
    with pytest.raises(KeyboardInterrupt):
        start(compiled, np.zeros(64, "u4"), np.zeros(64, "u4"), 8, instruction_limit=10**12, threads=2)
    ended = time.perf_counter()
    thread.join()
    assert len(ticks) > 10
    assert ended - ticks[-1] < 20  # alone on the machine it is a twentieth of a second; the kernel would take days
    assert threading.active_count() <= before


def test_the_instruction_limit_holds_on_every_thread(compile_ir: Compile) -> None:
    compiled = compile_ir(HEADER + FOR_EVER + FOOTER)
    with pytest.raises(InstructionLimit, match="more than 5000 instructions"):
        start(compiled, np.zeros(64, "u4"), np.zeros(64, "u4"), 8, instruction_limit=5000, threads=2)


@pytest.mark.parametrize("limit", [1, 7, 10])
def test_the_limit_is_exact_in_straight_code(compiled_double: tuple[bytes, str], limit: int) -> None:
    x, y = np.ones(256, "f4"), np.zeros(256, "f4")
    caught = []
    for backend in ("native", "lockstep"):
        with pytest.raises(InstructionLimit) as info:
            start(compiled_double, x, y, 1, instruction_limit=limit, backend=backend)
        caught.append(str(info.value))
    assert caught[0] == caught[1]


def test_an_unknown_backend_is_refused(compiled_double: tuple[bytes, str]) -> None:
    from flydsl.errors import LaunchError

    with pytest.raises(LaunchError, match="no simulator backend 'cuda'"):
        start(compiled_double, np.zeros(1), np.zeros(1), 1, backend="cuda")
