"""A program that forks while another of its threads compiles."""

from __future__ import annotations

import os
import signal
import threading

import torch

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.dialect.context import lock
from tests.launchers import launcher_of

SECONDS = 60  # after which a child that hangs is ended


@flyc.kernel
def fill_kernel(A: fx.Tensor, value: fx.Constexpr[int]):
    A[fx.thread_idx.x] = fx.Float32(value)


fill = launcher_of(fill_kernel, grid=1, block=64)


def exit_status_of_a_child_that_compiles() -> int:
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            signal.alarm(SECONDS)
            a = torch.zeros(64)
            fill.lower(a, 2).artifact  # noqa: B018 - compiles
            status = 0
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def test_a_child_compiles_though_another_thread_compiled_at_the_fork() -> None:
    held, go_on = threading.Event(), threading.Event()

    def compile_meanwhile() -> None:
        with lock:
            held.set()
            go_on.wait()

    thread = threading.Thread(target=compile_meanwhile)
    thread.start()
    held.wait()
    threading.Timer(0.2, go_on.set).start()
    assert exit_status_of_a_child_that_compiles() == 0
    thread.join()


def test_both_processes_have_the_locks_afterwards() -> None:
    fill(torch.zeros(64), 1)
    assert exit_status_of_a_child_that_compiles() == 0
    assert lock.acquire(blocking=False)
    lock.release()
    a = torch.zeros(64)
    fill(a, 3)
    assert (a == 3).all()
