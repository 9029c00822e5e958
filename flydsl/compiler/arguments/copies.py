"""Copies of a launch's arguments, so that what runs on them changes nothing of the user's."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any


def on_cpu(values: Iterable[Any]) -> list[Any]:
    """The arguments with tensors copied to the CPU: sizes, strides and shared storage are preserved."""
    storages: dict[int, Any] = {}
    return [_copied(value, storages) for value in values]


def _copied(value: Any, storages: dict[int, Any]) -> Any:
    import torch

    if isinstance(value, torch.Tensor):
        storage = value.untyped_storage()
        if storage.data_ptr() not in storages:
            storages[storage.data_ptr()] = storage.cpu() if storage.device.type != "cpu" else storage.clone()
        copy = torch.empty(0, dtype=value.dtype)
        return copy.set_(storages[storage.data_ptr()], value.storage_offset(), value.shape, value.stride())
    if isinstance(getattr(value, "tensor", None), torch.Tensor):
        return replace(value, tensor=_copied(value.tensor, storages))
    return value
