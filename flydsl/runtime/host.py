"""The compiled launcher: host code that MLIR's ExecutionEngine compiles, which calls the device."""

from __future__ import annotations

import ctypes
import struct
import sys
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from mlir import ir
from mlir.execution_engine import ExecutionEngine

from flydsl.arch import launch_limits
from flydsl.codegen import CodeObject
from flydsl.errors import ArgumentError, DeviceAssertion, DeviceError, FlyError, SourceLocation
from flydsl.printing import FORMATS, HOST_FORMATS, HOST_PRINTF, Format
from flydsl.runtime.host_target import for_any_host
from flydsl.runtime.interface import Device, LoadedCode
from flydsl.runtime.printer import Printer

_POINTER, _INTPTR = ctypes.c_void_p, ctypes.c_ssize_t
LAUNCH = "fly_launch"
"""The function that launchers call, with the number of the launch, the sizes of grid and block, the bytes of dynamic
LDS, the stream, and a pointer to pointers to the kernel's operands."""
# The functions that the module for the host leaves undefined. `mgpu*` are those of `gpu-to-llvm`, see MLIR's
# RocmRuntimeWrappers.cpp. They may be called in `HostProgram._enter` only, which keeps a Ctrl-C.
_SIGNATURES = {
    LAUNCH: ctypes.CFUNCTYPE(None, *[_INTPTR] * 7, ctypes.c_int32, _POINTER, ctypes.POINTER(_POINTER)),
    "mgpuStreamCreate": ctypes.CFUNCTYPE(_POINTER),
    "mgpuStreamSynchronize": ctypes.CFUNCTYPE(None, _POINTER),
    "mgpuStreamDestroy": ctypes.CFUNCTYPE(None, _POINTER),
    HOST_PRINTF: ctypes.CFUNCTYPE(None, ctypes.c_int32, _POINTER),
}
_SLOT_BYTES = 16  # the alignment of the widest number, of 128 bits


class TooLarge(Exception):
    """A number does not fit into the type in which it is passed to the compiled launcher."""


