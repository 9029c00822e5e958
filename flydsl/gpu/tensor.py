"""Tensors of a GPU that is not there: in host memory, with the device that the program asked for.

For torch's kernels a `GpuTensor` is a CPU tensor, so every operator, autograd and views work as they do there, and
`data_ptr()` is an address that the simulator reads. For the program it is on "cuda:0": its class answers `device`,
`is_cuda` and what else differs, and sees every operator (`__torch_dispatch__`), where results become tensors of the
same GPU, and tensors of several devices are refused in torch's words.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable
from copy import deepcopy
from typing import Any

import torch
from torch._C._functorch import get_unwrapped, is_functorch_wrapped_tensor
from torch._library.custom_ops import OPDEFS
from torch._utils import _rebuild_device_tensor_from_cpu_tensor
from torch.autograd import forward_ad
from torch.nn.parameter import UninitializedTensorMixin  # type: ignore[attr-defined]

from flydsl.errors import DeviceError
from flydsl.gpu.autocast import as_on_a_gpu
from flydsl.gpu.gpu_only_operators import INSTEAD, refuse
from flydsl.gpu.matrix_products import PRODUCTS, multiply
from flydsl.gpu.memory import MEMORY, MOST_GPUS, gpu_index
from flydsl.gpu.rounding import ROUNDED_ONCE, round_once
from flydsl.gpu.storage import storage_of

_OF_SEVERAL_DEVICES = frozenset(
    {
        "copy_", "__getitem__", "__setitem__", "index_put", "index_put_", "index", "set_", "type_as", "new_tensor",
        "tensor_split", "is_set_to", "result_type", "__set__", "pack_padded_sequence", "_pack_padded_sequence",
        "_pad_packed_sequence",
        "_has_compatible_shallow_copy_type", "is_same_size", "sym_constrain_range",
    }
)  # fmt: skip
"""Functions that take tensors of several devices: copies, indices from the host, and questions about tensors."""

_RECURRENT = frozenset({"lstm", "gru", "rnn_tanh", "rnn_relu"})
"""Functions that take the lengths of packed sequences, which are the host's on any device."""

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


class GpuTensor(torch.Tensor):
    """A tensor of the posed GPU `gpu_number`. Made by torch's own functions: `torch.ones(3, device="cuda")`."""

    has_own_memory = True  # FlyDSL's launchers take it as it is
    gpu_number = 0

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
            if name in _RECURRENT:
                _check_devices(value for value in args if getattr(value, "dtype", None) is not torch.int64)
            elif name not in _OF_SEVERAL_DEVICES:
                _check_devices((*args, *kwargs.values()))
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
            index, kwargs = _device_of(func, args, kwargs or {})
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

    def cpu(self, memory_format: torch.memory_format = torch.preserve_format) -> torch.Tensor:
        return converted(self, ("cpu",), {"memory_format": memory_format})

    def cuda(  # type: ignore[override]
        self, device: Any = None, non_blocking: bool = False, **options: Any
    ) -> torch.Tensor:
        return converted(self, ("cuda" if device is None else device,), options)

    def to(self, *args: Any, **kwargs: Any) -> torch.Tensor:
        """Change the device, the type, or both, as `torch.Tensor.to`."""
        return converted(self, args, kwargs)

    def numpy(self, *, force: bool = False) -> Any:
        if force:
            return self.detach().cpu().numpy()
        raise TypeError(
            f"can't convert {self.device} device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host "
            "memory first."
        )

    def as_subclass(self, cls: Any) -> Any:
        """The tensor, if it is of that class already: its own class is what makes it one of the GPU."""
        if isinstance(self, cls):
            return super().as_subclass(cls)
        raise DeviceError(
            f"as_subclass({cls.__qualname__}) of a tensor on a posed GPU is unsupported",
            hint="a class of torch.Tensor._make_wrapper_subclass can hold the tensor in an attribute",
        )

    def tolist(self) -> Any:
        return moved(self.detach(), None).tolist()

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return self.numpy()

    def _typed_storage(self) -> Any:
        return torch.TypedStorage(wrap_storage=storage_of(self, self.gpu_number), dtype=self.dtype, _internal=True)

    def pin_memory(self, device: Any = None) -> torch.Tensor:
        raise RuntimeError(f"cannot pin '{self.type()}' only dense CPU tensors can be pinned")

    def is_pinned(self, device: Any = None) -> bool:
        return False

    def record_stream(self, stream: Any) -> None:
        pass

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

    def __format__(self, spec: str) -> str:
        return format(self.item(), spec) if self.dim() == 0 else object.__format__(self, spec)

    def __repr__(self, *, tensor_contents: Any = None) -> str:  # type: ignore[override]
        host = moved(self.detach(), None)
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
        host = moved(self.detach(), None), self.dtype, str(self.device), self.requires_grad
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
    index = next((tensor.gpu_number for tensor in tensors if isinstance(tensor, GpuTensor)), None)
    return found if index is None else _with_class(found, index)


