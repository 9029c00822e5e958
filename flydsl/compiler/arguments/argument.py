"""The static part of each launcher argument. The launcher is compiled for it, and it is the key of the cache.

What changes from call to call is the argument's *payload*: a tensor, a number, a stream. `jit_argument.adapt` makes
both from a Python value. Equal arguments are the same object (`tensor_argument`, `scalar_argument`, ...), because every
launch looks up its compiled code by them; constants are tuples for the same reason.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from functools import cache, cached_property
from typing import Any, ClassVar

from mlir import ir

from flydsl import layout as algebra
from flydsl.dialect.leaves import dynamic_leaves
from flydsl.dialect.types import MemRefType, PointerType
from flydsl.errors import ArgumentError
from flydsl.expr.control_flow.tree import parts as parts_of
from flydsl.expr.control_flow.tree import with_parts
from flydsl.expr.numeric import Integer, Numeric, numeric_class
from flydsl.expr.typing import Pointer, Stream, Tensor
from flydsl.runtime.interface import Device

# struct codes of scalar payloads by MLIR name. struct has none of 128 bits; their payloads are bytes.
_CODES = {
    "i1": "?", "i8": "b", "i16": "h", "i32": "i", "i64": "q", "i128": "16s", "index": "q", "bf16": "H", "f16": "e",
    "f32": "f", "f64": "d",
}  # fmt: skip
_WITHOUT_SIGN = ("?", "16s")


ANYWHERE = ""
"""The device of arguments that are known by their types only."""


class Argument:
    """The static part of an argument.

    is_constant: whether the whole argument is compiled in. device: the device of its memory, in torch's notation:
    `cpu`, or `cuda:0` for the first HIP device; None if it has no memory; ANYWHERE for memory of any device.
    """

    __slots__ = ()
    is_constant: ClassVar[bool] = False
    device: str | None = None

    def ir_types(self) -> list[ir.Type]:
        """The launcher's MLIR parameter types for it."""
        raise NotImplementedError

    def traced(self, given: Any, incoming: Iterator[ir.Value]) -> Any:
        """The argument as the launcher's body sees it. given: by the user. incoming: the launcher's parameters."""
        raise NotImplementedError

    def codes(self) -> list[str]:
        """The struct codes of each of the compiled launcher's LLVM parameters for it."""
        raise NotImplementedError

    def flat(self, name: str, payload: Any, device: Device, session: Any) -> Sequence[Any]:
        """The numbers that a call passes for it. name: the parameter's. session: of the call on the device."""
        raise NotImplementedError

    def describe(self) -> str:
        """A short description for people."""
        raise NotImplementedError

    def identity(self) -> tuple[Any, ...]:
        """A key that distinguishes it from other arguments, in every process."""
        return (self.describe(),)

    def anywhere(self) -> Argument:
        """The same argument on any device."""
        return self

    def takes(self, given: Argument) -> bool:
        """True if what was compiled for this argument can be called with that one."""
        return given == self or (self.device == ANYWHERE and given.anywhere() == self)


