"""The pictures of matrix instructions and tiled MMAs: every cell names the threads that hold its element."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

import flydsl.expr as fx
from flydsl import atoms
from flydsl.errors import ArgumentError, LayoutError
from flydsl.layout import Layout, make_layout, make_tile, size
from tests.workbench.layouts.outlined import outlined
from workbench.layouts import thread_figure, thread_view, view_of

OPS = [
    atoms.MFMA(16, 16, 16, "f16", "f16", "f32"),
    atoms.MFMA(32, 32, 8, "bf16", "bf16", "f32"),
    atoms.MFMA(4, 4, 4, "f16", "f16", "f32"),  # 16 blocks
    atoms.UniversalFMA("f32"),
]


def tiled(waves: tuple[int, int, int], permutation: Any = None) -> fx.TiledMma:
    atom = fx.make_mma_atom(fx.rocdl.MFMA(16, 16, 16, fx.Float16))
    return fx.make_tiled_mma(atom, make_layout(waves), permutation)


@pytest.mark.parametrize("op", OPS, ids=str)
def test_an_instruction_shows_who_holds_what(op: atoms.MmaOp) -> None:
    view = view_of(op)
    assert [panel.name for panel in view.panels] == ["A (M,K)", "B (N,K)", "C (M,N)"]
    for panel, operand in zip(view.panels, "abc", strict=True):
        layout_tv = op.layout_tv(operand)
        assert [len(held) for held in panel.holders] == [1] * panel.grid.offsets.size
        for element, ((thread, value),) in enumerate(panel.holders):
            assert layout_tv(thread, value) == element


def test_the_extents_are_those_of_the_instruction() -> None:
    shapes = [panel.grid.offsets.shape for panel in view_of(OPS[1]).panels]
    assert shapes == [(32, 8), (32, 8), (32, 32)]
    assert [panel.element_bits for panel in view_of(OPS[1]).panels] == [16, 16, 32]


def test_waves_share_operands() -> None:
    """Two waves along M and two along N: two read each element of A and B, one holds each of C."""
    counts = [Counter(map(len, panel.holders)) for panel in view_of(tiled((2, 2, 1))).panels]
    assert counts == [{2: 32 * 16}, {2: 32 * 16}, {1: 32 * 32}]


def test_a_permutation_deals_elements_out_anew() -> None:
    k_order = Layout((4, 2, 4), (1, 16, 4))
    plain, permuted = tiled((1, 1, 1)), tiled((1, 1, 1), make_tile(16, 16, k_order))
    (a, *_), (b, *_) = view_of(plain).panels, view_of(permuted).panels
    assert a.grid.offsets.shape == (16, 16)
    assert b.grid.offsets.shape == (16, 32)
    assert {len(held) for held in b.holders} == {1}


def test_a_thread_lights_its_values_in_a_b_and_c() -> None:
    mma = tiled((2, 1, 1))
    figure = thread_figure(mma, thread=70)
    for i, operand in enumerate("abc"):
        lit = outlined(figure.data[5 * i + 4], figure.data[5 * i].z.shape)
        layout_tv = mma.type.mma.layout_tv(operand)
        values = size(layout_tv) // 128
        height = lit.shape[0]
        expected = {(e % height, e // height) for e in (layout_tv(70 + 128 * v) for v in range(values))}
        assert set(zip(*map(np.ndarray.tolist, np.nonzero(lit)), strict=True)) == expected


def test_tensors_are_drawn_with_their_offsets() -> None:
    mma = tiled((2, 2, 1))
    a, c = Layout((64, 32), (32, 1)), Layout((64, 32), (32, 1))
    view = thread_view(mma, a, None, c)
    assert [panel.name for panel in view.panels] == ["A (M,K)", "C (M,N)"]
    for panel, operand in zip(view.panels, "ac", strict=True):
        parts = mma.type.mma.partition(operand, panel.layout)
        for element, held in enumerate(panel.holders):
            assert held
            assert {parts(t + panel.threads * v) for t, v in held} == {panel.layout(element)}


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(LayoutError):
        thread_view(tiled((2, 2, 1)), Layout((20, 16)))
    with pytest.raises(ArgumentError, match="threads are 0 to 255"):
        thread_view(tiled((2, 2, 1)), thread=256)
    with pytest.raises(ArgumentError, match="1 tensors"):
        thread_view(OPS[0], Layout((16, 16)))
