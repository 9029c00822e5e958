"""Processes for ranks: their results, their errors, and who can reach them."""

from __future__ import annotations

import pytest

from flydsl import env
from flydsl.runtime import ranks
from tests.runtime import rank_functions

pytestmark = pytest.mark.slow

LOOPBACK = {"0100007F", "00000000000000000000000001000000", "0000000000000000FFFF00000100007F"}


def test_ranks_work_together_and_listen_on_the_loopback_interface_only() -> None:
    results = ranks.run(rank_functions.ports, 2, 5)
    assert [number for number, _ in results] == [5, 5]
    listening = {address for _, addresses in results for address in addresses}
    assert listening
    assert listening <= LOOPBACK


def test_the_rank_that_failed_is_named() -> None:
    with pytest.raises(ranks.RankFailed, match=r"(?s)rank 1: .*ValueError: this rank is wrong") as caught:
        ranks.run(rank_functions.fails, 2)
    assert caught.value.rank == 1


def test_an_interface_that_the_user_chose_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "eth7")
    with ranks._interface():
        assert env.text("GLOO_SOCKET_IFNAME") == "eth7"
    monkeypatch.delenv("GLOO_SOCKET_IFNAME")
    with ranks._interface():
        assert env.text("GLOO_SOCKET_IFNAME").startswith("lo")
    assert env.text("GLOO_SOCKET_IFNAME") == ""
    monkeypatch.setenv("MASTER_ADDR", "192.0.2.7")
    with ranks._interface():
        assert env.text("GLOO_SOCKET_IFNAME") == ""
