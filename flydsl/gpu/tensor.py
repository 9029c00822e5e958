"""Tensors of a GPU that is not there: in host memory, with the device that the program asked for.

For torch's kernels a `GpuTensor` is a CPU tensor, so every operator, autograd and views work as they do there, and
`data_ptr()` is an address that the simulator reads. For the program it is on "cuda:0": its class answers `device`,
`is_cuda` and what else differs, and sees every operator (`__torch_dispatch__`), where results become tensors of the
same GPU, and tensors of several devices are refused in torch's words.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import torch
from torch._C._functorch import get_unwrapped, is_functorch_wrapped_tensor
from torch._library.custom_ops import OPDEFS
from torch.autograd import forward_ad
from torch.nn.parameter import UninitializedTensorMixin  # type: ignore[attr-defined]

from flydsl.errors import DeviceError
from flydsl.gpu.autocast import as_on_a_gpu
from flydsl.gpu.devices import check_devices, device_of, gpu_among, is_traced, tensors_in
from flydsl.gpu.gpu_only_operators import INSTEAD, refuse
from flydsl.gpu.memory import MEMORY, gpu_index
from flydsl.gpu.on_host import run_on_host
from flydsl.gpu.placed import PlacedTensor
from flydsl.gpu.storage import storage_of

_QUESTIONS = frozenset(
    getattr(torch.Tensor, name)
    for name in [
        "data_ptr",
        "dim",
        "element_size",
        "is_contiguous",
        "is_neg",
        "ndimension",
        "numel",
        "size",
        "storage_offset",
        "stride",
        "untyped_storage",
    ]
) | frozenset(
    getattr(torch.Tensor, name).__get__
    for name in ["dtype", "itemsize", "layout", "nbytes", "ndim", "requires_grad", "shape"]
)
"""Functions of one tensor that make no other: a launch asks many of each operand."""

_STORAGE = torch.Tensor.untyped_storage
_ADDRESSES = frozenset({torch.Tensor.data_ptr, _STORAGE})
"""Those with which a program reads memory past torch."""


class GpuTensor(PlacedTensor):
    """A tensor of the posed GPU `gpu_number`. Made by torch's own functions: `torch.ones(3, device="cuda")`."""

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Call a function of torch. What its C++ makes with the options of an operand is on the GPU, too."""
        if func in _QUESTIONS:
            if MEMORY.waiting and func in _ADDRESSES:
                MEMORY.waiting.before_address()
            if func is _STORAGE:
                return storage_of(args[0], args[0].gpu_number)
            with torch._C.DisableTorchFunctionSubclass():
                return func(*args, **(kwargs or {}))
        func, kwargs = INSTEAD.get(func, func), kwargs or {}
        if torch._C._is_any_autocast_enabled():
            with as_on_a_gpu():
                return cls._called(func, args, kwargs)
        return cls._called(func, args, kwargs)

    @classmethod
    def _called(cls, func: Any, args: Any, kwargs: Any) -> Any:
        before = _THREAD.host_is_asked
        with torch._C.DisableTorchFunctionSubclass():
            name = getattr(func, "__name__", "")
            check_devices(name, args, kwargs)
            try:
                _THREAD.host_is_asked = gpu_index(kwargs.get("device", 0)) is None
                found = func(*args, **kwargs)
                if type(found) in _PLAIN and not _THREAD.host_is_asked and name != "_pack_padded_sequence":
                    return _followed(found, (*args, *kwargs.values()))
                return found
            finally:
                _THREAD.host_is_asked = before

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:  # type: ignore[override]
        """Run an operator in host memory, and put its results where its operands are.

        A program's own operator, of `torch.library`, runs as it would on the GPU.
        """
        if func.namespace != "aten":
            if (own := OPDEFS.get(func._schema.name)) is not None:
                with torch._C._EnableTorchFunction():
                    return own._backend_fns.get("cuda", own._init_fn)(*args, **(kwargs or {}))
            if _is_registered(func):
                with torch._C.DisableTorchFunctionSubclass():
                    return func._op_dk(torch._C.DispatchKey.CUDA, *args, **(kwargs or {}))
        with torch._C.DisableTorchFunctionSubclass():
            index, kwargs = device_of(func, args, kwargs or {}, _THREAD.host_is_asked)
            try:
                found = _run_or_put_off(func, args, kwargs, index)
            except NotImplementedError as missing:
                refuse(missing)
                raise
            if func._schema.is_mutable:
                MEMORY.changes += 1
            found = found if index is None else _on_gpu(found, index, func)
            if MEMORY.on_operator is not None:
                MEMORY.on_operator(func, args, kwargs, found)
            return found

    def data_ptr(self) -> int:
        if MEMORY.waiting:
            MEMORY.waiting.before_address()
        MEMORY.hold(self)
        with torch._C.DisableTorchFunctionSubclass():
            return torch.Tensor.data_ptr(self)

    @property
    def grad(self) -> torch.Tensor | None:
        """The gradient, which autograd may have made with the options of the host."""
        found = _GRAD.__get__(self)
        if type(found) is torch.Tensor:
            _GRAD.__set__(self, on_gpu(found, self.gpu_number))
            found = _GRAD.__get__(self)
        return found

    @grad.setter
    def grad(self, value: torch.Tensor | None) -> None:
        _GRAD.__set__(self, value)

    @grad.deleter
    def grad(self) -> None:
        _GRAD.__set__(self, None)

    def cpu(self, memory_format: torch.memory_format = torch.preserve_format) -> torch.Tensor:
        return converted(self, ("cpu",), {"memory_format": memory_format})

    def cuda(  # type: ignore[override]
        self, device: Any = None, non_blocking: bool = False, **options: Any
    ) -> torch.Tensor:
        return converted(self, ("cuda" if device is None else device,), options)

    def to(self, *args: Any, **kwargs: Any) -> torch.Tensor:
        """Change the device, the type, or both, as `torch.Tensor.to`."""
        return converted(self, args, kwargs)

    def as_subclass(self, cls: Any) -> Any:
        """The tensor, if it is of that class already: its own class is what makes it one of the GPU."""
        if isinstance(self, cls):
            return super().as_subclass(cls)
        raise DeviceError(
            f"as_subclass({cls.__qualname__}) of a tensor on a posed GPU is unsupported",
            hint="a class of torch.Tensor._make_wrapper_subclass can hold the tensor in an attribute",
        )

    def _typed_storage(self) -> Any:
        return torch.TypedStorage(wrap_storage=storage_of(self, self.gpu_number), dtype=self.dtype, _internal=True)

    def type(self, dtype: Any = None, non_blocking: bool = False, **options: Any) -> Any:
        if dtype is None:
            return super().type().replace("torch.", "torch.cuda.")
        if (on_host := getattr(dtype, "on_host", None)) is not None:  # torch.cuda.FloatTensor
            return self.to(on_host.dtype)
        wanted = str(dtype if not isinstance(dtype, type) else f"{dtype.__module__}.{dtype.__name__}")
        if isinstance(dtype, torch.dtype):
            return self.to(dtype)
        host = moved(self, None).type(wanted.replace("torch.cuda.", "torch."))
        return moved(host, self.gpu_number) if "cuda" in wanted else host

    def __coerce_same_metadata_as_tangent__(self, metadata: Any, expected_type: Any = None) -> torch.Tensor:
        """The gradient that goes into a compiled backward pass, which was traced for a plain tensor: it is one."""
        return self


def _is_registered(func: Any) -> bool:
    """True if a program has registered a function for an operator on "cuda", with `torch.library.Library.impl`."""
    return f"{func.name().replace('::', '/')}/CUDA" in torch.library._impls


class _Thread(threading.local):
    """host_is_asked: whether the function that is running was asked for a result on the host, by `device="cpu"`."""

    host_is_asked = False


_THREAD = _Thread()
_GRAD: Any = torch._C.TensorBase.grad
_PLAIN = (torch.Tensor, tuple, list)


def _followed(found: Any, operands: tuple[Any, ...]) -> Any:
    """Results of a function, on the GPU of its operands; an operand that it returns stays what it is."""
    if isinstance(found, tuple | list):
        if any(type(each) is torch.Tensor for each in found):
            return type(found)(_followed(each, operands) for each in found)
        return found
    if type(found) is not torch.Tensor:
        return found
    tensors = [*tensors_in(operands)]
    if any(found is tensor for tensor in tensors):
        return found
    index = gpu_among(tensors)
    return found if index is None else _with_class(found, index)


def _with_class(found: torch.Tensor, index: int) -> torch.Tensor:
    """A tensor as one of a GPU, with its history for autograd."""
    MEMORY.count(found, index)
    result = found.as_subclass(GpuTensor)
    result.gpu_number = index
    return result


def on_gpu(tensor: torch.Tensor, index: int) -> GpuTensor:
    """A tensor of host memory as one of a GPU: the same memory, which counts as the GPU's from now on."""
    MEMORY.count(tensor, index)
    found: GpuTensor = torch.Tensor._make_subclass(GpuTensor, tensor)
    if index:
        found.gpu_number = index
    return found


