"""Begin and end: what is replaced in torch while a GPU poses, and put back afterwards as it was."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch.profiler
from torch.utils._pytree import tree_map

from flydsl import env
from flydsl.arch.products import Product, product_of
from flydsl.errors import ArgumentError, DeviceError
from flydsl.gpu.cuda_module import Posed
from flydsl.gpu.factories import register
from flydsl.gpu.launches import Launches
from flydsl.gpu.launches import report as report_of
from flydsl.gpu.memory import MEMORY
from flydsl.gpu.of_triton import TritonHook
from flydsl.gpu.operators import Operators
from flydsl.gpu.profiler import profile
from flydsl.gpu.streams import CLOCK
from flydsl.gpu.tensor import GpuTensor, converted, gpu_index, moved
from flydsl.runtime import device as runtime_device
from flydsl.simulator.launching import put_around

_HIP_VERSION = "7.1.0"
_MISSING = object()


class Posing:
    """A GPU that poses as torch's. `end` restores everything."""

    def __init__(self, product: Product, count: int) -> None:
        self.product, self.count = product, count
        self._before: list[tuple[Any, str, Any]] = []
        self._library: torch.library.Library | None = None
        self.launches, self.operators = Launches(), Operators(product)
        self._triton = TritonHook()

    def begin(self) -> None:
        MEMORY.current, MEMORY.name = 0, self.product.name
        MEMORY.capacity_bytes = self.product.memory_gib << 30
        CLOCK.reset()
        env.replace_everywhere({"FLYDSL_GPU_ARCH": self.product.arch})
        runtime_device.pose(True)
        put_around(self.launches)
        MEMORY.on_operator = self.operators
        for name, value in Posed(self.product, self.count).replaced().items():
            self._replace(torch.cuda, name, value)
        for name, value in _of_accelerator(self.count).items():
            self._replace(torch.accelerator, name, value)
        self._replace(torch.version, "hip", _HIP_VERSION)
        self._replace(torch.backends.cudnn, "is_acceptable", lambda tensor: False)
        for name, value in _of_tensors().items():
            self._replace(torch.Tensor, name, value)
        for name, value in _of_torch().items():
            self._replace(torch, name, value)
        self._replace(torch.profiler, "profile", profile)
        self._replace(torch.nn.Module, "_apply", _with_swapped_parameters(torch.nn.Module._apply))
        torch.serialization.register_package(5, _no_tag, _stay)
        self._library = register()
        self._triton.begin()

    def end(self) -> None:
        self._triton.end()
        for place, name, value in reversed(self._before):
            if value is _MISSING:
                delattr(place, name)
            else:
                setattr(place, name, value)
        self._before.clear()
        if self._library is not None:
            self._library._destroy()
        packages = torch.serialization._package_registry
        packages[:] = [package for package in packages if package[2] is not _stay]
        runtime_device.pose(False)
        put_around(None)
        MEMORY.on_operator = None
        env.replace_everywhere({})

    def _replace(self, place: Any, name: str, value: Any) -> None:
        self._before.append((place, name, vars(place).get(name, _MISSING)))
        setattr(place, name, value)


