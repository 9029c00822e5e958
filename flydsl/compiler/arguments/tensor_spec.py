"""Arguments by their types alone, to compile for without having them: `flyc.compile(launcher, TensorSpec(...))`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from flydsl import layout as algebra
from flydsl.compiler.arguments.argument import (
    ANYWHERE,
    STREAM,
    Argument,
    TensorArgument,
    pointer_argument,
    scalar_argument,
    tensor_argument,
)
from flydsl.compiler.arguments.signature import Parameter
from flydsl.compiler.jit_argument import adapt, dynamic_layout, torch_element, unit_dimension
from flydsl.dialect.location import argument_error
from flydsl.errors import how_to_make
from flydsl.expr.numeric import Numeric
from flydsl.expr.tracing.operands import element_name
from flydsl.expr.typing import Constexpr, Pointer, Stream, Tensor


@dataclass(frozen=True)
class TensorSpec:
    """The type of a tensor.

    dtype: `fx.Float16` or `torch.float16`. rank: how many dimensions, of sizes and strides that are known at run time
    only. unit_stride: the dimension of stride 1, by default the last one; None if there is none.
    layout: sizes and strides that are compiled in, as `flyc.from_dlpack` does it; a number in it may be dynamic.
    """

    dtype: Any
    rank: int = 1
    unit_stride: int | None = -1
    layout: algebra.Layout | None = None

    def __post_init__(self) -> None:
        """Raises ArgumentError for a type that no tensor has."""
        if type(self.rank) is not int or self.rank < 1:
            raise argument_error(
                f"TensorSpec: rank must be a positive integer, got {self.rank!r}", "pass rank=2, for example"
            )
        unit = self.unit_stride
        if unit is not None and (type(unit) is not int or not -self.rank <= unit < self.rank):
            raise argument_error(
                f"TensorSpec: unit_stride must be one of the {self.rank} dimensions, got {unit!r}",
                "dimensions count from 0; the last one is that of a contiguous tensor",
            )
        if self.layout is not None and not isinstance(self.layout, algebra.Layout):
            raise argument_error(f"TensorSpec: layout must be a layout, got {self.layout!r}", how_to_make.LAYOUT)
        self.argument()

    def argument(self) -> TensorArgument:
        """The arguments that a launcher is compiled for, on any device."""
        element = element_name(self.dtype) if isinstance(self.dtype, type) else torch_element(self.dtype)
        unit = -1 if self.unit_stride is None else self.unit_stride % self.rank
        return tensor_argument(element, self.layout or dynamic_layout(self.rank, unit), ANYWHERE)


def is_type(parameter: Parameter, value: Any) -> bool:
    """True if a value stands for the type of an argument."""
    return isinstance(value, TensorSpec) or _is_meta_tensor(value) or _is_kind(parameter, value)


def _is_kind(parameter: Parameter, value: Any) -> bool:
    """True for a class of numbers, or `Stream`, where a value of it is expected. A Constexpr may be a class itself."""
    return isinstance(value, type) and issubclass(value, Numeric | Stream) and parameter.kind is not Constexpr


def _is_meta_tensor(value: Any) -> bool:
    return str(getattr(value, "device", "")) == "meta"


def argument_of_type(parameter: Parameter, value: Any) -> Argument:
    """The argument that a value, or the type that stands for it, is to a launcher, on any device.

    Raises ArgumentError for a type that the parameter does not take.
    """
    if _is_meta_tensor(value):
        strides = tuple(value.stride())
        unit = unit_dimension(tuple(value.shape), strides)
        value = TensorSpec(value.dtype, len(strides), None if unit < 0 else unit)
    if isinstance(value, TensorSpec):
        found = value.argument()
        if parameter.kind in (Tensor, None):
            return found
        if parameter.kind is Pointer:
            return pointer_argument(found.element, ANYWHERE, None)
    elif not _is_kind(parameter, value):
        return adapt(parameter, value)[0].anywhere()
    elif parameter.kind in (value, None):
        return STREAM if issubclass(value, Stream) else scalar_argument(value)
    raise argument_error(
        f"{parameter.name} must be {getattr(parameter.kind, '__name__', parameter.kind)}, got {value!r}",
        "pass fx.Int32 or another scalar type for a number, flyc.TensorSpec(...) for a tensor",
    )
