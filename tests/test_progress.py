"""How far things have come: what a task says of itself, and what an interrupted launch says."""

from __future__ import annotations

import _thread
import sys
import threading

import pytest
import torch

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.progress import Task, running
from flydsl.simulator import limited
from kernels.vector_add import vector_add
from tests.launchers import launcher_of
from tests.stages import STAGE_COUNT


def test_a_task_is_there_while_it_runs() -> None:
    assert running() == []
    with Task("a", 4, "parts", done=lambda: 1, detail=lambda: "b") as outer, Task("c") as inner:
        assert running() == [outer, inner]
        assert (str(outer), str(inner)) == ("a: 1 of 4 parts done, b", "c: under way")
    assert running() == []


def test_an_interrupt_says_how_far_it_came() -> None:
    with (
        pytest.raises(KeyboardInterrupt, match=r"^add: 3 of 8 workgroups done$"),
        Task("add", 8, "workgroups", done=lambda: 3),
    ):
        raise KeyboardInterrupt
    with pytest.raises(KeyboardInterrupt, match=r"^what it says already$"), Task("add"):
        raise KeyboardInterrupt("what it says already")
    assert running() == []


def test_a_compilation_is_a_task() -> None:
    pipeline = vector_add.lower(*(torch.ones(64) for _ in range(3)))
    seen: list[str] = []

    class Observer:
        def stage_done(self, _pipeline, _stage) -> None:
            seen.append(str(running()[-1]))

        def ended(self, _pipeline) -> None:
            pass

    pipeline.observers.append(Observer())
    pipeline.run()
    assert seen[2].startswith(f"compiling vector_add: 3 of {STAGE_COUNT} stages done")
    assert running() == []


@pytest.mark.parametrize("backend", ["native", "lockstep"])
def test_a_launch_counts_its_workgroups(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLYDSL_SIMULATOR_BACKEND", backend)
    ended: list[int] = []
    leave = Task.__exit__

    def keep(task: Task, *error) -> None:
        ended.append(task.done())
        leave(task, *error)

    monkeypatch.setattr(Task, "__exit__", keep)
    vector_add(*(torch.ones(1 << 14) for _ in range(3)))
    assert ended[-1] > 1


@flyc.kernel
def long_kernel(A: fx.Tensor, n: fx.Int32):
    total = A[fx.thread_idx.x]
    for _ in range(n):
        total = total * 1.5 + 1.0
    A[fx.thread_idx.x] = total


long = launcher_of(long_kernel, grid=8, block=64)


def test_an_interrupted_launch_says_how_far_it_came() -> None:
    long(torch.ones(64), 1)

    def interrupt() -> None:
        while not over.wait(0.01):
            if any("long_kernel_0 on the simulator" in str(task) for task in running()):
                _thread.interrupt_main()
                return

    over, thread = threading.Event(), threading.Thread(target=interrupt, daemon=True)
    thread.start()
    expected = r"long_kernel_0 on the simulator: \d of 8 workgroups done"
    with limited(instructions=10**12), pytest.raises(KeyboardInterrupt, match=expected) as caught:
        long(torch.ones(64), 1 << 30)  # which would take hours
    over.set()
    thread.join()
    raised_by = {"user_error.py"} if sys.version_info < (3, 11) else set()
    assert {step.path.name for step in caught.traceback} == {"test_progress.py", *raised_by}