def _of_tensors() -> dict[str, Any]:
    """The methods of torch.Tensor that may go to a GPU. `GpuTensor` has its own."""

    def to(self: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
        return converted(self, args, kwargs)

    def cuda(self: torch.Tensor, device: Any = None, non_blocking: bool = False, **options: Any) -> torch.Tensor:
        return moved(self, gpu_index(device))

    def pin_memory(self: torch.Tensor, device: Any = None) -> torch.Tensor:
        pinned = self.detach().clone()
        pinned.is_in_pinned_memory = True  # type: ignore[attr-defined]
        return pinned

    def is_pinned(self: torch.Tensor, device: Any = None) -> bool:
        return getattr(self, "is_in_pinned_memory", False)

    return {"to": to, "cuda": cuda, "pin_memory": pin_memory, "is_pinned": is_pinned}


def _with_swapped_parameters(apply: Any) -> Any:
    """`Module._apply`, with which `Module.to` changes parameters: each stays the object that an optimizer may hold."""

    def swap_and_apply(self: torch.nn.Module, *args: Any, **options: Any) -> torch.nn.Module:
        future = torch.__future__
        before = future.get_swap_module_params_on_conversion()
        future.set_swap_module_params_on_conversion(True)
        try:
            return apply(self, *args, **options)
        finally:
            future.set_swap_module_params_on_conversion(before)

    return swap_and_apply


def _of_accelerator(count: int) -> dict[str, Any]:
    """torch.accelerator, which is torch.cuda by other names."""
    return {
        "is_available": lambda: True, "current_accelerator": lambda check_available=False: torch.device("cuda"),
        "device_count": lambda: count, "synchronize": torch.cuda.synchronize,
        "current_device_index": torch.cuda.current_device, "set_device_index": torch.cuda.set_device,
        "current_stream": torch.cuda.current_stream, "set_stream": torch.cuda.set_stream,
    }  # fmt: skip


def _of_torch() -> dict[str, Any]:
    """The functions of torch that ask CUDA's own code for more than memory."""
    make_tensor, as_tensor, generator = torch.tensor, torch.as_tensor, torch.Generator
    autocast, read, from_dlpack = torch.autocast, torch.load, torch.from_dlpack

    def tensor(data: Any, *, device: Any = None, requires_grad: bool = False, **options: Any) -> torch.Tensor:
        host = make_tensor(data, device="cpu", **options)
        return host.to(device or _default()).detach().requires_grad_(requires_grad)

    def as_a_tensor(data: Any, dtype: Any = None, device: Any = None) -> torch.Tensor:
        if isinstance(data, torch.Tensor):
            return data.to(device=device, dtype=dtype)
        return as_tensor(data, dtype=dtype, device="cpu").to(device or _default())

    def from_a_dlpack(ext_tensor: Any, **options: Any) -> torch.Tensor:
        return ext_tensor.detach() if isinstance(ext_tensor, GpuTensor) else from_dlpack(ext_tensor, **options)

    class Generator(generator):  # type: ignore[misc, valid-type]
        """A generator of the host's numbers, on the device that was asked for."""

        def __new__(cls, device: Any = "cpu") -> Any:
            made = super().__new__(cls, device="cpu")
            made._device = torch.device(device)
            return made

        @property
        def device(self) -> torch.device:
            return self._device

    class Autocast(autocast):  # type: ignore[misc, valid-type]
        """Operators in a narrower type, of a GPU as of the host: for torch's kernels its tensors are the host's."""

        def __init__(
            self, device_type: str, dtype: Any = None, enabled: bool = True, cache_enabled: Any = None
        ) -> None:
            if device_type == "cuda":
                device_type, dtype = "cpu", dtype or torch.get_autocast_dtype("cuda")
            super().__init__(device_type, dtype, enabled, cache_enabled)

    def load(f: Any, *args: Any, **options: Any) -> Any:
        _places.clear()
        return tree_map(_placed, read(f, *args, **options))

    return {
        "from_dlpack": from_a_dlpack, "tensor": tensor, "as_tensor": as_a_tensor, "Generator": Generator,
        "autocast": Autocast, "load": load,
    }  # fmt: skip


_places: dict[int, str] = {}
"""Of storages that are being read from a file: the GPU that each goes to."""


def _no_tag(storage: Any) -> None:
    """Torch's hook for a storage that is saved: each says itself where it is."""


def _stay(storage: Any, location: str) -> Any:
    """Torch's hook for a storage of a file: those of GPUs stay in host memory, and `load` makes tensors of the GPU."""
    if not location.startswith("cuda"):
        return None
    _places[storage._cdata] = location
    return storage


def _placed(value: Any) -> Any:
    """What was read from a file, on the GPU where it was, or where it is wanted."""
    if not isinstance(value, torch.Tensor) or isinstance(value, GpuTensor):
        return value
    place = _places.get(value.untyped_storage()._cdata)
    return value if place is None else value.detach().to(place).requires_grad_(value.requires_grad)


def _default() -> torch.device:
    """The device of factories that name none."""
    return torch.empty(0).device


_active: list[Posing] = []


def use(name: str, count: int = 1) -> None:
    """Pose as a GPU from now on, until `off()`.

    name: a product, such as "mi300x" or "RX 9070 XT", or an architecture. count: how many of them there are.

    Raises ArchError for an unknown name, ArgumentError where torch has a GPU of its own, DeviceError for torch before
    2.6.
    """
    off()
    if not isinstance(count, int) or not 1 <= count <= 64:
        raise ArgumentError(f"{count!r} GPUs", hint="from 1 to 64")
    if not hasattr(torch, "accelerator"):
        raise DeviceError(f"torch {torch.__version__} is too old for a GPU to pose", hint="pip install 'torch>=2.6'")
    if torch.cuda.is_available():
        raise ArgumentError(
            f"torch has a GPU here, {torch.cuda.get_device_name()}: another one cannot pose as it",
            hint="the program runs on it as it is",
        )
    posing = Posing(product_of(name), count)
    posing.begin()
    _active.append(posing)


def off() -> None:
    """Make torch what it was before `use`. Tensors of the GPU that are left stay readable, with `.cpu()`."""
    if _active:
        _active.pop().end()


@contextmanager
def pose(name: str, count: int = 1) -> Iterator[None]:
    """Pose as a GPU inside the `with` block. See `use`."""
    outer = _active[-1] if _active else None
    use(name, count)
    try:
        yield
    finally:
        off()
        if outer is not None:
            outer.begin()
            _active.append(outer)


def report() -> str:
    """The kernels that the posed GPU ran since the program began to measure time: launches, time, and what limits each.

    Raises ArgumentError if no GPU poses.
    """
    if not _active:
        raise ArgumentError("no GPU poses", hint='flydsl.gpu.use("mi300x"), or python -m flydsl.gpu mi300x script.py')
    now = _active[-1]
    return report_of(now.launches.table, now.operators.time_us, now.operators.count)


def watch() -> None:
    """Estimate the time of every launch from now on, not only from the first event that measures time on."""
    CLOCK.is_watched = True


def posed() -> Product | None:
    """The GPU that poses now."""
    return _active[-1].product if _active else None
