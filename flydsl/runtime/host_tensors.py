"""The tensors of this process, found by addresses in their memory."""

from __future__ import annotations

import gc
import sys
import weakref
from typing import Any

from flydsl.simulator.memory.buffers import Buffer

_MOST_KEPT = 64
_found: list[weakref.ref[Any]] = []
"""The tensors found last. A tensor's Python object may end before its memory does."""


def tensor_at(address: int) -> Any:
    """A torch tensor in whose memory an address lies, on any device; None if there is none."""
    torch = sys.modules.get("torch")
    if torch is None:
        return None
    for known in _found:
        tensor = known()
        if tensor is not None and _holds(tensor, address):
            return tensor
    # By type(t): isinstance would look into a weak proxy, whose object may be gone.
    tensor = next((t for t in gc.get_objects() if issubclass(type(t), torch.Tensor) and _holds(t, address)), None)
    if tensor is not None:
        remember(tensor)
    return tensor


def remember(*tensors: Any) -> None:
    """Find these tensors first: they are about to be used by their addresses. Nothing is kept alive."""
    others = [known for known in _found if (tensor := known()) is not None and not any(tensor is t for t in tensors)]
    _found[:] = [*map(weakref.ref, tensors), *others][:_MOST_KEPT]


def host_tensor_memory(address: int) -> Buffer | None:
    """The memory of the host's tensor in which an address lies, from its first to its last byte; None without one."""
    tensor = tensor_at(address)
    if tensor is None or not (tensor.device.type == "cpu" or getattr(tensor, "has_own_memory", False)):  # flydsl.gpu's
        return None
    import torch

    storage = tensor.untyped_storage()
    content = torch.empty(0, dtype=torch.uint8, device="cpu").set_(storage, 0, (storage.nbytes(),)).numpy()  # type: ignore[call-overload]
    kind = f"{str(tensor.dtype).removeprefix('torch.')}[{', '.join(map(str, tensor.shape))}]"
    return Buffer(storage.data_ptr(), content, "the memory of a tensor", 1, kind)


def _holds(tensor: Any, address: int) -> bool:
    """True if an address lies in a tensor's memory."""
    try:
        storage = tensor.untyped_storage()
        start = storage.data_ptr()
    except (NotImplementedError, RuntimeError):  # a sparse, meta or functional tensor
        return False
    return bool(start and start <= address < start + storage.nbytes())
