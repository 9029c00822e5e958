"""Launchers as custom operators of torch."""

from __future__ import annotations

import shutil
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.errors import ArgumentError
from tests.launchers import launcher_of

pytestmark = pytest.mark.slow


@flyc.kernel
def scale_kernel(A: fx.Tensor, B: fx.Tensor, factor: fx.Float32, n: fx.Int32, power: fx.Constexpr[int]):
    for i in range(fx.block_idx.x * 64 + fx.thread_idx.x, n, 64 * fx.grid_dim.x):
        value = A[i]
        for _ in fx.range_constexpr(power):
            value = value * factor
        B[i] = value


@flyc.jit
def scale(
    A: fx.Tensor,
    B: fx.Tensor,
    factor: fx.Float32,
    n: fx.Int32,
    power: fx.Constexpr[int] = 1,
    stream: fx.Stream = fx.Stream(None),
):
    scale_kernel(A, B, factor, n, power).launch(grid=2, block=64, stream=stream)


@pytest.fixture(scope="module")
def scaled() -> Any:
    """B = A * factor ** power."""
    return flyc.custom_op("flydsl_tests::scaled", scale, outputs={"B": lambda A, factor, n, power: torch.empty_like(A)})


@pytest.fixture(scope="module")
def scale_into() -> Any:
    return flyc.custom_op("flydsl_tests::scale_into", scale, mutates_args=["B"], power=2)


@pytest.fixture(autouse=True)
def without_compiled_graphs() -> Iterator[None]:
    yield
    torch._dynamo.reset()


def test_eager(scaled: Any, scale_into: Any) -> None:
    A, B = torch.randn(100), torch.empty(100)
    assert torch.equal(scaled(A, 2.0, 100), A * 2)
    assert torch.equal(scaled(A, 2.0, 100, 3), A * 8)
    assert torch.equal(scaled(A, 2.0, n=100, power=2), A * 4)
    assert scale_into(A, B, 2.0, 100) is None
    assert torch.equal(B, A * 4)


def test_schemas(scaled: Any, scale_into: Any) -> None:
    assert str(scaled._opoverload._schema) == (
        "flydsl_tests::scaled(Tensor A, float factor, SymInt n, SymInt power=1) -> Tensor"
    )
    assert str(scale_into._opoverload._schema) == (
        "flydsl_tests::scale_into(Tensor A, Tensor(B!) B, float factor, SymInt n) -> ()"
    )


@pytest.mark.parametrize("test", ["test_schema", "test_faketensor", "test_aot_dispatch_dynamic"])
def test_torchs_own_checks(test: str, scaled: Any, scale_into: Any) -> None:
    torch.library.opcheck(scaled, (torch.randn(100), 2.0, 100), test_utils=test)
    torch.library.opcheck(scale_into, (torch.randn(100), torch.randn(100), 2.0, 100), test_utils=test)


without_compiler = pytest.mark.skipif(not (shutil.which("g++") or shutil.which("clang++")), reason="no C++ compiler")
BACKENDS = ["aot_eager", pytest.param("inductor", marks=[pytest.mark.slow, without_compiler])]


@pytest.mark.parametrize("backend", BACKENDS)
def test_inside_torch_compile(backend: str, scaled: Any, scale_into: Any) -> None:
    def model(A: torch.Tensor) -> torch.Tensor:
        B = torch.empty_like(A)
        scale_into(A + 1, B, 2.0, A.shape[0])
        return scaled(B, 0.5, A.shape[0]) - 1

    # The second size makes the graph's sizes symbols. For inductor, which has a C++ compiler translate each graph for
    # seconds, they are from the start.
    compiled = torch.compile(model, backend=backend, fullgraph=True, dynamic=True if backend == "inductor" else None)
    for size in (100, 70, 300):
        A = torch.randn(size)
        assert torch.equal(compiled(A), model(A))
        assert torch.equal(compiled(A), (A + 1) * 2 - 1)


def test_gradients(scaled: Any) -> None:
    scaled.register_autograd(
        lambda ctx, grad: (scaled(grad, ctx.factor, grad.shape[0]), None, None, None),
        setup_context=lambda ctx, inputs, output: setattr(ctx, "factor", inputs[1]),
    )
    A = torch.randn(100, requires_grad=True)
    torch.compile(lambda A: scaled(A, 3.0, 100).sum(), backend="aot_eager", fullgraph=True)(A).backward()
    assert torch.equal(A.grad, torch.full((100,), 3.0))


def test_two_outputs() -> None:
    @flyc.kernel
    def kernel(A: fx.Tensor, B: fx.Tensor, C: fx.Tensor):
        i = fx.thread_idx.x
        B[i], C[i] = A[i] + 1, A[i] - 1

    around = launcher_of(kernel, grid=1, block=64)
    operator = flyc.custom_op("flydsl_tests::around", around, outputs={"B": torch.empty_like, "C": torch.empty_like})
    A = torch.randn(64)
    B, C = operator(A)
    assert torch.equal(B, A + 1)
    assert torch.equal(C, A - 1)


@flyc.jit
def unannotated(A: fx.Tensor, n):
    raise AssertionError


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: flyc.custom_op("a::b", lambda A: A), "takes a @flyc.jit function"),
        (lambda: flyc.custom_op("a::b", scale, mutates_args=["Z"]), "Z is not a parameter"),
        (lambda: flyc.custom_op("a::b", scale, mutates_args=["B"], B=1), "B is named twice"),
        (lambda: flyc.custom_op("a::b", unannotated), "n has no type that torch knows"),
    ],
)
def test_what_cannot_be_an_operator(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        make()


def test_an_error_in_a_launch_reaches_the_caller(scaled: Any) -> None:
    with pytest.raises(ArgumentError, match="complex64"):
        scaled(torch.randn(100).to(torch.complex64), 2.0, 100)


def test_vmap_takes_the_operator_and_not_the_launcher(scaled: Any) -> None:
    rows = torch.randn(3, 8)
    assert torch.equal(torch.vmap(lambda row: scaled(row, 2.0, 8))(rows), rows * 2)
    with pytest.raises(ArgumentError, match="A: a tensor whose memory is not there"):
        torch.vmap(lambda row: scale(row, torch.empty(8), 2.0, 8))(rows)


def test_a_launcher_inside_torch_compile_breaks_the_graph() -> None:
    """It is not traced, in a loop as little; and nothing of torch warns of what it found in this package."""

    class Scaling:
        @flyc.jit
        def by(self, A: fx.Tensor, B: fx.Tensor, factor: fx.Float32, stream: fx.Stream = fx.Stream(None)):
            scale_kernel(A, B, factor, 100, 1).launch(grid=2, block=64, stream=stream)

    scaling = Scaling()

    def model(A: torch.Tensor) -> torch.Tensor:
        B, C = torch.empty_like(A), torch.empty_like(A)
        scale(A + 1, B, 2.0, 100)
        for factor in (3.0, 4.0):
            scaling.by(B, C, factor)
        flyc.compile(scale, C + 1, B, 0.5, 100)(C, B, 2.0, 100)
        return B - 1

    A = torch.randn(100)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        compiled = torch.compile(model, backend="eager")
        for _ in range(2):
            assert torch.equal(compiled(A), (A + 1) * 16 - 1)
    with pytest.raises(torch._dynamo.exc.Unsupported, match=r"flyc\.custom_op makes an operator"):
        torch.compile(lambda A: scale(A, A, 2.0, 100), backend="eager", fullgraph=True)(A)
