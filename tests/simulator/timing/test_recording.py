"""What is recorded is what a launch executes, though not all of it is executed for the record."""

from __future__ import annotations

import importlib
import struct
from collections.abc import Callable

import numpy as np
import pytest

from flydsl.arch import GFX942, GFX1201, Arch
from flydsl.codegen import compile_llvm_ir
from flydsl.errors import SimulatorError
from flydsl.simulator import Memory, Program
from flydsl.simulator.arrays import Array
from flydsl.simulator.dispatch import Dispatch
from flydsl.simulator.launching import prepare
from flydsl.simulator.timing import recording
from flydsl.simulator.timing.needed import Needed, needed_instructions
from flydsl.simulator.timing.recording import LDS_WORD, LINE_WORD
from tests.benchmarks import simulated_kernels

LIMIT = 10_000_000
COUNTDOWN = """
declare i32 @llvm.amdgcn.workitem.id.x()
define amdgpu_kernel void @countdown(ptr addrspace(1) %x) #0 {
entry:
  %t = call i32 @llvm.amdgcn.workitem.id.x()
  %place = getelementptr i32, ptr addrspace(1) %x, i32 %t
  %first = load i32, ptr addrspace(1) %place
  br label %loop
loop:
  %n = phi i32 [ %first, %entry ], [ %next, %loop ]
  %square = mul i32 %n, %n
  %scrambled = xor i32 %square, 12345
  %part = and i32 %scrambled, 1
  %less = sub i32 %n, 1
  %next = sub i32 %less, %part
  %more = icmp sgt i32 %next, 0
  br i1 %more, label %loop, label %end
end:
  store i32 %next, ptr addrspace(1) %place
  ret void
}
attributes #0 = { "amdgpu-flat-work-group-size"="64,64" }
"""


MASKED = """
declare i32 @llvm.amdgcn.workitem.id.x()
define amdgpu_kernel void @masked(ptr addrspace(1) %x, ptr addrspace(1) %y) #0 {
entry:
  %t = call i32 @llvm.amdgcn.workitem.id.x()
  %in = getelementptr float, ptr addrspace(1) %x, i32 %t
  %out = getelementptr float, ptr addrspace(1) %y, i32 %t
  %first = icmp ult i32 %t, 16
  %square = mul i32 %t, %t
  %large = icmp ugt i32 %square, 20
  %both = and i1 %first, %large
  br i1 %both, label %load, label %next
load:
  %value = load float, ptr addrspace(1) %in
  store float %value, ptr addrspace(1) %out
  br label %next
next:
  %further = getelementptr float, ptr addrspace(1) %out, i32 64
  store float 1.0, ptr addrspace(1) %further
  ret void
}
attributes #0 = { "amdgpu-flat-work-group-size"="64,64" }
"""


def dispatched(
    llvm_ir: str, kernel: str, arrays: list[Array], grid: tuple[int, int, int], block: int, arch: Arch = GFX942
) -> Dispatch:
    memory = Memory()
    pointers = [memory.map_array(array, name=f"x{i}") for i, array in enumerate(arrays)]
    code = compile_llvm_ir(llvm_ir, arch)
    program = Program.load(code.hsaco, code.listing)
    kernarg = struct.pack(f"<{len(pointers)}Q", *pointers)
    return prepare(program, kernel, grid=grid, block=(block, 1, 1), kernarg=kernarg, memory=memory)


def gemm() -> Dispatch:
    rng = np.random.default_rng(1)
    a, b = (rng.integers(-4, 5, (128, 128)).astype(np.float16) for _ in range(2))
    return dispatched(simulated_kernels.gemm(128), "gemm", [a, b, np.zeros((128, 128), np.float32)], (2, 2, 1), 256)


def softmax() -> Dispatch:
    x = np.random.default_rng(2).standard_normal((4, 1000)).astype(np.float32)
    return dispatched(simulated_kernels.softmax(1000), "softmax", [x, np.empty_like(x)], (4, 1, 1), 64)


