"""What a tensor of a posed GPU says of itself: where it is, its text, and how it is pickled and copied."""

from __future__ import annotations

from collections import OrderedDict
from copy import deepcopy
from typing import Any

import torch
from torch._utils import _rebuild_device_tensor_from_cpu_tensor

from flydsl.gpu.memory import MOST_GPUS

_DEVICES = tuple(torch.device("cuda", index) for index in range(MOST_GPUS))


class PlacedTensor(torch.Tensor):
    """A tensor in host memory that is on the GPU `gpu_number` for the program: the base of `GpuTensor`."""

    has_own_memory = True  # FlyDSL's launchers take it as it is
    gpu_number = 0

    @property
    def device(self) -> torch.device:  # type: ignore[override]
        return _DEVICES[self.gpu_number]

    @property
    def is_cuda(self) -> bool:  # type: ignore[override]
        return True

    @property
    def is_cpu(self) -> bool:  # type: ignore[override]
        return False

    def get_device(self) -> int:
        return self.gpu_number

    def numpy(self, *, force: bool = False) -> Any:
        if force:
            return self.detach().cpu().numpy()
        raise TypeError(
            f"can't convert {self.device} device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host "
            "memory first."
        )

    def tolist(self) -> Any:
        return self.detach().cpu().tolist()

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return self.numpy()

    def pin_memory(self, device: Any = None) -> torch.Tensor:
        raise RuntimeError(f"cannot pin '{self.type()}' only dense CPU tensors can be pinned")

    def is_pinned(self, device: Any = None) -> bool:
        return False

    def record_stream(self, stream: Any) -> None:
        pass

    def __format__(self, spec: str) -> str:
        return format(self.item(), spec) if self.dim() == 0 else object.__format__(self, spec)

    def __repr__(self, *, tensor_contents: Any = None) -> str:  # type: ignore[override]
        host = self.detach().cpu()
        text = repr(host)
        content = text[: -len(")")]
        head, comma, dtype = content.rpartition(", dtype=")
        content, dtype = (head, comma + dtype) if comma else (content, "")
        about = f", grad_fn=<{type(self.grad_fn).__name__}>" if self.grad_fn is not None else ""
        about = about or (", requires_grad=True" if self.requires_grad else "")
        kind = "Parameter containing:\n" if isinstance(self, torch.nn.Parameter) else ""
        return f"{kind}{content}, device='{self.device}'{dtype}{about})"

    def __reduce_ex__(self, protocol: Any) -> Any:
        own = self.own_attributes()
        if own == {"_is_param": True}:
            return torch._utils._rebuild_parameter, (self.detach(), self.requires_grad, OrderedDict())
        host = self.detach().cpu(), self.dtype, str(self.device), self.requires_grad
        return (_rebuilt, (*host, own)) if own else (_rebuild_device_tensor_from_cpu_tensor, host)

    def own_attributes(self) -> dict[str, Any]:
        """The attributes that the program, or torch.nn, has given to this tensor."""
        return {name: value for name, value in vars(self).items() if name != "gpu_number"}

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        if not self.is_leaf:
            raise RuntimeError(
                "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the "
                "moment."
            )
        if id(self) in memo:
            return memo[id(self)]
        with torch.no_grad():
            copy = torch.empty_strided(self.size(), self.stride(), dtype=self.dtype, device=self.device).copy_(self)
        memo[id(self)] = copy.requires_grad_(self.requires_grad)
        vars(copy).update(deepcopy(self.own_attributes(), memo))
        if self.grad is not None:
            copy.grad = self.grad.__deepcopy__(memo)
        return copy


def _rebuilt(
    host: torch.Tensor, dtype: torch.dtype, device: str, requires_grad: bool, own: dict[str, Any]
) -> torch.Tensor:
    """A tensor that was written to a file with attributes of its own."""
    found = _rebuild_device_tensor_from_cpu_tensor(host, dtype, device, requires_grad)
    vars(found).update(own)
    return found
