"""Stand-ins for functions of torch, of its tensors, modules and files, while a GPU poses."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import torch
from torch.utils._pytree import tree_map

from flydsl.errors import DeviceError
from flydsl.gpu.devices import is_traced
from flydsl.gpu.memory import MEMORY, gpu_index
from flydsl.gpu.refusals import refusing
from flydsl.gpu.streams import AnyEvent, Stream
from flydsl.gpu.tensor import GpuTensor, converted, on_gpu


def of_tensors() -> dict[str, Any]:
    """The methods of torch.Tensor that may go to a GPU. `GpuTensor` has its own."""

    def to(self: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
        return converted(self, args, kwargs)

    def cuda(self: torch.Tensor, device: Any = None, non_blocking: bool = False, **options: Any) -> torch.Tensor:
        return converted(self, ("cuda" if device is None else device,), options)

    def pin_memory(self: torch.Tensor, device: Any = None) -> torch.Tensor:
        if MEMORY.is_pinned(self):
            return self
        pinned = self.detach().clone()
        MEMORY.pin(pinned)
        return pinned

    def is_pinned(self: torch.Tensor, device: Any = None) -> bool:
        return MEMORY.is_pinned(self)

    of_type: Any = torch.Tensor.type

    def type_(self: torch.Tensor, dtype: Any = None, non_blocking: bool = False, **options: Any) -> Any:
        on_host = getattr(dtype, "on_host", None)
        if on_host is None:
            return of_type(self, dtype, non_blocking, **options)
        return converted(self, ("cuda", on_host.dtype), {})

    return {
        "to": to, "cuda": cuda, "pin_memory": pin_memory, "is_pinned": is_pinned, "type": type_,
        "data": property(_DATA.__get__, _set_data, _DATA.__delete__),
    }  # fmt: skip


_DATA: Any = torch._C.TensorBase.data


def _set_data(self: torch.Tensor, value: torch.Tensor) -> None:
    """`tensor.data = value`, which moves a tensor, or a parameter, to the device of a value."""
    if isinstance(self, GpuTensor) == isinstance(value, GpuTensor):
        _DATA.__set__(self, value)
        if isinstance(value, GpuTensor):
            self.gpu_number = value.gpu_number  # type: ignore[attr-defined]
        return
    made = value.detach()
    if isinstance(self, torch.nn.Parameter):
        made = torch.nn.Parameter(made, self.requires_grad)
    else:
        made.requires_grad_(self.requires_grad)
    vars(made).update({name: kept for name, kept in vars(self).items() if name != "gpu_number"})
    torch.utils.swap_tensors(self, made)


def with_swapped_parameters(apply: Any) -> Any:
    """`Module._apply`, with which `Module.to` changes parameters: each stays the object that an optimizer may hold."""

    def swap_and_apply(
        self: torch.nn.Module, fn: Callable[[torch.Tensor], torch.Tensor], *args: Any, **options: Any
    ) -> torch.nn.Module:
        if isinstance(self, torch.jit.ScriptModule):
            return apply(self, _staying_on_host(fn), *args, **options)
        future = torch.__future__
        before = future.get_swap_module_params_on_conversion()
        future.set_swap_module_params_on_conversion(True)
        try:
            return apply(self, fn, *args, **options)
        except RuntimeError as error:
            if "Couldn't swap" not in str(error):
                raise
            raise DeviceError(
                f"{str(error).rpartition(' ')[2]} cannot be moved to or from a posed GPU: a graph of autograd, or a "
                "weak reference, holds it",
                hint="move the module before it computes with gradients, or delete the results first",
            ) from error
        finally:
            future.set_swap_module_params_on_conversion(before)

    return swap_and_apply


def _staying_on_host(change: Callable[[torch.Tensor], torch.Tensor]) -> Callable[[torch.Tensor], torch.Tensor]:
    """A change to the parameters of a module of torch.jit, which are C++'s own: it may be no move to a GPU."""
    refuse = refusing("a module of torch.jit with parameters", "move the module before torch.jit, or torch.compile it")

    def changed(parameter: torch.Tensor) -> torch.Tensor:
        found = change(parameter)
        return refuse() if isinstance(found, GpuTensor) else found

    return changed


def of_accelerator(count: int) -> dict[str, Any]:
    """torch.accelerator, which is torch.cuda by other names."""
    return {
        "is_available": lambda: True, "current_accelerator": lambda check_available=False: torch.device("cuda"),
        "device_count": lambda: count, "synchronize": torch.cuda.synchronize,
        "current_device_index": torch.cuda.current_device, "set_device_index": torch.cuda.set_device,
        "current_stream": torch.cuda.current_stream, "set_stream": torch.cuda.set_stream,
        "current_device_idx": torch.cuda.current_device, "set_device_idx": torch.cuda.set_device,
        "get_memory_info": torch.cuda.mem_get_info, "empty_host_cache": lambda: None,
        **{name: getattr(torch.cuda, name) for name in _OF_MEMORY if hasattr(torch.accelerator, name)},
    }  # fmt: skip


_OF_MEMORY = (
    "empty_cache", "max_memory_allocated", "max_memory_reserved", "memory_allocated", "memory_reserved", "memory_stats",
    "reset_accumulated_memory_stats", "reset_peak_memory_stats",
)  # fmt: skip


