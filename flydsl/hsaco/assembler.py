"""ziglang's clang as an assembler for AMD GPUs: the LLVM in llvmlite is built without one."""

from __future__ import annotations

import re
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from flydsl.system.ziglang import find_zig, run_tool

_SECONDS = 60
# Of memory (KiB) and files (half KiB), where the system has such limits. A listing takes far less.
_LIMITS = "'-v 8388608' '-f 2097152'"
# Of the processor. LLVM's assembler does not come to an end with some texts, such as a quote in an operand that another
# line closes. It takes a tenth of a second, and one for 2 MB.
_LEAST_SECONDS, _BYTES_PER_SECOND = 3, 200_000
# Newer LLVMs name the halves of registers on RDNA, this one by request.
_HALF = re.compile(r"\bv\d+\.[lh]\b")
_WITH_HALVES = ("-Xclangas", "-target-feature", "-Xclangas", "+real-true16")
# RDNA's assembler takes pairs of registers for masks of lanes only if it is told that waves have 64.
_WAVES_OF_64 = re.compile(r"^\s*\.amdhsa_wavefront_size32 0\b", re.MULTILINE)
# A listing of LLVM's says so in its first lines.
_TARGET = re.compile(r'^\s*\.amdgcn_target "[^":]*((?::\w+[+-])+)"', re.MULTILINE)


_AS = ("clang", "-cc1as", "-triple", "amdgcn-amd-amdhsa", "-target-cpu")


class AssemblerError(Exception):
    """A text that was not assembled; the message is the assembler's."""


class NoAssemblerError(Exception):
    """ziglang is not installed."""

    def __init__(self) -> None:
        super().__init__("there is no assembler")


def assemble(listing: str, gpu: str) -> bytes:
    """The relocatable object of assembly text. gpu: a processor, with features if any, such as "gfx942:xnack-".

    Raises AssemblerError, NoAssemblerError, and OSError if no temporary file can be written.
    """
    halves = _WITH_HALVES if _HALF.search(listing) else ()
    waves = ("-mwavefrontsize64",) if _WAVES_OF_64.search(listing) else ()
    return _run(listing, "-target", "amdgcn-amd-amdhsa", f"-mcpu={gpu}", *halves, *waves, "-c", "-x", "assembler")


def features_of(listing: str) -> tuple[str, ...]:
    """The target features that the assembler needs for a listing of LLVM's, such as "+xnack"; mostly none."""
    target = _TARGET.search(listing)
    of_target = [f"{part[-1]}{part[:-1]}" for part in target[1].split(":")[1:]] if target else []
    return (*of_target, *(["+wavefrontsize64"] if _WAVES_OF_64.search(listing) else []))


def command(gpu: str, features: Sequence[str] = ()) -> list[str]:
    """The command that assembles its input and writes the object to stdout, without limits: for listings of LLVM's.

    gpu: a processor without features. Raises NoAssemblerError.
    """
    options = [word for feature in features for word in ("-target-feature", feature)]
    return [_zig(), *_AS, gpu, "-filetype", "obj", *options, "-", "-o", "-"]


def canonical_text(listing: str, gpu: str, *options: str) -> str:
    """Assembly text as LLVM prints it, without macros. Raises as `assemble`.

    gpu: a processor without features. options: those of clang -cc1as, besides.
    """
    return _run(listing, *_AS[1:], gpu, "-filetype", "asm", *options).decode()


def _zig() -> str:
    zig = find_zig()
    if zig is None:
        raise NoAssemblerError
    return zig


def _run(listing: str, *options: str) -> bytes:
    """Run clang with these options and return its output, with limits, as the text may come from anyone."""
    zig = _zig()
    with tempfile.TemporaryDirectory(prefix="flydsl-") as directory:
        source, output = Path(directory, "listing.s"), Path(directory, "listing.o")
        source.write_text(listing, "utf-8", errors="surrogateescape", newline="")
        seconds = min(_LEAST_SECONDS + len(listing) // _BYTES_PER_SECOND, _SECONDS)
        limit = f"for limit in '-t {seconds}' {_LIMITS}; do ulimit $limit 2>/dev/null; done"
        command = ["sh", "-c", f'{limit}; exec "$0" "$@"', zig, "clang", *options, source.name, "-o", output.name]
        try:
            done = run_tool(command, _SECONDS, Path(directory))
        except subprocess.TimeoutExpired:
            raise AssemblerError(f"the assembler did not come to an end within {_SECONDS} seconds") from None
        if done.returncode in (-signal.SIGXCPU, -signal.SIGKILL) and not done.stderr:
            raise AssemblerError(f"the assembler did not come to an end within {seconds} seconds of the processor")
        if done.returncode or not output.exists():
            raise AssemblerError(done.stderr.strip() or f"the assembler ended with status {done.returncode}")
        return output.read_bytes()
