"""What a posed GPU does not have is refused by name, at the user's line."""

# mypy: ignore-errors

from __future__ import annotations

import traceback
from collections.abc import Iterator

import pytest
import torch
from torch.sparse import to_sparse_semi_structured

import flydsl.gpu
from flydsl.errors import DeviceError


@pytest.fixture(autouse=True)
def posing() -> Iterator[None]:
    with flydsl.gpu.pose("mi300x"):
        yield


class Unit(torch.Tensor):
    """A class of the program's own."""


def attend():
    from torch.nn.attention.varlen import varlen_attn  # brings torch's compilers

    q, ends = torch.ones(8, 2, 16, device="cuda"), torch.tensor([0, 4, 8], device="cuda", dtype=torch.int32)
    return varlen_attn(q, q, q, ends, ends, 4, 4)


def compress():
    return to_sparse_semi_structured(torch.tensor([0, 0, 1, 1], device="cuda", dtype=torch.float16).tile(128, 32))


def limit_plans():
    torch.backends.cuda.cufft_plan_cache.max_size = 3


REFUSED = {
    "marks for NVIDIA's profiler": (
        lambda: torch.autograd.profiler.emit_nvtx(),
        "torch.autograd.profiler.emit_nvtx is unsupported",
    ),
    "attention below a function of torch": (attend, "aten::_flash_attention_forward: torch has it for GPUs only"),
    "sparsity below a function of torch": (compress, "aten::_cslt_compress: torch has it for GPUs only"),
    "a class": (lambda: torch.ones(2, device="cuda").as_subclass(Unit), "as_subclass(Unit) of a tensor on a posed GPU"),
    "size of plans": (lambda: torch.backends.cuda.cufft_plan_cache.max_size, "torch.backends.cuda.cufft_plan_cache is"),
    "plans of a GPU": (lambda: torch.backends.cuda.cufft_plan_cache[0].size, "torch.backends.cuda.cufft_plan_cache is"),
    "limit of plans": (limit_plans, "torch.backends.cuda.cufft_plan_cache is unsupported"),
    "clearing plans": (
        lambda: torch.backends.cuda.cufft_plan_cache.clear(),
        "torch.backends.cuda.cufft_plan_cache is unsupported",
    ),
}


@pytest.mark.parametrize(("call", "message"), REFUSED.values(), ids=REFUSED)
def test_it_is_refused_at_the_users_line(call, message: str) -> None:
    with pytest.raises(DeviceError) as caught:
        call()
    text = str(caught.value)
    assert text.startswith(message)
    assert f"\n  at {__file__}:" in text
    assert "registered at" not in "".join(traceback.format_exception(caught.value))


def test_a_tensor_is_of_its_own_classes() -> None:
    x = torch.ones(2, device="cuda")
    assert x.as_subclass(torch.Tensor).is_cuda
