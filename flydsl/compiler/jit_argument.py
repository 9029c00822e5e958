"""Arguments of a launcher: how the compiler reads a Python value, and what the launcher passes at run time.

Each value is split into an `Argument`, the static part that a compiled launcher depends on, and a *payload*, which
changes from call to call. The static part of a tensor is its element type, its rank, the mode of stride 1, and its
device; the payload is the tensor itself.
"""

from __future__ import annotations

import numbers
import operator
import struct
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from functools import cache
from types import SimpleNamespace
from typing import Any

from flydsl import layout as algebra
from flydsl.compiler.arguments.argument import (
    STREAM,
    Adapted,
    Argument,
    ConstantArgument,
    TensorArgument,
    container_argument,
    pointer_argument,
    scalar_argument,
    tensor_argument,
)
from flydsl.compiler.arguments.custom_argument import JitArgumentRegistry
from flydsl.compiler.arguments.pointer_argument import MemoryAt
from flydsl.compiler.arguments.signature import Parameter, Signature, says_its_key, shown
from flydsl.compiler.caching.value_key import value_key
from flydsl.dialect.elements import TORCH_ELEMENTS
from flydsl.dialect.location import argument_error
from flydsl.errors import how_to_make
from flydsl.expr.flydsl_names.names import unknown_name
from flydsl.expr.memory.struct_value import StructValue, runtime_fields
from flydsl.expr.numeric import BFloat16, Boolean, Float32, Int32, Int64, Int128, Numeric, Uint128
from flydsl.expr.typing import Pointer, Stream, Tensor
from flydsl.runtime.interface import READ_ONLY


@dataclass(frozen=True)
class TensorAdaptor:
    """A tensor with a layout of the user's choosing; `from_dlpack` makes it.

    layout: its leaves that are ints are compiled in; dynamic ones are passed at run time.
    """

    tensor: Any
    layout: algebra.Layout

    def mark_layout_dynamic(self, leading_dim: int | None = None, divisibility: int = 1) -> TensorAdaptor:
        """The same tensor with sizes and strides passed at run time.

        leading_dim: the dimension whose stride is 1 (by default the one that has it).
        divisibility: a number that divides every other stride.
        """
        strides = tuple(self.tensor.stride())
        if leading_dim is None:
            leading_dim = unit_dimension(tuple(self.tensor.shape), strides)
        elif strides[leading_dim] != 1:
            raise argument_error(
                f"dimension {leading_dim} has stride {strides[leading_dim]}, not 1; strides are {strides}",
                "name the dimension whose stride is 1, or pass tensor.contiguous()",
            )
        for i, stride in enumerate(strides):
            if i != leading_dim and stride % divisibility:
                raise argument_error(
                    f"stride {stride} of dimension {i} is not divisible by {divisibility}",
                    "pass a tensor whose rows start at such multiples, or a smaller divisibility",
                )
        return TensorAdaptor(self.tensor, dynamic_layout(len(strides), leading_dim, divisibility))


def from_dlpack(tensor: Any, *, assumed_align: int | None = None, use_32bit_stride: bool = False) -> TensorAdaptor:
    """A tensor whose shape and strides are compiled in. tensor: of torch, or of any library that supports DLPack.

    assumed_align, in bytes, and use_32bit_stride are promises about its memory and strides, which are checked.
    Raises ArgumentError for tensors that break them.
    """
    import torch

    if not isinstance(tensor, torch.Tensor):
        writable = getattr(getattr(tensor, "flags", None), "writeable", True)
        if not hasattr(tensor, "__dlpack__"):
            raise argument_error(
                f"from_dlpack of {type(tensor).__name__}, which has no __dlpack__",
                "tensors of torch, JAX and CuPy have it, and arrays of NumPy",
            )
        if any(stride < 0 for stride in getattr(tensor, "strides", None) or ()):  # torch would end the process
            raise argument_error(
                f"from_dlpack of strides {tensor.strides} in bytes: torch takes no negative strides",
                "pass a copy: tensor.copy()",
            )
        try:
            tensor = torch.from_dlpack(tensor)
        except BufferError as error:  # of the other library
            raise argument_error(
                f"from_dlpack of {type(tensor).__name__}: {error}", "pass plain numbers in native byte order"
            ) from None
        if not writable:
            setattr(tensor, READ_ONLY, True)
    _check_tensor("from_dlpack", tensor)
    _check_promises(tensor, assumed_align, use_32bit_stride)
    return TensorAdaptor(tensor, algebra.make_layout(tuple(tensor.shape), tuple(tensor.stride())))


from_torch_tensor = from_dlpack


