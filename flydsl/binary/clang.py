"""HIP and OpenCL C sources, compiled by the clang that ziglang brings.

There is no ROCm behind it: `hip/hip_runtime.h` and OpenCL's functions are those of `include/`, which has the positions
of threads, shared memory, barriers, atomics, shuffles and mathematics. What is missing there is an error of the
compiler or the linker.
"""

from __future__ import annotations

import linecache
import re
import subprocess
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

from flydsl.arch import DEFAULT_ARCH, Arch, get_arch
from flydsl.binary.module import BinaryModule
from flydsl.codegen import CodeObject
from flydsl.codegen.assemble import assemble
from flydsl.codegen.link import link
from flydsl.compiler.debugging.missing_waits import warn_of_missing_waits
from flydsl.compiler.user_error import user_facing
from flydsl.errors import CompileError, SourceLocation
from flydsl.system.temporary_files import temporary_folder
from flydsl.system.ziglang import find_zig, run_tool

_INCLUDE = Path(__file__).parent / "include"
_SECONDS = 120
_MOST_SHOWN = 4000
_DIAGNOSTIC = re.compile(
    r"^(?P<file>.+?):(?P<line>\d+):(?P<column>\d+): (?:fatal )?error: (?P<message>.*)$", re.MULTILINE
)
_UNDEFINED = re.compile(r"undefined (?:hidden )?symbol: (.+)")
_LEVELS = ("-O0", "-O1", "-O2", "-O3")

_KERNELS = {
    "HIP": "a kernel is a function with __global__; a template becomes one where it is instantiated",
    "OpenCL C": "a kernel is a function with `kernel` before it",
}
_HIP = (
    "-x",
    "hip",
    "--cuda-device-only",
    "-nostdinc",
    "-nogpuinc",
    "-nogpulib",
    "-fdeclspec",
    "-fhip-kernel-arg-name",
    "-include",
    "hip/hip_runtime.h",
)
_OPENCL = ("-x", "cl", "-cl-std=CL2.0", "-nogpulib", "-cl-no-stdinc", "-cl-kernel-arg-info", "-include", "opencl_c.h")


@user_facing
def compile_hip(
    source: str, *, arch: str | Arch | None = None, options: Sequence[str] = (), name: str = ""
) -> BinaryModule:
    """Compile HIP C++ for one GPU: its `__global__` functions become kernels.

    arch: a processor, by default the one that the simulator executes. options: more options of clang, such as "-O1"
    (the default is -O3) or "-DTILE=16". name: of the source, for errors and the machine code's lines.
    Raises CompileError, at the source's line where clang names one.
    """
    target = _arch(arch)
    return _compiled("HIP", source, (*_HIP, f"--offload-arch={target.name}"), target, options, name)


@user_facing
def compile_opencl(
    source: str, *, arch: str | Arch | None = None, options: Sequence[str] = (), name: str = ""
) -> BinaryModule:
    """Compile OpenCL C 2.0 for one GPU: its `kernel` functions. See `compile_hip`.

    A launch counts workgroups in `grid`, and work-items of one in `block`.
    """
    target = _arch(arch)
    flags = (*_OPENCL, "--target=amdgcn-amd-amdhsa", f"-mcpu={target.name}")
    return _compiled("OpenCL C", source, flags, target, options, name)


def _arch(arch: str | Arch | None) -> Arch:
    return DEFAULT_ARCH if arch is None else get_arch(arch) if isinstance(arch, str) else arch


