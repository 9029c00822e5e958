"""Keys of Python values: equal if the values are the same to the compiler.

Python's `==` is not strict enough: 1 == True == 1.0 and 0.0 == -0.0, although each of them traces different code.
"""

from __future__ import annotations

import array
import numbers
import sys
import types
from collections import ChainMap, UserDict, UserList, deque
from collections.abc import Callable
from typing import Any

from flydsl.layout import Layout, Tile


class Itself:
    """Equal only to the key of the same object."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Itself) and other.value is self.value

    def __hash__(self) -> int:
        return id(self.value)


def value_key(value: Any, other: Callable[[Any], Any] = Itself) -> Any:
    """A hashable copy of a value: values that trace the same code have equal keys.

    Numbers, text, layouts, arrays and containers of them are compared by value and exact type; `other` gives the key of
    other objects.

    >>> value_key([1, 2]) == value_key([1, 2]), value_key((1,)) == value_key((True,)), value_key(0.0) == value_key(-0.0)
    (True, False, False)
    """
    kind = type(value)
    if kind in (int, bool, str, bytes, type(None)) or isinstance(value, Layout | Tile):
        return kind, value
    if isinstance(value, numbers.Number):
        return kind, repr(value)  # which tells -0.0 from 0.0, and finds nan equal to itself
    if isinstance(value, _SEQUENCES):
        return kind, tuple(value_key(item, other) for item in value)
    if isinstance(value, set | frozenset):
        return kind, frozenset(value_key(item, other) for item in value)
    if isinstance(value, (dict, *_MAPPINGS)):
        return kind, tuple((value_key(key, other), value_key(item, other)) for key, item in value.items())
    return _data(value) if is_mutable_data(value) else other(value)


_SMALL_TENSOR = 1024
# Python's containers that hold what another one holds.
_SEQUENCES: tuple[Any, ...] = (tuple, list, deque, UserList, type({}.keys()), type({}.values()), type({}.items()))
_MAPPINGS = (UserDict, ChainMap, types.MappingProxyType)


def is_mutable_data(value: Any) -> bool:
    """True if a value holds numbers that can change in place: an array, a tensor, bytes, a view of a container."""
    if isinstance(value, (bytearray, memoryview, array.array, deque, *_SEQUENCES, *_MAPPINGS)):
        return True
    module = type(value).__module__.partition(".")[0]
    return module in ("numpy", "torch") and isinstance(value, _array_types())


def _array_types() -> tuple[type, ...]:
    """The classes of arrays of the libraries that are loaded."""
    names = [("numpy", "ndarray"), ("torch", "Tensor")]
    found = [getattr(sys.modules.get(library), name, None) for library, name in names]
    return tuple(kind for kind in found if isinstance(kind, type))


def _data(value: Any) -> Any:
    kind = type(value)
    if isinstance(value, bytearray | memoryview | array.array):
        return kind, getattr(value, "typecode", None), bytes(value)
    if kind.__module__.partition(".")[0] == "numpy":
        return kind, value.dtype.str, value.shape, value.tolist() if value.dtype.hasobject else value.tobytes()
    known = (Itself(value), value._version, value.shape, value.stride())
    if value.device.type != "cpu" or value.numel() > _SMALL_TENSOR or value.is_sparse:
        return known  # changes in place through another library's view of the memory stay unseen
    return known, str(value.dtype), repr(value.tolist())
