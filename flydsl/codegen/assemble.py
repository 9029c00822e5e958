"""Assemble what LLVM wrote; the errors are those of a compilation.

LLVM's back end writes a listing, and ziglang's clang, of the same LLVM, makes the object of it: to run the back end
again for the object takes two to eight times as long.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from flydsl.arch import Arch
from flydsl.codegen.pending_tool import PendingTool
from flydsl.errors import CompileError
from flydsl.hsaco import assembler
from flydsl.system.temporary_files import NoRoomError

_REASON = "LLVM wrote a listing that has to be assembled"


class PendingAssembly:
    """An assembler that is being started. Call `end` where `finish` may not have been called, or not come to its end.

    Raises CompileError for a missing zig.
    """

    def __init__(self, arch: Arch) -> None:
        self._arch = arch
        self._tool = self._started(())

    def finish(self, listing: str) -> bytes:
        """The relocatable object of LLVM's listing; call it once. Raises CompileError for an assembler error."""
        if features := assembler.features_of(listing):
            self._tool.end()
            self._tool = self._started(features)
        obj, words = self._tool.finish(listing.encode("utf-8", "surrogateescape"))
        if not obj:
            raise CompileError(f"the listing cannot be assembled for {self._arch.name}: {words}")
        return obj

    def end(self) -> None:
        """End the assembler, if it has not ended."""
        self._tool.end()

    def _started(self, features: tuple[str, ...]) -> PendingTool:
        with assembling(_REASON):
            return PendingTool(assembler.command(self._arch.name, features))


def assemble(listing: str, arch: Arch) -> bytes:
    """The relocatable object of assembly text. Raises CompileError for an assembler error or a missing zig."""
    try:
        with assembling(_REASON):
            return assembler.assemble(listing, arch.name)
    except assembler.AssemblerError as error:
        raise CompileError(f"the listing cannot be assembled for {arch.name}: {error}") from None


@contextlib.contextmanager
def assembling(reason: str) -> Iterator[None]:
    """Give a missing assembler and a full disk a CompileError. reason: what an assembler is needed for."""
    try:
        yield
    except assembler.NoAssemblerError as error:
        raise CompileError(f"{reason}, and {error}", hint="pip install ziglang") from None
    except OSError as error:
        raise NoRoomError(str(error)) from error
