"""Processes that the program starts with multiprocessing: in each of them, the GPU poses as it does here.

A process that is forked has all there is. One that is spawned begins with data that says what to prepare: with that
goes an object that poses when it is read. Tensors that are sent to a process are in memory that both have, as those of
a GPU are.
"""

from __future__ import annotations

import multiprocessing.spawn
from collections.abc import Callable
from multiprocessing.reduction import ForkingPickler
from typing import Any

import torch

from flydsl.gpu.import_hook import Replacements
from flydsl.gpu.storage import host_storage_of
from flydsl.gpu.tensor import GpuTensor, on_gpu


def pose_in_children(replaced: Replacements, use: Callable[[str, int], None], name: str, count: int) -> None:
    """Let processes that are spawned begin with a GPU. use: what begins with one."""
    data_of = multiprocessing.spawn.get_preparation_data

    def with_gpu(process: str) -> dict[str, Any]:
        return {**data_of(process), "flydsl.gpu": _Posed(use, name, count)}

    replaced.replace(multiprocessing.spawn, "get_preparation_data", with_gpu)
    ForkingPickler.register(GpuTensor, _shared)
    reducers: dict[type, Any] = vars(ForkingPickler)["_extra_reducers"]
    replaced.at_the_end(lambda: reducers.pop(GpuTensor))


def _shared(tensor: GpuTensor) -> Any:
    """Reduce the tensor, for another process, to a host tensor in the same memory, which torch shares."""
    if tensor.requires_grad and not tensor.is_leaf:
        raise RuntimeError("Cowardly refusing to serialize non-leaf tensor which requires_grad")
    place = tensor.storage_offset(), tensor.size(), tensor.stride()
    host = torch.empty(0, dtype=tensor.dtype, device="cpu").set_(host_storage_of(tensor), *place)
    return _received, (host, tensor.gpu_number, tensor.requires_grad, tensor.own_attributes())


def _received(host: torch.Tensor, index: int, requires_grad: bool, own: dict[str, Any]) -> GpuTensor:
    tensor = on_gpu(host, index)
    vars(tensor).update(own)
    return tensor.requires_grad_(requires_grad)  # type: ignore[return-value]


class _Posed:
    """Poses where it is unpickled."""

    def __init__(self, use: Callable[[str, int], None], name: str, count: int) -> None:
        self._use, self._gpu = use, (name, count)

    def __reduce__(self) -> Any:
        return self._use, self._gpu
