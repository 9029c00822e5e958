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


def storage_of(tensor: torch.Tensor, gpu_number: int) -> GpuStorage:
    """The storage of a tensor of a posed GPU."""
    with torch._C.DisableTorchFunctionSubclass():
        found: Any = torch.Tensor.untyped_storage(tensor)
    if type(found) is not GpuStorage:
        found.__class__ = GpuStorage
        found.gpu_number = gpu_number
    return found