def of_torch() -> dict[str, Any]:
    """The functions of torch that ask CUDA's own code for more than memory."""
    make_tensor, as_tensor, generator = torch.tensor, torch.as_tensor, torch.Generator
    asarray, coo = torch.asarray, torch.sparse_coo_tensor
    read = torch.load

    def tensor(data: Any, *, device: Any = None, requires_grad: bool = False, **options: Any) -> torch.Tensor:
        if is_traced():
            return make_tensor(data, device=device, requires_grad=requires_grad, **options)
        host = make_tensor(data, device="cpu", **options)
        if device is None:
            device = data.device if isinstance(data, torch.Tensor) else _default()
        index = gpu_index(device)
        if index is None:
            return host.to(device).requires_grad_(requires_grad)
        if MEMORY.on_copy is not None:
            MEMORY.on_copy(host.nbytes)
        return on_gpu(host, index).requires_grad_(requires_grad)

    def as_a_tensor(data: Any, dtype: Any = None, device: Any = None) -> torch.Tensor:
        if is_traced(data):
            return as_tensor(data, dtype=dtype, device=device)
        if isinstance(data, torch.Tensor):
            return data.to(device=device, dtype=dtype)
        if hasattr(data, "__cuda_array_interface__"):
            return on_gpu(torch.from_numpy(_array_at(data)), gpu_index(device) or 0).to(dtype)
        return as_tensor(data, dtype=dtype, device="cpu").to(_default() if device is None else device)

    def as_array(obj: Any, *, device: Any = None, **options: Any) -> torch.Tensor:
        if isinstance(obj, torch.Tensor) or is_traced():
            return asarray(obj, device=device, **options)
        return asarray(obj, device="cpu", **options).to(_default() if device is None else device)

    def sparse(*args: Any, device: Any = None, **options: Any) -> torch.Tensor:
        parts = any(isinstance(part, GpuTensor) for part in args)
        if device is None or parts or gpu_index(device) is None:
            return coo(*args, device=None if parts else device, **options)
        return coo(*args, device="cpu", **options).to(device)

    class Generator(generator):  # type: ignore[misc, valid-type]
        """A generator of the host's numbers, on the device that was asked for."""

        def __new__(cls, device: Any = "cpu") -> Any:
            made = super().__new__(cls, device="cpu")
            made._device = torch.device(device)
            return made

        @property
        def device(self) -> torch.device:
            return self._device

    def load(f: Any, *args: Any, **options: Any) -> Any:
        _places.clear()
        return tree_map(_placed, read(f, *args, **options))

    return {
        "tensor": tensor, "as_tensor": as_a_tensor, "Generator": Generator,
        "load": load, "asarray": as_array, "sparse_coo_tensor": sparse,
        "Event": AnyEvent, "Stream": Stream,
        **{name: _factory(getattr(torch, name)) for name in _FACTORIES},
    }  # fmt: skip


_FACTORIES = (
    "empty", "zeros", "ones", "full", "rand", "randn", "randint", "randperm", "arange", "linspace", "logspace", "eye",
    "empty_strided", "empty_like", "zeros_like", "ones_like", "full_like", "rand_like", "randn_like", "randint_like",
    "normal",
)  # fmt: skip


def _factory(make: Any) -> Any:
    """A factory that takes the number of a GPU for its device, its tensors for `out`, and pinned memory of the host."""

    def made(*args: Any, **options: Any) -> torch.Tensor:
        if type(options.get("device")) is int:
            options["device"] = torch.device("cuda", options["device"])
        if isinstance(options.get("out"), GpuTensor) and options.get("device") is not None:
            _check_out(options.pop("device"), options["out"])
        if options.get("pin_memory") and not is_traced():
            return make(*args, **{**options, "pin_memory": False}).pin_memory()
        return make(*args, **options)

    return made


def _check_out(device: Any, out: GpuTensor) -> None:
    """Raise torch's RuntimeError if a factory is to fill a tensor of another device, which C++ takes for the host's."""
    if gpu_index(device) != out.gpu_number:
        raise RuntimeError(
            f"device type {torch.device(device).type} does not match device type of out parameter ({out.device.type})"
        )


_places: dict[int, str] = {}
"""Of storages that are being read from a file: the GPU that each goes to."""


def no_tag(storage: Any) -> None:
    """Torch's hook for a storage that is saved: each says itself where it is."""


def stay_on_host(storage: Any, location: str) -> Any:
    """Torch's hook for a storage of a file: those of GPUs stay in host memory, and `load` makes tensors of the GPU."""
    if not location.startswith("cuda"):
        return None
    _places[storage._cdata] = location
    return storage


def restore_location(found: Any) -> Any:
    """Torch's function for where a tensor of a GPU goes that is read from a file: functions decide that, too."""

    def location(device: str) -> Any:
        mapped = torch.serialization._serialization_tls.map_location
        if not callable(mapped):
            return found(device)
        nothing: Any = torch.UntypedStorage(0)
        storage = mapped(nothing, device)
        return device if storage is None else storage.device

    return location


def _array_at(data: Any) -> Any:
    """The array of numpy at an address that `__cuda_array_interface__` gives: of this GPU, so in the host's memory."""
    import numpy as np

    described = {name: value for name, value in data.__cuda_array_interface__.items() if name != "stream"}
    return np.asarray(SimpleNamespace(owner=data, __array_interface__=described))


def _placed(value: Any) -> Any:
    """A value read from a file, on the GPU where it was, or where it is wanted."""
    if not isinstance(value, torch.Tensor) or isinstance(value, GpuTensor):
        return value
    place = _places.get(value.untyped_storage()._cdata)
    return value if place is None else value.detach().to(place).requires_grad_(value.requires_grad)


def _default() -> torch.device:
    """The device of factories that name none."""
    return torch.empty(0).device