def _check_promises(tensor: Any, assumed_align: int | None, use_32bit_stride: bool) -> None:
    if assumed_align is not None and (assumed_align < 1 or assumed_align & (assumed_align - 1)):
        raise argument_error(f"assumed_align must be a power of two, got {assumed_align!r}", "pass 16, for example")
    if assumed_align is not None and tensor.data_ptr() % assumed_align:
        raise argument_error(
            f"from_dlpack: the memory at {tensor.data_ptr():#x} is not aligned to assumed_align={assumed_align}",
            "align the memory, or pass a smaller assumed_align",
        )
    if use_32bit_stride and any(stride >= 2**31 for stride in tensor.stride()):
        raise argument_error(
            f"from_dlpack: use_32bit_stride=True, but the strides are {tuple(tensor.stride())}", "omit it"
        )


def unit_dimension(shape: tuple[int, ...], strides: tuple[int, ...]) -> int:
    """The last dimension of stride 1, preferring one of more than one element; -1 where there is none."""
    if strides and strides[-1] == 1 and shape[-1] != 1:
        return len(strides) - 1
    unit = [i for i, stride in enumerate(strides) if stride == 1]
    return max(unit, key=lambda i: (shape[i] != 1, i), default=-1)


_layouts: dict[tuple[int, int, int], algebra.Layout] = {}


def dynamic_layout(rank: int, unit: int, divisibility: int = 1) -> algebra.Layout:
    """The layout of a tensor if only its dimension of stride 1 is known, -1 for none.

    divisibility: of the other strides.
    """
    key = (rank, unit, divisibility)
    if key not in _layouts:
        stride = tuple(1 if i == unit else algebra.Dynamic(64, divisibility) for i in range(rank))
        _layouts[key] = algebra.make_layout(tuple(algebra.Dynamic() for _ in range(rank)), stride)
    return _layouts[key]


AdaptAll = Callable[[Sequence[Any]], tuple[tuple[Argument, ...], tuple[Any, ...]]]
"""Splits the values of a call into the static parts and the payloads of all arguments."""


# --- adapting one argument -------------------------------------------------------------------------------------------


def adapt(parameter: Parameter, value: Any) -> Adapted:
    """The static part and the payload of a value. Raises ArgumentError if the parameter does not accept it."""
    return _way_of(parameter.kind)(parameter, value)


def adapter(parameters: Sequence[Parameter]) -> AdaptAll:
    """A function that splits the values of all parameters: their static parts, and their payloads.

    Every launch calls it, so how each of them is split is found once.
    """
    ways = [_remembering(way) if way is _adapt_constant else way for way in map(_way_of, (p.kind for p in parameters))]

    def adapt_all(values: Sequence[Any]) -> tuple[tuple[Argument, ...], tuple[Any, ...]]:
        adapted = [way(parameter, value) for way, parameter, value in zip(ways, parameters, values, strict=True)]
        arguments, payloads = zip(*adapted, strict=True) if adapted else ((), ())
        return arguments, payloads

    return adapt_all


@cache
def _way_of(kind: type | None) -> Callable[[Parameter, Any], Adapted]:
    """Rules that adapt the values of a kind of parameter."""
    if kind in _WAYS:
        return _WAYS[kind]
    assert kind is not None
    if issubclass(kind, Numeric):
        return lambda parameter, value: (scalar_argument(kind), _scalar(parameter, kind, value))
    if issubclass(kind, StructValue):
        return lambda parameter, value: _adapt_struct(parameter, kind, value)
    return _adapt_constant


_INT32 = scalar_argument(Int32)


def _adapt_int32(parameter: Parameter, value: Any) -> Adapted:
    if type(value) is int and -(1 << 31) <= value < (1 << 31):
        return _INT32, value
    return _INT32, _scalar(parameter, Int32, value)


def _adapt_stream(parameter: Parameter, value: Any) -> Adapted:
    return STREAM, value.value if isinstance(value, Stream) else value


def _remembering(way: Callable[[Parameter, Any], Adapted]) -> Callable[[Parameter, Any], Adapted]:
    """The same for constants of one parameter, which mostly are those of the last call, and some cannot change."""
    last: tuple[Any, Adapted | None] = (None, None)

    def remembered(parameter: Parameter, value: Any) -> Adapted:
        nonlocal last
        before, adapted = last  # of one tuple, as several threads may call
        if value is not before or adapted is None:
            adapted = way(parameter, value)
            if _is_its_own_key(value):
                last = value, adapted
        return adapted

    return remembered


def _adapt_constant(parameter: Parameter, value: Any) -> Adapted:
    if parameter.constexpr_type is not None:
        parameter.check_constexpr(value)
    return _constant(parameter, value), value


