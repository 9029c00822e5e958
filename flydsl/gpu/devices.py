"""The devices of a function's operands: which there are, whether they go together, and where the results belong."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch._C._functorch import is_functorch_wrapped_tensor

from flydsl.gpu.memory import gpu_index
from flydsl.gpu.placed import PlacedTensor

_OF_SEVERAL_DEVICES = frozenset(
    {
        "copy_", "__getitem__", "__setitem__", "index_put", "index_put_", "index", "set_", "type_as", "new_tensor",
        "tensor_split", "is_set_to", "result_type", "__set__", "pack_padded_sequence", "_pack_padded_sequence",
        "_pad_packed_sequence",
        "_has_compatible_shallow_copy_type", "is_same_size", "sym_constrain_range",
    }
)  # fmt: skip
"""Functions that take tensors of several devices: copies, indices from the host, and questions about tensors."""

_RECURRENT = frozenset({"lstm", "gru", "rnn_tanh", "rnn_relu"})
"""Functions that take the lengths of packed sequences, which are the host's on any device."""

_TRACING = tuple(getattr(torch._C._TorchDispatchModeKey, name) for name in ("FAKE", "PROXY", "FUNCTIONAL"))
_DISPATCH_OF_TENSORS = torch.Tensor.__torch_dispatch__


def tensors_in(values: Iterable[Any]) -> Iterable[torch.Tensor]:
    """The tensors among values, and in lists and tuples of them."""
    for value in values:
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, list | tuple):
            yield from tensors_in(value)


def gpu_among(values: Iterable[Any]) -> int | None:
    """The number of the GPU that the first tensor of one is on; None without such a tensor."""
    return next((tensor.gpu_number for tensor in tensors_in(values) if isinstance(tensor, PlacedTensor)), None)


def device_of(func: Any, args: Any, kwargs: dict[str, Any], host_is_asked: bool) -> tuple[int | None, dict[str, Any]]:
    """The GPU that an operator's results are on, None for the host; and its keywords, as the host takes them.

    host_is_asked: whether the function that calls the operator was asked for a result on the host.
    """
    index = gpu_among(args)
    if kwargs.get("device") is not None:
        there = gpu_index(kwargs["device"])
        if there is None and torch.device(kwargs["device"]).type != "cpu":
            return None, kwargs  # "meta", which has no memory
        if there is None and not host_is_asked:  # C++ asks for the device that it takes an operand to be on
            there = index
        return there, {**kwargs, "device": "cpu"}
    if func._schema.name == "aten::copy_":
        return None, kwargs  # it returns its first operand
    return gpu_among(kwargs.values()) if index is None else index, kwargs


def check_devices(name: str, args: Any, kwargs: dict[str, Any]) -> None:
    """Raise torch's RuntimeError if operands of the function `name` are on devices that it does not take together."""
    if name in _RECURRENT:
        _check_one_device(value for value in args if getattr(value, "dtype", None) is not torch.int64)
    elif name not in _OF_SEVERAL_DEVICES:
        _check_one_device((*args, *kwargs.values()))


def _check_one_device(values: Iterable[Any]) -> None:
    """Raise torch's RuntimeError for tensors of several devices. A number of the host in a tensor goes with any."""
    first: torch.device | None = None
    for tensor in tensors_in(values):
        if not _has_memory(tensor) or is_functorch_wrapped_tensor(tensor):
            continue
        if tensor.dim() or isinstance(tensor, PlacedTensor):
            device = tensor.device
            if first is None:
                first = device
            elif device != first:
                one, other = sorted((first, device), key=lambda found: found.type != "cuda")
                raise RuntimeError(
                    f"Expected all tensors to be on the same device, but found at least two devices, {one} and {other}!"
                )


def is_traced(*values: Any) -> bool:
    """True if torch traces, or one of some values is a tensor without memory: it needs none of a GPU's."""
    if any(torch._C._get_dispatch_mode(key) is not None for key in _TRACING):
        return True
    return any(isinstance(value, torch.Tensor) and not _has_memory(value) for value in values)


def _has_memory(tensor: torch.Tensor) -> bool:
    """True for tensors of torch's own class or a GPU's; others stand for what a trace or a program's class computes."""
    return isinstance(tensor, PlacedTensor) or type(tensor).__torch_dispatch__ is _DISPATCH_OF_TENSORS
