"""Launches that the interpreter runs: `flydsl.interpreting()` and FLYDSL_INTERPRET=1.

The launcher's body is executed while it is traced, and so is the kernel's, once for each workgroup.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from mlir import ir

from flydsl.arch import Arch, launch_limits
from flydsl.compiler.arguments.argument import STREAM, Argument
from flydsl.compiler.arguments.launch_configuration import dimensions, smem_bytes
from flydsl.compiler.arguments.signature import Signature
from flydsl.compiler.hints import CompileHints
from flydsl.compiler.kernel_function import KernelLauncher
from flydsl.compiler.rewrite import rewrite
from flydsl.compiler.trace import CompilationContext, _trace_launcher, interpreted_context
from flydsl.errors import ArgumentError, LaunchError, SourceLocation
from flydsl.errors.places import user_location
from flydsl.expr.numbers.fastmath_flags import fastmath
from flydsl.expr.numeric import Index
from flydsl.expr.printing.assertions import check_indices
from flydsl.expr.printing.overflows import check_overflow
from flydsl.expr.tracing.executing import executing
from flydsl.expr.tracing.operands import located
from flydsl.expr.tracing.outlived import values_end_unless_it_fails
from flydsl.interpreter import Execution, Interpretation, KernelRun, bind_host, host_execution, within
from flydsl.interpreter.debugging import stopping_in_the_users_lines
from flydsl.runtime.device import device_at
from flydsl.simulator.checks import NAN, asserted_checks, enabled_checks


def interpret(
    function: Callable[..., Any],
    signature: Signature,
    arguments: Sequence[Argument],
    values: Sequence[Any],
    payloads: Sequence[Any],
    arch: Arch,
    hints: CompileHints,
) -> None:
    """Run a launcher with arguments. values, payloads: of each argument, as the user gave it and as it is passed."""
    elsewhere = next((a.device for a in arguments if a.device not in (None, "cpu")), None)
    if elsewhere is not None:
        raise ArgumentError(
            f"{function.__name__}: the tensors are on {elsewhere}, but the interpreter takes CPU tensors",
            at=user_location(),
            hint="move them with .cpu()",
        )
    if checks := enabled_checks() - NAN:
        raise ArgumentError(
            f"{function.__name__} is interpreted inside checking({', '.join(map(repr, sorted(checks)))})",
            at=user_location(),
            hint='these checks are of the machine code; "index", "overflow" and "nan" are for the interpreter, too',
        )
    device = device_at("cpu")
    memory = device.session()
    given = zip(signature.parameters, arguments, payloads, strict=True)
    flat = [number for p, a, payload in given for number in a.flat(p.name, payload, device, memory)]
    if STREAM not in arguments:
        flat.append(0)
    flags = fastmath(None if hints.fastmath == "none" else hints.fastmath)
    asked = asserted_checks()
    indices = check_indices(hints.check_indices or "index" in asked)
    overflow = check_overflow(hints.check_overflow or "overflow" in asked)
    stopping = stopping_in_the_users_lines()
    with interpreted_context(arch) as state, values_end_unless_it_fails(), flags, indices, overflow, stopping:

        @contextmanager
        def entered(block: ir.Block) -> Iterator[None]:
            x = host_execution(arch, memory, block)
            bind_host(x, block, flat)
            try:
                with within(x):
                    yield
            finally:
                sys.stdout.write("".join(line for _, line in x.printed))

        state.entered, state.launcher = entered, InterpretedLauncher
        _trace_launcher(state, rewrite(function), signature, arguments, values)


class InterpretedLauncher(KernelLauncher):
    """A kernel with its arguments, whose launch runs it."""

    def __init__(
        self,
        state: CompilationContext,
        name: str,
        emit: Callable[[str, tuple[int, ...] | None], ir.Block],
        operands: list[list[ir.Value]],
        at: SourceLocation | None,
        known_block_size: tuple[int, ...] | None,
    ) -> None:
        self.symbol, self.at = state.unique_name(name), at
        self._state, self._emit, self._known_block_size = state, emit, known_block_size
        self._operands = [value for given in operands for value in given]

    def launch(
        self, grid: Any, block: Any, smem: Any = None, stream: Any = None, *, cluster: Any = None,
        unit_attrs: Any = None, value_attrs: Any = None,
    ) -> None:  # fmt: skip
        """Run the kernel. The parameters are those of a launch that is compiled."""
        if self in self._state.waiting:
            self._state.waiting.remove(self)
        host = executing.get()
        assert isinstance(host, Execution)
        arch = self._state.arch
        blocks, threads = dimensions("grid", grid), dimensions("block", block)
        self._check_known(threads)
        sizes = [_numbers(host, given) for given in (blocks, threads)]
        located(launch_limits.check_block, arch, list(sizes[1]))
        lds = None if smem is None else _numbers(host, [smem_bytes(smem, 0, arch)])[0]
        if cluster is not None and _numbers(host, dimensions("cluster", cluster)) != (1, 1, 1):
            raise LaunchError("the interpreter has no clusters", at=user_location(), hint="run the kernel compiled")
        operands = [host.of(value) for value in self._operands]
        run = KernelRun(arch, host.memory, *sizes, lds, operands, self._body(sizes[1]))
        try:
            run.run()
        finally:
            sys.stdout.write(run.lines())

    def _body(self, size: tuple[int, int, int]) -> Callable[[Callable[[ir.Block], Interpretation]], None]:
        known = size if self._known_block_size is None else self._known_block_size

        def body(execution: Callable[[ir.Block], Interpretation]) -> None:
            self._state.entered = lambda block: within(execution(block))
            made = self._emit(self.symbol, tuple(known))
            made.owner.operation.detach_from_parent()  # so that its memory ends with the last use of its values

        return body


def _numbers(host: Execution, given: Sequence[Any]) -> Any:
    return tuple(int(host.of(Index(value).ir_value())[0]) for value in given)
