"""Functions that are defined outside of the program: `ffi("name", ["int32"], "int32")` calls one by its symbol.

`flydsl.compiler.extern_link.link_extern` says in which bitcode it is.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from mlir import ir

from flydsl.dialect.elements import llvm_pointer_type
from flydsl.dialect.location import argument_error, mlir_location, trace_error
from flydsl.errors import ArgumentError
from flydsl.errors.places import user_location
from flydsl.expr.numbers.arith_value import ArithValue
from flydsl.expr.numeric import Float32, Float64, Int32, Int64, Numeric, Uint32, Uint64, as_numeric
from flydsl.expr.tracing.emit import emit, gpu_module_body
from flydsl.expr.tracing.operands import as_ir_value
from flydsl.expr.tracing.traced_value import with_operators

__all__ = ["ExternFunction", "ffi"]

_SCALARS: dict[str, type[Numeric]] = {
    "int32": Int32, "uint32": Uint32, "int64": Int64, "uint64": Uint64, "float32": Float32, "float64": Float64,
}  # fmt: skip
_POINTER = re.compile(r"ptr(?:<(\d+)>)?$")


class ExternFunction:
    """A function of the device, by its symbol. Call it in a kernel with as many arguments as it has types.

    arg_types, ret_type: `int32`, `uint32`, `int64`, `uint64`, `float32`, `float64`, `ptr` or `ptr<1>` (LLVM's address
    spaces), and `void` for no result. A pointer may be given as an Int64. is_pure: taken and not used.
    """

    def __init__(
        self, symbol: str, arg_types: Sequence[str], ret_type: str, is_pure: bool = False, **link: Any
    ) -> None:
        if link:
            raise argument_error(
                f"ffi({symbol!r}, {next(iter(link))}=): a function is linked by link_extern",
                "flydsl.compiler.extern_link.link_extern(ffi(...), bitcode_path=...)",
            )
        self.symbol, self.is_pure = symbol, is_pure
        self.arg_types, self.ret_type = tuple(arg_types), ret_type

    def __call__(self, *args: Any) -> Any:
        """Call the function. Raises ArgumentError for arguments of other types than it takes."""
        body = gpu_module_body()
        if body is None:
            raise trace_error(f"{self.symbol} outside of a kernel: it is a function of the device")
        if len(args) != len(self.arg_types):
            raise argument_error(f"{self.symbol} takes {len(self.arg_types)} arguments, got {len(args)}")
        values = [self._argument(i, kind, arg) for i, (kind, arg) in enumerate(zip(self.arg_types, args, strict=True))]
        result = None if self.ret_type == "void" else _type_of(self.ret_type)
        self._declare(body, [value.type for value in values], result)
        attributes = {
            "callee": ir.FlatSymbolRefAttr.get(self.symbol),
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([len(values), 0]),
            "op_bundle_sizes": ir.DenseI32ArrayAttr.get([]),
        }
        call = emit("llvm.call", values, [] if result is None else [result], attributes)
        if result is None:
            return None
        return _SCALARS[self.ret_type].of(call.result) if self.ret_type in _SCALARS else with_operators(call.result)

    def _argument(self, number: int, kind: str, given: Any) -> ir.Value:
        what = f"argument {number} of {self.symbol}"
        if kind in _SCALARS:
            if isinstance(given, ir.Value) and str(given.type).startswith("!llvm.ptr"):
                raise argument_error(f"{what} expects {_type_of(kind)}, got {given.type}")
            return _SCALARS[kind](given).ir_value()
        pointer = _type_of(kind)
        if isinstance(given, bool | int | float):
            raise argument_error(
                f"{what} is a {kind}, got the Python int {given!r}", "an address of the device is an Int64 of run time"
            )
        value = as_ir_value(given)
        if value.type == pointer:
            return value
        if isinstance(given, ArithValue) and as_numeric(given).dtype.mlir_name == "i64":
            return emit("llvm.inttoptr", [value], [pointer]).result
        raise argument_error(f"{what} is a {kind} or its address as i64, got {value.type}")

    def _declare(self, body: ir.Block, arguments: list[ir.Type], result: ir.Type | None) -> None:
        """Declare the function beside the kernels, once."""
        types = ", ".join(map(str, arguments))
        kind = ir.TypeAttr.get(ir.Type.parse(f"!llvm.func<{result or 'void'} ({types})>"))
        for op in body.operations:
            if "sym_name" in op.attributes and ir.StringAttr(op.attributes["sym_name"]).value == self.symbol:
                if op.operation.name != "llvm.func" or op.attributes["function_type"] != kind:
                    raise argument_error(f"{self.symbol} is already declared, with another type")
                return
        ir.Operation.create(
            "llvm.func",
            attributes={
                "sym_name": ir.StringAttr.get(self.symbol),
                "sym_visibility": ir.StringAttr.get("private"),
                "function_type": kind,
                "CConv": ir.Attribute.parse("#llvm.cconv<ccc>"),
                "linkage": ir.Attribute.parse("#llvm.linkage<external>"),
                "visibility_": ir.IntegerAttr.get(ir.IntegerType.get_signless(64), 0),
            },
            regions=1,
            ip=ir.InsertionPoint.at_block_begin(body),
            loc=mlir_location(user_location()),
        )

    def __repr__(self) -> str:
        return f"ffi({self.symbol!r}, {list(self.arg_types)}, {self.ret_type!r})"


def _type_of(name: str) -> ir.Type:
    if name in _SCALARS:
        return _SCALARS[name].ir_type
    match = _POINTER.match(name)
    if match is None:
        raise TypeNameError(
            f"{name!r} is no type of a function from outside; a pointer's address space is a number, as in ptr<1>",
            at=user_location(),
            hint=f"there is {', '.join(_SCALARS)}, ptr, ptr<1> and void",
        )
    return llvm_pointer_type(int(match[1] or 0))


class TypeNameError(ArgumentError, ValueError):
    """A name that is no type."""


ffi = ExternFunction
