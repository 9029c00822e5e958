"""Traces of functions on a posed GPU's tensors compute what the functions do."""

# mypy: ignore-errors

from __future__ import annotations

import pytest
import torch
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils._pytree import tree_leaves

import flydsl.gpu


@pytest.mark.parametrize("f", [lambda v: v * v, lambda v: (v * v).sum(), lambda v: (v, v.sin())])
def test_a_linearized_function_is_that_of_the_host(f) -> None:
    x, direction = torch.arange(4.0), torch.ones(4)
    _, expected = torch.func.linearize(f, x)
    with flydsl.gpu.pose("mi300x"):
        _, found = torch.func.linearize(f, x.cuda())
        for got, wanted in zip(tree_leaves(found(direction.cuda())), tree_leaves(expected(direction)), strict=True):
            assert got.is_cuda
            assert torch.allclose(got.cpu(), wanted)


def test_a_trace_has_the_operators_of_constants() -> None:
    with flydsl.gpu.pose("mi300x"):
        c = torch.full((4,), 3.0, device="cuda")
        traced = make_fx(lambda v: v * c + c)(torch.zeros(4, device="cuda"))
        assert traced(torch.ones(4, device="cuda")).tolist() == [6.0] * 4
