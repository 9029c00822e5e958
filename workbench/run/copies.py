"""Copies of a launch's arguments, so that what runs on them changes nothing of the user's."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from flydsl.binary import BinaryLaunch
from flydsl.compiler import Launch
from flydsl.simulator import Simulation


def simulate_copies(launch: Launch | BinaryLaunch, workgroup: tuple[int, int, int] = (0, 0, 0)) -> Simulation:
    """Simulate a launch on copies of its tensors in their present state, which includes the results of the launch.

    Raises as `JitFunction.simulate` and `BinaryKernel.simulate` do.
    """
    if isinstance(launch, BinaryLaunch):
        grid, block, smem = launch.grid, launch.block, launch.smem
        return launch.kernel.simulate(*on_cpu(launch.arguments), grid=grid, block=block, smem=smem, workgroup=workgroup)
    return launch.function.simulate(*on_cpu(launch.arguments), workgroup=workgroup)


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