class TensorArgument(Argument):
    """A tensor: its element type, layout and device. The dynamic leaves of the layout are passed at run time."""

    def __init__(self, element: str, layout: algebra.Layout, device: str) -> None:
        self.element = element
        self.layout = layout
        self.device = device

    @property
    def type(self) -> MemRefType:
        """The tensor's type."""
        return MemRefType(self.element, "global", self.layout)

    def ir_types(self) -> list[ir.Type]:
        return [self.type.ir]

    def traced(self, given: Any, incoming: Iterator[ir.Value]) -> Tensor:
        return Tensor(next(incoming))

    def codes(self) -> list[str]:
        """A pointer, then the packed dynamic leaves."""
        leaves = "".join("q" if leaf.width == 64 else "i" for leaf in dynamic_leaves(self.layout))
        return ["q", leaves] if leaves else ["q"]

    @cached_property
    def _dynamic_modes(self) -> tuple[list[int], list[int]]:
        """The modes with a dynamic size, and those with a dynamic stride."""
        shape, stride = self.layout.extents, self.layout.strides
        assert isinstance(shape, tuple)
        assert isinstance(stride, tuple)
        sizes = [i for i, leaf in enumerate(shape) if isinstance(leaf, algebra.Dynamic)]
        return sizes, [i for i, leaf in enumerate(stride) if isinstance(leaf, algebra.Dynamic)]

    def flat(self, name: str, payload: Any, device: Device, session: Any) -> list[int]:
        """The address, then the sizes and strides of the dynamic leaves."""
        sizes, strides = self._dynamic_modes
        shape = payload.shape
        if len(sizes) == len(shape):  # as it mostly is
            values = [device.address(name, payload, session), *shape]
        else:
            values = [device.address(name, payload, session), *[shape[i] for i in sizes]]
        if strides:
            steps = payload.stride()
            values += [steps[i] for i in strides]
        return values

    def describe(self) -> str:
        return _describe_tensor(self.device, self.type)

    def anywhere(self) -> TensorArgument:
        return tensor_argument(self.element, self.layout, ANYWHERE)


class PointerArgument(Argument):
    """A tensor that the kernel receives as an address only. align: the known alignment, in bytes."""

    def __init__(self, element: str, device: str, align: int | None = None) -> None:
        self.element, self.align = element, align
        kind = PointerType(element, "global")
        self.type = kind if align is None else kind.aligned(align)
        self.device = device

    def ir_types(self) -> list[ir.Type]:
        return [self.type.ir]

    def traced(self, given: Any, incoming: Iterator[ir.Value]) -> Pointer:
        return Pointer(next(incoming))

    def codes(self) -> list[str]:
        return ["q"]

    def flat(self, name: str, payload: Any, device: Device, session: Any) -> list[int]:
        return [device.address(name, payload, session)]

    def describe(self) -> str:
        return _describe_tensor(self.device, self.type)

    def anywhere(self) -> PointerArgument:
        return pointer_argument(self.element, ANYWHERE, self.align)


class ScalarArgument(Argument):
    """A number that is passed at run time. kind: its type in the DSL."""

    def __init__(self, kind: type[Numeric]) -> None:
        self.kind = kind

    def ir_types(self) -> list[ir.Type]:
        """The one MLIR type. Raises ArgumentError for a type that the host cannot pass."""
        if self.kind.mlir_name not in _CODES:
            raise ArgumentError(
                f"a launcher cannot take a {self.kind.__name__}", hint="pass fx.Float32 and convert it inside"
            )
        return [self.kind.ir_type]

    def traced(self, given: Any, incoming: Iterator[ir.Value]) -> Numeric:
        return self.kind.of(next(incoming))

    def codes(self) -> list[str]:
        code = _CODES[self.kind.mlir_name]
        unsigned = issubclass(self.kind, Integer) and not self.kind.signed and code not in _WITHOUT_SIGN
        return [code.upper() if unsigned else code]

    def flat(self, name: str, payload: Any, device: Device, session: Any) -> tuple[Any]:
        return (payload,)

    def describe(self) -> str:
        return self.kind.__name__


class CustomArgument(Argument):
    """A value of a program's own class (see `custom_argument`).

    dsl_type: what it is inside, a class with `__construct_from_ir_values__`. types: of the numbers that it passes, by
    their MLIR names.
    """

    def __init__(self, dsl_type: Any, types: tuple[str, ...]) -> None:
        self.dsl_type = dsl_type
        self.numbers = [scalar_argument(numeric_class(name)) for name in types]

    def ir_types(self) -> list[ir.Type]:
        return [kind for number in self.numbers for kind in number.ir_types()]

    def traced(self, given: Any, incoming: Iterator[ir.Value]) -> Any:
        return self.dsl_type.__construct_from_ir_values__([next(incoming) for _ in self.numbers])

    def codes(self) -> list[str]:
        return [code for number in self.numbers for code in number.codes()]

    def flat(self, name: str, payload: Any, device: Device, session: Any) -> Sequence[Any]:
        return tuple(payload)

    def describe(self) -> str:
        return str(self.dsl_type.__name__)

    def identity(self) -> tuple[Any, ...]:
        return self.dsl_type, [number.kind.__name__ for number in self.numbers]


