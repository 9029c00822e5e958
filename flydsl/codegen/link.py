"""Link an object into an HSACO with LLD: ROCm's, the system's, or ziglang's."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator

from flydsl import env
from flydsl.errors import CompileError
from flydsl.scratch import temporary_folder
from flydsl.ziglang import find_zig, run_tool

_DEBIANS = "/usr/bin"
_SECONDS = 120  # a code object takes a hundredth of one

Linker = tuple[str, ...]

# Linkers that could not link what a later one could: too old for this code object version, mostly.
_refused: set[Linker] = set()


def link(obj: bytes, *, keep_debug_info: bool = False) -> bytes:
    """The code object (an ELF shared object) of one relocatable object.

    Raises CompileError with the linker's words, or when there is no linker.
    """
    failures: dict[Linker, str] = {}
    for linker in find_linkers():
        if linker in _refused:
            continue
        result = _run(linker, obj, keep_debug_info)
        if isinstance(result, bytes):
            _refused.update(failures)
            return result
        failures[linker] = result
    if not failures:
        raise CompileError(
            "no LLD to link the code object with",
            hint="pip install ziglang, or install ROCm or LLVM's ld.lld and put it on PATH",
        )
    linker, output = failures.popitem()
    raise CompileError(f"{' '.join(linker)} cannot link the code object: {output}")


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


def _run(linker: Linker, obj: bytes, keep_debug_info: bool) -> bytes | str:
    """The linked bytes, or the linker's message."""
    strip = () if keep_debug_info else ("--strip-debug",)
    with temporary_folder() as directory:
        source, output = directory / "kernel.o", directory / "kernel.hsaco"
        source.write_bytes(obj)
        command = [*linker, "-shared", "--no-undefined", *strip, str(source), "-o", str(output)]
        try:
            done = run_tool(command, _SECONDS)
        except (OSError, subprocess.TimeoutExpired) as error:
            return str(error)
        if done.returncode == 0 and output.exists():
            return output.read_bytes()
        return done.stderr.strip() or f"exit status {done.returncode}"