def _run_or_put_off(func: Any, args: Any, kwargs: dict[str, Any], index: int | None) -> Any:
    """Run an operator, or let it wait if a benchmark runs. An operator that runs may read what others would write."""
    if MEMORY.is_benchmark and MEMORY.put_off is not None:
        found = MEMORY.put_off(func, args, kwargs, index)
        if found is not None:
            return found
    if MEMORY.waiting:
        MEMORY.waiting.before_operator(func, (*args, *kwargs.values()))
    return run_on_host(func, args, kwargs)


_PACK = torch.ops.aten._pack_padded_sequence.default


def _on_gpu(found: Any, index: int, func: Any = None) -> Any:
    """Results of an operator, on a GPU. The lengths of batches of packed sequences are the host's on any device."""
    if func is _PACK:
        return _on_gpu(found[0], index), found[1]
    if isinstance(found, torch.Tensor):
        return found if isinstance(found, GpuTensor) else on_gpu(found, index)
    if isinstance(found, list | tuple):
        return type(found)(_on_gpu(each, index) for each in found)
    return found


# --- from one device to another


class _Move(torch.autograd.Function):
    """A copy of a tensor in the memory of another device; its gradient goes the way back."""

    @staticmethod
    def forward(tensor: torch.Tensor, index: int | None) -> torch.Tensor:
        back = _gpu_of(tensor)
        with torch._C._DisableTorchDispatch():
            host = torch.empty_like(tensor, device="cpu", requires_grad=False).copy_(tensor)
            if isinstance(host, GpuTensor):
                host = torch.Tensor._make_subclass(torch.Tensor, host)
        if MEMORY.on_copy is not None and (index is None or back is None):
            MEMORY.on_copy(host.nbytes if host.layout is torch.strided else 0)
        return host if index is None else on_gpu(host, index)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        tensor, ctx.index = inputs
        ctx.back = _gpu_of(tensor)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> Any:
        return moved(gradient, ctx.back), None

    @staticmethod
    def jvp(ctx: Any, tangent: torch.Tensor, *index: None) -> torch.Tensor:
        return moved(tangent, ctx.index)

    @staticmethod
    def vmap(info: Any, dims: Any, tensor: torch.Tensor, index: int | None) -> Any:
        return moved(tensor, index), dims[0]


