"""Where a thread is: block and thread ids and dimensions; barrier, shuffles, and the space of shared memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mlir import ir

from flydsl.dialect.elements import element_type
from flydsl.dialect.location import user_location
from flydsl.errors import ArgumentError
from flydsl.expr.arith_value import functions
from flydsl.expr.emit import emit, require_trace
from flydsl.expr.names import unknown_name
from flydsl.expr.numeric import Index, Int32
from flydsl.expr.shared_allocator import SharedAllocator

_DIMENSIONS = ("x", "y", "z")


def _id(operation: str, dimension: str) -> ir.Value:
    if dimension not in _DIMENSIONS:
        raise ArgumentError(f"gpu.{operation}({dimension!r}): a dimension is 'x', 'y' or 'z'", at=user_location())
    require_trace(f"gpu.{operation}")
    attribute = ir.Attribute.parse(f"#gpu<dim {dimension}>")
    return emit(f"gpu.{operation}", results=[element_type("index")], attributes={"dimension": attribute}).result


__all__ = [
    "SharedAllocator", "barrier", "block_dim", "block_id", "block_idx", "grid_dim", "lds_space", "shuffle",
    "shuffle_down", "shuffle_idx", "shuffle_up", "shuffle_xor", "smem_space", "thread_id", "thread_idx",
]  # fmt: skip

# LLVM's AMDGPU address space of LDS.
_LDS_ADDRESS_SPACE = 3


class Tuple3D:
    """Three Int32 values that are read where they are used: `.x`, `.y`, `.z`, or unpacked."""

    def __init__(self, operation: str) -> None:
        self._operation = operation

    def _read(self, dimension: str) -> Any:
        return Int32(Index.of(_id(self._operation, dimension)))

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
            raise ArgumentError(f"{self!r}[{index!r}]: the dimensions are 0, 1 and 2", at=user_location())
        return self._read(_DIMENSIONS[index])

    def __repr__(self) -> str:
        return f"<gpu.{self._operation} x, y, z>"


thread_idx = Tuple3D("thread_id")
block_idx = Tuple3D("block_id")
block_dim = Tuple3D("block_dim")
grid_dim = Tuple3D("grid_dim")


def thread_id(dimension: str) -> ir.Value:
    """The thread's id in its block along 'x', 'y' or 'z', as a bare index value."""
    return _id("thread_id", dimension)


def block_id(dimension: str) -> ir.Value:
    """The block's id in the grid along 'x', 'y' or 'z', as a bare index value."""
    return _id("block_id", dimension)


def barrier() -> None:
    """Wait until every thread of the block has come here; LDS writes before it are seen after it."""
    emit("gpu.barrier")


def shuffle(value: Any, offset: Any, width: Any, mode: str = "xor") -> Any:
    """The value of another lane of the wave; see `flydsl.expr.shuffle.shuffle`.

    width: lanes of a group, a power of two, known when compiling. mode: "xor", "up", "down" or "idx".
    """
    from flydsl.expr.shuffle import shuffle as move

    return move(value, offset, width, mode)


def shuffle_xor(value: Any, offset: Any, width: Any) -> Any:
    """The value of lane ^ offset, within groups of `width` lanes."""
    return shuffle(value, offset, width, "xor")


def shuffle_up(value: Any, offset: Any, width: Any) -> Any:
    """The value of lane - offset; a group's first `offset` lanes keep their own."""
    return shuffle(value, offset, width, "up")


def shuffle_down(value: Any, offset: Any, width: Any) -> Any:
    """The value of lane + offset; a group's last `offset` lanes keep their own."""
    return shuffle(value, offset, width, "down")


def shuffle_idx(value: Any, lane: Any, width: Any) -> Any:
    """The value of the group's lane number `lane`."""
    return shuffle(value, lane, width, "idx")


def smem_space(int: bool = False) -> Any:
    """The address space of shared memory (LDS): an attribute for memref types, or with int=True LLVM's number, 3."""
    if int:
        return _LDS_ADDRESS_SPACE
    from flydsl.dialect.context import context

    return ir.Attribute.parse("#gpu.address_space<workgroup>", context())


lds_space = smem_space

functions.shuffle = shuffle
__getattr__ = unknown_name(__name__, globals())
