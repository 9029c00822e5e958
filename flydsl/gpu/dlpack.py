"""DLPack: a capsule of a posed GPU's memory says that it is a GPU's, and becomes a tensor of that GPU again.

Torch's C++ takes the memory for the host's, and writes so into the capsule; then numpy would read it without complaint.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import torch
import torch.utils.dlpack

from flydsl.gpu.import_hook import Replacements
from flydsl.gpu.memory import MEMORY, gpu_index
from flydsl.gpu.tensor import GpuTensor, on_gpu

_HOST, _ROCM = 1, 10
"""Kinds of devices, as DLPack numbers them."""
_OFFSETS = {b"dltensor": 8, b"dltensor_versioned": 40}
"""Of the device in what a capsule of each name points to (dlpack.h), in bytes."""


class _Device(ctypes.Structure):
    _fields_ = (("kind", ctypes.c_int32), ("number", ctypes.c_int32))


_is_valid = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_IsValid", ctypes.pythonapi))
_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)


def replace_capsules(replaced: Replacements) -> None:
    """Let torch's functions of capsules heed the device of a posed GPU's tensors."""
    functions: dict[str, Callable[[Any], Any]] = {
        "_to_dlpack": _written, "_to_dlpack_versioned": _written, "to_dlpack": _written, "_from_dlpack": _read,
        "_torchDeviceToDLDevice": _numbered,
    }  # fmt: skip
    for place in (torch, torch.utils.dlpack, torch._C):
        for name, changed in functions.items():
            if name in vars(place):
                replaced.replace(place, name, changed(vars(place)[name]))


def _written(make: Callable[..., Any]) -> Callable[..., Any]:
    """A function that makes capsules. make: torch's own."""

    def to_dlpack(tensor: torch.Tensor, *, dl_device: tuple[int, int] | None = None, **options: Any) -> Any:
        if dl_device is not None:
            options["dl_device"] = dl_device
        if not isinstance(tensor, GpuTensor):
            return make(tensor, **options)
        if dl_device not in (None, (_ROCM, tensor.gpu_number)):
            if options.get("copy") is False:
                raise ValueError(f"cannot move tensor from {tensor.device} to another device without copying")
            return make(tensor.cpu(), **options)
        options.pop("dl_device", None)
        if MEMORY.waiting:
            MEMORY.waiting.before_access((tensor,))
        capsule = make(tensor, **options)
        device = _device_in(capsule)
        if device is not None:
            device.kind, device.number = _ROCM, tensor.gpu_number
        return capsule

    return to_dlpack


def _read(read: Callable[[Any], torch.Tensor]) -> Callable[[Any], torch.Tensor]:
    """The function that makes a tensor of a capsule. read: torch's own."""

    def from_dlpack(capsule: Any) -> torch.Tensor:
        device = _device_in(capsule)
        if device is None or device.kind != _ROCM:
            return read(capsule)
        number = device.number
        device.kind, device.number = _HOST, 0
        found = read(capsule)
        storage = MEMORY.storage_at(found.data_ptr())
        if storage is not None:  # so that the memory counts once, and launches that wait for it are carried out
            offset = (found.data_ptr() - storage.data_ptr()) // found.element_size()
            found.set_(storage, offset, found.shape, found.stride())
        return on_gpu(found, number)

    return from_dlpack


def _numbered(number: Callable[[torch.device], tuple[int, int]]) -> Callable[[torch.device], tuple[int, int]]:
    """The function for a device as DLPack numbers it, whose GPUs would be CUDA's. number: torch's own."""

    def device_numbers(device: torch.device) -> tuple[int, int]:
        index = gpu_index(device)
        return number(device) if index is None else (_ROCM, index)

    return device_numbers


def _device_in(capsule: Any) -> _Device | None:
    """The device that a capsule names, to be read and written; None if it is no capsule that may be read."""
    for name, offset in _OFFSETS.items():
        if _is_valid(capsule, name):
            return _Device.from_address(_pointer(capsule, name) + offset)
    return None
