"""What `flydsl.triton` says where Triton is not installed, or too old."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

import flydsl.triton
from flydsl.errors import DeviceError


def test_an_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "triton", None)
    monkeypatch.setitem(sys.modules, "triton.runtime.driver", None)
    with pytest.raises(DeviceError, match="Triton is not installed") as caught:
        flydsl.triton.activate()
    assert caught.value.hint == "pip install triton"


def test_an_error_says_that_it_is_too_old(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = SimpleNamespace(driver=None)
    monkeypatch.setitem(
        sys.modules, "triton", SimpleNamespace(__version__="3.6.0", runtime=SimpleNamespace(driver=driver))
    )
    monkeypatch.setitem(sys.modules, "triton.runtime", SimpleNamespace(driver=driver))
    monkeypatch.setitem(sys.modules, "triton.runtime.driver", driver)
    with pytest.raises(
        DeviceError, match=r"Triton 3\.6\.0 launches kernels in another way: 3\.7 is the oldest"
    ) as caught:
        flydsl.triton.activate()
    assert caught.value.hint == "pip install 'triton>=3.7'"
