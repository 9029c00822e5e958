"""A shift by the width or more is one by the low bits of the amount, and costs nothing for it."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import flydsl.compiler as flyc
import flydsl.expr as fx
from tests.launchers import launcher_of


@flyc.kernel
def shift_kernel(A: fx.Tensor, Amount: fx.Tensor, Out: fx.Tensor):
    t = fx.thread_idx.x
    Out[t] = A[t] << Amount[t]
    Out[t + 64] = A[t] >> Amount[t]


shift = launcher_of(shift_kernel, grid=1, block=64)


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_an_amount_counts_by_its_low_bits(dtype: str) -> None:
    kind = getattr(torch, dtype)
    bits = torch.iinfo(kind).bits
    a, amounts, out = torch.arange(-32, 32).to(kind), torch.arange(64).to(kind), torch.zeros(128, dtype=kind)
    shift(a, amounts, out)
    left = np.left_shift(a.numpy(), amounts.numpy() & (bits - 1))
    right = np.right_shift(a.numpy(), amounts.numpy() & (bits - 1))
    np.testing.assert_array_equal(out.numpy(), np.concatenate([left, right]))


def test_no_instruction_masks_the_amount() -> None:
    tensors = (
        torch.zeros(64, dtype=torch.int32),
        torch.zeros(64, dtype=torch.int32),
        torch.zeros(128, dtype=torch.int32),
    )
    code = flyc.compile(shift, *tensors).isa
    text = code() if callable(code) else code
    assert "lshl" in text
    assert "v_and_b32" not in text
