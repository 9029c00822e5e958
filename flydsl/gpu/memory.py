"""The memory of posed GPUs: what is allocated, and that it ends at the GPU's size rather than the host's."""

from __future__ import annotations

import threading
import weakref
from collections import Counter, deque
from collections.abc import Callable
from typing import Any

import torch


class _Thread(threading.local):
    """current: the number of the GPU that a thread is on, the first one as it begins."""

    current = 0


_MOST_ADDRESSED = 64

MOST_GPUS = 64
"""The GPUs that may pose at once."""


class GpuMemory:
    """Bytes of each GPU that are allocated, and the most that were. A storage is freed when torch frees it.

    refused: how many allocations did not fit.

    gpus: how many there are. current: the GPU that the calling thread is on. changes: how often memory was allocated or
    written, by torch or a launch. captured: what a graph that is being captured has to do again, None outside of one.
    on_operator: told of every operator of torch, with its operands, keywords and results. on_copy: of the bytes that go
    from or to the host.
    waiting: launches of a benchmark that are not carried out yet (`flydsl.gpu.waiting`), false if there are none.
    put_off: lets an operator of a benchmark wait (`flydsl.gpu.put_off`). is_benchmark: whether one runs.
    products_per_sum: of matrices, what the GPU adds at once (`Arch.products_per_sum`).
    launched: whether there was a launch since a program asked for an address.
    """

    def __init__(self) -> None:
        self.changes = 0
        self.waiting: Any = ()
        self.is_benchmark = False
        self.put_off: Callable[[Any, Any, Any, int | None], Any] | None = None
        self._thread = _Thread()
        self.capacity_bytes = 0
        self.gpus = MOST_GPUS
        self.products_per_sum: int | None = None
        self.captured: list[Callable[[], Any]] | None = None
        self.on_copy: Callable[[int], None] | None = None
        self.on_operator: Callable[[Any, Any, Any, Any], None] | None = None
        self.allocated: Counter[int] = Counter()
        self.peak: Counter[int] = Counter()
        self.refused: Counter[int] = Counter()
        self.launched = False
        self._addressed: deque[torch.Tensor] = deque(maxlen=_MOST_ADDRESSED)
        self._storages: dict[int, weakref.ref[Any]] = {}
        self._pinned: dict[int, weakref.ref[Any]] = {}

    @property
    def current(self) -> int:
        return self._thread.current

    @current.setter
    def current(self, index: int) -> None:
        self._thread.current = index

    def count(self, tensor: torch.Tensor, index: int) -> None:
        """Count a tensor's memory as a GPU's. Raises torch.OutOfMemoryError where it has no more."""
        if tensor.layout is not torch.strided or torch._C._functorch.is_functorch_wrapped_tensor(tensor):
            return  # a sparse one, or one of torch.func: what is in it are tensors
        storage = tensor.untyped_storage()
        key, size = storage._cdata, storage.nbytes()
        if not size or key in self._storages:
            return
        self.check(size, index)
        self.changes += 1
        self.allocated[index] += size
        self.peak[index] = max(self.peak[index], self.allocated[index])
        self._storages[key] = weakref.ref(storage, lambda _: self._freed(key, index, size))

    def storage_at(self, address: int) -> Any:
        """The storage of a GPU that an address is in; None if there is none."""
        storages = [storage for found in self._storages.values() if (storage := found()) is not None]
        return next((each for each in storages if 0 <= address - each.data_ptr() < each.nbytes()), None)

    def check(self, size_bytes: int, index: int) -> None:
        """Raise torch.OutOfMemoryError if that number of bytes does not fit."""
        free = self.capacity_bytes - self.allocated[index]
        if size_bytes > free:
            self.refused[index] += 1
            raise torch.OutOfMemoryError(
                f"HIP out of memory. Tried to allocate {_amount(size_bytes)}. GPU {index} has a total capacity of "
                f"{_amount(self.capacity_bytes)} of which {_amount(free)} is free. Of the allocated memory "
                f"{_amount(self.allocated[index])} is allocated by PyTorch."
            )

    def hold(self, tensor: torch.Tensor) -> None:
        """Keep a tensor whose address a program asked for until it asks for another's after the next launch.

        `kernel(x.contiguous().data_ptr())` is right on a GPU, where torch's allocator keeps what was freed for later.
        """
        if self.launched:
            self._addressed.clear()
            self.launched = False
        self._addressed.append(tensor)

    def held(self) -> tuple[torch.Tensor, ...]:
        """The tensors that `hold` keeps now: a graph that is captured keeps them, too."""
        return tuple(self._addressed)

    def pin(self, tensor: torch.Tensor) -> None:
        """Call the memory of a tensor of the host pinned."""
        storage = tensor.untyped_storage()
        key = storage._cdata
        self._pinned[key] = weakref.ref(storage, lambda _: self._pinned.pop(key))

    def is_pinned(self, tensor: torch.Tensor) -> bool:
        return tensor.layout is torch.strided and tensor.untyped_storage()._cdata in self._pinned

    def _freed(self, key: int, index: int, size: int) -> None:
        del self._storages[key]
        self.allocated[index] -= size


def _amount(size_bytes: int) -> str:
    """Bytes as torch writes them.

    >>> _amount(3 << 30), _amount(1 << 20)
    ('3.00 GiB', '1.00 MiB')
    """
    return f"{size_bytes / 2**30:.2f} GiB" if size_bytes >= 2**30 else f"{size_bytes / 2**20:.2f} MiB"


MEMORY = GpuMemory()


def gpu_index(device: Any) -> int | None:
    """The number of the GPU that a device names; None for the host. "cuda" and None are the current GPU.

    >>> gpu_index("cuda:1"), gpu_index(torch.device("cpu"))
    (1, None)
    """
    if device is None:
        return MEMORY.current
    if not isinstance(device, int):
        device = torch.device(device)
        if device.type != "cuda":
            return None
        if device.index is None:
            return MEMORY.current
        device = device.index
    if not 0 <= device < MEMORY.gpus:
        raise RuntimeError(f"HIP error: invalid device ordinal: {device}; there are {MEMORY.gpus} GPUs")
    return device


_OF_BYTES = ("allocated_bytes", "active_bytes", "requested_bytes", "reserved_bytes")


def stats(index: int) -> dict[str, Any]:
    """`torch.cuda.memory_stats`: of bytes, what there is and the most that there was; nothing is kept in reserve."""
    found = {f"{name}.all.current": MEMORY.allocated[index] for name in _OF_BYTES}
    found |= {f"{name}.all.peak": MEMORY.peak[index] for name in _OF_BYTES}
    inactive = {f"inactive_split{kind}.all.{when}": 0 for kind in ("", "_bytes") for when in ("current", "peak")}
    return {**found, **inactive, "num_alloc_retries": 0, "num_ooms": MEMORY.refused[index]}
