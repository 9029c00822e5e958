"""Text from a kernel, printed when its launch has ended, or from a launcher, `fx.printf`; its errors, `fx.refuse`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlir import ir

from flydsl.dialect.location import argument_error, trace_error
from flydsl.dialect.types import LayoutType
from flydsl.errors import TraceError
from flydsl.errors.places import user_location
from flydsl.expr.layouts.algebra import IntTuple, LayoutValue, get_shape, get_stride
from flydsl.expr.numbers.arith_value import ArithValue
from flydsl.expr.numbers.vector_value import Vector
from flydsl.expr.numeric import Boolean, Float32, Float64, Index, Int32, Int64, Numeric, Uint32, Uint64, as_numeric
from flydsl.expr.printing.refusals import WHILE_TRACED, TracedText
from flydsl.expr.tracing.emit import emit
from flydsl.expr.tracing.operands import FlyValue
from flydsl.printing import Format, Kind

__all__ = ["printf", "refuse"]

_MOST_LEAVES = 256


def printf(*args: object) -> None:
    """Print from a kernel: `fx.printf("thread {}: {:.3f}", i, x)`, with the placeholders of Python's `str.format`.

    Values are numbers, vectors, integer tuples, layouts, lists and tuples of them, and anything that is known when
    compiling. Every thread that reaches the call prints a line. The lines appear on sys.stdout after the launch, in the
    order of workgroup, thread, and time; a launcher prints when it runs. If the buffer of FLYDSL_PRINTF_BUFFER_BYTES
    overflows, a last line says how many lines are missing. Without a format string, the values are printed with spaces
    between them.
    """
    text, values = (args[0], args[1:]) if args and isinstance(args[0], str) else (" ".join("{}" for _ in args), args)
    if isinstance(text, TracedText) or WHILE_TRACED in text:
        raise trace_error(
            "the text that printf prints has a runtime value in it, whose number is known on the device only",
            'give the text placeholders, and then the values: fx.printf("n = {}", n)',
        )
    _write("printf", text, text if text.endswith("\n") else f"{text}\n", values)


def refuse(text: str, *values: object, hint: str = "", package: str = "") -> None:
    """End a call of a launcher with an ArgumentError: `if n % 4 != 0: fx.refuse("n = {} is no multiple of 4", n)`.

    The error has the text with the values, as `printf` writes them, and the line that calls the launcher. Nothing is
    launched from then on. package: of a library, whose own lines that call launchers are passed over. Raises TraceError
    in a kernel: a device cannot stop.
    """
    function = _write("refuse", text, text, values, (package, hint))
    if function is not None and function.name == "gpu.func":
        raise TraceError(
            "fx.refuse in a kernel: the device cannot stop",
            at=user_location(),
            hint="call it in the launcher, or write a flag to a tensor",
        )


def _write(
    name: str, given: str, text: str, values: Sequence[object], refusal: tuple[str, str] | None = None
) -> ir.Operation | None:
    """Write the operation of a printf or refuse, and mark the kernel or launcher that it is in, which is returned."""
    leaves: list[ir.Value] = []
    return emit_record(make_format(name, text, values, leaves, given=given, refusal=refusal), leaves)


def make_format(
    name: str,
    text: str,
    values: Sequence[object],
    leaves: list[ir.Value],
    *,
    given: str | None = None,
    refusal: tuple[str, str] | None = None,
) -> Format:
    """The format of a text with values, whose runtime numbers are appended to `leaves`.

    name: of the function that the user calls, and `given` the text as it was given, for errors.
    """
    format_ = Format(text, tuple(kind_of(value, leaves) for value in values), refusal)
    if len(leaves) > _MOST_LEAVES:
        raise argument_error(
            f"{name} prints at most {_MOST_LEAVES} numbers at once, got {len(leaves)}", "print them in several calls"
        )
    try:
        format_.check()
    except ValueError as error:
        raise argument_error(
            f"{name}({text if given is None else given!r}, ...): {error}",
            "{} takes the next value, {:.3f} with its format, {{ is a brace",
        ) from None
    return format_


def emit_record(format_: Format, leaves: Sequence[ir.Value]) -> ir.Operation | None:
    """Write the operation of a record, and mark the kernel or launcher that it is in, which is returned."""
    attributes = {"format": ir.StringAttr.get(format_.text), "fly.format": ir.StringAttr.get(format_.to_json())}
    op = emit("gpu.printf", leaves, attributes=attributes).parent
    while op is not None and op.operation.name not in ("gpu.func", "func.func"):
        op = op.operation.parent
    if op is None:
        return None
    op.operation.attributes["fly.prints"] = ir.UnitAttr.get()
    return op.operation


def kind_of(value: Any, leaves: list[ir.Value]) -> Kind:
    """The kind of a value, as printed. Its runtime numbers are appended to `leaves`."""
    if isinstance(value, LayoutValue) and isinstance(value.type, LayoutType):
        return ["layout", kind_of(get_shape(value), leaves), kind_of(get_stride(value), leaves)]
    if isinstance(value, list):
        return ["list", *(kind_of(item, leaves) for item in value)]
    if isinstance(value, tuple | IntTuple):
        return ["tuple", *(kind_of(item, leaves) for item in value)]
    if isinstance(value, FlyValue):
        raise argument_error(f"printf cannot print {value!r}", "print its elements, such as t[0], or t.load()")
    number = as_numeric(value) if isinstance(value, ir.Value) else value
    if isinstance(number, Vector):
        return ["list", *(kind_of(number[i], leaves) for i in range(number.numel))]
    if isinstance(number, ArithValue) and not (isinstance(number, Numeric) and number.is_static):
        return _leaf(number, leaves)
    if isinstance(number, Numeric):
        number = number.value
    return ["text", number] if isinstance(number, str | int | float | None) else ["text", str(number)]


def _leaf(number: Any, leaves: list[ir.Value]) -> str:
    name, wide = _printed_as(number.dtype)
    leaves.append(wide(number).ir_value())
    return name


def _printed_as(dtype: type[Numeric]) -> tuple[str, type[Numeric]]:
    """The kind of numbers of a type, and the type that the buffer stores them as."""
    if dtype.is_float:
        return ("f64", Float64) if dtype is Float64 else ("f32", Float32)
    if dtype is Boolean:
        return "bool", Uint32
    signed = dtype is Index or getattr(dtype, "signed", True)
    if dtype is Index or dtype.width > 32:
        return ("i64", Int64) if signed else ("u64", Uint64)
    return ("i32", Int32) if signed else ("u32", Uint32)
