"""Messages to a worker, and its answers.

An executor pickles what it sends, and pickle names functions instead of sending them, so a worker would not find those
of a notebook or of `__main__`. cloudpickle, which Dask uses too, sends such functions themselves; launchers and kernels
bring their source along (`compiler.decorated`), as tracing needs it. A worker unpickles what its own executor brings,
and answers with JSON, which is read as data.
"""

from __future__ import annotations

import functools
import json
import os
import pickle
from collections.abc import Callable
from typing import Any

from flydsl.errors import ArgumentError
from flydsl.sweeps.point import error_text

Job = Callable[[Any], dict[str, Any]]
_KEPT_JOBS = 4
_CANNOT_LOAD = "cannot load"


def packed(value: Any, what: str) -> bytes:
    """A value as a worker takes it. Raises ArgumentError for one that cannot be sent. what: what errors call it."""
    import cloudpickle

    try:
        return bytes(cloudpickle.dumps(value))
    except Exception as error:
        raise ArgumentError(
            f"{what} cannot be sent to a worker: {error_text(error)}",
            hint="create tensors, locks and files inside the function, or omit executor=",
        ) from error


def work(job: bytes, item: bytes, variables: dict[str, str], sender: int) -> str:
    """Run in a worker: do a job for an item. variables: of the environment, for this call. sender: its process's id."""
    from flydsl import env

    if os.getpid() != sender:
        _use_one_thread()
    try:
        do, given = _loaded(job), pickle.loads(item)
    except Exception as error:  # noqa: BLE001 - a module that is missing here, or a class that is another one
        return json.dumps({_CANNOT_LOAD: error_text(error)})
    with env.replaced(variables):
        return json.dumps(do(given))


@functools.cache
def _use_one_thread() -> None:
    """Have torch use one thread in this process.

    Workers are as many as there are processors. And a forked one has none of the threads of the process that it is a
    copy of, for which the runtime of OpenMP would wait without end.
    """
    import torch

    torch.set_num_threads(1)


@functools.lru_cache(maxsize=_KEPT_JOBS)
def _loaded(job: bytes) -> Job:
    """The job, unpickled once, so that its launchers keep what they have compiled."""
    return pickle.loads(job)


def received(answer: str) -> dict[str, Any]:
    """The answer of a worker. Raises ArgumentError if it could not load what it was sent."""
    found: dict[str, Any] = json.loads(answer)
    if _CANNOT_LOAD in found:
        raise ArgumentError(
            f"a worker cannot load what it is to run: {found[_CANNOT_LOAD]}",
            hint="a worker imports modules by name: they must be installed or on PYTHONPATH there",
        )
    return found
