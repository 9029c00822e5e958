"""Warnings of waits that inline assembly misses."""

from __future__ import annotations

import linecache
import os
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl._mlir.dialects import llvm
from flydsl.compiler.debugging.missing_waits import may_miss
from flydsl.simulator import MissingWait, checking
from tests.processes import run_python


def load(pointer: Any, wait: str) -> Any:
    text = f"global_load_dword $0, $1, off\n{wait}"
    return llvm.inline_asm(fx.T.i32, [pointer], text, "=v,v", has_side_effects=True)


@flyc.kernel
def loading(x: fx.Tensor, y: fx.Tensor, wait: fx.Constexpr[str]):
    value = fx.Int32(load(fx.ptrtoint(fx.get_iter(x)), wait))
    y[fx.thread_idx.x] = value + 1  # uses it


@flyc.jit
def launch(x: fx.Tensor, y: fx.Tensor, wait: fx.Constexpr[str]):
    loading(x, y, wait).launch(grid=1, block=64)


def lowered(wait: str) -> Any:
    x = torch.zeros(64, dtype=torch.int32)
    return launch.lower(x, torch.zeros_like(x), wait, arch="gfx942").artifact


def test_assembly_that_does_not_wait_is_warned_of_at_the_use() -> None:
    with pytest.warns(UserWarning, match="a wait is missing: .* before it has arrived") as told:
        lowered("")
    (warning,) = told
    line = linecache.getline(warning.filename, warning.lineno)
    assert line.rstrip().endswith("# uses it")
    assert "s_waitcnt vmcnt(0) before the use would" in str(warning.message)


def test_assembly_that_waits_is_left_alone() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        lowered("s_waitcnt vmcnt(0)")


@flyc.kernel
def multiplying(x: fx.Tensor, before: fx.Constexpr[str], behind: fx.Constexpr[str]):
    lane = fx.thread_idx.x
    pair = fx.Vector.filled(4, fx.Float16(1.0), fx.Float16).bitcast(fx.Int32).ir_value()
    sums = fx.Vector.filled(4, x[lane] + 1.0, fx.Float32).ir_value()
    text = f"{before}v_mfma_f32_16x16x16_f16 $0, $1, $2, $3{behind}"
    x[lane] = fx.Vector(llvm.inline_asm(fx.T.VectorType.get([4], fx.T.f32), [pair, pair, sums], text, "=a,v,v,0"))[0]


@flyc.jit
def multiply(x: fx.Tensor, before: fx.Constexpr[str], behind: fx.Constexpr[str]):
    multiplying(x, before, behind).launch(grid=1, block=64)


@pytest.mark.parametrize(
    ("before", "behind", "place"),
    [("s_nop 1\n", "", "at the end"), ("", "\ns_nop 15", "at the start"), ("s_nop 1\n", "\ns_nop 15", "")],
)
def test_wait_states_around_assembly_go_into_its_text(before: str, behind: str, place: str) -> None:
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        assert multiply.lower(torch.zeros(64), before, behind, arch="gfx942").artifact
    assert len(told) == bool(place)
    assert all(f"write it {place} of the assembly's text" in str(one.message) for one in told)


_PROGRAM = """
import torch
from tests.compiler.debugging.test_missing_waits import launch

x = torch.zeros(64, dtype=torch.int32)
launch(x, torch.zeros_like(x), "")
"""


@pytest.mark.slow
def test_what_is_on_disk_is_warned_of_again(tmp_path: Path) -> None:
    """The second process compiles nothing."""
    environment = {**os.environ, "FLYDSL_RUNTIME_CACHE_DIR": str(tmp_path), "FLYDSL_RUNTIME_ENABLE_CACHE": "1"}
    for run_only in ("", "1"):
        ran = run_python("-c", _PROGRAM, env=environment | {"FLYDSL_RUNTIME_RUN_ONLY": run_only})
        assert ran.returncode == 0, ran.stderr
        assert "UserWarning: a wait is missing" in ran.stderr


@flyc.kernel
def exchange_kernel(x: fx.Tensor, y: fx.Tensor):
    one, t = fx.make_layout(1, 1), fx.thread_idx.x
    shared = fx.SharedAllocator().allocate(fx.Array[fx.Float32, 128, 16]).peek().view(fx.make_layout(128, 1))
    copy = fx.make_copy_atom(fx.rocdl.BufferCopyLDS32b(), fx.Float32)
    source, target = (fx.logical_divide(tensor, one) for tensor in (fx.rocdl.make_buffer_tensor(x), shared))
    fx.copy(copy, source[None, t], target[None, t])
    fx.rocdl.s_barrier()
    y[t] = shared[127 - t]  # LLVM waits here, which is too late


@flyc.jit
def exchange(x: fx.Tensor, y: fx.Tensor):
    exchange_kernel(x, y).launch(grid=1, block=128)


@pytest.mark.parametrize("arch", ["gfx942", "gfx950"])
def test_a_copy_that_is_waited_for_behind_the_barrier_is_warned_of_once(
    arch: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the kernel is compiled a second time, with its indices checked."""
    monkeypatch.setenv("FLYDSL_GPU_ARCH", arch)
    with pytest.warns(UserWarning, match="a wait is missing") as told, pytest.raises(MissingWait), checking():
        exchange(torch.arange(128.0), torch.zeros(128))
    (warning,) = told
    assert linecache.getline(warning.filename, warning.lineno).rstrip().endswith("which is too late")
    assert "s_waitcnt vmcnt(0) before the barrier at ISA line" in str(warning.message)


def test_which_listings_need_a_look() -> None:
    assert may_miss("\t;;#ASMSTART\n\ts_nop 0\n\t;;#ASMEND")
    assert may_miss("\tbuffer_load_dword v1, s[8:11], 0 offen lds\n")
    assert may_miss("\tglobal_load_lds_dwordx4 v[2:3], off\n")
    assert not may_miss("\tglobal_load_dword v2, v1, s[4:5]\n\ts_waitcnt vmcnt(0)\n")


_PLAIN = """
import sys
import torch
import flydsl.compiler as flyc, flydsl.expr as fx

@flyc.kernel
def copy_kernel(x: fx.Tensor, y: fx.Tensor):
    y[fx.thread_idx.x] = x[fx.thread_idx.x]

@flyc.jit
def copy(x: fx.Tensor, y: fx.Tensor):
    copy_kernel(x, y).launch(grid=1, block=64)

copy(torch.zeros(64), torch.zeros(64))
print([name for name in sys.modules if name.startswith("flydsl.simulator.waits")])
"""


@pytest.mark.slow
def test_code_that_needs_no_look_does_not_load_what_looks(tmp_path: Path) -> None:
    program = tmp_path / "plain.py"
    program.write_text(_PLAIN)
    environment = {**os.environ, "COMPILE_ONLY": "1", "FLYDSL_RUNTIME_CACHE_DIR": str(tmp_path / "cache")}
    twice = "import runpy, sys; runpy.run_path(sys.argv[1]); runpy.run_path(sys.argv[1])"  # compiled, and from the disk
    done = run_python("-c", twice, program, env=environment)
    assert done.stdout.split() == ["[]", "[]"], done.stderr
