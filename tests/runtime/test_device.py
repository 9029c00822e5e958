from __future__ import annotations

from typing import Any

import pytest
import torch

from flydsl.errors import ArchError
from flydsl.runtime import device as devices
from flydsl.runtime import rocm
from flydsl.runtime.device import get_gcn_arch, get_rocm_arch, is_gfx120x, is_rdna_arch, require_gfx120x, target_arch
from flydsl.runtime.interface import NamedTensor
from flydsl.runtime.rocm import arch_of_version

VARIABLES = ("ARCH", "FLYDSL_GPU_ARCH", "HSA_OVERRIDE_GFX_VERSION")


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(rocm, "_enumerated_arch", lambda *_: None)


def test_order_of_detection(monkeypatch: pytest.MonkeyPatch) -> None:
    assert get_rocm_arch() == target_arch("cuda:0") == target_arch("cpu") == "gfx942"
    monkeypatch.setattr(rocm, "_enumerated_arch", lambda *_: "gfx1201")
    assert (get_rocm_arch(), target_arch("cuda:0"), target_arch("cpu")) == ("gfx1201", "gfx1201", "gfx942")
    monkeypatch.setenv("HSA_OVERRIDE_GFX_VERSION", "9.0.10")
    assert get_rocm_arch() == target_arch("cpu") == "gfx90a"
    monkeypatch.setenv("FLYDSL_GPU_ARCH", "gfx950")
    assert get_rocm_arch() == target_arch("cpu") == "gfx950"
    monkeypatch.setenv("ARCH", "gfx1250")
    assert target_arch("cuda:1") == target_arch("cpu") == "gfx1250"
    assert get_rocm_arch() == "gfx950"


def test_version_that_is_none() -> None:
    with pytest.raises(ArchError, match="HSA_OVERRIDE_GFX_VERSION='gfx942'"):
        arch_of_version("gfx942")


def test_families() -> None:
    assert [is_rdna_arch(name) for name in ("gfx942", "gfx90a", "gfx1030", "gfx1201", "gfx1250")] == [
        False,
        False,
        True,
        True,
        False,
    ]


@pytest.mark.parametrize(
    ("tensor", "size_bytes"),
    [
        (torch.zeros(4, 5), 80),
        (torch.zeros(4, 5).T, 80),
        (torch.zeros(10)[::3], 40),
        (torch.zeros(4, 5)[:, 1:3], 68),
        (torch.zeros(1).expand(9), 4),
        (torch.zeros(0, 3), 0),
    ],
)
def test_bytes_that_a_tensor_reaches(tensor: Any, size_bytes: int) -> None:
    assert NamedTensor("A", tensor).size_bytes == size_bytes


def test_devices_override_in_their_block_only() -> None:
    simulator = devices.current_device("cpu")
    assert simulator.name == "simulator"
    other = type(simulator)()
    with devices.use_device(other):
        assert devices.current_device("cpu") is devices.current_device("cuda:0") is other
    assert devices.current_device("cpu") is simulator


def test_rdna4_is_asked_of_a_torch_device() -> None:
    assert (get_gcn_arch("cpu"), is_gfx120x("cpu")) == ("", False)
    with pytest.raises(ValueError, match=r"swiglu must run on RDNA 4 \(gfx120x\), got no GPU"):
        require_gfx120x("cpu", what="swiglu")