@pytest.mark.parametrize("make", [gemm, softmax])
def test_streams_are_those_of_a_whole_execution(make: Callable[[], Dispatch], monkeypatch: pytest.MonkeyPatch) -> None:
    dispatch = make()
    quick = recording.Recorders(dispatch, LIMIT, threads=2).record([0, 3])
    monkeypatch.setattr(recording, "needed_instructions", lambda _: Needed(np.zeros(0, np.intp), content=True))
    whole = recording.Recorders(dispatch, LIMIT, threads=1).record([0, 3])
    for a, b in zip(quick, whole, strict=True):
        assert all(np.array_equal(x, y) for x, y in zip(a, b, strict=True))


@pytest.mark.parametrize("arch", [GFX942, GFX1201], ids=str)
def test_masks_are_saved_and_restored_in_waves_of_either_size(arch: Arch, monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.ones(64, np.float32)
    dispatch = dispatched(MASKED, "masked", [x, np.zeros(128, np.float32)], (1, 1, 1), 64, arch)
    assert any("saveexec" in i.mnemonic for i in dispatch.program.instructions)
    assert not needed_instructions(dispatch).content
    quick = recording.Recorders(dispatch, LIMIT, threads=1).record([0])
    monkeypatch.setattr(recording, "needed_instructions", lambda _: Needed(np.zeros(0, np.intp), content=True))
    (whole,) = recording.Recorders(dispatch, LIMIT, threads=1).record([0])
    assert all(np.array_equal(a, b) for a, b in zip(quick[0], whole, strict=True))


def test_a_reduction_over_lanes_is_not_executed() -> None:
    assert not needed_instructions(softmax()).content


def test_products_are_not_executed() -> None:
    dispatch = gemm()
    skipped = {dispatch.program.instructions[i].mnemonic for i in needed_instructions(dispatch).skipped}
    assert any(name.startswith("v_mfma") for name in skipped)
    assert not needed_instructions(dispatch).content


def test_streams_agree_with_the_counters() -> None:
    dispatch = gemm()
    streams = [s for w in recording.Recorders(dispatch, LIMIT, threads=1).record([0, 1, 2, 3]) for s in w]
    executed = np.concatenate([s[s < LDS_WORD] for s in streams])
    counts = np.bincount(executed, minlength=len(dispatch.program.instructions))
    passes = sum(int((s[(s >= LDS_WORD) & (s < LINE_WORD)] & 0xFFFF).sum()) for s in streams)
    scalar = [i.index for i in dispatch.program.instructions if i.mnemonic.startswith("s_load")]
    instruction_of = [np.maximum.accumulate(np.where(s < LDS_WORD, np.arange(len(s)), 0)) for s in streams]
    lines = sum(
        int(((s >= LINE_WORD) & ~np.isin(s[at], scalar)).sum()) for s, at in zip(streams, instruction_of, strict=True)
    )
    native = importlib.import_module("flydsl.simulator.native.machine")
    from flydsl.simulator.counters.raw import no_counts

    raw = no_counts(len(counts))
    native.run(dispatch, LIMIT, 1, raw)
    assert counts.tolist() == raw["executions"].tolist()
    assert lines == raw["global_lines"].sum()
    assert passes >= raw["lds_passes"].sum() > 0


def test_what_a_loaded_value_decides_is_executed() -> None:
    x = np.full(64, 5, np.int32)
    x[7] = 100
    dispatch = dispatched(COUNTDOWN, "countdown", [x], (1, 1, 1), 64)
    assert needed_instructions(dispatch).content
    ((stream,),) = recording.Recorders(dispatch, LIMIT, threads=1).record([0])
    executed = stream[stream < LDS_WORD]
    assert np.bincount(executed).max() == 50
    assert x[7] == 100, "the record is made on a copy"


def test_a_wave_that_executes_too_much(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recording, "_WORDS_PER_WAVE", 50)
    x = np.full(64, 1000, np.int32)
    with pytest.raises(SimulatorError, match="executes too much for a trace"):
        recording.Recorders(dispatched(COUNTDOWN, "countdown", [x], (1, 1, 1), 64), LIMIT, threads=1).record([0])
