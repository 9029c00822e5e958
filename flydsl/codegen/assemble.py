"""Assemble a listing with ziglang's clang: the LLVM in llvmlite is built without AMD's assembler."""

from __future__ import annotations

import subprocess

from flydsl.arch import Arch
from flydsl.codegen.scratch import temporary_folder
from flydsl.errors import CompileError
from flydsl.ziglang import find_zig


def assemble(listing: str, arch: Arch) -> bytes:
    """The relocatable object of assembly text. Raises CompileError for an assembler error or a missing zig."""
    zig = find_zig()
    if zig is None:
        raise no_assembler("LLVM wrote a listing that has to be assembled")
    with temporary_folder() as directory:
        source, output = directory / "kernel.s", directory / "kernel.o"
        source.write_text(listing)
        command = [zig, "clang", "--target=amdgcn-amd-amdhsa", f"-mcpu={arch.name}", "-c", "-x", "assembler"]
        done = subprocess.run(
            [*command, str(source), "-o", str(output)], capture_output=True, text=True, errors="replace", check=False
        )
        if done.returncode == 0 and output.exists():
            return output.read_bytes()
    raise CompileError(f"the listing cannot be assembled for {arch.name}: {done.stderr.strip()}")


def no_assembler(reason: str) -> CompileError:
    """The error for a listing that needs an assembler if ziglang is not installed."""
    return CompileError(f"{reason}, and there is no assembler", hint="pip install ziglang")
