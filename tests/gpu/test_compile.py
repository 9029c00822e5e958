"""`torch.compile` on a posed GPU: Inductor writes Triton for it, and the simulator runs that."""

# mypy: ignore-errors

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator

import pytest
import torch
from torch.nn import functional

import flydsl.gpu
from flydsl.simulator import counting


@pytest.fixture(autouse=True)
def compilation(tmp_path, monkeypatch) -> Iterator[None]:
    pytest.importorskip("triton", minversion="3.7")
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "inductor"))
    yield
    torch._dynamo.reset()


def softmax(x, y):
    return torch.softmax(x * y + 1, -1)


@pytest.mark.slow
def test_each_gpu_gets_code_of_its_own() -> None:
    x, y = torch.randn(16, 100), torch.randn(16, 100)
    for name, arch in (("mi300x", "gfx942"), ("mi355x", "gfx950")):
        with flydsl.gpu.pose(name), counting() as counted:
            found = torch.compile(softmax, fullgraph=True)(x.cuda(), y.cuda())
            assert found.is_cuda
            assert "triton_per_fused" in counted.launches[0].kernel
            assert counted.launches[0].program.arch.name == arch
            assert torch.allclose(found.cpu(), softmax(x, y), atol=1e-6)
        gc.freeze()  # as programs do before they fork: what torch keeps of the GPU goes all the same


class Block(torch.nn.Module):
    """A layer of a transformer."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.before, self.between = torch.nn.LayerNorm(width), torch.nn.LayerNorm(width)
        self.to_heads, self.from_heads = torch.nn.Linear(width, 3 * width), torch.nn.Linear(width, width)
        self.up, self.down = torch.nn.Linear(width, 2 * width), torch.nn.Linear(2 * width, width)
        self.heads = heads

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = self.to_heads(self.before(x)).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        attended = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.from_heads(attended.transpose(1, 2).reshape(batch, length, width))
        return x + self.down(functional.gelu(self.up(self.between(x))))


@pytest.mark.slow
def test_a_transformer_forward_and_backward() -> None:
    torch.manual_seed(0)
    model, x = Block(16, 2), torch.randn(2, 8, 16)

    def trained(model, x):
        model.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        return [loss.detach().cpu(), *(parameter.grad.cpu().clone() for parameter in model.parameters())]

    expected = trained(model, x)
    with flydsl.gpu.pose("mi300x"):
        flydsl.gpu.watch()
        model = model.cuda()
        found = trained(torch.compile(model, fullgraph=True), x.cuda())
        report = flydsl.gpu.report()
    assert all(torch.allclose(*both, atol=1e-5) for both in zip(found, expected, strict=True))
    assert "triton_per_fused_native_layer_norm" in report
    assert "gelu_backward" in report


@pytest.mark.slow
def test_what_is_compiled_is_for_the_tensors_gpu() -> None:
    with flydsl.gpu.pose("mi300x", count=2):
        doubled = torch.compile(lambda x: 2 * x + 1, fullgraph=True)
        for place in ("cuda:0", "cuda:1"):
            found = doubled(torch.ones(8, device=place))
            assert (str(found.device), found.tolist()) == (place, [3.0] * 8)


@pytest.mark.slow
def test_afterwards_the_compilers_know_no_gpu() -> None:
    with flydsl.gpu.pose("mi300x"):
        torch.compile(softmax)(torch.ones(4, 4, device="cuda"), torch.ones(4, 4, device="cuda"))
    from torch._dynamo.device_interface import CudaInterface

    assert CudaInterface.device_count is torch.cuda.device_count
    assert not CudaInterface.is_available()
    assert not hasattr(torch._C, "_cuda_getCurrentRawStream") or torch.cuda._is_compiled()
    assert sys.modules["triton.runtime.driver"].driver._active is None
    graphs = []

    def backend(graph, inputs):
        graphs.append({tensor.device.type for tensor in inputs})
        return graph.forward

    torch.compile(softmax, backend=backend)(torch.ones(4, 4), torch.ones(4, 4))
    assert graphs == [{"cpu"}]
