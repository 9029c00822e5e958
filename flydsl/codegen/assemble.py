"""Assemble what LLVM wrote; the errors are those of a compilation."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from flydsl.arch import Arch
from flydsl.errors import CompileError
from flydsl.hsaco import assembler
from flydsl.scratch import NoRoomError


def assemble(listing: str, arch: Arch) -> bytes:
    """The relocatable object of assembly text. Raises CompileError for an assembler error or a missing zig."""
    try:
        with assembling("LLVM wrote a listing that has to be assembled"):
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
