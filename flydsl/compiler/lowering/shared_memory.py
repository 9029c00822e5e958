"""The LDS use of the kernels in a traced module: a check that every storage exists, and that all of it fits."""

from __future__ import annotations

import re

from mlir import ir

from flydsl.arch import Arch, launch_limits
from flydsl.dialect import launch_func
from flydsl.dialect.location import source_location
from flydsl.dialect.walk import operations
from flydsl.errors import LaunchError, SourceLocation, TraceError

# Operations that make a storage, and those that use one -> the attribute with its type, or with its name. Storages are
# arrays of bytes: memref<128xi8, ...>, !llvm.array<128 x i8>.
_STORAGES = {"memref.global": "type", "llvm.mlir.global": "global_type"}
_USES = {"memref.get_global": "name", "llvm.mlir.addressof": "global_name"}
_BYTES = re.compile(r"<(\d+) ?x ?i8\b")


def check_shared_memory(module_body: ir.Block, launcher: ir.Block, arch: Arch) -> None:
    """Raise TraceError for storage that was never made, LaunchError for a launch that needs more than a
    workgroup has, or that forgets the dynamic memory which its kernel uses.

    module_body: of the GPU module. launcher: the host function's entry block. Dynamic memory of runtime size is
    checked at the launch.
    """
    storages = {_name(op): _size_bytes(op) for op in module_body.operations if op.operation.name in _STORAGES}
    functions = {_name(op): op.operation for op in module_body.operations if op.operation.name == "gpu.func"}
    for launch in (op for op in operations(launcher.owner.operation) if op.name == launch_func.NAME):
        kernel = launch_func.kernel_of(launch)
        static = sum(storages[name] for name in _used(functions[kernel], storages))
        if _launches_without(launch) and (use := _dynamic_use(functions[kernel])):
            raise LaunchError(
                f"{kernel} uses dynamic shared memory, and its launch has smem=0",
                at=source_location(launch.location),
                hint=f"launch(..., smem=bytes), such as smem=256 for 64 Float32; it is used at {use}",
            )
        try:
            launch_limits.check_lds(arch, static, _dynamic_bytes(launch))
        except LaunchError as error:
            raise error.located(source_location(launch.location)) from None


def _launches_without(launch: ir.Operation) -> bool:
    """True for a launch without dynamic shared memory, as far as is known at compile time."""
    operand = launch_func.dynamic_lds_bytes(launch)
    return operand is None or _constant(operand) == 0


def _dynamic_use(function: ir.Operation) -> SourceLocation | None:
    """The operations of a kernel that take the address of its dynamic shared memory, and use it."""
    ops = (op for op in operations(function) if op.name == "fly.get_dyn_shared" and any(True for _ in op.result.uses))
    return next((source_location(op.location) for op in ops), None)


def _used(function: ir.Operation, storages: dict[str, int]) -> set[str]:
    """The storages that a kernel uses."""
    used = set()
    for op in operations(function):
        if op.name not in _USES or _USES[op.name] not in op.attributes:
            continue  # built by name, and wrong: MLIR's verifier says so
        name = ir.FlatSymbolRefAttr(op.attributes[_USES[op.name]]).value
        if name not in storages:
            raise TraceError(
                f"LDS storage {name!r} is used but was never allocated",
                at=source_location(op.location),
                hint="call allocator.finalize() in the launcher, inside "
                "`with ir.InsertionPoint(CompilationContext.get_current().gpu_module_body):`",
            )
        used.add(name)
    return used


def _name(op: ir.OpView) -> str:
    return ir.StringAttr(op.attributes["sym_name"]).value


def _size_bytes(storage: ir.OpView) -> int:
    return int(_BYTES.search(str(storage.attributes[_STORAGES[storage.operation.name]]))[1])  # type: ignore[index]


def _dynamic_bytes(launch: ir.Operation) -> int:
    """The launch's smem if it is known at compile time, else 0."""
    operand = launch_func.dynamic_lds_bytes(launch)
    return 0 if operand is None else _constant(operand) or 0


def _constant(value: ir.Value) -> int | None:
    """An integer that is known at compile time, else None."""
    if isinstance(value.owner, ir.Block) or value.owner.name != "arith.constant":
        return None
    return ir.IntegerAttr(value.owner.attributes["value"]).value
