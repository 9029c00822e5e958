"""Views with gaps: what lies between their elements is not theirs."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.simulator import MemoryFault
from flydsl.simulator.gaps import rows_of, touches_gap
from flydsl.utils import env


@pytest.mark.parametrize(
    ("shape", "strides"),
    [
        ((4, 32), (64, 1)),
        ((4, 32), (32, 1)),
        ((3, 4, 5), (40, 7, 1)),
        ((3, 4, 5), (1, 3, 20)),
        ((4, 4), (8, 2)),
        ((4, 4), (7, 2)),
        ((5, 3), (1, 0)),
        ((1, 6), (99, 3)),
        ((), ()),
    ],
)
def test_the_bytes_in_gaps_are_those_of_no_element(shape: tuple[int, ...], strides: tuple[int, ...]) -> None:
    starts = [sum(map(int.__mul__, index, strides)) for index in itertools.product(*map(range, shape))]
    own = {4 * start + byte for start in starts for byte in range(4)}
    offsets = np.arange(max(own) + 1)
    gaps = touches_gap(offsets, 1, rows_of(shape, strides, 4))
    assert set(offsets[~gaps]) == own


def test_where_elements_overlap_there_is_no_gap_to_be_sure_of() -> None:
    assert rows_of((10, 4), (2, 3), 4) == ()


@flyc.kernel
def shifted_copy_kernel(A: fx.Tensor, B: fx.Tensor, read: fx.Int32, write: fx.Int32) -> None:
    row, column = fx.block_idx.x, fx.thread_idx.x
    B[row, column + write] = A[row, column + read]


@flyc.jit
def shifted_copy(A: fx.Tensor, B: fx.Tensor, read: fx.Int32, write: fx.Int32) -> None:
    shifted_copy_kernel(A, B, read, write).launch(grid=4, block=32)


@pytest.mark.parametrize("backend", ["native", "lockstep"])
def test_one_element_past_the_row_of_a_view_is_found(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLYDSL_SIMULATOR_BACKEND", backend)
    assert env.simulator_backend() == backend
    A, B = torch.rand(4, 64), torch.full((4, 64), 7.0)
    left, right = B[:, :32], B[:, 32:]
    shifted_copy(A[:, :32], left, 0, 0)
    assert torch.equal(left, A[:, :32])
    for read, write, name in ((1, 0, "A"), (0, 1, "B")):
        with pytest.raises(
            MemoryFault, match=rf"outside of {name} .*, in a gap between its elements: element 32,"
        ) as e:
            shifted_copy(A[:, :32], left, read, write)
        assert e.value.access.lane == 31
        assert e.value.access.workgroup == (0, 0, 0)
    assert (right == 7).all()
