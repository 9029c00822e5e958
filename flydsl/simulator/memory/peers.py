"""Other processes that share memory with this one, and how a launch waits for them.

A kernel that waits for another GPU reads its memory until it changes. Where nothing but memory can let any wave of a
launch go on, its threads sleep in between, for up to a millisecond, and look whether the other processes are alive.
"""

from __future__ import annotations

import os
import select
import time
from collections.abc import Iterable

from flydsl import env
from flydsl.errors import DeviceError

_GRACE_S = 2.0
"""Time enough to see what a process wrote before it ended."""
_LOOKS_S = 0.1
_YIELDS = 8
_LONGEST_PAUSE_S = 1e-3


class PeerLost(DeviceError):
    """A kernel waits for memory, and a process that shares memory with this one has ended.

    ranks: of the processes that have ended, where they have one.
    """

    def __init__(self, message: str, ranks: tuple[int, ...], hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.ranks = ranks


class PeerTimeout(DeviceError):
    """A kernel has waited for memory for too long, and every process that shares memory with this one is alive."""


class Peer:
    """Another process. rank: its number in torch.distributed, or -1."""

    def __init__(self, pid: int, rank: int) -> None:
        """Raises ProcessLookupError if there is none."""
        self.pid, self.rank = pid, rank
        self._descriptor = os.pidfd_open(pid)

    def has_ended(self) -> bool:
        """True if the process is gone, or would be if its parent had looked."""
        return bool(select.select([self._descriptor], [], [], 0)[0])

    def close(self) -> None:
        """Forget the process."""
        os.close(self._descriptor)

    def __str__(self) -> str:
        return f"process {self.pid}" if self.rank < 0 else f"rank {self.rank} (process {self.pid})"


class Peers:
    """The processes whose memory a launch can reach."""

    def __init__(self, peers: Iterable[Peer]) -> None:
        self._peers = sorted(peers, key=lambda peer: (peer.rank, peer.pid))

    def __len__(self) -> int:
        return len(self._peers)

    def ended(self) -> list[Peer]:
        return [peer for peer in self._peers if peer.has_ended()]

    def __str__(self) -> str:
        return ", ".join(map(str, self._peers))


class Wait:
    """The waiting of one thread of a launch while nothing but memory can let its waves go on."""

    def __init__(self, peers: Peers) -> None:
        self._peers, self._limit_s = peers, env.peer_patience_s()
        self.go_on()

    def go_on(self) -> None:
        """A wave went on."""
        self._pauses = 0

    def pause(self) -> None:
        """Leave the processor to others for a moment. Raises PeerLost and PeerTimeout."""
        now = time.monotonic()
        if not self._pauses:
            self._since, self._looked, self._ended_since = now, now, None
        self._pauses += 1
        if now - self._looked >= _LOOKS_S:
            self._looked = now
            self._look(now)
        doublings = self._pauses - _YIELDS
        time.sleep(0 if doublings <= 0 else min(2e-5 * 2.0 ** min(doublings, 10), _LONGEST_PAUSE_S))

    def _look(self, now: float) -> None:
        ended = self._peers.ended()
        if not ended:
            self._check_patience(now)
            return
        self._ended_since = self._ended_since or now
        if now - self._ended_since < _GRACE_S:
            return
        names = ", ".join(map(str, ended))
        raise PeerLost(
            f"{names} {'has' if len(ended) == 1 else 'have'} ended, and the kernel waits for memory",
            tuple(peer.rank for peer in ended),
            hint="its own output says why; a rank must not end before the others are done with its memory",
        )

    def _check_patience(self, now: float) -> None:
        if self._limit_s and now - self._since > self._limit_s:
            raise PeerTimeout(
                f"the kernel has waited for memory for {now - self._since:.0f} s; alive: {self._peers}",
                hint="do all ranks launch the same kernels in the same order? FLYDSL_SIMULATOR_PEER_PATIENCE_S, in "
                "seconds, is the longest wait, 0 for no limit",
            )

    _since: float
    _looked: float
    _ended_since: float | None