class HostProgram:
    """A launcher compiled for this host and bound to one device.

    module: of the llvm dialect, with launches as calls of LAUNCH. entry: its function. codes: the struct codes of the
    function's parameters. kernels: of the launches, by their numbers. launch_sites: where each kernel is launched in
    the user's source.
    """

    def __init__(
        self,
        module: ir.Module,
        entry: str,
        codes: Sequence[str],
        kernels: Sequence[str],
        device: Device,
        code: CodeObject,
        launch_sites: Mapping[str, SourceLocation | None],
    ) -> None:
        self.lock = threading.RLock()
        self._loaded: LoadedCode = device.load(code)
        self._device = device
        self._formats = _formats(module, FORMATS)
        self._host_formats = _formats(module, HOST_FORMATS)
        self._printer: Printer | None = None
        self._arch = code.arch
        self._static_lds_bytes = {kernel.name: kernel.resources.lds_bytes for kernel in code.kernels}
        self._kernels, self._launch_sites = kernels, launch_sites
        self._checked: tuple[Any, ...] = ()
        self._session: Any = None
        self._error: BaseException | None = None
        self._hook: Callable[[Any], Any] = sys.unraisablehook
        self._prepare_arguments([*codes, "q"] if self._formats else codes)
        self._compile(module, entry)

    def _prepare_arguments(self, codes: Sequence[str]) -> None:
        """Make one buffer with a slot for each parameter, and the array of pointers to the slots."""
        formats, offsets, offset = [], [], 0
        for code in codes:
            size = struct.calcsize("=" + code)
            padding = -size % _SLOT_BYTES
            formats.append(f"{code}{padding}x")
            offsets.append(offset)
            offset += size + padding
        self._struct = struct.Struct("=" + "".join(formats))
        memory = ctypes.create_string_buffer(offset + _SLOT_BYTES)
        base = -(-ctypes.addressof(memory) // _SLOT_BYTES) * _SLOT_BYTES
        self._buffer = (ctypes.c_char * max(offset, 1)).from_buffer(memory, base - ctypes.addressof(memory))
        self._pointers = (_POINTER * max(len(codes), 1))(*[base + offset for offset in offsets])

    def _compile(self, module: ir.Module, entry: str) -> None:
        # The engine keeps what it calls, in C++, where no garbage collector looks: nothing of it may keep the launcher.
        program = weakref.ref(self)
        implementations: dict[str, Callable[..., Any]] = {
            LAUNCH: lambda *arguments: _alive(program)._launch_kernel(*arguments),
            "mgpuStreamCreate": lambda: 0,
            "mgpuStreamSynchronize": lambda stream: None,
            "mgpuStreamDestroy": lambda stream: None,
            HOST_PRINTF: lambda number, values: _alive(program)._print(number, values),
        }
        with for_any_host(module):
            self._engine = ExecutionEngine(module, opt_level=0)
        for name, function in implementations.items():
            self._engine.raw_register_runtime(name, ctypes.cast(_SIGNATURES[name](function), _POINTER))
        self._engine.initialize()
        self._entry = ctypes.CFUNCTYPE(None, _POINTER)(self._engine.raw_lookup(entry))

    def run(self, values: Sequence[Any], session: Any) -> None:
        """Run the launcher on its flattened arguments. The caller must hold `lock`.

        Raises what a launch raised, and TooLarge.
        """
        if self._formats:
            self._printer = Printer(self._formats, self._device)
            values = [*values, self._printer.address(session)]
        try:
            self._struct.pack_into(self._buffer, 0, *values)
        except (struct.error, OverflowError) as error:
            raise TooLarge from error
        self._session, self._error = session, None
        try:
            self._enter()
            if self._error is not None:
                raise self._error
        finally:
            self._session = self._error = self._printer = None

    def _enter(self) -> None:
        """Call the compiled code. A Ctrl-C in a callback, which ctypes would only print, is raised afterwards."""
        if threading.get_ident() != threading.main_thread().ident:
            self._entry(self._pointers)
            return
        self._hook, sys.unraisablehook = sys.unraisablehook, self._keep_interrupt
        try:
            self._entry(self._pointers)
        finally:
            sys.unraisablehook = self._hook

    def _keep_interrupt(self, unraisable: Any) -> None:
        if isinstance(unraisable.exc_value, KeyboardInterrupt):
            self._error = unraisable.exc_value
        else:
            self._hook(unraisable)

    def _print(self, number: int, values: int) -> None:
        """Serve a printf of the launcher itself, or a refusal, which ends the call as an error of a launch does."""
        if self._error is not None:
            return
        format_ = self._host_formats[number - 1]
        line = format_.line(ctypes.string_at(values, format_.size_bytes))
        if format_.refusal is None:
            sys.stdout.write(line)
        else:
            package, hint = format_.refusal
            self._error = ArgumentError(line, hint=hint)
            self._error.package = package

    def _launch_kernel(
        self, number: int, gx: int, gy: int, gz: int, bx: int, by: int, bz: int, lds: int, stream: int, params: Any
    ) -> None:
        """Serve a launch. An exception cannot cross compiled code: it waits until the launcher returns."""
        if self._error is not None:
            return
        kernel = self._kernels[number]
        grid, block = (gx, gy, gz), (bx, by, bz)
        try:
            asked = kernel, grid, block, lds
            if asked != self._checked:
                self._check(*asked)
                self._checked = asked
            if self._printer is None:
                self._loaded.launch(kernel, grid, block, lds, stream or 0, params, self._session)
                return
            with self._printing(self._printer, stream or 0):
                self._loaded.launch(kernel, grid, block, lds, stream or 0, params, self._session)
        except FlyError as error:
            self._error = error.located(self._launch_sites[kernel])
        except BaseException as error:  # noqa: BLE001 - raised again in run()
            self._error = error

    @contextmanager
    def _printing(self, printer: Printer, stream: int) -> Iterator[None]:
        """Print the output of the launch inside, also if it fails: then only an assertion precedes its error."""
        flush = partial(printer.flush, stream)
        try:
            yield
        except FlyError as error:
            try:
                self._device.after_launch(flush, self._session)
            except DeviceAssertion as assertion:
                raise assertion from error
            except DeviceError:
                pass  # the buffer cannot be read, either
            raise
        self._device.after_launch(flush, self._session)

    def _check(self, kernel: str, grid: tuple[int, ...], block: tuple[int, ...], lds_bytes: int) -> None:
        """Check runtime launch dimensions, whose values the compiler could not know."""
        launch_limits.check_extents("grid", grid)
        launch_limits.check_extents("block", block)
        launch_limits.check_block(self._arch, block)
        launch_limits.check_grid(grid, block)
        launch_limits.check_lds(self._arch, self._static_lds_bytes[kernel], lds_bytes)


def _formats(module: ir.Module, name: str) -> list[Format]:
    """The formats in an attribute; see the pass `printf_to_buffer`."""
    attributes = module.operation.attributes
    if name not in attributes:
        return []
    return [Format.from_json(ir.StringAttr(text).value) for text in ir.ArrayAttr(attributes[name])]


def _alive(program: weakref.ref[HostProgram]) -> HostProgram:
    """The program, which is alive because its launcher is running."""
    found = program()
    assert found is not None
    return found
