"""Tensors on "cuda" where torch was built without it: the operators that factories come down to.

`torch.randn(..., device="cuda")` allocates with `aten::empty` or `aten::empty_strided` and fills what it gets. These
two are registered for CUDA as long as a GPU poses, for every thread, and the few that do not allocate so; so are the
operators that only GPUs have.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from flydsl.gpu import autocast
from flydsl.gpu.gpu_only_operators import WIDER
from flydsl.gpu.memory import MEMORY, gpu_index
from flydsl.gpu.tensor import GpuTensor, on_gpu


def register() -> torch.library.Library:
    """Register them. `_destroy()` of what is returned takes that back."""
    library = torch.library.Library("aten", "IMPL")
    library.impl("empty.memory_format", _empty, "CUDA")
    library.impl("empty_strided", _empty_strided, "CUDA")
    for name in ("tril_indices", "triu_indices"):
        library.impl(name, _on_the_gpu(getattr(torch, name)), "CUDA")
    autocast.register(library, lambda value: isinstance(value, GpuTensor))
    for name, product in WIDER.items():
        library.impl(name, product, "CPU")
    return library


def _empty(
    size: Any,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = None,
    memory_format: Any = None,
) -> torch.Tensor:
    index = _index(device)
    _check(size, dtype, index)
    chosen = torch.contiguous_format if memory_format is None else memory_format
    with _room_on_the_host():
        return on_gpu(torch.empty(size, dtype=dtype, device="cpu", memory_format=chosen), index)


def _empty_strided(
    size: Any, stride: Any, dtype: Any = None, layout: Any = None, device: Any = None, pin_memory: Any = None
) -> torch.Tensor:
    index = _index(device)
    _check(size, dtype, index)
    with _room_on_the_host():
        return on_gpu(torch.empty_strided(size, stride, dtype=dtype, device="cpu"), index)


@contextmanager
def _room_on_the_host() -> Iterator[None]:
    """Raise torch.OutOfMemoryError, too, where it is the host that has no more memory."""
    try:
        yield
    except torch.OutOfMemoryError:
        raise
    except RuntimeError as error:
        if "DefaultCPUAllocator" not in str(error):
            raise
        raise torch.OutOfMemoryError(
            f"HIP out of memory. The memory of a posed GPU is the host's, which has no more: {error}"
        ) from None


def _on_the_gpu(make: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    """A factory of the host's, for a GPU."""

    def made(*sizes: int, device: Any = None, pin_memory: Any = None, **options: Any) -> torch.Tensor:
        return on_gpu(make(*sizes, device="cpu", **options), _index(device))

    return made


def _index(device: Any) -> int:
    index = gpu_index(device)
    return 0 if index is None else index


def _check(size: Any, dtype: Any, index: int) -> None:
    """Refuse before the host allocates what the GPU does not have."""
    count = 1
    for extent in size:
        count *= int(extent)
    MEMORY.check(count * (dtype or torch.get_default_dtype()).itemsize, index)
