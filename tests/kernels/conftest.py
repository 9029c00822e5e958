"""Every kernel of the suite runs in both backends of the simulator, or, under checks, in the machine that has them."""

from __future__ import annotations

import os
from typing import Any

import pytest

import flydsl.runtime.simulated
from flydsl.simulator import launch
from flydsl.simulator.checks import enabled_checks
from tests.simulator import backends

FOLDER_IS_SLOW = True  # they compile and launch the library


def _launch(*args: Any, **options: Any) -> Any:
    alone = enabled_checks() or "CHECK_INDICES" in os.environ  # whose rehearsals add in another order each time
    return (launch if alone else backends.launch_both)(*args, **options)


@pytest.fixture(autouse=True)
def _both_backends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flydsl.runtime.simulated, "launch", _launch)


@pytest.fixture
def on_gfx1100(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARCH", "gfx1100")


@pytest.fixture
def on_gfx1201(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARCH", "gfx1201")


@pytest.fixture
def on_gfx1250(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARCH", "gfx1250")
