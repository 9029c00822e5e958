"""Tracing: running a launcher, and the kernels that it calls, to build the module that the pipeline compiles.

module attributes {gpu.container_module} {
  gpu.module @kernels [#rocdl.target<chip = "gfx942">] { gpu.func @kernel_0(...) kernel {...} }
  func.func @launcher(..., %stream: !gpu.async.token) attributes {llvm.emit_c_interface} {...}
}
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from types import GeneratorType
from typing import Any, Protocol

from mlir import ir

from flydsl import env
from flydsl.arch import DEFAULT_ARCH, Arch, get_arch
from flydsl.compiler.arguments.argument import STREAM, Argument
from flydsl.compiler.arguments.signature import Signature
from flydsl.compiler.debugging.traced_stops import explaining_breakpoints
from flydsl.compiler.hints import NO_HINTS, CompileHints, compile_hints, current_hints
from flydsl.compiler.lowering.shared_memory import check_shared_memory
from flydsl.compiler.rewrite import rewrite
from flydsl.dialect.context import context, lock
from flydsl.dialect.location import argument_error, mlir_location, source_location, trace_error
from flydsl.dialect.ops import is_on_device_only, printed_name
from flydsl.errors import SourceLocation, TraceError
from flydsl.errors.places import definition_location
from flydsl.expr.control_flow.region import regions_closed, remove_stand_ins
from flydsl.expr.numbers.fastmath_flags import fastmath
from flydsl.expr.printing.assertions import check_indices
from flydsl.expr.printing.overflows import check_overflow
from flydsl.expr.tracing.outlived import is_kept, values_end
from flydsl.expr.tracing.trace_limit import limited
from flydsl.system.interrupts import holding

_current: ContextVar[CompilationContext | None] = ContextVar("flydsl_trace", default=None)


_GPU_MODULE = "kernels"


class CalledKernel(Protocol):
    """A kernel that was called and is not launched yet. symbol: its name. at: where it is called."""

    symbol: str
    at: SourceLocation | None


class Ahead(Protocol):
    """A copy of this process that is ahead of it in the same trace."""

    def follow(self, name: str) -> None:
        """Wait until the copy has made a call of the builder of that name."""

    def end(self) -> None:
        """Leave no copy behind."""


@dataclass(frozen=True)
class KernelRecord:
    """A kernel in a traced module.

    name: its symbol; at: where it is launched; dynamic_lds_bytes: smem of that launch, None for one of run time.
    """

    name: str
    at: SourceLocation | None
    dynamic_lds_bytes: int | None = 0


@dataclass
class CompilationContext:
    """The state of a trace.

    gpu_module_body: the block of `gpu.module @kernels`, for what belongs beside the kernels.
    stream: the launcher's stream token, used where a launch names none.
    kernels: one record per launch. waiting: kernels that were called and are not launched yet.
    at_end: called when the trace ends. libraries: bitcode that kernels are linked with, by its path.
    ahead: see `flydsl._mlir.lookahead`. thread: that traces; the interpreter's waves have others.
    entered, launcher: where the interpreter is on, what executes the block of a function, and launches a kernel.
    """

    arch: Arch
    module: ir.Module
    gpu_module_body: ir.Block
    stream: ir.Value | None = None
    in_kernel: bool = False
    kernels: list[KernelRecord] = field(default_factory=list)
    waiting: list[CalledKernel] = field(default_factory=list)
    at_end: list[Callable[[], None]] = field(default_factory=list)
    libraries: dict[str, bytes] = field(default_factory=dict)
    thread: int = field(default_factory=threading.get_ident)
    ahead: Ahead | None = None
    entered: Callable[[ir.Block], AbstractContextManager[Any]] = lambda block: nullcontext()
    launcher: Callable[..., Any] | None = None

    compile_hints = staticmethod(compile_hints)
    get_compile_hints = staticmethod(current_hints)

    @staticmethod
    def get_current() -> CompilationContext:
        """The current trace. Raises TraceError if there is none."""
        found = _current.get()
        if found is None:
            raise TraceError("nothing is being traced", hint="call this inside a @flyc.jit function")
        return found

    @classmethod
    @contextmanager
    def create(cls, func_tracker: Any = None) -> Iterator[CompilationContext]:
        """A trace of its own inside the `with` block, for a module that is built by hand.

        Operations go to `gpu_module_body` until an insertion point says otherwise. func_tracker: taken and not used;
        operations have their lines anyway. Raises TraceError inside another trace.
        """
        if is_tracing():
            raise trace_error("a trace inside a trace", "leave the launcher first")
        with lock, context(), ir.Location.unknown():
            arch = get_arch(env.text("ARCH")) if env.text("ARCH") else DEFAULT_ARCH
            module = _empty_module(arch)
            body = module.body.operations[0].regions[0].blocks[0]
            state = cls(arch, module, body)
            try:
                with holding(_current, state), values_end(module), ir.InsertionPoint(body):
                    yield state
            finally:
                state.end()

    def end(self) -> None:
        """Call what is to be called when the trace ends."""
        for function in self.at_end:
            function()

    @property
    def link_libs(self) -> list[str]:
        """The files of bitcode that the kernels are linked with, in the order of their first use."""
        return list(self.libraries)

    def add_link_lib(self, path: str) -> None:
        """Link the kernels with a file of LLVM bitcode."""
        if path not in self.libraries:
            try:
                self.libraries[path] = Path(path).read_bytes()
            except OSError as error:
                raise argument_error(f"the bitcode {path!r}: {error.strerror}") from None

    def unique_name(self, name: str) -> str:
        """A symbol for a kernel: its name and a number."""
        return f"{symbol(name)}_{len(self.gpu_module_body.operations)}"


def is_tracing() -> bool:
    """True if a launcher is being traced in this thread of execution."""
    return _current.get() is not None


@dataclass(frozen=True)
class Traced:
    """The result: the module, the launcher's symbol, and the kernels.

    extra_stream: whether the stream is an extra last argument. hints: that it was traced with.
    operations: about how many the module has. libraries: bitcode to link with.
    """

    module: ir.Module
    entry: str
    kernels: tuple[KernelRecord, ...]
    extra_stream: bool
    operations: int = 0
    hints: CompileHints = NO_HINTS
    libraries: tuple[bytes, ...] = ()


def trace(
    function: Callable[..., Any],
    signature: Signature,
    arguments: Sequence[Argument],
    values: Sequence[Any],
    arch: Arch,
    hints: CompileHints = NO_HINTS,
) -> Traced:
    """Trace a launcher for these arguments. values: as the user gave them; only the compile-time ones are used."""
    with lock, context(), ir.Location.unknown():
        module = _empty_module(arch)
        gpu_module = module.body.operations[0]
        state = CompilationContext(arch, module, gpu_module.regions[0].blocks[0])
        before = _current.get()
        try:
            _current.set(state)  # inside: a Ctrl-C just after it would leave this thread tracing
            flags = fastmath(None if hints.fastmath == "none" else hints.fastmath)
            asserted = check_indices(hints.check_indices), check_overflow(hints.check_overflow)
            with values_end(module), limited() as count, flags, asserted[0], asserted[1], explaining_breakpoints():
                extra_stream = _trace_launcher(state, rewrite(function), signature, arguments, values)
                operations = count.operations
            module = _copy(module) if is_kept(module) else module
            remove_stand_ins(module.operation)
            for kernel in module.body.operations[0].regions[0].blocks[0].operations:
                if kernel.operation.name == "gpu.func":
                    hints.mark(kernel)
        finally:
            _current.set(before)
            state.end()
        return Traced(
            module,
            symbol(function.__name__),
            tuple(state.kernels),
            extra_stream,
            operations,
            hints,
            tuple(state.libraries.values()),
        )


@contextmanager
def interpreted_context(arch: Arch) -> Iterator[CompilationContext]:
    """The state of a launcher that is executed while it is traced in the `with` block."""
    with lock, context(), ir.Location.unknown():
        module = _empty_module(arch)
        state = CompilationContext(arch, module, module.body.operations[0].regions[0].blocks[0])
        try:
            with holding(_current, state):
                yield state
        finally:
            state.end()


def symbol(name: str) -> str:
    """A Python name as MLIR, LLVM and an assembler take it; `kernels` is the GPU module's.

    >>> symbol("<lambda>"), symbol("vectorAdd"), symbol("kernels")
    ('_lambda_', 'vectorAdd', 'kernels_')
    """
    plain = re.sub(r"\W", "_", name, flags=re.ASCII)
    return f"{plain}_" if plain == _GPU_MODULE else plain


def _empty_module(arch: Arch) -> ir.Module:
    return ir.Module.parse(
        "module attributes {gpu.container_module} { "
        f'gpu.module @{_GPU_MODULE} [#rocdl.target<chip = "{arch.name}">] {{ }} }}'
    )


def _copy(module: ir.Module) -> ir.Module:
    """The same operations once more."""
    made = ir.Module.create()
    for name, attribute in module.operation.attributes.items():
        made.operation.attributes[name] = attribute
    for op in module.body.operations:
        op.operation.clone(ip=ir.InsertionPoint(made.body))
    return made


def _trace_launcher(
    state: CompilationContext,
    function: Callable[..., Any],
    signature: Signature,
    arguments: Sequence[Argument],
    values: Sequence[Any],
) -> bool:
    """Trace the launcher's body. True if its stream is an extra argument."""
    extra_stream = STREAM not in arguments
    types = [t for argument in (*arguments, *([STREAM] if extra_stream else [])) for t in argument.ir_types()]
    block = new_function(
        "func.func",
        symbol(function.__name__),
        types,
        ir.InsertionPoint(state.module.body),
        signature.location,
        {"llvm.emit_c_interface": ir.UnitAttr.get()},
    )
    with ir.InsertionPoint(block), regions_closed(), state.entered(block):
        incoming = iter(list(block.arguments))
        inside = [argument.traced(value, incoming) for argument, value in zip(arguments, values, strict=True)]
        state.stream = next(incoming) if extra_stream else inside[arguments.index(STREAM)].value
        result = signature.call(function, inside)
        _check_end(state, function, result, signature)
        _check_runs_on_host(block)
        check_shared_memory(state.gpu_module_body, block, state.arch)
        ir.Operation.create("func.return", loc=ir.Location.unknown())
    return extra_stream


