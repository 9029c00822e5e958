"""Common parts of the wrappers of ROCDL operations: results, operands, immediates and the target.

The result type is a wrapper's first parameter, `rocdl.readfirstlane(T.i32, x)`. Where the operands decide it, or there
is a usual one, it may be left out: `rocdl.readfirstlane(x)`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from functools import wraps
from types import MappingProxyType
from typing import Any, ParamSpec, TypeVar

from mlir import ir

from flydsl.atoms import BUFFER
from flydsl.dialect.elements import element_bits, element_type, llvm_pointer_type, scalar_of
from flydsl.dialect.location import argument_error
from flydsl.dialect.ops import OPS_BY_MLIR_NAME
from flydsl.dialect.types import PointerType, fly_type
from flydsl.errors import ArchError, how_to_make
from flydsl.errors.places import user_location
from flydsl.expr.memory.storage import ArrayInMemory, Storage, start_of
from flydsl.expr.memory.tensors import Tensor, get_iter
from flydsl.expr.numbers.arith_value import ArithValue
from flydsl.expr.numeric import Index, Integer, Numeric, as_numeric, is_python_number, numeric_class
from flydsl.expr.tracing.emit import emit, require_trace, target_name
from flydsl.expr.tracing.operands import as_fly_value

_P = ParamSpec("_P")
_R = TypeVar("_R")


def result_type_first(function: Callable[_P, _R]) -> Callable[..., _R]:
    """Make the first parameter, `res`, optional: it is None if a call leaves it out."""

    parameters = inspect.signature(function)

    @wraps(function)
    def with_or_without(*arguments: Any, **named: Any) -> _R:
        if "res" not in named and not (arguments and (arguments[0] is None or is_type(arguments[0]))):
            arguments = (None, *arguments)
        try:
            bound = parameters.bind(*arguments, **named)
        except TypeError as error:
            shown = ", ".join(parameters.parameters)
            raise argument_error(
                f"{with_or_without.__name__}({shown}): {error}",
                "pass each of its parameters once; the result type, res, may be left out",
            ) from None
        return function(*bound.args, **bound.kwargs)

    return with_or_without


def is_type(value: Any) -> bool:
    """True if a value names a type: an MLIR type or a scalar type of the DSL."""
    return isinstance(value, ir.Type) or (isinstance(value, type) and issubclass(value, Numeric))


def ir_type(what: str, kind: Any) -> ir.Type:
    """The MLIR type that a value names."""
    if isinstance(kind, ir.Type):
        return kind
    if is_type(kind) and hasattr(kind, "mlir_name"):
        return kind.ir_type
    raise argument_error(f"{what}: {kind!r} is not a type", "pass T.i32 or fx.Int32, for example")


def require_target(what: str, archs: Sequence[str]) -> None:
    """Raise ArchError if the kernel is compiled for a target that lacks an instruction."""
    require_trace(what)
    target = target_name()
    if target is not None and target not in archs:
        raise ArchError(f"{what}: {target} does not have it", at=user_location(), hint=f"it is for {', '.join(archs)}")


def value_of(what: str, value: Any) -> ir.Value:
    """Any value of the DSL as an `ir.Value`; a Python number as Int32, Float32 or Boolean."""
    if isinstance(value, ir.Value):
        return value
    if isinstance(value, ArithValue) or is_python_number(value):
        return as_numeric(value).ir_value()
    raise argument_error(f"{what}: {value!r} is not a value of the program", how_to_make.NUMBER)


def operand(what: str, value: Any, kind: type[Numeric] | ir.Type) -> ir.Value:
    """A value as an operand of exactly the given type.

    A Python number becomes a constant of it, an Index a truncated integer; any other difference is an ArgumentError.
    """
    wanted = kind if isinstance(kind, ir.Type) else kind.ir_type
    if is_python_number(value) and not isinstance(wanted, ir.VectorType):
        return numeric_class(wanted).exactly(value).ir_value()
    given = value_of(what, value)
    if given.type == wanted:
        return given
    scalar = None if isinstance(wanted, ir.VectorType) else numeric_class(wanted)
    if scalar is not None and issubclass(scalar, Integer) and given.type == Index.ir_type:
        return scalar(given).ir_value()
    raise argument_error(
        f"{what}: it takes {wanted}, not {given.type}",
        "convert it first: value.to(dtype), value.bitcast(dtype), or fx.Vector.from_elements([...]) of scalars",
    )


def bits_of(kind: ir.Type) -> int:
    """Width in bits of a scalar or vector type."""
    if isinstance(kind, ir.VectorType):
        count = 1
        for extent in kind.shape:
            count *= extent
        return count * element_bits(str(kind.element_type))
    return element_bits(str(kind))


def bitcast(value: ir.Value, kind: ir.Type) -> ir.Value:
    """The same bits as another scalar or one-dimensional vector type of the same width."""
    if value.type == kind:
        return value
    source, target = (isinstance(t, ir.VectorType) for t in (value.type, kind))
    if not source and not target:
        return emit("arith.bitcast", [value], [kind]).result
    if not source:
        value = emit("vector.broadcast", [value], [ir.VectorType.get([1], value.type)]).result
    shape = kind if target else ir.VectorType.get([1], kind)
    if value.type != shape:
        value = emit("vector.bitcast", [value], [shape]).result
    if target:
        return value
    position = {"static_position": ir.DenseI64ArrayAttr.get([0])}
    return emit("vector.extract", [value], [kind], position).result


def as_type(what: str, value: Any, kind: ir.Type) -> ir.Value:
    """A value as one of type `kind`; it may hold the same bits in another form, such as 8 fp8 numbers in an i64."""
    given = value_of(what, value)
    if given.type == kind:
        return given
    if not _has_bits(given.type) or bits_of(given.type) != bits_of(kind):
        raise argument_error(
            f"{what}: it takes {kind}, not {given.type}",
            "convert it first: value.to(dtype); other types of equal width keep their bits",
        )
    return bitcast(given, kind)


def _has_bits(kind: ir.Type) -> bool:
    element = scalar_of(kind)
    return isinstance(element, ir.IntegerType | ir.FloatType)


def intrinsic_result(value: ir.Value) -> Any:
    """A result as a value of the DSL; a pointer or a structure remains an `ir.Value`."""
    return as_numeric(value) if _has_bits(value.type) or value.type == Index.ir_type else value


def call(
    name: str,
    operands: Sequence[ir.Value],
    result: ir.Type | None = None,
    attributes: Mapping[str, ir.Attribute] | None = None,
) -> Any:
    """Emit `rocdl.name`. Returns its result as a value of the DSL, or None if it has none."""
    op = emit(f"rocdl.{name}", operands, [] if result is None else [result], {**(attributes or {}), **_scopes.get()})
    return None if result is None else intrinsic_result(op.result)


_scopes: ContextVar[Mapping[str, ir.Attribute]] = ContextVar("flydsl_alias_scopes", default=MappingProxyType({}))


def takes_alias_scopes(function: Callable[_P, _R]) -> Callable[..., _R]:
    """Let an operation of memory take `alias_scopes=` and `noalias_scopes=`, for LLVM's alias analysis.

    Both are lists of MLIR's `#llvm.alias_scope`: those that the access belongs to, and those that it stays out of.
    """

    @wraps(function)
    def taking(*arguments: Any, alias_scopes: Any = None, noalias_scopes: Any = None, **named: Any) -> _R:
        __tracebackhide__ = True
        given = {"alias_scopes": alias_scopes, "noalias_scopes": noalias_scopes}
        scopes = {name: _scope_list(name, value) for name, value in given.items() if value is not None}
        before = _scopes.get()
        try:
            if scopes:
                _scopes.set(scopes)
            return function(*arguments, **named)
        except TypeError as error:
            if error.__traceback__ is None or error.__traceback__.tb_next is not None:
                raise  # not of this call
            shown, problem = ", ".join(inspect.signature(function).parameters), str(error).rpartition("() ")[2]
            raise argument_error(f"{taking.__name__}({shown}): {problem}", "pass each of its parameters once") from None
        finally:
            if scopes:
                _scopes.set(before)

    return taking


def alias_scopes_of_call() -> dict[str, ir.Attribute]:
    """The alias scopes that the call which is under way was given."""
    return dict(_scopes.get())


def _scope_list(name: str, scopes: Any) -> ir.Attribute:
    listed = list(scopes) if isinstance(scopes, list | tuple | ir.ArrayAttr) else [scopes]
    if not all(isinstance(scope, ir.Attribute) and str(scope).startswith("#llvm.alias_scope<") for scope in listed):
        raise argument_error(f"{name}={scopes!r}", "a list of MLIR's alias scopes: ir.Attribute.parse(...)")
    return ir.ArrayAttr.get(listed)


def call_intrinsic(name: str, operands: Sequence[ir.Value], result: ir.Type | None = None) -> Any:
    """Call an LLVM intrinsic that ROCDL has no operation for; its result, or None if it has none."""
    attributes = {
        "intrin": ir.StringAttr.get(name),
        "operandSegmentSizes": ir.DenseI32ArrayAttr.get([len(operands), 0]),
        "op_bundle_sizes": ir.DenseI32ArrayAttr.get([]),
    }
    op = emit("llvm.call_intrinsic", operands, [] if result is None else [result], attributes)
    return None if result is None else op.result


def i32_attribute(value: int) -> ir.Attribute:
    """An integer attribute of 32 bits."""
    return ir.IntegerAttr.get(element_type("i32"), value)


def i16_attribute(value: int) -> ir.Attribute:
    """An integer attribute of 16 bits."""
    return ir.IntegerAttr.get(element_type("i16"), value)


def llvm_pointer(what: str, value: Any, space: int) -> ir.Value:
    """A tensor, a pointer or memory of the DSL, an LLVM pointer, or a memref in LDS, as `!llvm.ptr<space>`.

    A fly pointer is converted where convert-fly-to-rocdl gives it its LLVM form.
    """
    if hasattr(value, "llvm_pointer") and space == _LDS:
        return value.llvm_pointer()
    value = as_fly_value(value)
    if isinstance(value, Tensor):
        if space == _BUFFER and fly_type(value.value.type).space == BUFFER:
            _require_whole(what, value)
        value = get_iter(value)
    if isinstance(value, Storage | ArrayInMemory):
        value = start_of(value)
    wanted = llvm_pointer_type(space)
    given = getattr(value, "value", value)
    if isinstance(given, ir.Value) and given.type == wanted:
        return given
    if isinstance(given, ir.Value) and space == _LDS and is_in_lds(given.type):
        return _address_of(given, wanted)
    kind = fly_type(given.type) if isinstance(given, ir.Value) else None
    if not isinstance(kind, PointerType) or _SPACES.get(kind.space) != space:
        shown = given.type if isinstance(given, ir.Value) else repr(value)
        raise argument_error(f"{what}: it takes {_NAMES[space]}, not {shown}", _HOW_MADE[space])
    return emit("builtin.unrealized_conversion_cast", [given], [wanted]).result


def is_in_lds(kind: Any) -> bool:
    """True for the type of a memref in LDS, as `SmemPtr.get()` gives it."""
    return isinstance(kind, ir.MemRefType) and str(kind.memory_space) == "#gpu.address_space<workgroup>"


def _address_of(memref: ir.Value, wanted: ir.Type) -> ir.Value:
    index = emit("memref.extract_aligned_pointer_as_index", [memref], [element_type("index")]).result
    address = emit("arith.index_cast", [index], [element_type("i32")]).result
    return emit("llvm.inttoptr", [address], [wanted]).result


def _require_whole(what: str, tensor: Tensor) -> None:
    """Refuse a part of a buffer tensor. It has the resource of the whole, and an offset for each instruction."""
    view = _made_by(tensor.value, "make_view")
    if view is None or _made_by(view.operands[0], "make_ptr") is None:
        raise argument_error(
            f"{what}: a part of a buffer tensor has no resource of its own",
            "pass the tensor that make_buffer_tensor returned, and add the offset",
        )


def _made_by(value: ir.Value, operation: str) -> ir.Operation | None:
    """The fly operation that made a value, or None unless it is the named one."""
    if isinstance(value.owner, ir.Block):
        return None
    spec = OPS_BY_MLIR_NAME.get(value.owner.name)
    return value.owner if spec is not None and spec.name == operation else None


_LDS, _BUFFER = 3, 8
_SPACES = {"generic": 0, "global": 1, "shared": _LDS, BUFFER: _BUFFER}
_NAMES = {
    0: "a pointer to generic memory",
    1: "a tensor or pointer in global memory",
    3: "a tensor or pointer in LDS",
    8: "a buffer resource",
}
_HOW_MADE = {0: how_to_make.POINTER, 1: how_to_make.GLOBAL_TENSOR, 3: how_to_make.SHARED_POINTER, 8: how_to_make.BUFFER}
