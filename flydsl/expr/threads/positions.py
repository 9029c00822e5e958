"""Positions of threads: ids and dimensions of threads and blocks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mlir import ir

from flydsl.dialect.elements import element_type
from flydsl.dialect.location import argument_error
from flydsl.expr.numeric import Index, Int32, as_numeric
from flydsl.expr.tracing.emit import emit, require_trace

_DIMENSIONS = ("x", "y", "z")
_POSITIONS = ("thread_id", "block_id", "block_dim", "grid_dim")


def _id(operation: str, dimension: str) -> Any:
    if dimension not in _DIMENSIONS:
        raise argument_error(
            f"the dimension of gpu.{operation} must be 'x', 'y' or 'z', got {dimension!r}",
            "pass 'x', for example: fx.thread_idx.x is thread_id('x')",
        )
    require_trace(f"gpu.{operation}")
    attribute = ir.Attribute.parse(f"#gpu<dim {dimension}>")
    return as_numeric(
        emit(f"gpu.{operation}", results=[element_type("index")], attributes={"dimension": attribute}).result
    )


class Tuple3D:
    """Three Int32 values, read at the point of use: `.x`, `.y`, `.z`, or unpacked.

    operation: "thread_id", "block_id", "block_dim" or "grid_dim". ArgumentError for anything else.
    """

    def __init__(self, operation: str) -> None:
        if not isinstance(operation, str) or operation not in _POSITIONS:
            raise argument_error(
                f"the operation of a Tuple3D must be one of {', '.join(map(repr, _POSITIONS))}, got {operation!r}",
                "use fx.thread_idx, fx.block_idx, fx.block_dim or fx.grid_dim",
            )
        self._operation = operation

    def _read(self, dimension: str) -> Any:
        return Int32(_id(self._operation, dimension))

    @property
    def x(self) -> Any:
        return self._read("x")

    @property
    def y(self) -> Any:
        return self._read("y")

    @property
    def z(self) -> Any:
        return self._read("z")

    def __iter__(self) -> Iterator[Any]:
        return map(self._read, _DIMENSIONS)

    def __getitem__(self, index: int) -> Any:
        if index not in (0, 1, 2):
            raise argument_error(f"the index of {self!r} must be 0, 1 or 2, got {index!r}", "or use .x, .y or .z")
        return self._read(_DIMENSIONS[index])

    def __repr__(self) -> str:
        return f"<gpu.{self._operation} x, y, z>"


thread_idx = Tuple3D("thread_id")
block_idx = Tuple3D("block_id")
block_dim = Tuple3D("block_dim")
grid_dim = Tuple3D("grid_dim")


def thread_id(dimension: str) -> Index:
    """The thread's id in its block along 'x', 'y' or 'z', as an Index."""
    return _id("thread_id", dimension)


def block_id(dimension: str) -> Index:
    """The block's id in the grid along 'x', 'y' or 'z', as an Index."""
    return _id("block_id", dimension)
