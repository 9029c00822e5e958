"""Products of 16-bit matrices on a posed GPU are summed in the steps of its matrix instructions."""

# mypy: ignore-errors

from __future__ import annotations

import numpy as np
import pytest
import torch

import flydsl.gpu


def summed_in_steps(one, other, step):
    """A product as a matrix instruction sums it, in numpy: f64 within a step, rounded to f32 after each."""
    one, other = one.double().numpy(), other.double().numpy()
    total = np.zeros((*one.shape[:-1], other.shape[-1]), np.float32)
    for start in range(0, one.shape[-1], step):
        part = one[..., start : start + step] @ other[..., start : start + step, :]
        total = (part + total).astype(np.float32)
    return torch.from_numpy(total)


def operands(*shape, dtype=torch.float16):
    """A and B for a shape (..., m, n, k), and a C."""
    *batch, m, n, k = shape
    torch.manual_seed(0)
    return [torch.randn(*batch, *size).to(dtype) for size in ((m, k), (k, n), (m, n))]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("shape", [(48, 32, 256), (3, 16, 40, 64), (16, 16, 21)], ids=str)
def test_mi300_adds_eight_products_at_once(shape, dtype):
    a, b, _ = operands(*shape, dtype=dtype)
    wanted = summed_in_steps(a, b, 8).to(dtype)
    with flydsl.gpu.pose("mi300x"):
        out = torch.empty_like(wanted, device="cuda")
        found = torch.matmul(a.cuda(), b.cuda())
        assert torch.equal(found.cpu(), wanted)
        assert torch.matmul(a.cuda(), b.cuda(), out=out) is out
        assert torch.equal(out, found)


def test_step_matters():
    a, b, _ = operands(128, 128, 512)
    assert not torch.equal(summed_in_steps(a, b, 8).half(), summed_in_steps(a, b, 16).half())


@pytest.mark.parametrize(("alpha", "beta"), [(1, 1), (2, 0.5), (1, 0)])
def test_summand_is_added_before_the_last_rounding(alpha, beta):
    a, b, c = operands(32, 32, 64)
    c = torch.full_like(c, float("nan")) if not beta else c
    total = summed_in_steps(a, b, 8) * alpha
    wanted = (total + beta * c.float() if beta else total).half()
    with flydsl.gpu.pose("mi300x"):
        found = torch.addmm(c.cuda(), a.cuda(), b.cuda(), alpha=alpha, beta=beta).cpu()
        row = torch.nn.functional.linear(a.cuda(), b.cuda().T, torch.zeros(32, dtype=a.dtype, device="cuda")).cpu()
    assert torch.equal(found, wanted)
    assert torch.equal(row, summed_in_steps(a, b, 8).half())


def test_gradients_are_summed_alike():
    a, b, c = operands(32, 48, 64)
    with flydsl.gpu.pose("mi300x"):
        left, right = a.cuda().requires_grad_(), b.cuda().requires_grad_()
        (left @ right).backward(c.cuda())
        found = left.grad.cpu(), right.grad.cpu()
    assert torch.equal(found[0], summed_in_steps(c, b.T, 8).half())
    assert torch.equal(found[1], summed_in_steps(a.T, c, 8).half())


def test_shapes_that_disagree_are_refused_by_torch():
    with flydsl.gpu.pose("mi300x"):
        a = torch.ones(4, 8, device="cuda", dtype=torch.float16)
        with pytest.raises(RuntimeError, match=r"cannot be multiplied \(4x8 and 4x8\)"):
            a @ a
        with pytest.raises(RuntimeError, match=r"expand|size"):
            torch.addmm(torch.ones(3, 3, device="cuda", dtype=torch.float16), a, a.T)
        assert (a[:, :0] @ a[:, :0].T).tolist() == [[0.0] * 4] * 4


def test_other_gpus_sum_as_the_host_does():
    a, b, _ = operands(64, 64, 256)
    with flydsl.gpu.pose("rx9070xt"):
        assert torch.equal((a.cuda() @ b.cuda()).cpu(), a @ b)
