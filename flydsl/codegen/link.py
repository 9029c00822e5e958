"""Link an object into an HSACO with LLD: ROCm's, the system's, or ziglang's.

To load LLD takes longer than to link. So it is started while LLVM works, and reads the object from a pipe.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from types import TracebackType

from flydsl import env
from flydsl.codegen.pending_tool import PendingTool
from flydsl.errors import CompileError
from flydsl.system.ziglang import find_zig

_DEBIANS = "/usr/bin"

Linker = tuple[str, ...]

# Linkers that could not link what a later one could: too old for this code object version, mostly.
_refused: set[Linker] = set()


class PendingLink:
    """A linker that is being started. It is ended at the end of a `with` that has not called `finish`."""

    def __init__(self, *, keep_debug_info: bool = False) -> None:
        self._strip = () if keep_debug_info else ("--strip-debug",)
        self._linkers = (linker for linker in find_linkers() if linker not in _refused)
        self._failures: dict[Linker, str] = {}
        self._linker: Linker = ()
        self._tool: PendingTool | None = None
        self._start()

    def finish(self, obj: bytes) -> bytes:
        """The code object (an ELF shared object) of one relocatable object; call it once.

        Raises CompileError with the linker's words, or when there is no linker.
        """
        while self._tool is not None:
            hsaco, output = self._tool.finish(obj)
            if hsaco:
                _refused.update(self._failures)
                return hsaco
            self._failures[self._linker] = output
            self._start()
        if not self._failures:
            raise CompileError(
                "no LLD to link the code object with",
                hint="pip install ziglang, or install ROCm or LLVM's ld.lld and put it on PATH",
            )
        linker, output = self._failures.popitem()
        raise CompileError(f"{' '.join(linker)} cannot link the code object: {output}")

    def __enter__(self) -> PendingLink:
        return self

    def __exit__(self, _type: type[BaseException] | None, _error: object, _trace: TracebackType | None) -> None:
        self.end()

    def end(self) -> None:
        """End the linker, if it has not ended."""
        if self._tool is not None:
            self._tool.end()

    def _start(self) -> None:
        """Start the next linker that there is."""
        self._tool = None
        options = ["-shared", "--no-undefined", "--threads=1", *self._strip, "/dev/stdin", "-o", "-"]
        for linker in self._linkers:
            self._linker = linker
            try:
                self._tool = PendingTool([*linker, *options])
            except OSError as error:
                self._failures[linker] = str(error)
            else:
                return


def link(obj: bytes, *, keep_debug_info: bool = False) -> bytes:
    """Start a linker, and finish: see `PendingLink.finish`."""
    with PendingLink(keep_debug_info=keep_debug_info) as pending:
        return pending.finish(obj)


def find_linkers() -> Iterator[Linker]:
    """Commands that start LLD, best first: ROCm's fits the target best, ziglang's works on any machine."""
    rocm_path = env.text("ROCM_PATH") or "/opt/rocm"
    for directory in dict.fromkeys((rocm_path, "/opt/rocm")):
        rocm_lld = shutil.which("ld.lld", path=os.path.join(directory, "llvm", "bin"))
        if rocm_lld:
            yield (rocm_lld,)
    for name in ("ld.lld", *_versioned_names()):
        system_lld = shutil.which(name)
        if system_lld:
            yield (system_lld,)
    zig = find_zig()
    if zig:
        yield (zig, "ld.lld")


def _versioned_names() -> list[str]:
    """`ld.lld-22`, … as Debian names them, the newest first."""
    names = [name for name in os.listdir(_DEBIANS) if name.startswith("ld.lld-")] if os.path.isdir(_DEBIANS) else []
    return sorted((n for n in names if n.rpartition("-")[2].isdigit()), key=lambda n: -int(n.rpartition("-")[2]))
