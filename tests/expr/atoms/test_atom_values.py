"""Numbers set on tiled copies and products, and what a thread's part of them has."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.errors import LayoutError, MissingName
from tests.launchers import launcher_of


def tiled_copy() -> Any:
    atom = fx.make_copy_atom(fx.rocdl.BufferCopy32b(), fx.Float32)
    return fx.make_tiled_copy(atom, fx.make_layout((64, 1), (1, 64)), fx.make_tile(64))


@pytest.mark.parametrize(
    "moved",
    [
        lambda copy, n: copy.set_value("soffset", n),
        lambda copy, n: copy.set_value({"soffset": n}),
        lambda copy, n: fx.atom_set_value(copy, "soffset", n),
        lambda copy, n: copy.get_slice(fx.thread_idx.x).set_value("soffset", n),
    ],
    ids=["name and number", "dict", "function", "thread"],
)
def test_a_number_set_on_the_tiling_is_that_of_its_calls(moved: Callable[..., Any]) -> None:
    @flyc.kernel
    def kernel(A: fx.Tensor, Out: fx.Tensor, n: fx.Int32):
        made = moved(tiled_copy(), n)
        part = made if hasattr(made, "partition_S") else made.get_slice(fx.thread_idx.x)
        whole = fx.rocdl.make_buffer_tensor(A)
        source = part.partition_S(fx.make_view(fx.get_iter(whole), fx.make_layout(64, 1)))
        held = fx.make_fragment_like(source)
        fx.copy(part.atom, source, held)
        Out[fx.thread_idx.x] = held[0]

    a, out = torch.arange(128.0), torch.zeros(64)
    launcher_of(kernel, grid=1, block=64)(a, out, 24)
    assert torch.equal(out, a[24:88])


def test_a_threads_part_has_what_the_whole_has(trace: Callable[..., Any]) -> None:
    def body(A: Any, Out: Any) -> None:
        copy = tiled_copy()
        part = copy.get_slice(fx.thread_idx.x)
        assert part.tile_mn == copy.tile_mn
        assert part.layout_src_tv_tiled == copy.tiled_tv_layout
        mma = fx.make_tiled_mma(fx.make_mma_atom(fx.rocdl.MFMA(16, 16, 4, fx.Float32)), fx.make_layout((2, 2, 1)))
        mine = mma.get_slice(fx.thread_idx.x)
        assert mine.tile_size_mnk == (32, 32, 4)
        assert mine.tv_layout_A_tiled == mma.tiled_tv_layout_A
        assert str(mine.get_slice(0)) == str(mma.get_slice(0))
        assert A.iter.type == fx.get_iter(A).type
        with pytest.raises(MissingName, match="'ThrCopy' object has no attribute 'partition_X'"):
            part.partition_X(A)
        with pytest.raises(LayoutError, match="no value 'scale_a'"):
            mma.set_value("scale_a", 1)

    trace(body)
