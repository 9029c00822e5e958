"""The storage of a posed GPU's tensor, as the program sees it: the bytes are the host's, and the device is the GPU.

`tensor.untyped_storage()` makes one of torch's own storage when it is asked for; torch's C++ goes on taking it as what
it is.
"""

from __future__ import annotations

from typing import Any

import torch


class GpuStorage(torch.UntypedStorage):
    """The memory of the posed GPU `gpu_number`."""

    gpu_number = 0

    def __new__(cls, *args: Any, device: Any = None, **options: Any) -> GpuStorage:
        """Memory as large as a storage of this GPU, for `clone` and copies."""
        made: GpuStorage = super().__new__(cls, *args, **options)
        if device is not None:
            made.gpu_number = torch.device(device).index or 0
        return made

    @property
    def device(self) -> torch.device:  # type: ignore[override]
        return torch.device("cuda", self.gpu_number)

    def __reduce__(self) -> Any:
        content = torch.empty(0, dtype=torch.uint8, device="cpu")
        return _read, (content.set_(torch.UntypedStorage(self.nbytes()).copy_(self)), self.gpu_number)

    def share_memory_(self, *args: Any, **options: Any) -> GpuStorage:
        """Move the bytes to memory that processes share, which those of a GPU are."""
        as_host: Any = self
        as_host.__class__ = torch.UntypedStorage
        try:
            as_host.share_memory_(*args, **options)
        finally:
            as_host.__class__ = GpuStorage
        return self


def _on_gpu(host: Any, gpu_number: int) -> Any:
    """A storage as one of a GPU."""
    host.__class__, host.gpu_number = GpuStorage, gpu_number
    return host


def _read(content: torch.Tensor, gpu_number: int) -> Any:
    """A storage that was written to a file."""
    return _on_gpu(content.untyped_storage(), gpu_number)


def host_storage_of(tensor: torch.Tensor) -> Any:
    """The storage of a tensor of a posed GPU as torch's own code takes it: on the host."""
    with torch._C.DisableTorchFunctionSubclass():
        found: Any = torch.Tensor.untyped_storage(tensor)
    found.__class__ = torch.UntypedStorage
    return found


def storage_of(tensor: torch.Tensor, gpu_number: int) -> GpuStorage:
    """The storage of a tensor of a posed GPU."""
    found: GpuStorage = _on_gpu(host_storage_of(tensor), gpu_number)
    return found


def storage_to(move: Any) -> Any:
    """`UntypedStorage.to`, and so `.cuda()`, that copies to a posed GPU as well. move: torch's own."""

    def to(self: Any, *, device: Any, non_blocking: bool = False) -> Any:
        there = torch.device(device)
        if there.type != "cuda" or self.device == there:
            return move(self, device=there, non_blocking=non_blocking)
        return _on_gpu(torch.UntypedStorage(self.nbytes()).copy_(self), there.index or 0)

    return to
