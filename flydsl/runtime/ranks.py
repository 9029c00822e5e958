"""Ranks: one process for each GPU, simulated or not, that find each other through torch.distributed.

    ranks.init_process_group()  # in a script that torchrun starts

    ranks.run(function, 8, argument)  # starts 8 processes, which call function(rank, argument)

Nothing is reachable from other machines unless it is asked for: gloo listens on the loopback interface here, where
torch takes the interface that belongs to the host's name.
"""

from __future__ import annotations

import multiprocessing
import sys
import tempfile
import traceback
from collections.abc import Callable, Sequence
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

from flydsl import env
from flydsl.errors import DeviceError

_LOOPBACK = ("localhost", "127.0.0.1", "::1", "")


def init_process_group(backend: str = "gloo", **options: Any) -> None:
    """torch's function of that name, with gloo on the loopback interface.

    It is not where GLOO_SOCKET_IFNAME names an interface, or MASTER_ADDR another machine. options: torch's.
    """
    import torch.distributed as dist

    with _interface():
        dist.init_process_group(backend, **options)


def new_gloo_group(members: Sequence[int]) -> Any:
    """A gloo group of these ranks, for what is exchanged between hosts; see `init_process_group`."""
    import torch.distributed as dist

    with _interface():
        return dist.new_group(list(members), backend="gloo")


def _interface() -> Any:
    is_local = env.text("MASTER_ADDR") in _LOOPBACK
    return env.default("GLOO_SOCKET_IFNAME", _loopback_interface() if is_local else "")


def _loopback_interface() -> str:
    import socket

    names = [name for _, name in socket.if_nameindex()]
    return next((name for name in ("lo", "lo0") if name in names), "")


def run(
    function: Callable[..., Any], world_size: int, *arguments: Any, before_ending: Callable[[], None] | None = None
) -> list[Any]:
    """Call function(rank, *arguments) in a process for each rank; the results, in the order of ranks.

    The processes are in a group of torch.distributed. function: of a module, as its processes import it; what it takes
    and gives can be pickled. Raises RankFailed for the first rank that fails, and ends the others; before_ending is
    called before that.
    """
    if not hasattr(sys.modules["__main__"], "__spec__"):  # which multiprocessing reads, and %reset takes away
        sys.modules["__main__"].__spec__ = None
    context = multiprocessing.get_context(start_method(sys.version_info[:3]))
    context.set_forkserver_preload(["torch", "flydsl.compiler", __name__])
    with tempfile.TemporaryDirectory(prefix="flydsl-ranks-") as folder:
        started = [_Rank(context, rank, world_size, folder, function, arguments) for rank in range(world_size)]
        try:
            waiting = {rank.receiver: rank for rank in started}
            while waiting:
                for receiver in wait(list(waiting)):
                    waiting.pop(receiver).finish()
        except RankFailed:
            if before_ending is not None:
                before_ending()
            raise
        finally:
            for rank in started:
                rank.end()
    return [rank.result for rank in started]


def start_method(version: tuple[int, ...]) -> str:
    """The way to start processes in a version of Python: by a server that has torch, if only this user can ask it.

    Before 3.10.9 and 3.11.1 its socket had no permissions, and it unpickled what anybody sent (CVE-2022-42919).

    >>> start_method((3, 10, 8)), start_method((3, 10, 9)), start_method((3, 11, 0)), start_method((3, 12, 0))
    ('spawn', 'forkserver', 'spawn', 'forkserver')
    """
    is_private = (3, 10, 9) <= version < (3, 11, 0) or version >= (3, 11, 1)
    return "forkserver" if is_private else "spawn"


class RankFailed(DeviceError):
    """A rank raised an error, or ended before it had a result. rank: which one."""

    def __init__(self, rank: int, what: str) -> None:
        super().__init__(f"rank {rank}: {what}")
        self.rank = rank


class _Rank:
    """The process of a rank, and what it sends."""

    def __init__(
        self,
        context: Any,
        rank: int,
        world_size: int,
        folder: str,
        function: Callable[..., Any],
        arguments: tuple[Any, ...],
    ) -> None:
        self.rank, self.result = rank, None
        self.receiver, sender = context.Pipe(duplex=False)
        given = (sender, rank, world_size, folder, function, arguments)
        self._process = context.Process(target=_main, args=given, daemon=True)
        self._process.start()
        sender.close()

    def finish(self) -> None:
        """Take the result. Raises RankFailed."""
        try:
            self.result, error = self.receiver.recv()
        except EOFError:
            self._process.join()
            raise RankFailed(self.rank, f"ended with status {self._process.exitcode}") from None
        if error is not None:
            raise RankFailed(self.rank, error)

    def end(self) -> None:
        """End the process, if it has not."""
        if self.receiver.closed:
            return
        self.receiver.close()
        self._process.join(0 if self._process.is_alive() and self.result is None else 5)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()


def _main(
    sender: Any, rank: int, world_size: int, folder: str, function: Callable[..., Any], arguments: tuple[Any, ...]
) -> None:
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)  # the machine's cores are shared by the ranks
    store = f"file://{Path(folder).absolute()}/store"
    try:
        init_process_group(init_method=store, rank=rank, world_size=world_size)
        result, error = function(rank, *arguments), None
        dist.destroy_process_group()
    except Exception:  # noqa: BLE001 - raised in `run`
        result, error = None, traceback.format_exc()
    sender.send((result, error))
    sender.close()
