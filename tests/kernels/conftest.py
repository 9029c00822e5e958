"""Every kernel of the suite runs in both backends of the simulator."""

from __future__ import annotations

import pytest

import flydsl.runtime.simulated
from tests.simulator import backends


@pytest.fixture(autouse=True)
def _both_backends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flydsl.runtime.simulated, "launch", backends.launch_both)
