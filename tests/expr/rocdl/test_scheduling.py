"""Scheduling hints, waits and priorities reach the machine code."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from mlir import ir

import flydsl.expr as fx
from flydsl.compiler.kernel_function import CompilationContext
from flydsl.errors import ArchError, ArgumentError, FlyError
from flydsl.expr import rocdl
from flydsl.utils.smem_allocator import SmemAllocator


def test_instructions(compiled: Callable[..., str]) -> None:
    def body(A: Any) -> None:
        rocdl.s_setprio(3)
        rocdl.s_nop(7)
        rocdl.s_sleep(2)
        rocdl.s_waitcnt(0x0F70)  # vmcnt(0), no other wait
        rocdl.s_barrier()
        rocdl.barrier()
        A[fx.thread_idx.x] = 1.0

    isa = compiled(body)
    for text in ("s_setprio 3", "s_nop 7", "s_sleep 2", "s_waitcnt vmcnt(0)"):
        assert text in isa


@pytest.mark.slow
@pytest.mark.parametrize(
    ("counter", "arch"),
    [(c, "gfx1201") for c in ("loadcnt", "storecnt", "dscnt", "expcnt")]
    + [(c, "gfx1250") for c in ("asynccnt", "tensorcnt")],
)
def test_counters_of_gfx12(counter: str, arch: str, compiled: Callable[..., str]) -> None:
    assert f"s_wait_{counter} 0x3" in compiled(lambda A: getattr(rocdl, f"s_wait_{counter}")(3), arch)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arch", "instructions"),
    [
        ("gfx942", ["s_waitcnt vmcnt(3) lgkmcnt(2)"]),
        ("gfx1100", ["s_waitcnt vmcnt(3) lgkmcnt(2)"]),
        ("gfx1201", ["s_wait_loadcnt_dscnt 0x302"]),
        ("gfx1250", ["s_wait_loadcnt_dscnt 0x302"]),
    ],
)
def test_counters_by_name_are_waited_for_on_every_target(
    arch: str, instructions: list[str], compiled: Callable[..., str]
) -> None:
    named = compiled(lambda A: rocdl.s_waitcnt(vmcnt=3, lgkmcnt=2), arch)
    assert [text for text in instructions if text not in named] == []
    by_position = rocdl.rdna4.s_waitcnt if arch in ("gfx1201", "gfx1250") else rocdl.rdna3.s_waitcnt
    assert [text for text in instructions if text not in compiled(lambda A: by_position(3, 2), arch)] == []


def test_a_burst_of_prefetches(compiled: Callable[..., str]) -> None:
    isa = compiled(lambda A: rocdl.s_prefetch_inst_burst(num_pages=3, page_bytes=256), "gfx1250")
    found = re.findall(r"s_prefetch_inst_pc_rel (\w+), null, 31", isa)
    assert [int(offset, 0) for offset in found] == [0, 256, 512]
    with pytest.raises(ArchError, match="s_prefetch_inst_burst"):
        compiled(lambda A: rocdl.s_prefetch_inst_burst(3), "gfx942")


def order(isa: str) -> str:
    """The order of the LDS reads (r) and the matrix instructions (m) of a kernel."""
    return "".join("r" if found == "ds_read" else "m" for found in re.findall(r"ds_read|v_mfma", isa))


@pytest.mark.slow
def test_groups_decide_the_order(compiled: Callable[..., str]) -> None:
    """Four reads and four independent matrix instructions: as a pipeline of groups asks for them."""
    allocator = SmemAllocator(None, global_sym_name="scheduled")
    part = allocator.allocate_array(fx.Float32, 1024)

    def body(A: Any, pipeline: tuple[int, ...]) -> None:
        with ir.InsertionPoint(CompilationContext.get_current().gpu_module_body):
            allocator.finalize()
        lds = part(allocator.get_base())
        i = fx.thread_idx.x
        lds.store(A[i], [i])
        fx.barrier()
        total = [fx.Vector.filled([4], 0.0, fx.Float32)] * 4
        for j in range(4):
            x = lds.load([i * (j + 3)])
            total[j] = rocdl.mfma_f32_16x16x4f32([x, x, total[j]])
        for count in pipeline:
            rocdl.sched_dsrd(count)
            rocdl.sched_mfma(count)
        A[i] = total[0][0] + total[1][0] + total[2][0] + total[3][0]

    assert order(compiled(lambda A: body(A, (1, 1, 1, 1)))) == "rmrmrmrm"
    assert order(compiled(lambda A: body(A, (2, 2)))) == "rrmmrrmm"
    assert order(compiled(lambda A: body(A, (3, 1)))) == "rrrmmmrm"


def test_named_groups(compiled: Callable[..., str]) -> None:
    def body(A: Any) -> None:
        rocdl.sched_mfma(4)
        rocdl.sched_vmem(1)
        rocdl.sched_dsrd(2)
        rocdl.sched_dswr(fx.Int32(3))
        rocdl.sched_barrier(0)
        A[0] = 1.0

    isa = compiled(body)
    groups = re.findall(r"sched_group_barrier mask\(0x(\w+)\) size\((\d+)\)", isa)
    assert [(int(mask, 16), int(size)) for mask, size in groups] == [(0x8, 4), (0x20, 1), (0x100, 2), (0x200, 3)]
    assert "sched_barrier mask(0x00000000)" in isa
    assert "iglp_opt mask(0x00000001)" in compiled(lambda A: rocdl.iglp_opt(1))


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        (lambda A: rocdl.sched_mfma(-1), ArgumentError, "-1 is outside of 0 to"),
        (lambda A: rocdl.sched_mfma(fx.thread_idx.x), ArgumentError, "must be known at compile time"),
        (lambda A: rocdl.s_setprio(-1), ArgumentError, "s_setprio: -1 is outside of 0 to 32767"),
        (lambda A: rocdl.s_nop(2.5), ArgumentError, "2.5 is not an integer"),
        (lambda A: rocdl.s_wait_dscnt(0), ArchError, "s_wait_dscnt: gfx942 does not have it"),
    ],
)
def test_wrong_calls_are_refused_at_the_users_line(
    call: Callable[[Any], Any], error: type[FlyError], says: str, compiled: Callable[..., str]
) -> None:
    with pytest.raises(error, match=says) as info:
        compiled(call)
    assert info.value.at.file == __file__
