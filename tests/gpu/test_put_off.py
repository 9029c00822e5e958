"""A benchmark's operators of torch wait, and whoever asks for what they write finds it."""

# mypy: ignore-errors

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

import flydsl.gpu
from flydsl.gpu.of_triton import do_bench
from flydsl.gpu.waiting import WAITING
from kernels.vector_add import vector_add

N = 512


@pytest.fixture(autouse=True)
def posing() -> Iterator[None]:
    with flydsl.gpu.pose("mi300x"):
        yield
        WAITING.forget()


def matrix() -> torch.Tensor:
    return torch.randn(N, N, device="cuda")


def test_products_wait_and_are_forgotten() -> None:
    a, b = matrix(), matrix()
    assert do_bench(lambda: a @ b) > 0.005
    assert WAITING
    WAITING.forget()
    assert not WAITING  # as nobody has them
    found = []
    do_bench(lambda: found.append(torch.softmax(a @ b, -1)))
    assert WAITING
    expected = torch.softmax(a.cpu() @ b.cpu(), -1)
    assert [torch.allclose(one.cpu(), expected) for one in found] == [True, True]
    assert not WAITING


def test_operands_are_read_before_they_change() -> None:
    a, found = matrix(), []
    expected = a.cpu() + 1
    do_bench(lambda: found.append(a + 1))
    a.zero_()
    assert torch.equal(found[-1].cpu(), expected)


def test_what_is_changed_in_place_waits_for_what_it_changes() -> None:
    a, found = matrix(), []

    def call() -> None:
        found.append((a + 1)[1:])
        found[-1].mul_(2)

    do_bench(call)
    assert len(WAITING) == 4
    assert torch.equal(found[-1].cpu(), (a.cpu()[1:] + 1) * 2)


def test_gradients_are_summed() -> None:
    w = torch.ones(N, N, device="cuda", requires_grad=True)
    do_bench(lambda: (w * w).sum().backward())
    assert WAITING
    assert w.grad.unique().tolist() == [4.0]  # of two calls


def test_operators_and_launches_in_their_order() -> None:
    x = torch.ones(1 << 18, device="cuda")
    y, found = torch.empty_like(x), []

    def call() -> None:
        doubled = x + x
        vector_add(doubled, x, y)
        found.append(y + 1)

    do_bench(call)
    assert len(WAITING) == 6
    assert found[0].unique().tolist() == [4.0]
    assert y.unique().tolist() == [3.0]


def test_numbers_that_are_read_are_there() -> None:
    a, found = torch.ones(N, N, device="cuda"), []
    do_bench(lambda: found.append((a + 1).sum().item()))
    assert found == [2.0 * N * N] * 2


def test_random_numbers_are_drawn_in_their_order() -> None:
    a, found = torch.zeros(N, N, device="cuda"), []
    torch.manual_seed(0)
    do_bench(lambda: found.append(torch.rand_like(a)))
    torch.manual_seed(0)
    assert torch.equal(found[0], torch.rand_like(a))


def test_an_error_comes_from_the_call() -> None:
    a = matrix()
    with pytest.raises(RuntimeError, match="cannot be multiplied"):
        do_bench(lambda: a @ a[1:])
