"""The module that is compiled for the host: a copy of what the stages leave, in which a launch is a call.

MLIR's own translation of a launch embeds the code object, which the device has loaded already, and loads it in a
constructor of the module. For that, LLVM's engine compiles two modules more, which takes longer than the launcher.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mlir import ir

from flydsl.dialect import launch_func
from flydsl.dialect.walk import blocks_inside, operations
from flydsl.runtime.compiled_launcher import LAUNCH
from flydsl.runtime.host_target import append

_DECLARATION = f"llvm.func @{LAUNCH}({', '.join(['i64'] * 7)}, i32, !llvm.ptr, !llvm.ptr)"
_CODE_OBJECT = "gpu.binary"
_LINE_BREAK = "\n  "


def host_module(module: ir.Module) -> tuple[ir.Module, list[str]]:
    """The module for the host, and the name of the kernel of each launch, by the launch's number."""
    with module.context, module.operation.location:
        copy = ir.Module.create(module.operation.location)
        for name in module.operation.attributes:
            copy.operation.attributes[name] = module.operation.attributes[name]
        for operation in (op for block in blocks_inside(module.operation) for op in block):
            if operation.name != _CODE_OBJECT:
                copy.body.append(operation.clone())
        launches = [op for op in operations(copy.operation) if op.name == launch_func.NAME]
        kernels = [launch_func.kernel_of(launch) for launch in launches]
        append(copy, "\n".join([_DECLARATION, *map(_function, range(len(launches)), launches)]))
        for number, launch in enumerate(launches):
            _call(number, launch)
        return copy, kernels


def _name(number: int) -> str:
    return f"launch {number}"


def _call(number: int, launch: ir.Operation) -> None:
    """Replace a launch by a call of its function."""
    callee = ir.FlatSymbolRefAttr.get(_name(number))
    operands = list(launch.operands)
    segments = ir.DenseI32ArrayAttr.get([len(operands), 0])
    attributes = {"callee": callee, "operandSegmentSizes": segments, "op_bundle_sizes": ir.DenseI32ArrayAttr.get([])}
    with ir.InsertionPoint(launch):
        ir.Operation.create("llvm.call", [], operands, attributes, loc=launch.location)
    launch.erase()


def _function(number: int, launch: ir.Operation) -> str:
    """A function of the operands of a launch, which stores those of the kernel, and calls LAUNCH."""
    types, places = [str(operand.type) for operand in launch.operands], launch_func.places_of(launch)
    sizes = [_as_i64(place, types[place]) for place in places.sizes]
    lines = [*(line for line, _ in sizes if line), *_stored(places.of_kernel, types)]
    lds = "%none" if places.lds_bytes is None else f"%a{places.lds_bytes}"
    stream = "%null" if places.stream is None else f"%a{places.stream}"
    given = ", ".join(["%number", *(name for _, name in sizes), lds, stream, "%list"])
    return f"""
llvm.func internal @"{_name(number)}"({", ".join(f"%a{i}: {type_}" for i, type_ in enumerate(types))}) {{
  %number = llvm.mlir.constant({number} : i64) : i64
  %none = llvm.mlir.constant(0 : i32) : i32
  %null = llvm.mlir.zero : !llvm.ptr
  {_LINE_BREAK.join(lines)}
  llvm.call @{LAUNCH}({given}) : ({", ".join(["i64"] * 7)}, i32, !llvm.ptr, !llvm.ptr) -> ()
  llvm.return
}}"""


def _as_i64(place: int, type_: str) -> tuple[str, str]:
    """The line that widens a size, if it must, and the name of what it gives."""
    if type_ == "i64":
        return "", f"%a{place}"
    return f"%size{place} = llvm.zext %a{place} : {type_} to i64", f"%size{place}"


def _stored(places: Sequence[int], types: Sequence[str]) -> Iterator[str]:
    """Lines that store operands, and the pointers to them in `%list`."""
    yield "%one = llvm.mlir.constant(1 : i32) : i32"
    yield f"%count = llvm.mlir.constant({max(len(places), 1)} : i32) : i32"
    yield "%list = llvm.alloca %count x !llvm.ptr : (i32) -> !llvm.ptr"
    for i, place in enumerate(places):
        yield f"%p{i} = llvm.alloca %one x {types[place]} : (i32) -> !llvm.ptr"
        yield f"llvm.store %a{place}, %p{i} : {types[place]}, !llvm.ptr"
        yield f"%at{i} = llvm.getelementptr %list[{i}] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr"
        yield f"llvm.store %p{i}, %at{i} : !llvm.ptr, !llvm.ptr"
