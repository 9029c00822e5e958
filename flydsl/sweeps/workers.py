"""Work for an executor: results as they come, and once more what a dying worker leaves undone."""

from __future__ import annotations

import contextlib
import json
import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    Executor,
    Future,
    InvalidStateError,
    ProcessPoolExecutor,
    wait,
)
from dataclasses import dataclass
from typing import Any, TypeVar

from flydsl import env
from flydsl.errors import ArgumentError, DeviceError
from flydsl.sweeps.point import error_text
from flydsl.sweeps.sending import Job, packed, received, work

R = TypeVar("R")
MakesExecutor = Executor | Callable[[], Executor]
RETRIES = 10
_DEATHS_BESIDE_OTHERS = 3
_MOST_WAITING = 256  # where the number of workers is unknown
_HOPELESS = 3
_SECONDS_BETWEEN_LOOKS = 5.0  # at whether the executor still lives, while nothing comes
_SECONDS_TO_END = 10.0


@dataclass(frozen=True)
class Lost:
    """The result for an item whose worker died each time."""

    reason: str


def results(
    job: Job, items: Sequence[Any], executor: MakesExecutor | None, retries: int
) -> Iterator[tuple[int, dict[str, Any] | Lost]]:
    """The number and the result of each item, as they come: in this process one after the other without an executor.

    A result is what JSON makes of it. An item whose worker dies is given to another one, up to `retries` times; then it
    is `Lost`. As a death may be the fault of others that ran beside it, it runs alone from the third on.

    Raises ArgumentError for what is no executor, cannot be sent, or cannot be loaded by the workers; DeviceError if the
    executor is broken and cannot be made again, or if no worker survives.
    """
    if executor is None:
        for number, item in enumerate(items):
            yield number, json.loads(json.dumps(job(item)))
        return
    _load()
    pool = _Pool(executor)
    try:
        yield from _Work(pool, packed(job, "the launcher"), items, retries).results()
    except BaseException:
        pool.close(cancel=True)
        raise
    pool.close()


def _load() -> None:
    """Load what workers need before they are forked, which then have it."""
    from flydsl.codegen import llvm_process
    from flydsl.compiler import jit_function  # noqa: F401
    from flydsl.runtime.device import preload

    preload()
    llvm_process.start()


class _Pool:
    """An executor that can be made again if it breaks: by the caller's function, or with a process pool's settings."""

    def __init__(self, executor: MakesExecutor) -> None:
        self._make = None if isinstance(executor, Executor) else executor
        self._is_own = self._make is not None
        self._executor = executor if isinstance(executor, Executor) else self._made()
        self._probe: Future[int] | None = None

    @property
    def workers(self) -> int | None:
        """The number of its workers, if it says so."""
        count = getattr(self._executor, "_max_workers", None)
        return count if isinstance(count, int) else None

    @property
    def most_at_once(self) -> int:
        """The items to submit at once: enough that no worker waits, and few, as a broken pool loses all of them."""
        return _MOST_WAITING if self.workers is None else 2 * self.workers

    def submit(self, function: Callable[..., R], *arguments: Any) -> Future[R]:
        try:
            return self._executor.submit(function, *arguments)
        except BrokenExecutor:
            raise
        except RuntimeError as error:
            raise DeviceError(f"the executor takes no work: {error}", hint="shut it down after the sweep") from error

    def is_broken(self) -> bool:
        """True if the executor takes no work any more. One piece of work that does nothing is submitted to find out."""
        try:
            if self._probe is None or self._probe.done():
                self._probe = self.submit(int)
        except BrokenExecutor:
            return True
        return False

    def renew(self) -> None:
        """Make the executor again. Raises DeviceError for one of another's making."""
        broken, again = self._executor, self._make or _like(self._executor)
        if again is None:
            raise DeviceError(
                f"a worker died, and a broken {type(broken).__name__} takes no more work",
                hint="give a function that makes one, which is called again: executor=lambda: ...",
            )
        if self._is_own:
            _end(broken, cancel=True)
        self._make, self._is_own = again, True
        self._executor, self._probe = self._made(), None

    def close(self, cancel: bool = False) -> None:
        """Shut the executor down, if it was made here."""
        if self._is_own:
            _end(self._executor, cancel)

    def _made(self) -> Executor:
        made = self._make() if callable(self._make) else None
        if not isinstance(made, Executor):
            raise ArgumentError(
                f"executor must be an Executor or a function that makes one, got {self._make!r}",
                hint="pass concurrent.futures.ProcessPoolExecutor(2), or client.get_executor() of a Dask client",
            )
        return made