def refuse_generator(what: str, function: Callable[..., Any], result: Any) -> None:
    """Raise TraceError for a kernel or launcher whose call has only made a generator."""
    if isinstance(result, GeneratorType):
        raise TraceError(
            f"{what} {function.__name__} has a `yield`, which makes it a generator",
            at=definition_location(function.__code__),
            hint="write results to a tensor; a loop over range(..., init=[...]) may end in `yield`",
        )


def _check_end(state: CompilationContext, function: Callable[..., Any], result: Any, signature: Signature) -> None:
    """Raise TraceError for a launcher that returns something, or calls a kernel without launching it."""
    refuse_generator("launcher", function, result)
    if result is not None:
        raise TraceError(
            f"{function.__name__} returns {result!r}; a launcher returns nothing",
            at=signature.location_of_return,
            hint="write results to a tensor",
        )
    if state.waiting:
        kernel = state.waiting[0]
        raise TraceError(
            f"kernel {kernel.symbol} is called, and not launched", at=kernel.at, hint=".launch(grid=..., block=...)"
        )


def _check_runs_on_host(block: ir.Block) -> None:
    """Raise TraceError for a launcher that does something that only a kernel can do."""
    for op in block.operations:
        if is_on_device_only(op.name):
            raise TraceError(
                f"{printed_name(op.name)} in a launcher, which runs on the host",
                at=source_location(op.location),
                hint="do this in a function decorated with @flyc.kernel",
            )
        for region in op.regions:
            for inner in region.blocks:
                _check_runs_on_host(inner)


def new_function(
    operation: str,
    name: str,
    types: Sequence[ir.Type],
    where: ir.InsertionPoint,
    at: SourceLocation | None,
    attributes: dict[str, ir.Attribute],
) -> ir.Block:
    """Create a function with an empty body and return its entry block."""
    location = mlir_location(at)
    described = {
        "sym_name": ir.StringAttr.get(name),
        "function_type": ir.TypeAttr.get(ir.FunctionType.get(list(types), [])),
        **attributes,
    }
    with where:
        function = ir.Operation.create(operation, attributes=described, regions=1, loc=location)
    return ir.Block.create_at_start(function.regions[0], list(types), [location] * len(types))
