"""Typed views of memory that load and store vectors: `GTensor` of global memory, `STensor` of shared memory.

    A = GTensor(tensor, fx.Float16, (rows, columns), num_records_bytes=rows * columns * 2)
    values = A.vec_load((row, column), 8)
    tile = STensor(pointer, fx.Int32, (64, 32))

Global memory goes through a buffer resource: what lies beyond its size reads 0 and is not written.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from operator import mul
from typing import Any

import flydsl.expr as fx
from flydsl.expr import buffer_ops
from kernels.layout_utils import crd2idx


class _View:
    """The common base of both views: a row-major shape."""

    def __init__(self, dtype: Any, shape: Sequence[Any]) -> None:
        self.dtype, self.shape = dtype, tuple(shape)
        self.bytes = dtype.width // 8
        self.stride = tuple(accumulate(reversed(self.shape[1:]), mul, initial=1))[::-1]

    def linear_offset(self, coordinates: Any) -> Any:
        """The number of the element at these coordinates; an integer counts from the first element."""
        if not isinstance(coordinates, tuple | list):
            return coordinates
        return crd2idx(coordinates, self.stride)

    def load(self: Any, coordinates: Any) -> Any:
        """One element."""
        return self.vec_load(coordinates, 1)


class GTensor(_View):
    """A row-major view of a tensor in global memory.

    dtype: of the view's elements, of at least 8 bits, whatever the tensor's are. shape: extents; the first one is
    not used. base_byte_offset: 64 bits, where the view begins, the same in all lanes. num_records_bytes: its size; by
    default it is open.
    """

    def __init__(
        self,
        tensor: Any,
        dtype: Any,
        shape: Sequence[Any] = (-1,),
        *,
        base_byte_offset: Any = None,
        num_records_bytes: Any = None,
    ) -> None:
        super().__init__(dtype, shape)
        self.rsrc = buffer_ops.create_buffer_resource(
            tensor, base_byte_offset=base_byte_offset, num_records_bytes=num_records_bytes
        )

    def vec_load(self, coordinates: Any, count: int, **how: Any) -> Any:
        """`count` consecutive elements; a scalar for 1. how: soffset_bytes, ..., as of `buffer_load`."""
        return buffer_ops.buffer_load(self.rsrc, self.linear_offset(coordinates), count, self.dtype, **how)

    def vec_store(self, coordinates: Any, value: Any, **how: Any) -> None:
        """Store a vector or scalar of this element type. how: as of `buffer_store`."""
        buffer_ops.buffer_store(value, self.rsrc, self.linear_offset(coordinates), **how)

    store = vec_store


class STensor(_View):
    """A row-major view of shared memory, from `first` bytes past a pointer on, aligned as the vectors moved."""

    def __init__(self, pointer: Any, dtype: Any, shape: Sequence[int] = (-1,), first: Any = 0) -> None:
        super().__init__(dtype, shape)
        self.pointer, self.first = pointer, first

    def vec_load(self, coordinates: Any, count: int) -> Any:
        """`count` consecutive elements; a scalar for 1."""
        kind = self.dtype if count == 1 else fx.T.vec(count, self.dtype.ir_type)
        return fx.rocdl.lds_load(kind, self.pointer, self.linear_offset(coordinates) * self.bytes + self.first)

    def vec_store(self, coordinates: Any, value: Any) -> None:
        """Store a vector or scalar of this element type."""
        fx.rocdl.lds_store(self.pointer, self.linear_offset(coordinates) * self.bytes + self.first, value)

    store = vec_store