def _adapt_struct(parameter: Parameter, kind: type[StructValue], value: Any) -> Adapted:
    """A struct as its fields. The fields that are known at compile time are part of its class."""
    if not isinstance(value, kind):
        raise argument_error(
            f"{parameter.name} must be a {kind.__name__}, got {value!r}", "pass a value of the annotated type"
        )
    fields = runtime_fields(type(value)).items()
    adapted = [adapt(Parameter(f"{parameter.name}.{name}", kind), getattr(value, name)) for name, kind in fields]
    return _container(parameter, type(value), [f".{name}" for name, _ in fields], adapted)


def _container(parameter: Parameter, kind: Any, names: Sequence[str], adapted: Sequence[Adapted]) -> Adapted:
    places = sorted({part.device for part, _ in adapted if part.device is not None})
    if len(places) > 1:
        raise argument_error(
            f"{parameter.name}: tensors on different devices: {', '.join(places)}",
            "move them to one: tensor.to(device)",
        )
    made = container_argument(kind, tuple(names), tuple(part for part, _ in adapted))
    return made, [payload for _, payload in adapted]


def _constant(parameter: Parameter, value: Any) -> ConstantArgument:
    """Type and value, and where a value may equal others that trace other code, its key."""
    kind = type(value)
    if _is_its_own_key(value):
        return ConstantArgument((kind, value))
    if says_its_key(kind):
        signature = value.__cache_signature__()
        return ConstantArgument((kind, signature, value_key(signature, _key_of_object)))
    try:
        hash(value)
    except TypeError:
        raise argument_error(
            f"{parameter.name} is a compile-time value, so it must be hashable; {kind.__name__} is not",
            "pass a tuple for a list; a class of your own may have __cache_signature__, which returns what it is "
            "compiled for",
        ) from None
    return ConstantArgument((kind, value, value_key(value, _key_of_object)))


def _is_its_own_key(value: Any) -> bool:
    """True for values that never change, and equal others of their type only where these trace the same code."""
    return type(value) in (int, bool, str) or (isinstance(value, type) and type(value).__hash__ is not None)


def _key_of_object(value: Any) -> Any:
    """An object that says itself what it equals, with the keys of its attributes: Config(1) == Config(True)."""
    kind = type(value)
    if kind.__eq__ is object.__eq__ or isinstance(value, type | Enum):
        return kind, value
    names = [f.name for f in fields(value)] if is_dataclass(value) else list(getattr(value, "__dict__", ()))
    return kind, value, tuple((name, value_key(getattr(value, name, None), _key_of_object)) for name in names)


def _adapt_value(parameter: Parameter, value: Any) -> Adapted:
    """An argument of a Tensor parameter, or of one without annotation."""
    adaptor = _ADAPTORS.get(type(value)) or _find_adaptor(type(value))
    if adaptor is not None:
        argument, payload = adaptor(parameter, value)
        if parameter.kind is None or isinstance(argument, TensorArgument):
            return argument, payload
    if parameter.kind is None and says_its_key(type(value)):
        return _constant(parameter, value), value
    raise argument_error(
        f"{parameter.name} takes {'a tensor' if parameter.kind is Tensor else 'a tensor or a number'}, "
        f"got {shown(value)}",
        "a torch tensor, or flyc.from_dlpack(...) of another library's"
        if parameter.kind is Tensor
        else "annotate the parameter: fx.Constexpr for what is known at compile time",
    )


def _adapt_pointer(parameter: Parameter, value: Any) -> Adapted:
    """A tensor, or one that `from_dlpack` made, by its address; or the memory at an address."""
    if isinstance(value, MemoryAt):
        return value.argument, value.memory
    adaptor = _ADAPTORS.get(type(value)) or _find_adaptor(type(value))
    argument, payload = adaptor(parameter, value) if adaptor is not None else (None, None)
    if not isinstance(argument, TensorArgument):
        shown = f"{value!r} ({type(value).__name__})"[:300]
        raise argument_error(
            f"{parameter.name} takes a tensor, whose address the kernel gets, not {shown}",
            "flyc.from_c_void_p(fx.Float32, address) is the memory at an address"
            if type(value) is int
            else how_to_make.HOST_TENSOR,
        )
    return pointer_argument(argument.element, argument.device, None), payload


_tensors: dict[tuple[Any, ...], TensorArgument] = {}
_torch_classes: set[type] = set()
_UNIT_STRIDE = (1,)


