"""Arguments of `fx.Pointer` parameters: a tensor of which the kernel gets the address alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NoReturn

from flydsl.dialect.location import user_location
from flydsl.dialect.types import PointerType
from flydsl.errors import ArgumentError


@dataclass(frozen=True)
class PointerKey:
    """The static part of a pointer argument, in the form of a `TensorKey` without a layout."""

    element: str
    device: str

    @property
    def type(self) -> PointerType:
        return PointerType(self.element, "global")

    def leaves(self, tensor: Any) -> list[int]:
        """Nothing but the address is passed."""
        return []


def from_c_void_p(dtype: Any, address: Any) -> NoReturn:
    """Always raises ArgumentError: an address alone has no bounds that the simulator could check."""
    raise ArgumentError(
        "from_c_void_p is not there yet: an address alone has no bounds to check, and no device",
        at=user_location(),
        hint="pass the tensor itself; a parameter fx.Pointer takes one, and the kernel gets its address",
    )
