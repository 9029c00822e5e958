"""Products of 16-bit matrices on a posed GPU are summed in the steps of its matrix instructions."""

# mypy: ignore-errors

from __future__ import annotations

import numpy as np
import pytest
import torch

import flydsl.gpu
from flydsl.gpu import matrix_products
from flydsl.simulator.native.host import UnsupportedHost
from flydsl.simulator.native.library import HandlerLibrary
from tests.processes import run_python


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
@pytest.mark.parametrize("shape", [(48, 32, 256), (3, 16, 40, 64), (16, 16, 21), (7, 67, 300), (1, 1, 1)], ids=str)
def test_mi300_adds_eight_products_at_once(shape, dtype):
    a, b, _ = operands(*shape, dtype=dtype)
    wanted = summed_in_steps(a, b, 8).to(dtype)
    with flydsl.gpu.pose("mi300x"):
        out = torch.empty_like(wanted, device="cuda")
        found = torch.matmul(a.cuda(), b.cuda())
        assert torch.equal(found.cpu(), wanted)
        assert torch.matmul(a.cuda(), b.cuda(), out=out) is out
        assert torch.equal(out, found)


def test_operands_may_be_strided_or_expanded():
    a, b, _ = operands(24, 36, 72)
    with flydsl.gpu.pose("mi300x"):
        left, right = a.cuda(), b.cuda()
        for one, other in (
            (left[::2, 1::3], right[1::3, ::2]),
            (left.T, right.T[:24]),
            (left[:1].expand(5, 72), right[:, :1].expand(72, 3)),
        ):
            wanted = summed_in_steps(one.cpu(), other.cpu(), 8).half()
            assert torch.equal((one @ other).cpu(), wanted)


def test_without_native_code_products_are_the_hosts(monkeypatch):
    def tiers():
        raise UnsupportedHost("none")

    monkeypatch.setattr("flydsl.simulator.native.host.available_tiers", tiers)
    monkeypatch.setattr("flydsl.simulator.native.host.tier", tiers)
    monkeypatch.setattr("flydsl.simulator.native.library.library", HandlerLibrary)
    monkeypatch.setattr(matrix_products, "_native", matrix_products._native.__wrapped__)
    assert matrix_products._native() is None
    a, b, _ = operands(64, 64, 256)
    with flydsl.gpu.pose("mi300x"):
        assert torch.equal((a.cuda() @ b.cuda()).cpu(), a @ b)


def test_sums_in_steps_of_8_and_of_16_round_differently():
    """Or else the tests of this file could not tell a wrong step from the right one."""
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
        for product, operands, message in (
            (torch.mm, (a[None], a[None].mT), r"must be a matrix"),
            (torch.bmm, (a, a.T), r"3D tensor"),
            (torch.mm, (a[0], a[0]), r"must be a matrix"),
        ):
            with pytest.raises(RuntimeError, match=message):
                product(*operands)
        assert (a[:, :0] @ a[:, :0].T).tolist() == [[0.0] * 4] * 4


def test_other_gpus_sum_as_the_host_does():
    a, b, _ = operands(64, 64, 256)
    with flydsl.gpu.pose("rx9070xt"):
        assert torch.equal((a.cuda() @ b.cuda()).cpu(), a @ b)


_KERNELS_AROUND_A_PRODUCT = """
import torch
import flydsl.gpu
from kernels.vector_add import vector_add
from tests.kernels.test_batched_preshuffle_gemm import check

numbers = torch.arange(100.0)
vector_add(numbers, numbers, torch.empty(100))
with flydsl.gpu.pose("mi300x"):
    x = torch.ones(32, 32, device="cuda", dtype=torch.float16)
    x @ x
check((1, 20, 64, 256), "bf16", (16, 64, 128))
"""


@pytest.mark.slow
def test_a_product_leaves_the_functions_of_kernels_alone() -> None:
    """A function of this C had the name of one that matrix instructions call: those loaded later called this one."""
    found = run_python("-c", _KERNELS_AROUND_A_PRODUCT)
    assert not found.returncode, found.stderr
