"""Python values as operands of fly operations, and results as Python values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from mlir import ir

from flydsl import layout as algebra
from flydsl.dialect.elements import element_type
from flydsl.dialect.leaves import is_static
from flydsl.dialect.location import argument_error
from flydsl.dialect.ops import infer
from flydsl.dialect.types import (
    ComposedLayoutType,
    CoordSwizzleType,
    FlyType,
    IntTupleType,
    LayoutType,
    SwizzleType,
    TileType,
    fly_type,
)
from flydsl.errors import FlyError, how_to_make
from flydsl.errors.places import SourceLocation, user_location
from flydsl.expr.numbers.arith_value import ArithValue
from flydsl.expr.numeric import Index, Int32, Int64, Numeric, as_numeric, wrap_scalar
from flydsl.expr.tracing.emit import emit_fly, require_trace
from flydsl.expr.tracing.executing import lanes_of, text_of_lanes
from flydsl.expr.tracing.outlived import note, note_raw
from flydsl.layout import ComposedLayout, CoordSwizzle, IntLeaf, Layout, Swizzle, Tile
from flydsl.layout.int_tuple import as_int_tuple

# Type of a static operand -> its fly type.
_STATIC_TYPES: dict[type, Callable[[Any], FlyType]] = {
    Layout: LayoutType,
    ComposedLayout: ComposedLayoutType,
    Swizzle: SwizzleType,
    CoordSwizzle: CoordSwizzleType,
    Tile: TileType,
}
_THREAD = "usually fx.thread_idx.x"
# Fly type of a result -> the class that shows it.
_SHOWN_BY: dict[type[FlyType], type[FlyValue]] = {}


class FlyValue:
    """A traced value of a type of the fly dialect. A subclass names the types that it `shows`."""

    value: ir.Value

    def __init_subclass__(cls, shows: tuple[type[FlyType], ...] = ()) -> None:
        super().__init_subclass__()
        _SHOWN_BY.update(dict.fromkeys(shows, cls))

    def __init__(self, value: ir.Value) -> None:
        self.value = value
        note(self)

    @property
    def type(self) -> Any:
        """The fly type, with what is known about the value when compiling."""
        return fly_type(self.value.type)

    def operand(self) -> ir.Value:
        """The value as an operand of fly operations."""
        return self.value

    def __extract_to_ir_values__(self) -> list[ir.Value]:
        """The one value that it consists of."""
        return [self.value]

    @classmethod
    def __construct_from_ir_values__(cls, values: Sequence[ir.Value]) -> Any:
        """A value of the class, made of the one value that it consists of."""
        return cls(values[0])

    @property
    def lanes(self) -> Any:
        """The value in each lane, as an array. Only the interpreter has one."""
        return lanes_of(self.value, type(self).__name__)

    def __repr__(self) -> str:
        name = type(self).__name__
        return text_of_lanes(self.value, name) or f"{name}({self.type})"


class StaticFlyValue:
    """A value that its fly type describes completely: an instruction, or a tiling of one."""

    type: Any

    def __init__(self, fly: FlyType) -> None:
        self.type = fly

    def operand(self) -> ir.Value:
        """The value as an operand of fly operations. Emits the operations that make it."""
        raise NotImplementedError(f"{type(self).__name__} is not an operand")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StaticFlyValue) and other.type == self.type

    def __hash__(self) -> int:
        return hash(self.type)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.type})"


def is_runtime(value: Any) -> bool:
    """True if a value, or a leaf of a nested tuple, exists only at run time."""
    if isinstance(value, tuple | list):
        return any(map(is_runtime, value))
    return isinstance(value, FlyValue | ir.Value) or (isinstance(value, ArithValue) and not _is_static(value))


def _is_static(value: ArithValue) -> bool:
    return isinstance(value, Numeric) and value.is_static


def static_operand(value: Any) -> Any:
    """A static operand converted for the algebra: nested tuples of ints, None for the wildcard."""
    if isinstance(value, tuple | list):
        return tuple(map(static_operand, value))
    return int(value) if isinstance(value, Numeric | IntLeaf) else value


def located(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function that knows no source locations; its errors get the user's line."""
    try:
        return function(*arguments)
    except FlyError as error:
        raise error.located(user_location()) from None


def thread_number(what: str, thread: Any, layout: Layout) -> Any:
    """A thread's number as an integer. Raises ArgumentError for anything else.

    layout: (thread, value) -> element, of the whole tile. A known number is one of its threads.
    """
    number = as_numeric(thread)
    if not isinstance(number, Numeric) or number.is_float:
        raise argument_error(f"{what} takes the number of a thread, not {thread!r}", _THREAD)
    threads = algebra.size(layout[0])
    if number.is_static and isinstance(threads, int) and not 0 <= int(number) < threads:
        raise argument_error(f"{what} of thread {int(number)}: there are {threads}", _THREAD)
    return thread


def thread_coordinate(what: str, thread: Any, layout: Layout) -> Any:
    """A thread's number, or its coordinate among the threads of a layout, as `thread_number`.

    The last part of a coordinate may reach past the threads, into the tiles after this one.
    """
    if not isinstance(thread, tuple | list):
        return thread_number(what, thread, layout)
    symbols, _ = _int_tuple(tuple(thread))
    located(algebra.crd2idx, symbols, layout[0])
    return tuple(thread)