def _gpu_of(tensor: torch.Tensor) -> int | None:
    """The number of the GPU that a tensor is on, or what torch.func has wrapped; None for the host."""
    while not isinstance(tensor, GpuTensor):
        if not is_functorch_wrapped_tensor(tensor):
            return None
        tensor = get_unwrapped(tensor)
    return tensor.gpu_number


def moved(tensor: torch.Tensor, index: int | None) -> torch.Tensor:
    """A copy of a tensor on a GPU, or on the host (None); the tensor itself if it is there. Differentiable."""
    if _gpu_of(tensor) == index:
        return tensor
    if isinstance(tensor, UninitializedTensorMixin):
        raise DeviceError(
            "a parameter of a lazy module, which has no shape yet, cannot be moved to a posed GPU",
            hint="call the module once on the host, and move it then",
        )
    if MEMORY.waiting:
        MEMORY.waiting.before_access((tensor,))
    if torch._C._are_functorch_transforms_active():
        return _Move.apply(tensor, index)
    if tensor.requires_grad or forward_ad._current_level >= 0:
        return _APPLY(tensor, index)
    return _Move.forward(tensor, index)


_APPLY = super(torch.autograd.Function, _Move).apply
"""That of C++: torch's own binds default arguments first, which takes 20 us."""


def converted(tensor: torch.Tensor, args: tuple[Any, ...], kwargs: dict[str, Any]) -> torch.Tensor:
    """`tensor.to(*args, **kwargs)`, where a device may be involved that only poses as one."""
    if is_traced(tensor, *args[:1]):
        return _TO(tensor, *args, **kwargs)
    device, dtype, copy, memory_format = _what_is_asked(args, dict(kwargs))
    if device is not None and not isinstance(device, int) and torch.device(device).type not in ("cpu", "cuda"):
        return _TO(moved(tensor, None), *args, **kwargs)
    here = _gpu_of(tensor)
    found = tensor if device is None else moved(tensor, gpu_index(device))
    is_new = found is not tensor or (device is not None and gpu_index(device) != here)
    return _TO(found, dtype or tensor.dtype, copy=copy and not is_new, memory_format=memory_format)


def _what_is_asked(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, torch.dtype | None, bool, Any]:
    """The device, the type, whether to copy, and the memory format that the arguments of `to` are."""
    rest = list(args)
    device, dtype, other = kwargs.get("device"), kwargs.get("dtype"), kwargs.get("other")
    if rest and isinstance(rest[0], torch.Tensor):
        other = rest.pop(0)
    elif rest and isinstance(rest[0], torch.dtype):
        dtype = rest.pop(0)
    elif rest:
        device = rest.pop(0)
        if rest and (rest[0] is None or isinstance(rest[0], torch.dtype)):
            dtype = rest.pop(0)
    if other is not None:
        device, dtype = other.device, other.dtype
    copy = bool(rest[1]) if len(rest) > 1 else bool(kwargs.get("copy", False))
    return device, dtype, copy, kwargs.get("memory_format")


_TO: Callable[..., torch.Tensor] = torch._C.TensorBase.to
