"""What `flydsl.triton` says where Triton is not installed."""

from __future__ import annotations

import sys

import pytest

import flydsl.triton
from flydsl.errors import DeviceError


def test_an_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "triton", None)
    monkeypatch.setitem(sys.modules, "triton.runtime.driver", None)
    with pytest.raises(DeviceError, match="Triton is not installed") as caught:
        flydsl.triton.activate()
    assert caught.value.hint == "pip install triton"
