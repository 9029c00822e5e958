"""Launchers that MLIR's ExecutionEngine compiles for the host: no plan describes them, as they compute with floats."""

from __future__ import annotations

import ctypes
import sys
import threading
import weakref
from collections.abc import Callable, Sequence
from typing import Any

from mlir import ir
from mlir.execution_engine import ExecutionEngine

from flydsl.printing import HOST_PRINTF
from flydsl.runtime.argument_slots import ArgumentSlots
from flydsl.runtime.host import Call
from flydsl.runtime.host_target import for_any_host

_POINTER, _INTPTR = ctypes.c_void_p, ctypes.c_ssize_t
LAUNCH = "fly_launch"
"""The function that launchers call, with the number of the launch, the sizes of grid and block, the bytes of dynamic
LDS, the stream, and a pointer to pointers to the kernel's operands."""
# The functions that the module for the host leaves undefined. `mgpu*` are those of `gpu-to-llvm`, see MLIR's
# RocmRuntimeWrappers.cpp. They may be called in `CompiledLauncher._enter` only, which keeps a Ctrl-C.
_SIGNATURES = {
    LAUNCH: ctypes.CFUNCTYPE(None, *[_INTPTR] * 7, ctypes.c_int32, _POINTER, ctypes.POINTER(_POINTER)),
    "mgpuStreamCreate": ctypes.CFUNCTYPE(_POINTER),
    "mgpuStreamSynchronize": ctypes.CFUNCTYPE(None, _POINTER),
    "mgpuStreamDestroy": ctypes.CFUNCTYPE(None, _POINTER),
    HOST_PRINTF: ctypes.CFUNCTYPE(None, ctypes.c_int32, _POINTER),
}


class CompiledLauncher:
    """A launcher compiled for this host.

    module: of the llvm dialect, with launches as calls of LAUNCH. entry: its function. codes: the struct codes of the
    function's parameters. kernels: of the launches, by number.
    """

    def __init__(self, module: ir.Module, entry: str, codes: Sequence[str], kernels: Sequence[str]) -> None:
        self.kernels = kernels
        self._slots = ArgumentSlots(codes)
        self._call: Call | None = None
        self._error: BaseException | None = None
        self._hook: Callable[[Any], Any] = sys.unraisablehook
        self._compile(module, entry)

    def _compile(self, module: ir.Module, entry: str) -> None:
        # The engine keeps what it calls, in C++, where no garbage collector looks: nothing of it may keep the launcher.
        launcher = weakref.ref(self)
        implementations: dict[str, Callable[..., Any]] = {
            LAUNCH: lambda *arguments: _alive(launcher)._launch(*arguments),
            "mgpuStreamCreate": lambda: 0,
            "mgpuStreamSynchronize": lambda stream: None,
            "mgpuStreamDestroy": lambda stream: None,
            HOST_PRINTF: lambda number, values: _alive(launcher)._print(number, values),
        }
        with for_any_host(module):
            self._engine = ExecutionEngine(module, opt_level=0)
        for name, function in implementations.items():
            self._engine.raw_register_runtime(name, ctypes.cast(_SIGNATURES[name](function), _POINTER))
        self._engine.initialize()
        self._entry = ctypes.CFUNCTYPE(None, _POINTER)(self._engine.raw_lookup(entry))

    def run(self, values: Sequence[Any], call: Call) -> None:
        """Run the launcher on its flattened arguments. Raises what a launch raised, and TooLarge."""
        self._slots.fill(values)
        outer, self._call, self._error = self._call, call, None
        try:
            self._enter()
            if self._error is not None:
                raise self._error
        finally:
            self._call, self._error = outer, None

    def _enter(self) -> None:
        """Call the compiled code. A Ctrl-C in a callback, which ctypes would only print, is raised afterwards."""
        if threading.get_ident() != threading.main_thread().ident:
            self._entry(self._slots.pointers)
            return
        self._hook, sys.unraisablehook = sys.unraisablehook, self._keep_interrupt
        try:
            self._entry(self._slots.pointers)
        finally:
            sys.unraisablehook = self._hook

    def _keep_interrupt(self, unraisable: Any) -> None:
        if isinstance(unraisable.exc_value, KeyboardInterrupt):
            self._error = unraisable.exc_value
        else:
            self._hook(unraisable)

    def _print(self, number: int, values: int) -> None:
        self._serve(lambda call: call.print(number, values))

    def _launch(
        self, number: int, gx: int, gy: int, gz: int, bx: int, by: int, bz: int, lds: int, stream: int, params: Any
    ) -> None:
        self._serve(lambda call: call.launch(number, (gx, gy, gz), (bx, by, bz), lds, stream or 0, params))

    def _serve(self, serve: Callable[[Call], None]) -> None:
        """Serve the compiled code. An exception cannot cross it: it waits until the launcher returns."""
        if self._error is not None:
            return
        assert self._call is not None
        try:
            serve(self._call)
        except BaseException as error:  # noqa: BLE001 - raised again in run()
            self._error = error


def _alive(launcher: weakref.ref[CompiledLauncher]) -> CompiledLauncher:
    """The launcher, which is alive because it is running."""
    found = launcher()
    assert found is not None
    return found