def _compiled(
    language: str, source: str, flags: Sequence[str], arch: Arch, options: Sequence[str], name: str
) -> BinaryModule:
    zig = find_zig()
    if zig is None:
        raise CompileError(f"there is no clang to compile {language} with", hint="pip install ziglang, which has one")
    name = _remembered(source, name or f"{language.split()[0]}-{sha256(source.encode()).hexdigest()[:8]}")
    level = next((option for option in options if option in _LEVELS), "-O3")
    with temporary_folder() as directory:
        file = directory / "source.txt"
        file.write_text(f'#line 1 "{_quoted(name)}"\n{source}', "utf-8")
        command = [zig, "clang", *flags, "-O3", "-gline-tables-only", "-I", str(_INCLUDE), *options, "-S", str(file)]
        listing, diagnostics = _run(command, directory / "out.s", name)
        llvm_ir, _ = _run([*command, "-emit-llvm", "-g0"], directory / "out.ll", name)
    hsaco = _linked(assemble(listing, arch), language)
    code = CodeObject(arch, llvm_ir, int(level[2:]), b"", hsaco, listing, diagnostics)
    if not code.kernels:
        raise CompileError(f"there is no kernel in this {language} source", hint=_KERNELS[language])
    warn_of_missing_waits(code)
    return BinaryModule(code, language, {language: source, "LLVM IR": llvm_ir})


def _remembered(source: str, name: str) -> str:
    """Make the lines of a source known under a name, for errors and listings; a notebook's cell is known already."""
    if name not in linecache.cache:
        linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    return name


def _quoted(name: str) -> str:
    return name.replace("\\", "\\\\").replace('"', '\\"')


def _run(command: list[str], output: Path, name: str) -> tuple[str, str]:
    """Run the compiler; its output, and what it warned of."""
    try:
        done = run_tool([*command, "-o", str(output)], _SECONDS, output.parent)
    except subprocess.TimeoutExpired:
        raise CompileError(f"clang did not come to an end within {_SECONDS} seconds") from None
    if done.returncode or not output.exists():
        raise _error(done.stderr.strip() or f"clang ended with status {done.returncode}", name)
    return output.read_text("utf-8"), done.stderr.strip()


def _error(output: str, name: str) -> CompileError:
    """Clang's words, the first error at its line of the source."""
    first = _DIAGNOSTIC.search(output)
    if first is None or first["file"] != name:
        return CompileError(f"clang: {output[:_MOST_SHOWN]}", hint="look at the file and the options that it names")
    line, column = int(first["line"]), int(first["column"])
    at = SourceLocation(name, line, column - 1, column)
    rest = _DIAGNOSTIC.findall(output)[1:]
    more = (
        f"\n{len(rest)} more: " + "; ".join(f"line {line}: {message}" for _, line, _, message in rest[:5])
        if rest
        else ""
    )
    notes = _hint_of(first["message"]) or _note(output, first.end())
    return CompileError(f"clang: {first['message']}{more}", at=at, hint=notes or None)


# What kernels elsewhere use, and what to do here; the first word that a message of clang names decides.
_MISSING = {
    "printf": "printf is unsupported in HIP and OpenCL C: write to a tensor, and print that",
    "assert": "the device cannot stop: write a flag to a tensor",
    "malloc": "pass a tensor; memory on the device cannot be asked for in a kernel",
    "hip": "the host's side is Python: pass tensors on the CPU, and launch with module.kernel(..., grid=4, block=256)",
}


def _hint_of(message: str) -> str:
    """The hint about a missing identifier; empty for most."""
    found = re.search(r"undeclared identifier '(\w+)'", message)
    return next((hint for word, hint in _MISSING.items() if found and found[1].startswith(word)), "")


def _note(output: str, start: int) -> str:
    """The note that clang gives with its first error; empty if there is none."""
    following = output[start:].split(" error: ")[0]
    found = re.search(r"note: (.*)", following)
    return found[1] if found else ""


def _linked(obj: bytes, language: str) -> bytes:
    try:
        return link(obj, keep_debug_info=False)
    except CompileError as error:
        missing = sorted(set(_UNDEFINED.findall(error.message)))
        if not missing:
            raise
        raise CompileError(
            f"{language}: {', '.join(missing)} is used and defined nowhere",
            hint="functions of ROCm's libraries are not here: write them, or use clang's __builtin_... functions",
        ) from None
