"""A value that a list of the host has kept from an earlier trace: one error at the line that uses it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl._mlir.dialects import arith  # type: ignore[attr-defined]
from flydsl.errors import TraceError
from flydsl.expr.tracing import outlived
from flydsl.expr.typing import T
from tests.launchers import launcher_of

Keep = Callable[[Any, Any], Any]
Use = Callable[[Any, Any, Any], None]


def stored(A: Any, kept: Any, n: Any) -> None:
    A[0] = kept  # here


def added(A: Any, kept: Any, n: Any) -> None:
    A[0] = n + kept  # here


def printed(A: Any, kept: Any, n: Any) -> None:
    fx.printf("{}", kept)  # here


def loaded(A: Any, kept: Any, n: Any) -> None:
    A[0] = kept[0]  # here


@pytest.mark.parametrize(
    ("keep", "use"),
    [
        (lambda A, n: n, stored),
        (lambda A, n: n, added),
        (lambda A, n: n, printed),
        (lambda A, n: A, loaded),
        (lambda A, n: fx.Vector.from_elements([n, n]), loaded),
    ],
    ids=["a number stored", "a number added", "a number printed", "a tensor", "a vector"],
)
def test_a_value_of_an_earlier_trace(keep: Keep, use: Use) -> None:
    kept: list[Any] = []

    @flyc.kernel
    def kernel(A: fx.Tensor, n: fx.Int32) -> None:
        kept.append(keep(A, n))
        use(A, kept[0], n)

    launch = launcher_of(kernel, grid=1, block=1)
    launch(torch.zeros(2, dtype=torch.int32), 1)
    with pytest.raises(TraceError, match="traced before, which the host has kept") as caught:
        launch(torch.zeros(2, 2, dtype=torch.int32)[0], 1)
    assert caught.value.at is not None
    assert "# here" in (caught.value.at.source_line or "")


def test_a_number_that_was_kept_prints_as_before() -> None:
    kept: list[Any] = []

    @flyc.kernel
    def kernel(n: fx.Int32) -> None:
        kept.append(n + 1)

    flyc.jit(lambda n: kernel(n).launch(grid=1, block=1))(fx.Int32(3))
    assert repr(kept) == "[Int32(?)]"


@pytest.mark.slow
@pytest.mark.parametrize("use", [stored, added, printed])
def test_a_result_of_mlirs_own_operation(use: Use) -> None:
    """The operation, which nobody keeps himself, lives on with its result."""
    kept: list[Any] = []

    @flyc.kernel
    def kernel(A: fx.Tensor, n: fx.Int32) -> None:
        kept.append(arith.ConstantOp(T.i32, 3).result)
        use(A, kept[0], n)

    launch = launcher_of(kernel, grid=1, block=1)
    launch(torch.zeros(2, dtype=torch.int32), 1)
    with pytest.raises(TraceError, match="traced before, which the host has kept") as caught:
        launch(torch.zeros(2, 2, dtype=torch.int32)[0], 1)
    assert caught.value.at is not None
    assert "# here" in (caught.value.at.source_line or "")


def test_a_value_of_mlirs_own_of_an_earlier_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its memory lives on as long as somebody keeps it."""
    monkeypatch.setattr(outlived, "_kept", [])
    kept: list[Any] = []

    @flyc.kernel
    def kernel(A: fx.Tensor, n: fx.Int32) -> None:
        kept.append(n.ir_value())
        A[0] = n + kept[0]

    launch = launcher_of(kernel, grid=1, block=1)
    launch(torch.zeros(2, dtype=torch.int32), 1)
    assert "i32" in str(kept[0])
    with pytest.raises(TraceError, match="traced before, which the host has kept") as caught:
        launch(torch.zeros(2, 2, dtype=torch.int32)[0], 1)
    assert caught.value.at is not None
    assert caught.value.at.file == __file__
    del kept[0]
    outlived._forget()
    assert len(outlived._kept) == 1
    kept.clear()
    outlived._forget()
    assert not outlived._kept
