"""Split barriers, clusters and what else gfx12 and gfx1250 have for waves that work together."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from mlir import ir

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.compiler.kernel_function import CompilationContext
from flydsl.errors import ArchError, ArgumentError, FlyError
from flydsl.expr import rocdl
from flydsl.expr.rocdl import cluster
from flydsl.utils.smem_allocator import SmemAllocator
from tests.launchers import launcher_of


@pytest.mark.parametrize("arch", ["gfx1201", "gfx1250"])
def test_signal_and_wait(arch: str, compiled: Callable[..., str]) -> None:
    def body(A: Any) -> None:
        i = fx.thread_idx.x
        A[i] = 1.0
        rocdl.s_barrier_signal(-1)
        A[i + 1] = 2.0
        rocdl.s_barrier_wait(-1)

    text = compiled(body, arch)
    assert re.search(r"s_barrier_signal -1 (?s:.*)s_barrier_wait (-1|0xffff)", text)


def test_the_first_wave_to_signal_knows(compiled: Callable[..., str]) -> None:
    def body(A: Any) -> None:
        first = rocdl.s_barrier_signal_isfirst(fx.T.bool, -1)
        rocdl.s_barrier_wait(-1)
        A[fx.thread_idx.x] = first.select(fx.Float32(1.0), fx.Float32(2.0))
        A[fx.thread_idx.x + 64] = fx.Float32(rocdl.s_get_barrier_state(-1))

    text = compiled(body, "gfx1201")
    assert "s_barrier_signal_isfirst -1" in text
    assert "s_get_barrier_state" in text


def test_named_barriers(compiled: Callable[..., str]) -> None:
    allocator = SmemAllocator(None, global_sym_name="named")
    place = allocator.allocate_array(fx.Int32, 4, 16)

    def body(A: Any) -> None:
        with ir.InsertionPoint(CompilationContext.get_current().gpu_module_body):
            allocator.finalize()
        barrier = place(allocator.get_base())
        count = rocdl.ds_atomic_barrier_arrive_rtn_b64(barrier, 1)
        rocdl.ds_atomic_async_barrier_arrive_b64(barrier)
        A[fx.thread_idx.x] = fx.Float32(fx.Int32(count))

    text = compiled(body, "gfx1250")
    assert "ds_atomic_barrier_arrive_rtn_b64" in text
    assert "ds_atomic_async_barrier_arrive_b64" in text


def test_a_cluster_waits_for_all_its_workgroups(compiled: Callable[..., str]) -> None:
    """One wave signals, behind the workgroup's own barrier; every wave waits."""

    def body(A: Any) -> None:
        cluster.cluster_barrier()
        A[fx.thread_idx.x] = 1.0

    text = compiled(body, "gfx1250")
    order = re.findall(r"s_barrier_(signal|wait) (-1|-3|0xffff|0xfffd)", text)
    assert [kind for kind, _ in order] == ["signal", "wait", "signal", "wait"]
    assert order[2] == ("signal", "-3")
    assert "s_cbranch" in text[: text.index("s_barrier_signal -3")]


def test_places_and_masks(compiled: Callable[..., str]) -> None:
    found = []

    def body(A: Any) -> None:
        x, y = cluster.compute_cluster_position()
        masks = cluster.compute_mcast_masks(x, y, 2, 4)
        found.extend(int(mask) for mask in cluster.compute_mcast_masks(fx.Int32(1), fx.Int32(2), 2, 4))
        A[fx.thread_idx.x] = fx.Float32(masks[0] + masks[1] + rocdl.cluster_id_x() + rocdl.cluster_workgroup_id_z())

    compiled(body, "gfx1250")
    # Workgroup x + 2 y: those of x = 1 are 1, 3, 5, 7, those of y = 2 are 4 and 5.
    assert found == [0b10101010, 0b110000]


def test_matrix_instructions_without_a_stall(compiled: Callable[..., str]) -> None:
    def body(A: Any) -> None:
        rocdl.disable_xdl_arb_stall()
        A[fx.thread_idx.x] = fx.Float32(rocdl.wave_id())

    text = compiled(body, "gfx1250")
    assert "s_setreg_imm32_b32 hwreg(HW_REG_WAVE_SCHED_MODE, 4, 1), 1" in text
    assert "ttmp8" in text  # where the hardware says the wave's number


@pytest.mark.parametrize(
    ("call", "arch", "error", "message"),
    [
        (lambda: rocdl.s_barrier_signal(-1), "gfx942", ArchError, "gfx942 does not have it"),
        (lambda: rocdl.s_barrier_wait(-1), "gfx1100", ArchError, "gfx1100 does not have it"),
        (lambda: rocdl.s_barrier_signal(17), "gfx1201", ArgumentError, "17 is outside of -4 to 16"),
        (lambda: cluster.cluster_barrier(), "gfx1201", ArchError, "gfx1201 does not have it"),
        (lambda: cluster.compute_mcast_masks(0, 0, 8, 4), "gfx1250", ArgumentError, "at most 16"),
        (lambda: rocdl.cluster_id_x(), "gfx942", ArchError, "gfx942 does not have it"),
        (lambda: rocdl.disable_xdl_arb_stall(), "gfx1201", ArchError, "gfx1201 does not have it"),
    ],
)
def test_wrong_use_is_an_error_at_the_line(
    call: Callable[[], Any], arch: str, error: type[FlyError], message: str, compiled: Callable[..., str]
) -> None:
    with pytest.raises(error, match=message) as caught:
        compiled(lambda A: call(), arch)
    assert caught.value.at.file == __file__


def test_clusters_of_a_launch() -> None:
    import torch

    @flyc.kernel
    def kernel(A: fx.Tensor):
        cluster.cluster_barrier()
        A[fx.block_idx.x * 32 + fx.thread_idx.x] = 1.0

    launch = launcher_of(kernel, grid=4, block=32, cluster=(2, 1, 1))
    assert '"amdgpu-cluster-dims"="2,1,1"' in launch.lower(torch.zeros(128), arch="gfx1250").artifact.code.llvm_ir


def test_clusters_are_in_gpu_too() -> None:
    for name in ("cluster_barrier", "cluster_wait", "compute_cluster_position", "compute_mcast_masks"):
        assert getattr(fx.gpu, name) is getattr(rocdl.cluster, name)
