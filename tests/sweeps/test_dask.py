"""Sweeps on Dask: the same table, also when a worker dies; and nothing listens but on the loopback."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from typing import Any

import pytest

import flydsl
from flydsl.sweeps import Table
from tests.shared_memory import needs_shared_memory
from tests.sweeps.launchers import doubled, scale, tensors

pytestmark = [pytest.mark.slow, needs_shared_memory]

dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed", reason="dask.distributed, the extra [distributed], is not installed")
psutil = pytest.importorskip("psutil")

FACTORS = list(range(2, 14))


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    """Two worker processes, made as the README says, on a machine that may be busy."""
    patience = {f"distributed.comm.timeouts.{name}": "300s" for name in ("connect", "tcp")}
    with (
        dask.config.set(patience),
        distributed.Client(n_workers=2, threads_per_worker=1, dashboard_address="127.0.0.1:0") as client,
    ):
        yield client
        client.cluster.close()


def swept(executor: Any, **options: Any) -> Table:
    configs = {"block": [64, 2048], "factor": FACTORS[:4]}
    return flydsl.sweep(scale, configs, {"n": [64]}, arguments=tensors, check=doubled, executor=executor, **options)


def test_the_same_as_here(client: Any) -> None:
    assert swept(client.get_executor()) == swept(None)


def test_nothing_is_lost_with_a_worker(client: Any) -> None:
    seen: list[int] = []

    def kill_one(table: Table) -> None:
        if len(table) == 3 and not seen:
            seen.append(next(iter(client.run(os.getpid).values())))
            os.kill(seen[0], signal.SIGKILL)

    def twice(x: Any, y: Any, n: int, block: int, factor: int) -> None:  # by value, and slower
        scale(x, y, n, block, factor)

    table = flydsl.sweep(
        twice, {"block": [64], "factor": FACTORS}, {"n": [64]}, arguments=tensors, executor=client.get_executor(),
        progress=kill_one,
    )  # fmt: skip
    assert seen
    assert [row["factor"] for row in table] == FACTORS
    assert not table.failures


def test_ports_are_the_loopbacks(client: Any) -> None:
    this = psutil.Process()
    listening = [
        connection.laddr.ip
        for process in (this, *this.children(recursive=True))
        for connection in process.net_connections("inet")
        if connection.status == psutil.CONN_LISTEN
    ]
    assert listening
    assert set(listening) == {"127.0.0.1"}


def test_a_client_is_no_executor(client: Any) -> None:
    with pytest.raises(flydsl.errors.ArgumentError, match=r"client\.get_executor"):
        swept(client)
