"""Forms of MLIR's operations that programs of FlyDSL write: promises of no overflow, choices of pointers, flags."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.errors import ArgumentError
from flydsl.expr import arith, buffer_ops
from flydsl.expr.utils.arith import current_fastmath
from tests.launchers import launcher_of


@pytest.mark.parametrize(
    ("flags", "written"), [("nsw", "nsw"), ("nuw, nsw", "nsw, nuw"), ("none", "none"), (None, "none")]
)
def test_promises_of_no_overflow(trace: Callable[..., Any], flags: Any, written: str) -> None:
    def body(A: Any, Out: Any) -> None:
        for operation in (arith.addi, arith.subi, arith.muli):
            made = str(operation(fx.Int32(fx.thread_idx.x), 3, overflow_flags=flags).ir_value().owner)
            assert f"overflow<{written}>" in made

    trace(body)


def test_promises_that_are_none(trace: Callable[..., Any]) -> None:
    with pytest.raises(ArgumentError, match=r"no overflow_flags 'fast'(?s:.*)none, nsw, nuw"):
        trace(lambda A, Out: arith.addi(fx.Int32(fx.thread_idx.x), 3, overflow_flags="fast"))


def test_a_condition_chooses_between_buffers() -> None:
    @flyc.kernel
    def kernel(A: fx.Tensor, B: fx.Tensor, n: fx.Int32):
        chosen = arith.select(n > 3, *map(buffer_ops.create_buffer_resource, (A, B)))
        buffer_ops.buffer_store(fx.Float32(5), chosen, fx.Int32(fx.thread_idx.x))

    launch = launcher_of(kernel, grid=1, block=4)
    for n in (5, 2):
        a, b = torch.zeros(4), torch.zeros(4)
        launch(a, b, n)
        assert (a + b).tolist() == [5.0] * 4
        assert (a[0] == 5) == (n > 3)


def test_the_flags_of_a_block(trace: Callable[..., Any]) -> None:
    def body(A: Any, Out: Any) -> None:
        assert current_fastmath() is None
        with fx.fastmath("contract"):
            assert str(current_fastmath()) == "#arith.fastmath<contract>"
            one = fx.Float32(A[0])
            made = arith.addf(one, one, fastmath=current_fastmath())
            assert "fastmath<contract>" in str(made.ir_value().owner)

    trace(body)
