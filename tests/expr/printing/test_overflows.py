"""`checking("overflow")`: integers of a signed type that wrap around, on the simulator and in the interpreter."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import pytest
import torch

import flydsl
import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.errors import DeviceAssertion
from flydsl.simulator import checking

TYPES = {fx.Int8: torch.int8, fx.Int16: torch.int16, fx.Int32: torch.int32, fx.Int64: torch.int64}
OPERATORS = {"+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b}


@flyc.kernel
def operate_kernel(a: fx.Tensor, b: fx.Tensor, out: fx.Tensor, sign: fx.Constexpr[str]):
    i = fx.thread_idx.x
    out[i] = OPERATORS[sign](a[i], b[i])


@flyc.jit
def operate(a: fx.Tensor, b: fx.Tensor, out: fx.Tensor, sign: fx.Constexpr[str]):
    operate_kernel(a, b, out, sign).launch(grid=1, block=4)


def launched(dtype: torch.dtype, sign: str, pairs: Any, interpreted: bool) -> torch.Tensor:
    a, b = torch.tensor(pairs, dtype=dtype).T.contiguous()
    out = torch.zeros(4, dtype=dtype)
    with flydsl.interpreting() if interpreted else nullcontext(), checking("overflow"):
        operate(a, b, out, sign)
    return out


@pytest.mark.slow
@pytest.mark.parametrize("kind", TYPES)
def test_the_largest_numbers_fit_and_one_more_does_not(kind: Any) -> None:
    dtype, interpreted = TYPES[kind], kind in (fx.Int8, fx.Int64)
    least, most = torch.iinfo(dtype).min, torch.iinfo(dtype).max
    fitting = {"+": [(most - 1, 1), (least, most), (-1, -1), (least + 1, -1)],
               "-": [(most, 0), (-1, most), (least, least), (least + 1, 1)]}  # fmt: skip
    for sign, pairs in fitting.items():
        assert launched(dtype, sign, pairs, interpreted).tolist() == [OPERATORS[sign](a, b) for a, b in pairs]
    for sign, pair in (("+", (most, 1)), ("+", (least, -1)), ("-", (least, 1)), ("-", (0, least))):
        with pytest.raises(DeviceAssertion) as found:
            launched(dtype, sign, [(0, 0), (1, 2), pair, (0, 0)], interpreted)
        assert f"{pair[0]} {sign} {pair[1]} is " in str(found.value)
        assert f"in {kind.__name__}: it wraps around" in str(found.value)
        assert "thread (2, 0, 0)" in str(found.value)


@pytest.mark.parametrize("kind", [fx.Int8, fx.Int16, fx.Int32])
def test_products(kind: Any) -> None:
    dtype = TYPES[kind]
    root = 1 << (torch.iinfo(dtype).bits // 2 - 1)
    assert launched(dtype, "*", [(root, root), (-root, root), (3, 5), (0, -1)], False).tolist()[1] == -root * root
    with pytest.raises(DeviceAssertion, match="it wraps around"):
        launched(dtype, "*", [(0, 0), (2 * root, root), (0, 0), (1, 1)], False)


@flyc.kernel
def pairs_kernel(a: fx.Tensor, out: fx.Tensor, unsigned: fx.Constexpr[bool]):
    kind = fx.Uint8 if unsigned else fx.Int8
    pair = fx.ptr_load(fx.get_iter(a), result_type=fx.Vector.make_type(2, kind))
    total = pair + pair
    out[0], out[1] = fx.Int32(total[0]), fx.Int32(total[1])


@flyc.jit
def pairs(a: fx.Tensor, out: fx.Tensor, unsigned: fx.Constexpr[bool]):
    pairs_kernel(a, out, unsigned).launch(grid=1, block=1)


def test_vectors_and_unsigned_integers() -> None:
    a, out = torch.tensor([1, 100], dtype=torch.int8), torch.zeros(2, dtype=torch.int32)
    with checking("overflow"), pytest.raises(DeviceAssertion, match="an element of a vector's"):
        pairs(a, out, False)
    with checking("overflow", "index"):
        pairs(a.view(torch.uint8), out, True)


def test_other_checks_do_not_look_at_integers() -> None:
    a = torch.tensor([127, 0, 0, 0], dtype=torch.int8)
    out = torch.zeros_like(a)
    with checking():
        operate(a, torch.ones_like(a), out, "+")
    assert out.tolist() == [-128, 1, 1, 1]
