"""Tracing: running a launcher, and the kernels that it calls, to build the module that the pipeline compiles.

module attributes {gpu.container_module} {
  gpu.module @kernels [#rocdl.target<chip = "gfx942">] { gpu.func @kernel_0(...) kernel {...} }
  func.func @launcher(..., %stream: !gpu.async.token) attributes {llvm.emit_c_interface} {...}
}
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from mlir import ir

from flydsl.arch import Arch
from flydsl.compiler.jit_argument import ir_types, traced_value
from flydsl.compiler.rewrite import rewrite
from flydsl.compiler.signature import Parameter
from flydsl.dialect.context import context, lock
from flydsl.dialect.location import mlir_location
from flydsl.errors import SourceLocation, TraceError
from flydsl.expr.typing import Stream

_current: ContextVar[CompilationContext | None] = ContextVar("flydsl_trace", default=None)


@dataclass(frozen=True)
class KernelRecord:
    """A kernel in a traced module. parameters: the names of the kernel's runtime parameters; at: its launch."""

    name: str
    parameters: tuple[str, ...]
    at: SourceLocation | None


@dataclass
class CompilationContext:
    """What is being traced.

    gpu_module_body: the block of `gpu.module @kernels`, for what belongs beside the kernels.
    stream: the launcher's stream token, used where a launch names none.
    kernels: one record per launch.
    """

    arch: Arch
    module: ir.Module
    gpu_module_body: ir.Block
    stream: ir.Value | None = None
    in_kernel: bool = False
    kernels: list[KernelRecord] = field(default_factory=list)

    @staticmethod
    def get_current() -> CompilationContext:
        """The trace that is under way. Raises TraceError where there is none."""
        found = _current.get()
        if found is None:
            raise TraceError("nothing is being traced", hint="call this inside a @flyc.jit function")
        return found

    def unique_name(self, name: str) -> str:
        """A symbol for a kernel: its name and a number."""
        return f"{name}_{len(self.gpu_module_body.operations)}"


def is_tracing() -> bool:
    """Whether a launcher is being traced in this thread of execution."""
    return _current.get() is not None


@dataclass(frozen=True)
class Traced:
    """The result: the module, its kernels, and whether the launcher takes its stream as an extra last argument."""

    module: ir.Module
    kernels: tuple[KernelRecord, ...]
    extra_stream: bool


def trace(
    function: Callable[..., Any],
    parameters: Sequence[Parameter],
    keys: Sequence[Any],
    values: Sequence[Any],
    arch: Arch,
) -> Traced:
    """Trace a launcher for arguments with these keys; values: the arguments, of which the compile-time ones count."""
    with lock, context(), ir.Location.unknown():
        module = _empty_module(arch)
        gpu_module = module.body.operations[0]
        state = CompilationContext(arch, module, gpu_module.regions[0].blocks[0])
        token = _current.set(state)
        try:
            extra_stream = _trace_launcher(state, rewrite(function), parameters, keys, values)
        finally:
            _current.reset(token)
        return Traced(module, tuple(state.kernels), extra_stream)


def _empty_module(arch: Arch) -> ir.Module:
    return ir.Module.parse(
        "module attributes {gpu.container_module} { "
        f'gpu.module @kernels [#rocdl.target<chip = "{arch.name}">] {{ }} }}'
    )


def _trace_launcher(
    state: CompilationContext,
    function: Callable[..., Any],
    parameters: Sequence[Parameter],
    keys: Sequence[Any],
    values: Sequence[Any],
) -> bool:
    extra_stream = Stream not in keys
    types = [t for key in keys for t in _types_of(key)]
    if extra_stream:
        types += ir_types(Stream)
    code = function.__code__
    block, arguments = new_function(
        "func.func",
        function.__name__,
        types,
        ir.InsertionPoint(state.module.body),
        SourceLocation(code.co_filename, code.co_firstlineno),
        {"llvm.emit_c_interface": ir.UnitAttr.get()},
    )
    with ir.InsertionPoint(block):
        incoming = iter(arguments)
        inside = [
            value if isinstance(key, tuple) else traced_value(key, next(incoming))
            for key, value in zip(keys, values, strict=True)
        ]
        state.stream = arguments[-1] if extra_stream else inside[list(keys).index(Stream)].value
        result = function(**{p.name: value for p, value in zip(parameters, inside, strict=True)})
        if result is not None:
            raise TraceError(
                f"{function.__name__} returns {result!r}; a launcher returns nothing",
                at=SourceLocation(code.co_filename, code.co_firstlineno),
                hint="write results to a tensor",
            )
        ir.Operation.create("func.return", loc=ir.Location.unknown())
    return extra_stream


def _types_of(key: Any) -> list[ir.Type]:
    """A compile-time argument, keyed by (type, value), is no parameter of the compiled launcher."""
    return [] if isinstance(key, tuple) else ir_types(key)


def new_function(
    operation: str,
    name: str,
    types: Sequence[ir.Type],
    where: ir.InsertionPoint,
    at: SourceLocation | None,
    attributes: dict[str, ir.Attribute],
) -> tuple[ir.Block, list[ir.Value]]:
    """Create a function with an empty body; returns its entry block and arguments."""
    location = mlir_location(at)
    described = {
        "sym_name": ir.StringAttr.get(name),
        "function_type": ir.TypeAttr.get(ir.FunctionType.get(list(types), [])),
        **attributes,
    }
    with where:
        function = ir.Operation.create(operation, attributes=described, regions=1, loc=location)
    block = ir.Block.create_at_start(function.regions[0], list(types), [location] * len(types))
    return block, list(block.arguments)
