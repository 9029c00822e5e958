"""DLPack's capsules of a posed GPU's memory: torch makes tensors of that GPU of them, and numpy refuses them."""

# mypy: ignore-errors

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
import torch
from torch.utils.dlpack import from_dlpack

import flydsl.gpu


@pytest.fixture(autouse=True)
def posing() -> Iterator[None]:
    with flydsl.gpu.pose("mi300x", count=2):
        yield


class Other:
    """A tensor of another library."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self.tensor = tensor

    def __dlpack__(self, **options):
        return self.tensor.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.tensor.__dlpack_device__()


WAYS = {
    "tensor": lambda x: torch.from_dlpack(x),
    "tensor to the same device": lambda x: torch.from_dlpack(x, device="cuda", copy=False),
    "other library": lambda x: from_dlpack(Other(x)),
    "method": lambda x: from_dlpack(x.__dlpack__()),
    "versioned": lambda x: from_dlpack(x.__dlpack__(max_version=(1, 0))),
    "function": lambda x: from_dlpack(torch.utils.dlpack.to_dlpack(x)),
    "function of torch": lambda x: torch.from_dlpack(torch.to_dlpack(x)),
}


@pytest.mark.parametrize("pass_on", WAYS.values(), ids=WAYS)
def test_memory_stays_the_gpus(pass_on) -> None:
    x = torch.arange(6.0, device="cuda").view(2, 3)
    before = torch.cuda.memory_allocated()
    found = pass_on(x[:, 1:])
    assert (found.device, found.tolist()) == (torch.device("cuda:0"), [[1.0, 2.0], [4.0, 5.0]])
    found.zero_()
    assert x.tolist() == [[0.0, 0.0, 0.0], [3.0, 0.0, 0.0]]
    assert torch.cuda.memory_allocated() == before


def test_memory_outlives_the_tensor() -> None:
    x = torch.arange(6.0, device="cuda")
    capsule = torch.to_dlpack(x)
    del x
    assert from_dlpack(capsule).tolist() == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]


def test_the_number_of_the_gpu() -> None:
    x = torch.ones(3, device="cuda:1")
    assert from_dlpack(torch.to_dlpack(x)).device == torch.device("cuda:1")
    assert from_dlpack(torch.to_dlpack(x[:0])).device == torch.device("cuda:1")


def test_copies() -> None:
    x = torch.arange(3.0, device="cuda")
    on_host = torch.from_dlpack(x, device="cpu")
    copied = torch.from_dlpack(x, copy=True)
    x.zero_()
    assert (on_host.is_cuda, on_host.tolist()) == (False, [0.0, 1.0, 2.0])
    assert (copied.is_cuda, copied.tolist()) == (True, [0.0, 1.0, 2.0])
    assert torch.from_dlpack(np.ones(2), device="cuda").is_cuda
    with pytest.raises(ValueError, match=r"without copying"):
        x.__dlpack__(dl_device=(1, 0), copy=False)


def test_numpy_does_not_read_a_gpu() -> None:
    with pytest.raises((RuntimeError, BufferError), match=r"Unsupported device"):
        np.from_dlpack(torch.ones(3, device="cuda"))
    assert np.from_dlpack(torch.ones(3)).tolist() == [1.0] * 3


def test_tensors_of_the_host_stay_there() -> None:
    x = torch.arange(3.0)
    assert not from_dlpack(torch.to_dlpack(x)).is_cuda
    assert not torch.from_dlpack(np.ones(2)).is_cuda
    used = torch.to_dlpack(x)
    from_dlpack(used)
    for wrong in (used, 3):
        with pytest.raises(RuntimeError, match=r"invalid capsule"):
            from_dlpack(wrong)
