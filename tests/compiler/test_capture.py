"""What sees the launches that are made, and what of them is counted."""

from __future__ import annotations

import torch

import flydsl.compiler as flyc
import flydsl.expr as fx


@flyc.kernel
def double_kernel(A: fx.Tensor):
    A[fx.thread_idx.x] = A[fx.thread_idx.x] * 2


@flyc.jit
def double(A: fx.Tensor):
    double_kernel(A).launch(grid=1, block=64)


def test_a_block_around_another_sees_its_launches() -> None:
    A = torch.ones(64)
    with flyc.capture_launches() as outer:
        double(A)
        with flyc.capture_launches(counted=True) as inner:
            double(A)
        double(A)
    assert len(inner) == 1
    assert [len(launch.counters) for launch in outer] == [0, 1, 0]
    assert outer[1] is inner[0]
    assert (A == 8).all()


def test_nothing_runs_inside_of_a_block_where_nothing_is_to_run() -> None:
    A = torch.ones(64)
    with flyc.capture_launches(trace_only=True) as outer, flyc.capture_launches(counted=True) as inner:
        double(A)
    assert (A == 1).all()
    assert len(outer) == len(inner) == 1


def test_of_each_compilation_the_first_launch_is_counted() -> None:
    A, B = torch.ones(64), torch.ones(64, dtype=torch.int32)
    with flyc.capture_launches(counted=True) as launches:
        for tensor in (A, B, A, B):
            double(tensor)
    assert [len(launch.counters) for launch in launches] == [1, 1, 0, 0]
    with flyc.capture_launches(counted=True) as launches:
        double(A)
    assert launches[0].counters[0].totals.global_bytes == 2 * 64 * 4