def as_operand(value: Any, at: SourceLocation | None = None) -> ir.Value:
    """Any operand of a fly operation as an `ir.Value`; static ones become `fly.static`. at: usually the user's line."""
    if isinstance(value, FlyValue | StaticFlyValue):
        return value.operand()
    if isinstance(value, ir.Value) and fly_type(value.type) is not None:
        return value
    if type(value) in _STATIC_TYPES:
        return emit_fly("static", results=[_STATIC_TYPES[type(value)](value)], at=at).result
    require_trace("a runtime tuple")
    symbols, leaves = _int_tuple(value)
    shape: Any = symbols if type(symbols) is algebra.Dynamic else located(algebra.make_int_tuple, symbols)
    return emit_fly("make_int_tuple", leaves, results=[IntTupleType(shape)], at=at, checked=False).result


def as_ir_value(value: Any) -> ir.Value:
    """A value of the DSL as MLIR's; a Python number becomes a constant."""
    if isinstance(value, ir.Value):
        note_raw(value)
        return value
    if isinstance(value, FlyValue):
        return value.value
    number = as_numeric(value)
    if isinstance(number, ArithValue):
        return number.ir_value()
    raise argument_error(f"{value!r} is not a value of the DSL", how_to_make.NUMBER)


def element_name(element: Any) -> str:
    """An element type in memory, given as `fx.Float32` or as an MLIR type, by its MLIR name."""
    if isinstance(element, type) and issubclass(element, Numeric):
        return element.memory_name
    if isinstance(element, ir.Type):
        return str(element)
    raise argument_error(f"{element!r} is not an element type", "pass fx.Float32, for example")


def ir_type_of(kind: Any) -> ir.Type:
    """A type of the DSL as MLIR's."""
    if isinstance(kind, ir.Type):
        return kind
    made = getattr(kind, "ir_type", None) if isinstance(kind, type) and not issubclass(kind, Numeric) else None
    return made if isinstance(made, ir.Type) else element_type(element_name(kind))


def _int_tuple(value: Any) -> tuple[Any, list[ir.Value]]:
    """A nested tuple as its symbolic form, and the runtime values in it."""
    if not isinstance(value, tuple | list) and not _is_traced_tuple(value):
        return _leaf(value)
    parts = [_int_tuple(item) for item in value]
    return tuple(symbol for symbol, _ in parts), [leaf for _, leaves in parts for leaf in leaves]


def _is_traced_tuple(value: Any) -> bool:
    return isinstance(value, FlyValue) and isinstance(value.type, IntTupleType)


def _leaf(value: Any) -> tuple[Any, list[ir.Value]]:
    if value is None or isinstance(value, int) or (isinstance(value, algebra.Basis) and algebra.is_static(value)):
        return value, []
    number = as_numeric(value)
    if not isinstance(number, Numeric) or number.is_float:
        raise argument_error(
            f"a shape, stride or coordinate must consist of integers, got {value!r}",
            "convert it: int(...) of a Python number, .to(fx.Int32) of a value of the device",
        )
    if number.is_static:
        return int(number), []
    wide, symbol = _leaf_of(type(number))
    return symbol, [(number if type(number) is wide else wide(number)).ir_value()]


@cache
def _leaf_of(dtype: type[Numeric]) -> tuple[type[Numeric], algebra.Dynamic]:
    """The type that a runtime integer has in a tuple, and its symbol there."""
    wide = Int64 if dtype is Index or dtype.width > 32 else Int32
    return wide, algebra.Dynamic(wide.width)


def fly_result(value: ir.Value) -> Any:
    """A result of a fly operation as a value of the DSL; a single runtime integer is a number."""
    kind = fly_type(value.type)
    if isinstance(kind, IntTupleType) and not isinstance(kind.value, tuple):
        return wrap_scalar(emit_fly("get_scalar", [value]).result)
    if type(kind) in _SHOWN_BY:
        return _SHOWN_BY[type(kind)](value)
    raise argument_error(
        f"a value of type {value.type} has no form in the DSL",
        "keep it an ir.Value, as an operand of MLIR's operations",
    )


def as_dsl_value(value: Any) -> Any:
    """An `ir.Value` as a value of the DSL; anything else unchanged."""
    if not isinstance(value, ir.Value):
        return value
    return as_numeric(value) if fly_type(value.type) is None else fly_result(value)


def as_fly_value(value: Any) -> Any:
    """An `ir.Value` of a fly type, such as `tensor.value`, as the tensor or pointer that it is; others unchanged."""
    return fly_result(value) if isinstance(value, ir.Value) and fly_type(value.type) is not None else value


def call_algebra(name: str, operands: tuple[Any, ...], attributes: dict[str, Any]) -> Any:
    """Apply an operation of the layout algebra to operands that are partly traced.

    If the types determine the result completely, it is a plain Python value; otherwise one operation is emitted.
    """
    values = [as_operand(operand) for operand in operands]
    (result,) = located(infer, name, values, attributes)
    static = _static_result(result)
    if static is not None:
        return static
    return fly_result(emit_fly(name, values, results=[result], attributes=attributes).result)


def _static_result(result: FlyType) -> Any:
    """The plain Python value of a completely static result type, else None."""
    if isinstance(result, LayoutType | ComposedLayoutType) and is_static(result.layout):
        return result.layout
    if isinstance(result, IntTupleType) and is_static(result.value):
        return as_int_tuple(result.value)
    return None
