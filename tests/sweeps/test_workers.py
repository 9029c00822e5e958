"""Sweeps on executors: the same table whoever runs it, and nothing lost or repeated when workers die."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import torch

import flydsl
from flydsl import Config
from flydsl.errors import ArgumentError, DeviceError, LaunchError
from flydsl.sweeps import Table
from flydsl.sweeps.workers import Lost, results
from tests.processes import run_python
from tests.shared_memory import needs_shared_memory
from tests.sweeps.launchers import doubled, scale, tensors

pytestmark = [pytest.mark.slow, needs_shared_memory]

THREADS = torch.get_num_threads()
CONFIGS = [Config(block=64), Config(block=2048), Config(block=128), Config(block=64, factor=3)]


def swept(executor: Any, **options: Any) -> Table:
    return flydsl.sweep(
        scale, CONFIGS, {"n": [100, 300]}, arguments=tensors, check=doubled, executor=executor, **options
    )


@pytest.mark.slow
def test_the_same_for_any_executor() -> None:
    here = swept(None)
    assert [row.error is None for row in here] == [True, False, True, False] * 2
    with ThreadPoolExecutor(3) as threads, ProcessPoolExecutor(3) as processes:
        assert swept(threads, archs=["gfx942"]) == here
        assert swept(processes) == here
    assert swept(lambda: ProcessPoolExecutor(1)) == here


@pytest.mark.slow
def test_threads_have_their_own_architectures() -> None:
    archs = ["gfx942", "gfx950", "gfx90a"]
    with ThreadPoolExecutor(3) as threads:
        assert swept(threads, archs=archs) == swept(None, archs=archs)


_SCRIPT = """
from __future__ import annotations
import multiprocessing
from concurrent.futures import ProcessPoolExecutor
import torch, flydsl
import flydsl.compiler as flyc, flydsl.expr as fx

STEP = 2

@flyc.kernel
def kernel(x: fx.Tensor, n: fx.Int32, block: fx.Constexpr[int]):
    for i in range(fx.thread_idx.x, n, block):
        x[i] = x[i] + STEP

@flyc.jit
def add(x: fx.Tensor, n: fx.Int32, block: fx.Constexpr[int]):
    kernel(x, n, block).launch(grid=1, block=block)

def local(n):
    return {"x": torch.zeros(n), "n": n}

if __name__ == "__main__":
    def right(x, n):
        return bool((x == STEP).all())
    pool = ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn"))
    with pool:
        table = flydsl.sweep(add, {"block": [64, 2048]}, {"n": [100]}, arguments=local, check=right, executor=pool)
    print(table[0].error, table[1].error)
"""


@pytest.mark.slow
def test_functions_of_main_go_to_processes_that_do_not_have_it(tmp_path: Path) -> None:
    """Spawned ones import the script under another name; the source comes along, for loops and for messages."""
    script = tmp_path / "script.py"
    script.write_text(_SCRIPT)
    ran = run_python(script)
    assert ran.stdout.startswith("None LaunchError: block=(2048, 1, 1)"), ran.stderr
    assert "kernel(x, n, block).launch(grid=1, block=block)" in ran.stdout


class Fatal:
    """A job whose items end their process: each once, or always."""

    def __init__(self, folder: Path, always: tuple[int, ...] = (), once: tuple[int, ...] = ()) -> None:
        self.folder, self.always, self.once = folder, always, once

    def __call__(self, item: int) -> dict[str, Any]:
        mark = self.folder / str(item)
        if item in self.always or (item in self.once and not mark.exists()):
            mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return {"item": item}


@pytest.mark.parametrize("is_made_by_function", [False, True])
def test_a_worker_that_dies_is_replaced(tmp_path: Path, is_made_by_function: bool) -> None:
    job = Fatal(tmp_path, once=(1, 4, 6))
    with ProcessPoolExecutor(2) as pool:
        found = list(results(job, range(8), (lambda: ProcessPoolExecutor(2)) if is_made_by_function else pool, 3))
    assert sorted(number for number, _ in found) == list(range(8))
    assert all(outcome == {"item": number} for number, outcome in found)
    for child in multiprocessing.active_children():  # of a pool that broke, on its way out
        child.join(timeout=60)
    assert not multiprocessing.active_children()


def sums(count: int) -> dict[str, Any]:
    """A job for which torch takes several threads, if it may."""
    return {"sum": float(torch.arange(count, dtype=torch.float32).add(1).sum())}


def test_a_fork_does_not_wait_for_threads_of_torch_that_it_has_not() -> None:
    sizes = [1 << 18, 1 << 19]
    expected = [sums(size) for size in sizes]
    watchdog = threading.Timer(120, lambda: [child.kill() for child in multiprocessing.active_children()])
    watchdog.start()
    try:
        found = dict(results(sums, sizes, lambda: ProcessPoolExecutor(2), 1))
    finally:
        watchdog.cancel()
    assert [found[number] for number in range(2)] == expected
    assert torch.get_num_threads() == THREADS


class Forgetful(ThreadPoolExecutor):
    """An executor that breaks without a word about what it was to do, as a process pool may that is given more."""

    def __init__(self, broken: bool) -> None:
        super().__init__(1)
        self._breaks, self._submitted = broken, 0

    def submit(self, *arguments: Any, **keywords: Any) -> Future[Any]:
        self._submitted += 1
        if self._breaks and self._submitted > 2:
            raise BrokenExecutor("gone")
        return Future() if self._breaks else super().submit(*arguments, **keywords)


def test_what_a_broken_executor_forgets_is_done_by_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("flydsl.sweeps.workers._SECONDS_BETWEEN_LOOKS", 0.01)
    broken = iter([True, False])
    found = dict(results(sums, [1, 2], lambda: Forgetful(next(broken)), 1))
    assert found == {0: {"sum": 1.0}, 1: {"sum": 3.0}}


def stay(number: int) -> dict[str, Any]:
    """A job after which its worker does not end when it is asked to."""
    threading.Thread(target=threading.Event().wait).start()
    return {"number": number}


def test_a_pool_whose_workers_stay_is_closed() -> None:
    assert dict(results(stay, [5], lambda: ProcessPoolExecutor(1), 1)) == {0: {"number": 5}}
    assert not multiprocessing.active_children()


def test_what_kills_its_worker_is_told_from_what_ran_beside_it(tmp_path: Path) -> None:
    found = dict(results(Fatal(tmp_path, always=(2,)), range(6), lambda: ProcessPoolExecutor(2), 4))
    lost = found.pop(2)
    assert isinstance(lost, Lost)
    assert "died 5 times, the last time alone" in lost.reason
    assert found == {number: {"item": number} for number in (0, 1, 3, 4, 5)}


def test_no_worker_survives(tmp_path: Path) -> None:
    always = tuple(range(8))
    with pytest.raises(DeviceError, match="no worker survives"):
        list(results(Fatal(tmp_path, always=always), always, lambda: ProcessPoolExecutor(2), 1))


class Fragile(Executor):
    """An executor of somebody's that breaks at once."""

    def submit(self, *arguments: Any, **keywords: Any) -> Future[Any]:  # type: ignore[override]
        broken: Future[Any] = Future()
        broken.set_exception(BrokenExecutor("gone"))
        return broken


