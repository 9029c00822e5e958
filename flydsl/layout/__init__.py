"""The layout algebra, in plain Python: no MLIR, no decorator, no GPU.

A layout maps coordinates to indices, `shape:stride`. Every operation is written once and is generic over the leaves of
shapes and strides: ints give layouts of numbers, `Dynamic` leaves give the types of traced values, and the compiler's
subclass of `Dynamic` emits the arithmetic that computes them. Inadmissible operands raise `flydsl.errors.LayoutError`.

>>> A = make_layout((4, 8), (8, 1))
>>> zipped_divide(A, make_tile(2, 4))
((2,4),(2,2)):((8,1),(16,4))
>>> A(3, 5), composition(A, make_layout((4, 2), (1, 16)))
(29, (4,2):(8,4))
"""

from flydsl.layout.coalesce import coalesce
from flydsl.layout.complement import complement
from flydsl.layout.composed import (
    ComposedLayout,
    composed_get_inner,
    composed_get_offset,
    composed_get_outer,
    composed_parts,
    crd2idx,
    gives_coordinates,
    make_composed_layout,
    slice,
)
from flydsl.layout.composition import composition
from flydsl.layout.construct import (
    make_fragment_layout_like,
    make_identity_layout,
    make_layout_like,
    make_ordered_layout,
)
from flydsl.layout.coordinate import dice, get_1d_coord, get_flat_coord, idx2crd, slice_and_offset
from flydsl.layout.coordinate_swizzle import CoordSwizzle
from flydsl.layout.divide import flat_divide, logical_divide, tiled_divide, zipped_divide
from flydsl.layout.explain import Explanation, Step, explain
from flydsl.layout.int_tuple import (
    IntLeaf,
    IntTuple,
    ceil_div,
    flatten,
    get_leaves,
    has_none,
    int_tuple_add,
    int_tuple_div,
    int_tuple_mod,
    int_tuple_mul,
    int_tuple_product,
    int_tuple_product_each,
    int_tuple_product_like,
    int_tuple_sub,
    make_coord,
    make_int_tuple,
    make_shape,
    make_stride,
    product,
    product_each,
    product_like,
    shape_div,
)
from flydsl.layout.inverse import left_inverse, right_inverse
from flydsl.layout.layout import Layout, make_layout
from flydsl.layout.leaf import Basis, Dynamic, is_static
from flydsl.layout.measure import coprofile, coshape, cosize, depth, get_shape, get_stride, rank, size
from flydsl.layout.modes import append, get, get_, group, prepend, select, take
from flydsl.layout.notation import parse
from flydsl.layout.product import (
    blocked_product,
    flat_product,
    logical_product,
    raked_product,
    tile_to_shape,
    tiled_product,
    zipped_product,
)
from flydsl.layout.recast import recast_layout
from flydsl.layout.swizzle import Swizzle, apply_swizzle
from flydsl.layout.text import to_text
from flydsl.layout.thread_value import make_layout_tv
from flydsl.layout.tile import Tile, make_tile

__all__ = [
    "Basis", "ComposedLayout", "CoordSwizzle", "Dynamic", "Explanation", "IntLeaf", "IntTuple", "Layout", "Step",
    "Swizzle", "Tile", "append", "apply_swizzle", "blocked_product", "ceil_div", "coalesce",
    "complement", "composed_get_inner", "composed_get_offset", "composed_get_outer", "composed_parts", "composition",
    "coprofile", "coshape", "cosize", "crd2idx", "depth", "dice", "explain", "flat_divide", "flat_product", "flatten",
    "get", "get_", "get_1d_coord", "get_flat_coord", "get_leaves", "get_shape", "get_stride", "gives_coordinates",
    "group", "has_none", "idx2crd", "int_tuple_add", "int_tuple_div", "int_tuple_mod", "int_tuple_mul",
    "int_tuple_product", "int_tuple_product_each", "int_tuple_product_like", "int_tuple_sub",
    "is_static", "left_inverse", "logical_divide", "logical_product", "make_composed_layout", "make_coord",
    "make_fragment_layout_like", "make_identity_layout", "make_int_tuple", "make_layout", "make_layout_like",
    "make_layout_tv", "make_ordered_layout", "make_shape", "make_stride", "make_tile", "parse", "prepend", "product",
    "product_each", "product_like", "raked_product", "rank", "recast_layout", "right_inverse", "select", "shape_div",
    "size", "slice", "slice_and_offset", "take", "tile_to_shape", "tiled_divide", "tiled_product", "to_text",
    "zipped_divide", "zipped_product",
]  # fmt: skip
