"""What sees the launches that are made, and what of them is counted."""

from __future__ import annotations

import pytest
import torch

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.errors import ArgumentError
from flydsl.simulator import tracing
from tests.launchers import launcher_of


@flyc.kernel
def double_kernel(A: fx.Tensor):
    A[fx.thread_idx.x] = A[fx.thread_idx.x] * 2


double = launcher_of(double_kernel, grid=1, block=64)


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


def test_of_each_compilation_the_first_launch_is_timed_and_runs() -> None:
    A = torch.ones(64)
    with flyc.capture_launches(traced=True, counted=True) as launches:
        double(A)
        double(A)
    assert (A == 4).all()
    assert [len(launch.traces) for launch in launches] == [1, 0]
    assert [len(launch.counters) for launch in launches] == [1, 0]
    assert launches[0].trace.time_us > 0
    with pytest.raises(ArgumentError, match="has 0 traces"):
        _ = launches[1].trace


def test_a_session_around_receives_the_traces_and_says_what_runs() -> None:
    A = torch.ones(64)
    with tracing() as around, flyc.capture_launches(traced=True) as launches:
        double(A)
    assert [one.trace for one in around.launches] == launches[0].traces
    assert (A == 1).all()


def test_a_launch_prints_tables_and_no_tensors() -> None:
    A = torch.full((64,), 0.125)
    with flyc.capture_launches(counted=True, traced=True) as launches:
        double(A)
    text = str(launches[0])
    assert text.splitlines()[0] == f"{double.signature.name}(A=<float32 (64,)>)"
    assert "executions" in text
    assert "cycles at" in text
    assert "0.125" not in text
