"""Fastmath flags of a block of code, and of a compilation."""

from __future__ import annotations

import re
from typing import Any

import pytest
import torch

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.errors import ArgumentError
from tests.launchers import launcher_of


def traced(body: Any, **hints: Any) -> str:
    @flyc.kernel
    def kernel(A: fx.Tensor):
        A[0] = body(A[1], A[2])

    launch = launcher_of(kernel, grid=1, block=64)
    with flyc.kernel_function.CompilationContext.compile_hints(hints):
        return launch.lower(torch.zeros(64)).origin


def flags(text: str) -> dict[str, str]:
    return dict(re.findall(r"(arith\.\w+f|math\.\w+)\b.*?fastmath<([\w,]+)>", text))


def test_operations_in_a_block_have_its_flags() -> None:
    def body(x: Any, y: Any) -> Any:
        with fx.fastmath("contract,nnan"):
            z = fx.exp(x * y)
            with fx.fastmath(fx.FastMathFlags.afn | fx.FastMathFlags.arcp):
                z = z / y
            z = fx.arith.subf(z, y, fastmath="ninf")
        return z + x

    assert flags(traced(body)) == {
        "arith.mulf": "nnan,contract",
        "math.exp": "nnan,contract",
        "arith.divf": "arcp,afn",
        "arith.subf": "ninf",
    }


def test_integers_have_none() -> None:
    def body(x: Any, y: Any) -> Any:
        with fx.fastmath("fast"):
            return (fx.Int32(x) * fx.Int32(y)).to(fx.Float32)

    assert flags(traced(body)) == {}


@pytest.mark.parametrize(
    ("hint", "expected"),
    [("fast_fp_math", "nsz,arcp,contract,afn"), ("unsafe_fp_math", "reassoc,nsz,arcp,contract,afn")],
)
def test_hints_of_a_compilation(hint: str, expected: str) -> None:
    def body(x: Any, y: Any) -> Any:
        return x / y

    assert flags(traced(body, **{hint: True})) == {"arith.divf": expected}
    assert flags(traced(body)) == {}


def test_the_flags_of_a_compilation_by_name() -> None:
    def body(x: Any, y: Any) -> Any:
        with fx.fastmath("contract"):
            z = x * y
        return fx.exp(z + y, fastmath="none")

    both = {"fastmath": fx.FastMathFlags.nnan | fx.FastMathFlags.ninf, "fast_fp_math": True}
    assert flags(traced(body, **both)) == {"arith.mulf": "contract", "arith.addf": "nnan,ninf"}
    with pytest.raises(ArgumentError, match="no fastmath flags 'quick'"):
        traced(body, fastmath="quick")


def test_flags_that_do_not_exist() -> None:
    def body(x: Any, y: Any) -> Any:
        with fx.fastmath("quick"):
            return x + y

    with pytest.raises(ArgumentError, match="no fastmath flags 'quick'"):
        traced(body)
