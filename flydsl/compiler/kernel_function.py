"""`@flyc.kernel`: device functions, and their launch."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

from mlir import ir

from flydsl.arch import launch_limits
from flydsl.compiler.arguments.launch_configuration import dimensions, known_block_size_of, smem_bytes
from flydsl.compiler.arguments.signature import Parameter, shown
from flydsl.compiler.decorated import DecoratedFunction, refuse_options
from flydsl.compiler.kernel_attributes import set_attributes
from flydsl.compiler.rewrite import rewrite
from flydsl.compiler.trace import CompilationContext, KernelRecord, is_tracing, new_function, refuse_generator
from flydsl.dialect.launch_func import create_launch
from flydsl.dialect.location import argument_error, mlir_location
from flydsl.dialect.variables import PARAMETERS
from flydsl.errors import LaunchError, SourceLocation, TraceError
from flydsl.errors.places import user_location
from flydsl.expr.control_flow.region import regions_of_function
from flydsl.expr.control_flow.tree import Container, is_own_object, with_parts
from flydsl.expr.control_flow.variables import names_are_kept
from flydsl.expr.flydsl_names.names import unknown_name
from flydsl.expr.gpu import BlockSizeError
from flydsl.expr.memory.struct_value import StructValue
from flydsl.expr.numbers.arith_value import ArithValue
from flydsl.expr.numeric import Index, Numeric
from flydsl.expr.threads.block_threads import taken_dynamic_lds, taken_notes
from flydsl.expr.tracing.operands import FlyValue, located
from flydsl.expr.tracing.protocol import extract_to_ir_values, flatten_runtime, value_like
from flydsl.expr.typing import Constexpr, Pointer, Stream, Tensor
from flydsl.passes.fly_rocdl_cluster_attr import CLUSTER

__all__ = ["CompilationContext", "KernelFunction", "KernelLauncher", "kernel"]


class KernelFunction(DecoratedFunction):
    """A function that runs on the device, once per thread. Call it inside a `@flyc.jit` function and launch it."""

    decorator = "@flyc.kernel"
    elsewhere: ClassVar[Mapping[str, str]] = {
        "launch": "of a call: kernel(...).launch(grid=..., block=...)",
        **dict.fromkeys(("lower", "simulate", "compile"), "of the @flyc.jit function that launches it"),
    }

    def __init__(
        self, function: Callable[..., Any], known_block_size: Sequence[int] | None = None, name: str | None = None
    ) -> None:
        super().__init__(function)
        self._name = name
        self.known_block_size = None if known_block_size is None else known_block_size_of(known_block_size)

    def options(self) -> tuple[Any, ...]:
        return self._name, self.known_block_size

    def settings(self) -> dict[str, Any]:
        return {"_name": self._name, "known_block_size": self.known_block_size}

    def __call__(
        self,
        *args: Any,
        unit_attrs: Sequence[str] | None = None,
        value_attrs: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> KernelLauncher:
        """Trace the kernel's body for these arguments; `.launch(...)` on the result runs it.

        value_attrs: attributes of the kernel: {"rocdl.waves_per_eu": 2, "passthrough": [["amdgpu-num-vgpr", "128"]]}.
        Entries that are None are ignored. unit_attrs: names of attributes without a value.
        """
        at = user_location()
        name = self.function.__name__
        if not is_tracing():
            raise TraceError(
                f"kernel {name} is called outside a @flyc.jit function",
                at=at,
                hint=f"write a @flyc.jit function that calls {name}(...).launch(grid=..., block=...)",
            )
        state = CompilationContext.get_current()
        if state.in_kernel:
            raise TraceError(
                f"kernel {name} is called inside a kernel", at=at, hint="share code in a function without @flyc.kernel"
            )
        given = zip(self.signature.parameters, self.signature.bind(args, kwargs), strict=True)
        values = [_as_annotated(parameter, value) for parameter, value in given]
        operands = [_operands(p, value) for p, value in zip(self.signature.parameters, values, strict=True)]

        def emit(symbol: str, size: tuple[int, ...] | None) -> ir.Block:
            block = self._declare(state, symbol, operands, size)
            set_attributes(block.owner, unit_attrs, value_attrs)
            self._trace(state, block, values, operands)
            return block

        launcher = (state.launcher or KernelLauncher)(
            state, self._name or self.function.__name__, emit, operands, at, self.known_block_size
        )
        state.waiting.append(launcher)
        return launcher

    def _declare(
        self, state: CompilationContext, symbol: str, operands: list[list[ir.Value]], size: tuple[int, ...] | None
    ) -> ir.Block:
        """The entry block of a device function without body in the GPU module."""
        known: dict[str, Any] = {} if size is None else {"known_block_size": ir.DenseI32ArrayAttr.get(list(size))}
        if names_are_kept():
            known[PARAMETERS] = ir.ArrayAttr.get([ir.StringAttr.get(name) for name in self._operand_names(operands)])
        return new_function(
            "gpu.func",
            symbol,
            [value.type for given in operands for value in given],
            ir.InsertionPoint(state.gpu_module_body),
            self.signature.location,
            {"gpu.kernel": ir.UnitAttr.get(), **known},
        )

    def _operand_names(self, operands: list[list[ir.Value]]) -> Iterator[str]:
        """A name for each operand: that of its parameter, with a number where this has several."""
        for parameter, given in zip(self.signature.parameters, operands, strict=True):
            for i in range(len(given)):
                yield parameter.name if len(given) == 1 else f"{parameter.name}[{i}]"

    def _trace(
        self, state: CompilationContext, block: ir.Block, values: list[Any], operands: list[list[ir.Value]]
    ) -> None:
        incoming = iter(block.arguments)
        inside = [
            _inside(value, incoming, len(given), p)
            for p, value, given in zip(self.signature.parameters, values, operands, strict=True)
        ]
        state.in_kernel = True
        try:
            with ir.InsertionPoint(block), regions_of_function(), state.entered(block):
                result = self.signature.call(rewrite(self.function), inside)
                _end(self.signature.location)
        finally:
            state.in_kernel = False
        refuse_generator("kernel", self.function, result)
        if result is not None:
            raise TraceError(
                f"kernel {self.function.__name__} returns {result!r}; a kernel returns nothing",
                at=self.signature.location_of_return,
                hint="write results to a tensor",
            )


def _end(at: SourceLocation) -> None:
    """End a kernel's body."""
    try:
        ir.Operation.create("gpu.return", loc=ir.Location.unknown())
    except IndexError:
        raise TraceError(
            "a kernel that ends itself, by an operation built by name",
            at=at,
            hint="omit the return: a kernel ends at the end of its function",
        ) from None


