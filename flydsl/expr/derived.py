"""Calls composed of primitives."""

from __future__ import annotations

from typing import Any

from flydsl.expr import primitive
from flydsl.expr.numeric import Numeric
from flydsl.expr.typing import Layout, Tensor


def make_rmem_tensor(shape: Any, dtype: type[Numeric]) -> Tensor:
    """A tensor in registers, private to each thread; its contents are undefined until written.

    shape: a static shape (leftmost mode fastest) or a static Layout.
    dtype: the element type.
    """
    layout = shape if isinstance(shape, Layout) else primitive.make_layout(shape)
    return primitive.memref_alloca(layout, dtype)