class ContainerArgument(Argument):
    """A list, tuple, dict or namespace of arguments (see `container_argument`). device: of its first tensor."""

    def __init__(self, kind: Any, names: tuple[str, ...], parts: tuple[Argument, ...]) -> None:
        self.kind, self.names, self.parts = kind, names, parts
        self.device = next((part.device for part in parts if part.device is not None), None)

    def ir_types(self) -> list[ir.Type]:
        return [kind for part in self.parts for kind in part.ir_types()]

    def traced(self, given: Any, incoming: Iterator[ir.Value]) -> Any:
        _, items = parts_of(given)
        return with_parts(given, [part.traced(item, incoming) for part, item in zip(self.parts, items, strict=True)])

    def codes(self) -> list[str]:
        return [code for part in self.parts for code in part.codes()]

    def flat(self, name: str, payload: Any, device: Device, session: Any) -> list[Any]:
        parts = zip(self.names, self.parts, payload, strict=True)
        return [value for place, part, item in parts for value in part.flat(f"{name}{place}", item, device, session)]

    def describe(self) -> str:
        return f"{self.kind.__name__}({', '.join(part.describe() for part in self.parts)})"


class StreamArgument(Argument):
    """A stream: `STREAM` is the only one."""

    def ir_types(self) -> list[ir.Type]:
        return [ir.Type.parse("!gpu.async.token")]

    def traced(self, given: Any, incoming: Iterator[ir.Value]) -> Stream:
        return Stream(next(incoming))

    def codes(self) -> list[str]:
        return ["q"]

    def flat(self, name: str, payload: Any, device: Device, session: Any) -> tuple[int]:
        return (device.stream_handle(payload),)

    def describe(self) -> str:
        return Stream.__name__


STREAM = StreamArgument()


class ConstantArgument(tuple[Any, ...], Argument):
    """A value that is known at compile time: (its type, the value), and its `value_key` where `==` says too little."""

    __slots__ = ()
    is_constant = True

    def ir_types(self) -> list[ir.Type]:
        return []

    def traced(self, given: Any, incoming: Iterator[ir.Value]) -> Any:
        return given

    def codes(self) -> list[str]:
        return []

    def flat(self, name: str, payload: Any, device: Device, session: Any) -> tuple[()]:
        return ()

    def describe(self) -> str:
        return repr(self[1])

    def identity(self) -> tuple[Any, ...]:
        return self[0], self[1]


def _describe_tensor(device: str | None, kind: MemRefType | PointerType) -> str:
    return f"a {device} tensor {kind}" if device else f"a tensor {kind}"


Adapted = tuple[Argument, Any]
"""The static part of an argument, and its payload."""


@cache
def tensor_argument(element: str, layout: algebra.Layout, device: str) -> TensorArgument:
    """The argument of tensors of an element type and layout on a device."""
    return TensorArgument(element, layout, device)


@cache
def pointer_argument(element: str, device: str, align: int | None) -> PointerArgument:
    """The argument of tensors of an element type on a device, where only the address matters."""
    return PointerArgument(element, device, align)


@cache
def custom_argument(dsl_type: Hashable, types: tuple[str, ...]) -> CustomArgument:
    """The argument of values of a program's own class."""
    return CustomArgument(dsl_type, types)


@cache
def container_argument(kind: Hashable, names: tuple[str, ...], parts: tuple[Argument, ...]) -> ContainerArgument:
    """The argument of containers of a class. names: of its parts, as errors append them: `[0]`, `.x`."""
    return ContainerArgument(kind, names, parts)


@cache
def scalar_argument(kind: type[Numeric]) -> ScalarArgument:
    """The argument of numbers of a type."""
    return ScalarArgument(kind)
