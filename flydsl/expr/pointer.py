"""Pointers to elements, as values of a program."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any

from mlir import ir

from flydsl.dialect.types import ADDRESS_SPACES, BUFFER, PointerType
from flydsl.expr.numeric import numeric_class
from flydsl.expr.typing import FlyValue, Scalar

if TYPE_CHECKING:
    from flydsl.expr.typing import Tensor


class AddressSpace(str, Enum):
    """Where memory lies, by the names of the fly dialect."""

    Generic = "generic"
    Global = "global"
    Shared = "shared"
    Register = "register"
    BufferDesc = BUFFER

    def __str__(self) -> str:
        return str(self.value)

    def __int__(self) -> int:
        return ADDRESS_SPACES.index(self.value)


class Pointer(FlyValue):
    """The address of an element. `p + n` is `n` elements further; `p[n]` reads and `p[n] = v` writes there."""

    type: PointerType

    def __init__(self, value: ir.Value) -> None:
        self.value = value

    @property
    def dtype(self) -> Scalar:
        """The scalar type of the elements."""
        return numeric_class(self.type.element)

    element_type = dtype

    @property
    def address_space(self) -> str:
        """`global`, `shared`, `register` or a buffer's."""
        return self.type.space

    memspace = address_space

    @property
    def alignment(self) -> int:
        """What is known about the address: it is a multiple of this many bytes."""
        return self.type.known_alignment

    def __add__(self, offset: Any) -> Pointer:
        from flydsl.expr import primitive

        return primitive.add_offset(self, offset)

    def view(self, layout: Any) -> Tensor:
        """The memory from here on, seen through a layout."""
        from flydsl.expr import primitive

        return primitive.make_view(self, layout)

    def load(self, result_type: Any = None) -> Any:
        """The element at the address; a vector of them where `result_type` is a vector type."""
        from flydsl.expr import primitive

        return primitive.ptr_load(self, result_type)

    def store(self, value: Any) -> None:
        """Write the element at the address."""
        from flydsl.expr import primitive

        primitive.ptr_store(value, self)

    def __getitem__(self, offset: Any) -> Any:
        return (self + offset).load()

    def __setitem__(self, offset: Any, value: Any) -> None:
        (self + offset).store(value)
