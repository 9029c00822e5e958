"""Arguments of `fx.Pointer` parameters: memory that the kernel receives as an address only.

They are tensors, or memory at an address: `from_c_void_p(fx.Uint8, tensor.data_ptr())`. An address does not tell the
size of the memory, so the tensor that contains it is searched among those that Python has. Accesses are checked against
its end.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any

from flydsl.compiler.arguments.argument import PointerArgument, pointer_argument
from flydsl.dialect.location import argument_error
from flydsl.expr.memory.tensors import AddressSpace
from flydsl.expr.tracing.operands import element_name
from flydsl.runtime.host_tensors import tensor_at


@dataclass(frozen=True)
class MemoryAt:
    """The memory at an address, as a launcher takes it. memory: a torch tensor of bytes that begins at the address."""

    argument: PointerArgument
    memory: Any


def from_c_void_p(
    elem_type: Any, address: Any, *, address_space: Any = AddressSpace.Global, assumed_align: int | None = None
) -> MemoryAt:
    """The memory at an address, as an argument of an `fx.Pointer` parameter.

    address: an int, or a `ctypes.c_void_p`; 0 or None for no memory. assumed_align: in bytes, promised by the author.
    Raises ArgumentError if no tensor of this process has memory there.
    """
    import torch

    if str(address_space) != str(AddressSpace.Global):
        raise argument_error(
            f"from_c_void_p in {address_space} memory: a launcher passes global memory",
            "omit address_space; a kernel allocates LDS with fx.SharedAllocator()",
        )
    number = address.value if isinstance(address, ctypes.c_void_p) else address
    if not (number is None or (isinstance(number, int) and number >= 0)):
        raise argument_error(f"from_c_void_p: the address must be an int, got {address!r}", "pass tensor.data_ptr()")
    if assumed_align is not None and (assumed_align < 1 or assumed_align & (assumed_align - 1)):
        raise argument_error(f"assumed_align must be a power of two, got {assumed_align!r}", "pass 16, for example")
    memory = _memory_at(number) if number else torch.empty(0, dtype=torch.uint8)
    if number and assumed_align and number % assumed_align:
        raise argument_error(
            f"{number:#x} is not a multiple of assumed_align={assumed_align}",
            "align the memory, or pass a smaller assumed_align",
        )
    return MemoryAt(pointer_argument(element_name(elem_type), str(memory.device), assumed_align), memory)


def _memory_at(address: int) -> Any:
    """The memory that begins at an address, as a tensor of bytes."""
    import torch

    tensor = tensor_at(address)
    if tensor is None:
        raise argument_error(
            f"no tensor has memory at {address:#x}",
            "keep the tensor alive until the launch, or pass the tensor itself, which an fx.Pointer takes",
        )
    storage = tensor.untyped_storage()
    offset = address - storage.data_ptr()
    whole = torch.empty(0, dtype=torch.uint8, device=tensor.device)
    return whole.set_(storage, offset, (storage.nbytes() - offset,))  # type: ignore[call-overload]
