"""The arguments of a binary kernel, as bytes at the offsets that the code object's metadata gives.

The metadata tells pointers from values, and their sizes. What a value's bytes mean it does not tell: where the LLVM IR
of the kernel is known, its types do (`kinds_of`).
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any

import numpy as np

from flydsl.codegen.llvm_bugs.ir_text import kernels
from flydsl.errors import ArgumentError
from flydsl.hsaco import KernelArg
from flydsl.runtime.device import is_posing
from flydsl.runtime.host_tensors import host_tensor_memory
from flydsl.runtime.interface import NamedTensor
from flydsl.simulator.loading import Struct, packed
from flydsl.simulator.memory.buffers import Memory
from flydsl.simulator.memory.gaps import rows_of

# LLVM's names of number types -> how `struct` packs them. An integer takes any number of as many bits, signed or not.
_FLOATS = {"half": "<e", "float": "<f", "double": "<d"}
_INTEGERS = {"i1": 1, "i8": 1, "i16": 2, "i32": 4, "i64": 8}


def new_memory() -> Memory:
    """Memory of a launch, whose tensors may hold the addresses of others."""
    return Memory(find=host_tensor_memory)


def bytes_of(kinds: Mapping[int, str], parameter: KernelArg, value: Any, memory: Memory) -> bytes:
    """The bytes of an argument. kinds: LLVM's types of the parameters by offset, where they are known.

    Raises ArgumentError for what does not fit.
    """
    kind = kinds.get(parameter.offset, "")
    if hasattr(value, "data_ptr"):
        return struct.pack("<Q", _address(parameter, value, memory))
    if value is None and (parameter.kind == "global_buffer" or kind == "ptr"):
        return bytes(parameter.size)
    if parameter.kind == "dynamic_shared_pointer":
        kind = "i32"  # where it begins in the dynamic LDS
    if isinstance(value, bool | int | float) and kind:
        return _number(parameter, kind, value)
    if isinstance(value, np.ndarray | np.generic | bytes | Struct | int | float):
        return packed(parameter, value, memory)
    wanted = "a tensor on the CPU" if parameter.kind == "global_buffer" else f"a number of {parameter.size} bytes"
    raise ArgumentError(
        f"{parameter.name} must be {wanted}, got {value!r:.80} ({type(value).__name__})",
        hint="pass a torch tensor or numpy array for a pointer; a number, np.float16(1) or bytes for a value",
    )


def _address(parameter: KernelArg, tensor: Any, memory: Memory) -> int:
    if parameter.kind != "global_buffer" and parameter.size != 8:
        kind = "an offset in LDS" if parameter.kind == "dynamic_shared_pointer" else "a number"
        raise ArgumentError(f"{parameter.name} must be {kind} of {parameter.size} bytes, got a tensor")
    if tensor.device.type != "cpu" and not is_posing():
        raise ArgumentError(
            f"{parameter.name} is on {tensor.device}; code objects are launched on the simulator",
            hint="move it with .cpu()",
        )
    argument = NamedTensor(parameter.name, tensor)
    memory.owners.append(tensor)
    return memory.map(
        tensor.data_ptr(),
        argument.size_bytes,
        name=parameter.name,
        element_bytes=tensor.element_size(),
        label=argument.label,
        rows=rows_of(tensor.shape, tensor.stride(), tensor.element_size()),
        offset_bytes=tensor.storage_offset() * tensor.element_size(),
    )


def _number(parameter: KernelArg, kind: str, value: float) -> bytes:
    """A Python number as the kernel's parameter has it."""
    if kind == "ptr":
        raise ArgumentError(
            f"{parameter.name} is a pointer and must be a tensor, got {value!r}", hint="pass None for a null pointer"
        )
    if kind == "bfloat":
        return _bfloat16(value)
    try:
        if kind in _FLOATS:
            return struct.pack(_FLOATS[kind], value)
        if kind in _INTEGERS and value == int(value):
            return _integer(int(value), _INTEGERS[kind])
    except (struct.error, OverflowError, ValueError):
        raise ArgumentError(f"{parameter.name} must be of type {kind}, which {value!r} does not fit") from None
    raise ArgumentError(
        f"{parameter.name} must be of type {kind}, got {value!r}",
        hint="pass an integer for iN; bytes or a Struct for anything but a number",
    )


def _bfloat16(value: float) -> bytes:
    """The upper half of the f32, rounded to the nearest, ties to even."""
    bits = int(np.float32(value).view(np.uint32))
    rounded = bits if np.isnan(value) else bits + 0x7FFF + (bits >> 16 & 1)
    return (rounded >> 16 & 0xFFFF).to_bytes(2, "little")


def _integer(value: int, size: int) -> bytes:
    return value.to_bytes(size, "little", signed=value < 0)


def kinds_of(llvm_ir: str) -> Mapping[str, tuple[str, ...]]:
    """The parameter types of the kernels of LLVM IR text, by name: `ptr`, `i32`, `float`; empty for aggregates.

    >>> kinds_of("define protected amdgpu_kernel void @add(ptr addrspace(1) noundef %0, float %f, i32 %n) #0 {")
    {'add': ('ptr', 'float', 'i32')}
    """
    return {name: tuple(map(_kind, parameters)) for name, parameters, _ in kernels(llvm_ir)}


def _kind(parameter: str) -> str:
    word = parameter.split(" ", 1)[0].rstrip(",")
    if word == "ptr":
        return "" if "byref(" in parameter else "ptr"
    return word if word in _FLOATS or word in _INTEGERS or word == "bfloat" else ""
