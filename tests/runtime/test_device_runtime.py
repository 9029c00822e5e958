"""Which device runtime goes with which compile backend."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from flydsl.errors import DeviceError
from flydsl.runtime import device_runtime


class Toy(device_runtime.DeviceRuntime):
    kind = "toy"

    def device_count(self) -> int:
        return 3


@pytest.fixture(autouse=True)
def _none_is_in_use(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(device_runtime, "_instance", None)
    monkeypatch.setattr(device_runtime, "_runtimes", dict(device_runtime._runtimes))
    monkeypatch.setattr(device_runtime, "_EXTRA_MAPPINGS", {})
    monkeypatch.delenv("FLYDSL_RUNTIME_KIND", raising=False)
    monkeypatch.delenv("FLYDSL_COMPILE_BACKEND", raising=False)
    return


def test_rocm_runs_what_the_compiler_of_rocm_makes() -> None:
    found = device_runtime.get_device_runtime()
    assert found.kind == "rocm"
    assert found.device_count() >= 0
    device_runtime.ensure_compile_runtime_compatible("rocm", runtime=found)
    assert device_runtime.get_device_runtime() is found


def test_a_backend_with_a_runtime_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    device_runtime.register_device_runtime(Toy)
    device_runtime.register_compile_runtime_mapping("mine", "toy")
    monkeypatch.setenv("FLYDSL_COMPILE_BACKEND", "mine")
    monkeypatch.setenv("FLYDSL_RUNTIME_KIND", "toy")
    assert device_runtime.get_device_runtime().device_count() == 3


def test_what_does_not_go_together_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DeviceError, match="requires device runtime kind 'rocm', not 'toy'"):
        device_runtime.ensure_compile_runtime_compatible("rocm", runtime=Toy())
    monkeypatch.setenv("FLYDSL_RUNTIME_KIND", "toy")
    with pytest.raises(RuntimeError, match="does not support device runtime kind 'toy'"):
        device_runtime.get_device_runtime()
    with pytest.raises(DeviceError, match="no device runtime is known for the compile backend 'none'"):
        device_runtime.ensure_compile_runtime_pairing_from_env("none")


def test_a_kind_that_nobody_registered(monkeypatch: pytest.MonkeyPatch) -> None:
    device_runtime.register_compile_runtime_mapping("rocm", "strange")
    monkeypatch.setenv("FLYDSL_RUNTIME_KIND", "strange")
    with pytest.raises(ValueError, match="Unknown FLYDSL_RUNTIME_KIND 'strange'"):
        device_runtime.get_device_runtime()


def test_one_kind_is_registered_once() -> None:
    class Other(device_runtime.DeviceRuntime):
        kind = "rocm"

        def device_count(self) -> int:
            return 0

    with pytest.raises(DeviceError, match="already"):
        device_runtime.register_device_runtime(Other)
    device_runtime.register_device_runtime(Other, force=True)
    assert isinstance(device_runtime.get_device_runtime(), Other)