def _as_annotated(parameter: Parameter, value: Any) -> Any:
    """An argument as its parameter takes it: numbers as its type, in containers too. Raises ArgumentError."""
    kind = parameter.kind
    if kind is Constexpr:
        if isinstance(value, FlyValue) or (isinstance(value, Numeric) and not value.is_static):
            raise argument_error(
                f"{parameter.name} must be known at compile time (fx.Constexpr), got the runtime value {value!r}",
                "make it a parameter of the launcher that is fx.Constexpr, too; sizes of tensors are runtime values",
            )
        parameter.check_constexpr(value)
    elif kind is Tensor and not isinstance(value, Tensor):
        raise argument_error(
            f"{parameter.name} takes a tensor, got {shown(value)}",
            "a parameter of the launcher, annotated fx.Tensor, is one",
        )
    elif kind is Pointer and not isinstance(value, Pointer):
        hint = "fx.get_iter(tensor) is one" if isinstance(value, Tensor) else None
        raise argument_error(f"{parameter.name} takes a pointer, got {shown(value)}", hint)
    elif kind is not None and issubclass(kind, Numeric):
        if not isinstance(value, ArithValue | bool | int | float):
            raise argument_error(
                f"{parameter.name} must be {kind.__name__}, got {shown(value)}", f"fx.{kind.__name__}(...) of a number"
            )
        return kind.taken(parameter.name, value)
    elif kind is not None and issubclass(kind, StructValue) and not isinstance(value, kind):
        raise argument_error(
            f"{parameter.name} must be a {kind.__name__}, got {value!r}",
            "pass a value of the annotated type",
        )
    elif parameter.part_types and isinstance(value, Container):
        return with_parts(value, [_as_annotated(part, item) for part, item in parameter.parts_of(value)])
    return value


def _operands(parameter: Parameter, value: Any) -> list[ir.Value]:
    """The operands that a launch passes for an argument; none for one that is known at compile time."""
    if parameter.kind is Constexpr:
        return []
    if isinstance(value, Container):
        return flatten_runtime(value).leaves
    is_value = isinstance(value, FlyValue | ArithValue | ir.Value) or is_own_object(value)
    return extract_to_ir_values(value) if is_value else []