def _end(executor: Executor, cancel: bool) -> None:
    """Shut down an executor that is idle, or whose results are not needed.

    The workers of a process pool are ended: its own way is to ask them, and to wait, for ever where one of them died
    with the lock through which they are asked. A pool's threads are gone, too, before the next one forks.
    """
    if not isinstance(executor, ProcessPoolExecutor):
        executor.shutdown(wait=not cancel, cancel_futures=cancel)
        return
    workers = list((executor._processes or {}).values())
    manager: Any = executor._executor_manager_thread
    executor.shutdown(wait=False, cancel_futures=True)
    for worker in workers:
        with contextlib.suppress(ProcessLookupError):
            worker.kill()
    if manager is not None:
        manager.join(_SECONDS_TO_END)


def _like(executor: Executor) -> Callable[[], Executor] | None:
    """A function that makes a process pool of the same settings; None for other executors."""
    if type(executor) is not ProcessPoolExecutor:
        return None
    state = vars(executor)
    names = "max_workers", "mp_context", "initializer", "initargs", "max_tasks_per_child"
    settings = {name: state[f"_{name}"] for name in names if state.get(f"_{name}") is not None}
    return lambda: ProcessPoolExecutor(**settings)


class _Work:
    """The items that are not done yet: waiting, submitted, or to run alone, by number."""

    def __init__(self, pool: _Pool, job: bytes, items: Sequence[Any], retries: int) -> None:
        self._pool, self._job, self._items, self._retries = pool, job, items, retries
        self._waiting, self._alone = deque(range(len(items))), deque[int]()
        self._submitted: dict[Future[str], int] = {}
        self._deaths = [0] * len(items)
        self._is_broken = self._has_result = False
        self._lost = 0

    def results(self) -> Iterator[tuple[int, dict[str, Any] | Lost]]:
        try:
            yield from self._results()
        finally:
            for future in self._submitted:  # after an error, or Ctrl-C: the executor may be the user's
                future.cancel()

    def _results(self) -> Iterator[tuple[int, dict[str, Any] | Lost]]:
        while self._waiting or self._alone or self._submitted:
            self._submit()
            done, _ = wait(self._submitted, timeout=_SECONDS_BETWEEN_LOOKS, return_when=FIRST_COMPLETED)
            for future in done or self._forgotten():
                yield from self._result(self._submitted.pop(future), future)
            if self._is_broken and not self._submitted:  # a broken pool ends all that was submitted
                self._pool.renew()
                self._is_broken = False

    def _forgotten(self) -> list[Future[str]]:
        """The items that a broken pool has not ended: Python 3.11 may forget any submitted while it breaks."""
        if not self._pool.is_broken():
            return []
        left = [future for future in self._submitted if not future.done()]
        for future in left:
            with contextlib.suppress(InvalidStateError):  # it has ended just now
                future.set_exception(BrokenExecutor("the executor broke, and forgot this"))
        return left

    def _submit(self) -> None:
        while self._waiting and not self._is_broken and len(self._submitted) < self._pool.most_at_once:
            self._send(self._waiting)
        if self._alone and not (self._waiting or self._submitted or self._is_broken):
            self._send(self._alone)

    def _send(self, queue: deque[int]) -> None:
        number = queue[0]
        try:
            item = packed(self._items[number], "a configuration")
            future = self._pool.submit(work, self._job, item, self._variables(), os.getpid())
        except BrokenExecutor:
            self._is_broken = True
            return
        self._submitted[future] = queue.popleft()

    def _variables(self) -> dict[str, str]:
        """Workers share the processors, unless the user says how many threads each has."""
        if env.simulator_threads() is not None:
            return {}
        threads = max((os.cpu_count() or 1) // (self._pool.workers or os.cpu_count() or 1), 1)
        return {"FLYDSL_SIMULATOR_THREADS": str(threads)}

    def _result(self, number: int, future: Future[str]) -> Iterator[tuple[int, dict[str, Any] | Lost]]:
        try:
            answer = future.result()
        except Exception as error:  # noqa: BLE001 - each executor has its own errors for a worker that is gone
            self._is_broken = self._is_broken or isinstance(error, BrokenExecutor)
            yield from self._died(number, error)
            return
        self._has_result = True
        yield number, received(answer)

    def _died(self, number: int, error: BaseException) -> Iterator[tuple[int, Lost]]:
        self._deaths[number] += 1
        deaths = self._deaths[number]
        if deaths <= self._retries:
            (self._waiting if deaths < _DEATHS_BESIDE_OTHERS else self._alone).append(number)
            return
        self._lost += 1
        if self._lost == _HOPELESS and not self._has_result:
            raise DeviceError(f"no worker survives: {error_text(error)}", hint="do they have flydsl, and memory?")
        yield number, Lost(f"its worker died {deaths} times, the last time alone: {error_text(error)}")
