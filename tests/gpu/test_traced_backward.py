"""Backward passes over the nodes of torch's graph have the gradients that torch's engine has."""

# mypy: ignore-errors

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from flydsl.gpu.traced_backward import _run


class Scaled(torch.autograd.Function):
    """Two results, and an argument that is no tensor."""

    @staticmethod
    def forward(ctx, x, factor, shift):
        ctx.factor = factor
        return x * factor, x + shift

    @staticmethod
    def backward(ctx, scaled, shifted):
        return scaled * ctx.factor + shifted, None, shifted.sum()


def broadcast(x, y):
    return ((x * y[0]).sin() + y[0]).sum()


def used_twice(x, y):
    z = x.exp()
    return (z * z + z.softmax(1) @ y.t() @ y).mean()


def parts(x, y):
    first, second = torch.split(x, [1, 3])
    return (first * second).sum() + second.norm()


def other_types(x, y):
    return (x.float() * y.double()[0]).sum()


def of_ones_own(x, y):
    scaled, shifted = Scaled.apply(x, 3, y[0, 0])
    return (scaled * shifted).sum() + Scaled.apply(x, 2, y[0, 1])[1].sum()


def several(x, y):
    return (x * y).sum(), y.cos()


@pytest.mark.parametrize("function", [broadcast, used_twice, parts, other_types, of_ones_own, several])
def test_the_gradients_are_those_of_torchs_engine(function: Callable[..., torch.Tensor]) -> None:
    generator = torch.Generator().manual_seed(0)
    x, y = (torch.randn(4, 5, generator=generator, dtype=torch.float64, requires_grad=True) for _ in range(2))

    def outputs():
        found = function(x, y)
        found = found if isinstance(found, tuple) else (found,)
        return found, [torch.ones_like(output) for output in found]

    expected = torch.autograd.grad(*outputs()[:1], (x, y), outputs()[1], allow_unused=True)
    found, gradients = outputs()
    for ours, theirs in zip(_run(found, gradients, False, False, (x, y)), expected, strict=True):
        assert ours is None if theirs is None else torch.allclose(ours, theirs, rtol=1e-12)


def test_gradients_of_gradients() -> None:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    (first,) = _run([(x**3).sum()], [torch.tensor(1.0)], True, True, [x])
    (second,) = torch.autograd.grad(first.sum(), x)
    assert second.tolist() == [6.0, 12.0]


def test_a_tensor_that_was_not_used() -> None:
    x, y = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match=r"appears to not have been used"):
        _run([x.sum()], [torch.tensor(1.0)], False, False, [y], allow_unreachable=False)