def _inside(value: Any, incoming: Iterator[ir.Value], count: int, parameter: Parameter) -> Any:
    """The kernel's own view of an argument that consists of `count` of the kernel's values."""
    if count == 0:
        return value
    kind = parameter.kind
    if kind is not None and issubclass(kind, Numeric):
        return kind.of(next(incoming))
    if isinstance(value, Container):
        return flatten_runtime(value).rebuild([next(incoming) for _ in range(count)])
    return value_like(value, [next(incoming) for _ in range(count)])


class KernelLauncher:
    """A traced kernel with its arguments, waiting for its launch configuration.

    One that asks for its block size without being decorated with it is traced again at its launch, which tells it. So
    is one that is launched again with another block or cluster: it is compiled for each.
    """

    def __init__(
        self,
        state: CompilationContext,
        name: str,
        emit: Callable[[str, tuple[int, ...] | None], ir.Block],
        operands: list[list[ir.Value]],
        at: SourceLocation | None,
        known_block_size: tuple[int, ...] | None,
    ) -> None:
        self.at = at
        self._state = state
        self._name = name
        # Block and cluster -> the symbol that was launched with them, and the dynamic LDS that it allocates.
        self._launched: dict[Any, tuple[str, int]] = {}
        self._known_block_size = known_block_size
        self._operands = [value for given in operands for value in given]
        self._emit = emit
        self._trace()

    def _trace(self) -> None:
        """Trace the kernel under a symbol of its own, as far as it needs no block size that only a launch knows."""
        self.symbol = self._state.unique_name(self._name)
        self._unanswered: BlockSizeError | None = None
        before = len(self._state.gpu_module_body.operations)
        try:
            self.block = self._emit(self.symbol, self._known_block_size)
        except BlockSizeError as error:
            self._unanswered = error.with_traceback(None)  # its frames hold values that are erased here
            for operation in list(self._state.gpu_module_body.operations)[before:]:
                operation.erase()

    def launch(
        self,
        grid: Any,
        block: Any,
        smem: Any = None,
        stream: Any = None,
        *,
        cluster: Any = None,
        unit_attrs: Sequence[str] | None = None,
        value_attrs: Mapping[str, Any] | None = None,
    ) -> None:
        """Launch the kernel.

        grid: workgroups along x, y, z; block: threads along x, y, z: an int, a runtime integer, or 1 to 3 of them.
        smem: dynamic shared memory in bytes, by default what the kernel's `fx.SharedAllocator(static=False)` allocates.
        stream: by default the launcher's.
        cluster: workgroups that run together along x, y, z, known at compile time; on gfx1250.
        unit_attrs, value_attrs: attributes of the operation that launches, without and with a value.
        Raises LaunchError for a configuration that no device accepts.
        """
        at = user_location()
        if self in self._state.waiting:
            self._state.waiting.remove(self)
        blocks = dimensions("grid", grid)
        threads = dimensions("block", block)
        symbol, allocated = self._configured(threads, self._cluster_sizes(cluster, blocks))
        lds_bytes = smem_bytes(smem, allocated, self._state.arch)
        launched = create_launch(
            ["kernels", symbol],
            [Index(value).ir_value() for value in blocks],
            [Index(value).ir_value() for value in threads],
            self._operands,
            self._stream(stream),
            lds_bytes.ir_value(),
            mlir_location(at),
        )
        set_attributes(launched, unit_attrs, value_attrs)
        self._state.kernels.append(KernelRecord(symbol, at, int(lds_bytes) if lds_bytes.is_static else None))

    def _configured(self, threads: list[Numeric], cluster: list[int] | None) -> tuple[str, int]:
        """The kernel's symbol for a block and cluster, and the dynamic LDS in bytes that it allocates."""
        key = *(int(size) if size.is_static else None for size in threads), *(cluster or ())
        if key not in self._launched:
            if self._launched:
                self._trace()
            self._set_block_size(threads)
            if cluster is not None:
                self.block.owner.attributes[CLUSTER] = ir.StringAttr.get(",".join(map(str, cluster)))
            self._launched[key] = self.symbol, taken_dynamic_lds(self.block.owner)
        return self._launched[key]

    def _stream(self, stream: Any) -> ir.Value:
        value = stream.value if isinstance(stream, Stream) else stream
        if value is None:
            assert self._state.stream is not None
            return self._state.stream
        if not isinstance(value, ir.Value):
            raise LaunchError(
                f"stream={stream!r} is a fixed stream",
                at=user_location(),
                hint="make it a parameter: stream: fx.Stream",
            )
        return value

    def _set_block_size(self, threads: list[Numeric]) -> None:
        """Tell the compiler the block size, or for a runtime one the largest."""
        self._check_known(threads)
        if self._unanswered is not None:
            if not all(value.is_static for value in threads):
                raise self._unanswered
            self.block = self._emit(self.symbol, tuple(int(value) for value in threads))
        function = self.block.owner
        arch = self._state.arch
        notes, tiles = taken_notes(function)
        if all(value.is_static for value in threads):
            sizes = [int(value) for value in threads]
            located(launch_limits.check_block, arch, sizes)
            self._check_notes(notes, tiles, sizes)
            function.attributes["known_block_size"] = ir.DenseI32ArrayAttr.get(sizes)
        else:
            function.attributes["rocdl.flat_work_group_size"] = ir.StringAttr.get(f"1,{arch.max_workgroup_size}")

    def _check_notes(self, notes: dict[str, int], tiles: dict[str, int], sizes: list[int]) -> None:
        """Raise LaunchError if the kernel calls what is for another number of threads, or for one dimension."""
        wave = self._state.arch.wave_size
        wrong = {
            what: f"it works with all threads of a block of one dimension: launch(block={threads})"
            for what, threads in notes.items()
            if math.prod(sizes) != threads or (threads > wave and sizes[0] != threads)
        } | {
            what: f"a part of its tile has no thread: launch(block={threads}), or a layout of fewer threads"
            for what, threads in tiles.items()
            if sizes[0] < threads
        }
        for what, hint in wrong.items():
            raise LaunchError(
                f"{self.symbol} is launched with block={tuple(sizes)}, and {what} in it is for "
                f"{(notes | tiles)[what]} threads",
                at=user_location(),
                hint=hint,
            )

    def _cluster_sizes(self, cluster: Any, blocks: list[Numeric]) -> list[int] | None:
        """The size of a cluster, or None for one of a single workgroup."""
        if cluster is None:
            return None
        given = dimensions("cluster", cluster)
        if not all(size.is_static for size in given):
            raise LaunchError(
                "cluster: its size must be known at compile time",
                at=user_location(),
                hint="pass Python ints, or an fx.Constexpr parameter",
            )
        sizes = [int(size) for size in given]
        if sizes == [1, 1, 1]:
            return None
        grid = [int(extent) if extent.is_static else None for extent in blocks]
        located(launch_limits.check_cluster, self._state.arch, sizes, grid)
        return sizes

    def _check_known(self, threads: list[Numeric]) -> None:
        """Raise LaunchError if the block size is not the one that the kernel is written for."""
        if self._known_block_size is None:
            return
        given = tuple(int(value) if value.is_static else None for value in threads)
        if given != self._known_block_size:
            raise LaunchError(
                f"{self.symbol}: block {given} differs from known_block_size {self._known_block_size}",
                at=user_location(),
                hint="None stands for a size of run time: known_block_size needs one that is known at compile time"
                if None in given
                else "launch it with that block, or change known_block_size, or omit it",
            )


def kernel(
    function: Callable[..., Any] | None = None,
    *,
    known_block_size: Sequence[int] | None = None,
    name: str | None = None,
    some_args: Any = None,
    **unknown: Any,
) -> Any:
    """Decorate a device function, as `@flyc.kernel` or `@flyc.kernel(known_block_size=[256, 1, 1])`.

        @flyc.kernel
        def scale_kernel(x: fx.Tensor, factor: fx.Float32, n: fx.Int32):
            i = fx.block_idx.x * 256 + fx.thread_idx.x
            if i < n:
                x[i] = x[i] * factor

    Its body is traced at each call inside a `@flyc.jit` function. Parameters: `fx.Tensor`, scalars such as `fx.Int32`,
    `fx.Constexpr[T]` for values known at compile time; without an annotation, the argument decides.
    known_block_size: the block size of every launch. name: the kernel's name in the program, followed by a number.
    some_args: taken as FlyDSL takes it, and not used.
    """
    refuse_options("@flyc.kernel", unknown)
    if function is None:
        return lambda decorated: KernelFunction(decorated, known_block_size, name)
    return KernelFunction(function, known_block_size, name)


__getattr__ = unknown_name(__name__, globals())