def _with_class(found: torch.Tensor, index: int) -> torch.Tensor:
    """A tensor as one of a GPU, with its history for autograd."""
    MEMORY.count(found, index)
    result = found.as_subclass(GpuTensor)
    result.gpu_number = index
    return result


_DEVICES = tuple(torch.device("cuda", index) for index in range(MOST_GPUS))


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


def run_on_host(func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """Run an operator in host memory.

    Where Python has the word, torch takes tensors as if they were not conjugated or negated. Operators of complex
    numbers conjugate some between them, so it is told to look at that again.
    """
    with torch._C._DisableTorchDispatch():
        if func in ROUNDED_ONCE:
            return round_once(func, args, kwargs)
        if MEMORY.products_per_sum and func in PRODUCTS:
            return multiply(func, args, kwargs, MEMORY.products_per_sum)
        if not any(tensor.is_complex() for tensor in tensors_in(args)):
            return func(*args, **kwargs)
        with _HEEDING(_KEYS.Conjugate, False), _HEEDING(_KEYS.Negative, False):
            return func(*args, **kwargs)


_HEEDING, _KEYS = torch._C._SetExcludeDispatchKeyGuard, torch._C.DispatchKey


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


def _device_of(func: Any, args: Any, kwargs: dict[str, Any]) -> tuple[int | None, dict[str, Any]]:
    """The GPU that an operator's results are on, None for the host; and its keywords, as the host takes them."""
    index = next((tensor.gpu_number for tensor in tensors_in(args) if isinstance(tensor, GpuTensor)), None)
    if kwargs.get("device") is not None:
        there = gpu_index(kwargs["device"])
        if there is None and torch.device(kwargs["device"]).type != "cpu":
            return None, kwargs  # "meta", which has no memory
        if there is None and not _THREAD.host_is_asked:  # C++ asks for the device that it takes an operand to be on
            there = index
        return there, {**kwargs, "device": "cpu"}
    if func._schema.name == "aten::copy_":
        return None, kwargs  # it returns its first operand
    if index is None:
        index = next((t.gpu_number for t in tensors_in(kwargs.values()) if isinstance(t, GpuTensor)), None)
    return index, kwargs


def _check_devices(values: Iterable[Any]) -> None:
    """Raise torch's RuntimeError for tensors of several devices. A number of the host in a tensor goes with any."""
    first: torch.device | None = None
    for tensor in tensors_in(values):
        if type(tensor).__torch_dispatch__ not in _WITH_MEMORY or is_functorch_wrapped_tensor(tensor):
            continue
        if tensor.dim() or isinstance(tensor, GpuTensor):
            device = tensor.device
            if first is None:
                first = device
            elif device != first:
                one, other = sorted((first, device), key=lambda found: found.type != "cuda")
                raise RuntimeError(
                    f"Expected all tensors to be on the same device, but found at least two devices, {one} and {other}!"
                )


def tensors_in(values: Iterable[Any]) -> Iterable[torch.Tensor]:
    """The tensors among values, and in lists and tuples of them."""
    for value in values:
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, list | tuple):
            yield from tensors_in(value)


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


_TRACING = tuple(getattr(torch._C._TorchDispatchModeKey, name) for name in ("FAKE", "PROXY", "FUNCTIONAL"))


def is_traced(*values: Any) -> bool:
    """True if torch traces, or one of some values is a tensor without memory: it needs none of a GPU's."""
    if any(torch._C._get_dispatch_mode(key) is not None for key in _TRACING):
        return True
    return any(
        isinstance(value, torch.Tensor) and type(value).__torch_dispatch__ not in _WITH_MEMORY for value in values
    )


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
_WITH_MEMORY = (torch.Tensor.__torch_dispatch__, GpuTensor.__torch_dispatch__)
