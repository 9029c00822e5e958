"""A launcher on a device: it checks and serves the launches that the host's part of the launcher asks for."""

from __future__ import annotations

import ctypes
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Protocol

from flydsl.arch import launch_limits
from flydsl.arch.launch_limits import Dim3
from flydsl.codegen import CodeObject
from flydsl.errors import ArgumentError, DeviceAssertion, DeviceError, FlyError, SourceLocation
from flydsl.printing import Format
from flydsl.runtime.interface import Device, LoadedCode
from flydsl.runtime.printer import Printer


class Launcher(Protocol):
    """The host part of a launcher: it computes what its launches need. kernels: of the launches, by number."""

    @property
    def kernels(self) -> Sequence[str]: ...

    def run(self, values: Sequence[Any], call: Call) -> None:
        """Run on flattened arguments. Raises what a launch raised, and TooLarge for a number without room."""


class HostProgram:
    """A launcher bound to one device.

    printed: the formats of what kernels print, by number; they get the address of the buffer as the launcher's last
    argument. printed_by_host: of what the launcher prints. launch_sites: where each kernel is launched in the user's
    source.
    """

    def __init__(
        self,
        launcher: Launcher,
        device: Device,
        code: CodeObject,
        launch_sites: Mapping[str, SourceLocation | None],
        printed: Sequence[Format] = (),
        printed_by_host: Sequence[Format] = (),
    ) -> None:
        self.lock = threading.RLock()
        self.loaded: LoadedCode = device.load(code)
        self.kernels, self.printed_by_host = launcher.kernels, printed_by_host
        self._launcher, self._device, self._printed = launcher, device, printed
        self._arch = code.arch
        self._static_lds_bytes = {kernel.name: kernel.resources.lds_bytes for kernel in code.kernels}
        self._launch_sites = launch_sites
        self._checked: tuple[Any, ...] = ()

    def run(self, values: Sequence[Any], session: Any) -> None:
        """Run the launcher on its flattened arguments. The caller must hold `lock`.

        Raises what a launch raised, and TooLarge.
        """
        printer = None
        if self._printed:
            printer = Printer(self._printed, self._device)
            values = [*values, printer.address(session)]
        self._launcher.run(values, Call(self, session, printer))

    def check(self, kernel: str, grid: Dim3, block: Dim3, lds_bytes: int) -> None:
        """Check runtime launch dimensions, whose values the compiler could not know, unless they are the last ones."""
        asked = kernel, grid, block, lds_bytes
        if asked == self._checked:
            return
        launch_limits.check_extents("grid", grid)
        launch_limits.check_extents("block", block)
        launch_limits.check_block(self._arch, block)
        launch_limits.check_grid(grid, block)
        launch_limits.check_lds(self._arch, self._static_lds_bytes[kernel], lds_bytes)
        self._checked = asked

    def site_of(self, kernel: str) -> SourceLocation | None:
        """The place of a kernel's launch in the user's source."""
        return self._launch_sites[kernel]

    @contextmanager
    def printing(self, printer: Printer, stream: int, session: Any) -> Iterator[None]:
        """Print the output of the launch inside, also if it fails: then only an assertion precedes its error."""
        flush = partial(printer.flush, stream)
        try:
            yield
        except FlyError as error:
            try:
                self._device.after_launch(flush, session)
            except DeviceAssertion as assertion:
                raise assertion from error
            except DeviceError:
                pass  # the buffer cannot be read, either
            raise
        self._device.after_launch(flush, session)


class Call:
    """A call of a launcher, which serves what the launcher asks for. session: the device's."""

    __slots__ = ("_printer", "_program", "_session")

    def __init__(self, program: HostProgram, session: Any, printer: Printer | None) -> None:
        self._program, self._session, self._printer = program, session, printer

    def launch(self, number: int, grid: Dim3, block: Dim3, lds_bytes: int, stream: int, params: Any) -> None:
        """Serve a launch. params: a C array of pointers to the kernel's operands. FlyError tells where it stands."""
        program = self._program
        kernel = program.kernels[number]
        try:
            program.check(kernel, grid, block, lds_bytes)
            if self._printer is None:
                program.loaded.launch(kernel, grid, block, lds_bytes, stream, params, self._session)
                return
            with program.printing(self._printer, stream, self._session):
                program.loaded.launch(kernel, grid, block, lds_bytes, stream, params, self._session)
        except FlyError as error:
            error.located(program.site_of(kernel))
            raise

    def print(self, number: int, values: int) -> None:
        """Serve a printf of the launcher itself, or a refusal, which ends the call as an error of a launch does."""
        format_ = self._program.printed_by_host[number - 1]
        line = format_.line(ctypes.string_at(values, format_.size_bytes))
        if format_.refusal is None:
            sys.stdout.write(line)
            return
        package, hint = format_.refusal
        error = ArgumentError(line, hint=hint)
        error.package = package
        raise error
