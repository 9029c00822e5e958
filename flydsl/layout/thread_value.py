"""Thread-value layouts, which map (thread, value) to an element of a tile."""

from __future__ import annotations

from flydsl.layout.composition import composition
from flydsl.layout.int_tuple import AnyTuple, product_each
from flydsl.layout.inverse import right_inverse
from flydsl.layout.layout import Layout, make_layout
from flydsl.layout.measure import size
from flydsl.layout.product import raked_product
from flydsl.layout.text import operation


@operation
def make_layout_tv(thr_layout: Layout, val_layout: Layout) -> tuple[AnyTuple, Layout]:
    """The tile that threads and their values cover together, and the layout (thread, value) -> element of it.

    thr_layout, val_layout: positions of the threads, and of one thread's values, in the tile. Values of one thread lie
    next to one another (raked). Elements are counted with the leftmost mode of the tile fastest.

    >>> make_layout_tv(make_layout((4, 1), (1, 1)), make_layout((1, 8), (1, 1)))
    ((4,8), (4,8):(1,4))
    """
    tile_layout = raked_product(thr_layout, val_layout)
    thread_value = make_layout((size(thr_layout), size(val_layout)))
    return product_each(tile_layout.extents), composition(right_inverse(tile_layout), thread_value)
