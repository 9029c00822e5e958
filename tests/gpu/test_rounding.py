"""Narrow numbers on a posed GPU are added in f32 and rounded once, also where the host's kernels round more often."""

# mypy: ignore-errors

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
import torch
from torch.nn import functional

import flydsl.gpu


@pytest.fixture(autouse=True)
def posing() -> Iterator[None]:
    with flydsl.gpu.pose("mi300x"):
        yield


def gradients(call: Callable[..., torch.Tensor]) -> Callable[..., tuple[torch.Tensor, ...]]:
    """The gradients of what a function takes; that of its result is the first operand, so none is rounded before."""

    def of(*operands: torch.Tensor) -> tuple[torch.Tensor, ...]:
        operands = [tensor.detach().requires_grad_() for tensor in operands]
        return torch.autograd.grad(call(*operands), operands, operands[0].detach())

    return of


def batch_norm(x, w, b):
    return functional.batch_norm(x.view(-1, 16, 4), None, None, w[:16], b[:16], training=True).view_as(x)


CALLS = {
    "layer norm": gradients(lambda x, w, b: functional.layer_norm(x, (64,), w, b)),
    "group norm": gradients(lambda x, w, b: functional.group_norm(x, 4, w, b)),
    "batch norm": batch_norm,
    "gradients of batch norm": gradients(batch_norm),
    "log_softmax": lambda x, w, b: torch.log_softmax(x, -1),
    "embedding": lambda x, w, b: torch.ops.aten.embedding_dense_backward(
        x, torch.arange(len(x), device=x.device) % 8, 8, -1, False
    ),
    "add with alpha": lambda x, w, b: torch.add(x, w, alpha=0.3),
    "sub with alpha, in place": lambda x, w, b: x.clone().sub_(w, alpha=0.3),
}


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=["f16", "bf16"])
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
@pytest.mark.diagonal(2)
def test_results_are_rounded_once(call, dtype) -> None:
    torch.manual_seed(0)
    operands = [(torch.randn(shape) + 0.25).to(dtype) for shape in [(512, 64), (64,), (64,)]]
    found = call(*(tensor.cuda() for tensor in operands))
    expected = call(*(tensor.double() for tensor in operands))
    for one, exact in zip(
        *(value if isinstance(value, tuple) else (value,) for value in (found, expected)), strict=True
    ):
        assert one.dtype == dtype
        unit = exact.abs().clamp_min(0.05) * torch.finfo(dtype).eps
        assert ((one.cpu().double() - exact).abs() / unit).max() < 0.75


def test_statistics_are_f32_and_running_ones_are_kept() -> None:
    norm, x = torch.nn.BatchNorm1d(8).half().cuda(), (torch.randn(64, 8) * 3 + 1).half()
    norm(x.cuda())
    assert norm.running_mean.dtype == torch.float16
    assert torch.allclose(norm.running_mean.cpu().float(), x.float().mean(0) * 0.1, atol=1e-3)
    _, mean, _ = torch.native_layer_norm(x.cuda(), (8,), None, None, 1e-5)
    assert mean.dtype == torch.float32