def _adapt_any(parameter: Parameter, tensor: Any) -> Adapted:
    """A tensor of torch, as arguments mostly are, or any other value."""
    if type(tensor) not in _torch_classes:
        return _adapt_value(parameter, tensor)
    if tensor.is_neg():
        _check_tensor(parameter.name, tensor)
    try:
        strides = tensor.stride()
    except RuntimeError:  # a nested tensor
        raise argument_error(
            f"{parameter.name}: a tensor without strides", "pass the tensors that it is made of"
        ) from None
    unit = 0 if strides == _UNIT_STRIDE else unit_dimension(tensor.shape, strides)
    rank = len(strides)
    known = (tensor.dtype, tensor.layout, tensor.device, rank, unit)
    argument = _tensors.get(known)
    if argument is None:
        _check_tensor(parameter.name, tensor)
        layout = dynamic_layout(rank, unit)
        argument = _tensors[known] = tensor_argument(torch_element(tensor.dtype), layout, str(tensor.device))
    return argument, tensor


def _adapt_wrapper(parameter: Parameter, tensor: Any) -> Adapted:
    """A tensor of a class that answers torch's operations itself, and may have no memory of its own."""
    memory = tensor.untyped_storage()
    try:
        has_memory = memory.device == tensor.device and bool(memory.data_ptr() or not memory.nbytes())
    except RuntimeError:  # it says that there is none
        has_memory = False
    if not has_memory:
        raise argument_error(
            f"{parameter.name}: a {type(tensor).__name__}, which has no memory of its own",
            "pass the tensor that it stands for; flyc.custom_op makes an operator for torch.compile",
        )
    return _adapt_any(parameter, tensor.as_subclass(sys.modules["torch"].Tensor))


def _adapt_tensor_adaptor(parameter: Parameter, adaptor: TensorAdaptor) -> Adapted:
    tensor = adaptor.tensor
    _check_tensor(parameter.name, tensor)
    return tensor_argument(torch_element(tensor.dtype), adaptor.layout, str(tensor.device)), tensor


def torch_element(dtype: Any) -> str:
    """The MLIR element type of a torch dtype."""
    name = str(dtype).removeprefix("torch.")
    if name not in TORCH_ELEMENTS:
        packed = (
            "pass tensor.view(torch.uint8), and recast its pointer in the kernel: fx.recast_iter(fx.Float4E2M1FN, ...)"
        )
        hint = packed if name.startswith("float4") else f"supported: {', '.join(TORCH_ELEMENTS)}"
        raise argument_error(f"tensors of {dtype} are not supported", hint)
    return TORCH_ELEMENTS[name]


def _check_tensor(name: str, tensor: Any) -> None:
    """Raise ArgumentError for a tensor without strided memory on a device that runs kernels."""
    problem = None
    if str(tensor.layout) != "torch.strided":
        problem = f"is stored as {tensor.layout}"
    elif tensor.device.type not in ("cpu", "cuda"):
        problem = f"is on device {tensor.device}"
    elif tensor.is_conj() or tensor.is_neg():
        problem = "is a lazily conjugated or negated view"
    elif tensor.dim() == 0:
        raise argument_error(f"{name}: a tensor without dimensions", "pass a number, or reshape it to (1,)")
    if problem:
        raise argument_error(
            f"{name}: a tensor that {problem}", "kernels take strided tensors in CPU (simulator) or HIP memory"
        )
    torch_element(tensor.dtype)


def _scalar(parameter: Parameter, kind: type[Numeric], value: Any) -> Any:
    """A number as a parameter of type `kind` passes it."""
    if isinstance(value, Numeric) and value.dtype is not kind:
        raise argument_error(f"{parameter.name} must be {kind.__name__}, got {value!r}", f"fx.{kind.__name__}(...)")
    try:
        number = value if isinstance(value, Numeric) else _python_number(kind, value)
    except (TypeError, ValueError, OverflowError):
        shown = f"{value!r} ({type(value).__name__})"[:300]
        raise argument_error(
            f"{parameter.name} must be {kind.__name__}, got {shown}",
            "convert it before the call, or annotate the parameter with its type",
        ) from None
    payload = kind.taken(parameter.name, number).value
    encode = _ENCODINGS.get(kind)
    return payload if encode is None else encode(payload)


def _bfloat16_bits(number: float) -> int:
    """The bits of a bf16 number, the upper half of f32's: `struct` has no code for bf16."""
    return int(struct.unpack("<I", struct.pack("<f", number))[0]) >> 16


def _wide_bits(number: int) -> bytes:
    """The bits of an integer of 128 bits, which `struct` has no code for either."""
    return (number & ((1 << 128) - 1)).to_bytes(16, "little")


