"""Launches whose effects are undone."""

from __future__ import annotations

import gc

import pytest
import torch

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.runtime.rehearsal import undone


@flyc.kernel
def add_one_kernel(x: fx.Tensor):
    x[fx.thread_idx.x] = x[fx.thread_idx.x] + 1


@flyc.jit
def add_one(x: fx.Tensor):
    add_one_kernel(x).launch(grid=1, block=64)


def test_memory_has_what_it_had_and_the_second_launch_sees_the_first() -> None:
    x = torch.zeros(64)
    with undone():
        add_one(x)
        add_one(x)
        assert (x == 2).all()
    assert not x.any()
    add_one(x)
    assert (x == 1).all()


@pytest.mark.slow
def test_tensors_that_end_before_the_block_are_alive_until_then() -> None:
    with undone():
        for _ in range(8):
            add_one(torch.zeros(64))
        gc.collect()
        others = [torch.full((64,), 7.0) for _ in range(64)]
    assert all((other == 7).all() for other in others)
