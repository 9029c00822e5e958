"""Every kernel of the suite runs in both backends of the simulator."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import flydsl.runtime.simulated

sys.path.insert(0, str(Path(__file__).parents[1] / "simulator"))
import backends


@pytest.fixture(autouse=True)
def _both_backends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flydsl.runtime.simulated, "launch", backends.launch_both)