_ENCODINGS: dict[type[Numeric], Callable[[Any], Any]] = {
    BFloat16: _bfloat16_bits,
    Int128: _wide_bits,
    Uint128: _wide_bits,
}


def _python_number(kind: type[Numeric], value: Any) -> Any:
    """A number of any library as Python's. Raises TypeError for other values, and for a fraction as an integer."""
    if isinstance(value, numbers.Real) and kind.is_float:
        return float(value)
    if isinstance(value, bool | int):
        return value
    return operator.index(value)


def _adapt_container(parameter: Parameter, value: Any) -> Adapted:
    """A list, tuple, dict or namespace, whose parts are arguments, text or None."""
    if isinstance(value, StructValue):
        return _adapt_struct(parameter, type(value), value)
    each = parameter.parts_of(value)
    names = [part.name.removeprefix(parameter.name) for part, _ in each]
    return _container(parameter, type(value), names, [_adapt_part(part, item) for part, item in each])


def _adapt_part(parameter: Parameter, value: Any) -> Adapted:
    if parameter.kind is None and (value is None or isinstance(value, str)):
        return _constant(parameter, value), value
    if isinstance(value, Stream) or parameter.kind is Stream:
        raise argument_error(
            f"{parameter.name} is a stream, which is an argument of its own",
            "give it a parameter of its own, annotated fx.Stream",
        )
    return adapt(parameter, value)


def _adapt_number(kind: type[Numeric]) -> Callable[[Parameter, Any], Adapted]:
    return lambda parameter, value: (scalar_argument(kind), _scalar(parameter, kind, value))


def _adapt_int(parameter: Parameter, value: int) -> Adapted:
    kind = Int32 if -(1 << 31) <= value < (1 << 31) else Int64
    return scalar_argument(kind), _scalar(parameter, kind, value)


def _adapt_numeric(parameter: Parameter, value: Numeric) -> Adapted:
    return scalar_argument(value.dtype), _scalar(parameter, value.dtype, value)


_ADAPTORS: dict[type, Callable[[Parameter, Any], Adapted]] = {
    TensorAdaptor: _adapt_tensor_adaptor,
    bool: _adapt_number(Boolean),
    int: _adapt_int,
    float: _adapt_number(Float32),
    Stream: lambda parameter, value: (STREAM, value.value),
    **dict.fromkeys((tuple, list, dict, SimpleNamespace), _adapt_container),
    MemoryAt: lambda parameter, value: (value.argument, value.memory),
}


_WAYS: dict[type | None, Callable[[Parameter, Any], Adapted]] = {
    Tensor: _adapt_any,
    None: _adapt_any,
    Int32: _adapt_int32,
    Pointer: _adapt_pointer,
    Stream: _adapt_stream,
}


def _find_adaptor(kind: type) -> Callable[[Parameter, Any], Adapted] | None:
    """Find the adaptor of a type that is seen for the first time. torch is never imported for this."""
    torch = sys.modules.get("torch")
    found: Callable[[Parameter, Any], Adapted] | None = None
    if torch is not None and issubclass(kind, torch.Tensor):
        found = _adapt_wrapper
        answers_itself = kind.__torch_dispatch__ is not torch.Tensor.__torch_dispatch__  # type: ignore[attr-defined]
        if not answers_itself or getattr(kind, "has_own_memory", False):  # the latter: flydsl.gpu's
            found = _adapt_any
            _torch_classes.add(kind)
    elif issubclass(kind, Numeric):
        found = _adapt_numeric
    else:
        found = JitArgumentRegistry.find(kind)
        if found is None and issubclass(kind, tuple | list | dict | SimpleNamespace):
            found = _adapt_container
    if found is not None:
        _ADAPTORS[kind] = found
    return found


def tensor_place(signature: Signature, arguments: Sequence[Argument]) -> str:
    """The device of a call's tensors: "cpu", "cuda:0". Raises ArgumentError if they are on different devices."""
    found: dict[str, str] = {}
    for parameter, argument in zip(signature.parameters, arguments, strict=True):
        if argument.device is not None:
            found.setdefault(argument.device, parameter.name)
    if len(found) > 1:
        places = ", ".join(f"{name} is on {place}" for place, name in found.items())
        raise argument_error(
            f"{signature.name}: tensors on different devices: {places}", "move them to one device with .to(...)"
        )
    return next(iter(found), "cpu")


PointerJitArg = MemoryAt
"""What `from_c_void_p` returns, under FlyDSL's name."""

__getattr__ = unknown_name(__name__, globals(), {"from_c_void_p": "flydsl.compiler.arguments.pointer_argument"})
