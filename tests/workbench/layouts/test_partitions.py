"""Parts of layouts on the host: a picture instead of a tensor."""

from __future__ import annotations

import pytest

import flydsl.expr as fx
from flydsl.errors import ArgumentError
from workbench.layouts import thread_view


def thread_of_copy(thread: int) -> fx.ThrCopy:
    tile, layout_tv = fx.make_layout_tv(fx.make_layout((4, 1), (1, 1)), fx.make_layout((1, 8), (1, 1)))
    atom = fx.make_copy_atom(fx.UniversalCopy128b(), fx.Float32)
    return fx.make_tiled_copy(atom, layout_tv, tile).get_slice(thread)


@pytest.mark.parametrize("method", ["partition_S", "partition_D"])
def test_a_layout_has_no_partition_but_a_picture(method: str) -> None:
    layout = fx.make_layout((8, 16), (16, 1))
    with pytest.raises(
        ArgumentError, match=rf"(?s){method} takes a tensor, not the layout .*thread_view\(thr_copy, layout\)"
    ):
        getattr(thread_of_copy(2), method)(layout)
    assert thread_view(thread_of_copy(2), layout).thread == 2