def test_executors_that_cannot_go_on() -> None:
    with pytest.raises(DeviceError, match=r"a broken Fragile takes no more work\n(?s:.*)executor=lambda"):
        swept(Fragile())
    shut = ThreadPoolExecutor(1)
    shut.shutdown()
    with pytest.raises(DeviceError, match="takes no work: cannot schedule"):
        swept(shut)
    lock = threading.Lock()
    with ThreadPoolExecutor(1) as pool, pytest.raises(ArgumentError, match="cannot be sent to a worker: TypeError"):
        flydsl.sweep(scale, {"block": [64]}, {"n": [4]}, arguments=lambda n: lock, executor=pool)


SIZES = {"n": [64 + n for n in range(40)]}
STARTED: list[int] = []


def noted(n: int) -> dict[str, Any]:
    """Operands, noted where they are made: in threads of this process."""
    STARTED.append(n)
    return tensors(n)


def test_an_interrupted_sweep_leaves_nothing_in_the_users_pool() -> None:
    def interrupt(table: Table) -> None:
        if len(table) == 1:
            raise KeyboardInterrupt

    STARTED.clear()
    with ThreadPoolExecutor(1) as pool, pytest.raises(KeyboardInterrupt):
        flydsl.sweep(scale, {"block": [64]}, SIZES, arguments=noted, executor=pool, progress=interrupt)
    assert 1 <= len(STARTED) < 10


class Unloadable:
    """What another machine cannot load."""

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[str]]:
        return __import__, ("no_such_module",)


def test_a_worker_that_lacks_a_module() -> None:
    missing = Unloadable()
    with ThreadPoolExecutor(1) as pool, pytest.raises(ArgumentError, match=r"cannot load .* No module named 'no_such"):
        flydsl.sweep(scale, {"block": [64]}, {"n": [4]}, arguments=lambda n: missing, executor=pool)


_KILLED = """
import os, signal, sys
import flydsl
from tests.sweeps.launchers import *

def progress(table):
    if len(table) == 3:
        os.kill(os.getpid(), signal.SIGKILL)

flydsl.sweep(scale, {"block": [64, 128, 192, 256, 320]}, {"n": [64]}, arguments=tensors, path=sys.argv[1],
             progress=progress)
"""


@pytest.mark.slow
def test_a_sweep_that_is_killed_goes_on_where_it_was(tmp_path: Path) -> None:
    path = tmp_path / "sweep.jsonl"
    root = Path(__file__).parents[2]
    ended = run_python("-c", _KILLED, path, cwd=root)
    assert ended.returncode == -signal.SIGKILL
    configs, shapes = {"block": [64, 128, 192, 256, 320]}, {"n": [64]}
    table = flydsl.sweep(scale, configs, shapes, arguments=tensors, path=path)
    assert (table.again, len(table)) == (3, 5)
    assert table == flydsl.sweep(scale, configs, shapes, arguments=tensors)
    assert len({json.loads(line)["key"] for line in path.read_text().splitlines()}) == 5
    assert len(path.read_text().splitlines()) == 5


def test_autotune_on_workers() -> None:
    """The same choice and failures as without; trials change copies."""
    configs, (x, y, n) = CONFIGS[:3], tensors(5000).values()
    here = flydsl.autotune(configs, default=configs[0])(scale)
    here(x, y, n)
    with ProcessPoolExecutor(2) as pool:
        there = flydsl.autotune(configs, executor=pool, restore_value=["y"])(scale)
        y.zero_()
        there(x, y, n)
    assert doubled(x, y, n)
    assert list(there.cache.values()) == list(here.cache.values())
    ((config, error),) = next(iter(there.failures.values()))
    ((_, expected),) = next(iter(here.failures.values()))
    assert config is configs[1]
    assert isinstance(error, LaunchError)
    assert str(error) == str(expected)
