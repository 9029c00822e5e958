"""The AMDGPU backend of LLVM, through llvmlite: LLVM IR to optimized bitcode and assembly text."""

from __future__ import annotations

import functools
import mmap
import re
from dataclasses import dataclass
from pathlib import PurePath
from types import ModuleType
from typing import Any

from flydsl.arch import Arch
from flydsl.codegen import inline_assembly, llvm_process
from flydsl.codegen.isolate import ProcessEndedError
from flydsl.codegen.llvm_bugs import barriers, bfloat_ranges, indexed_writes
from flydsl.codegen.llvm_bugs.ir_text import kernels
from flydsl.codegen.llvm_process import Job, llvm_library
from flydsl.codegen.llvm_worker import Request
from flydsl.errors import CompileError, SourceLocation
from flydsl.system.interrupts import interrupt_afterwards

_ERROR_LINE = re.compile(r"(?:LLVM ERROR|error): (.+)")
_PLACE = re.compile(r"(?P<file>[^:]*):(?P<line>\d+):(?P<column>\d+): ?(?P<rest>.*)")

_ATTRIBUTE_GROUP = re.compile(r"^attributes (#\d+) = \{(.*)\}", re.M)
_GROUP_NUMBER = re.compile(r"#\d+")
_WORKGROUP_SIZES = re.compile(r'"amdgpu-flat-work-group-size"="(\d+),\d+"')


@dataclass(frozen=True)
class Compiled:
    """The output of LLVM for a module: optimized bitcode, assembly text and its warnings."""

    bitcode: bytes
    listing: str
    diagnostics: str


def compile_module(llvm_ir: str, arch: Arch, opt_level: int) -> Compiled:
    """Compile LLVM IR text and wait: see `start` and `finish`."""
    return finish(start(llvm_ir, arch, opt_level), llvm_ir, arch)


def expect(arch: Arch, opt_level: int) -> None:
    """Have LLVM's process get ready for a GPU, unless it is there already."""
    llvm_process.start(arch.name, str(opt_level))


def start(llvm_ir: str, arch: Arch, opt_level: int, options: tuple[str, ...] = ()) -> Job:
    """Start to compile LLVM IR text in another process."""
    _require_known(options)
    return Job(
        Request(
            _prepared(llvm_ir),
            arch.name,
            opt_level,
            options,
            (indexed_writes.WITHOUT_PEEPHOLE_OPTIMIZER,) if indexed_writes.may_be_lost(llvm_ir) else (),
        )
    )


def finish(work: Job, llvm_ir: str, arch: Arch) -> Compiled:
    """Wait for the compilation that `start` began. `llvm_ir` and `arch` are for errors.

    Raises CompileError with LLVM's diagnostics for IR that does not parse, verify or select.
    """
    try:
        result, diagnostics = work.result()
    except ProcessEndedError as error:
        raise diagnosed(error.output, llvm_ir, arch) from None
    if isinstance(result, str):
        raise CompileError(f"LLVM does not accept the LLVM IR: {result}")
    bitcode, listing = result
    return Compiled(bitcode, barriers.remove_guards(listing), diagnostics)


def _require_known(options: tuple[str, ...]) -> None:
    """Raise CompileError for an option that LLVM does not have: it would ignore it."""
    for option in options:
        name = option.removeprefix("--").partition("=")[0]
        if not _is_in_library(name):
            raise CompileError(f"LLVM has no option {name!r}", hint="llc --help-hidden lists the names")


@functools.cache
def _is_in_library(name: str) -> bool:
    """True if LLVM's library contains a name among its strings: its options cannot be listed."""
    with open(llvm_library(), "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as library:
        return library.find(name.encode() + b"\0") >= 0


def loaded_lock() -> Any:
    """llvmlite's lock around each of its calls, which has no public name; None as long as it is not loaded."""
    return _binding().ffi.lib._lock if _binding.cache_info().currsize else None


@interrupt_afterwards()
def disassemble(bitcode: bytes) -> str:
    """Bitcode as LLVM IR text."""
    return str(_parse_bitcode(bitcode))


@interrupt_afterwards()
def parse_error(llvm_ir: str) -> str:
    """The message of LLVM's parser for invalid LLVM IR text; empty if the text is valid."""
    binding = _binding()
    try:
        binding.parse_assembly(llvm_ir, binding.create_context())
    except RuntimeError as error:
        return str(error).strip()
    return ""


def smallest_workgroups(llvm_ir: str) -> dict[str, int]:
    """The kernels of LLVM IR text by name, with the smallest workgroup, in threads, that each declares."""
    groups = dict(_ATTRIBUTE_GROUP.findall(llvm_ir))
    found = {}
    for name, _, attributes in kernels(llvm_ir):
        texts = [attributes, *(groups.get(number, "") for number in _GROUP_NUMBER.findall(attributes))]
        if sizes := _WORKGROUP_SIZES.search(" ".join(texts)):
            found[name] = int(sizes[1])
    return found


@functools.cache
def _binding() -> ModuleType:
    """llvmlite.binding, imported (some 25 ms) and with its targets ready when first needed."""
    import llvmlite.binding as binding

    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()
    return binding


def _prepared(llvm_ir: str) -> str:
    """LLVM IR text as it is compiled."""
    return barriers.guard_barriers(inline_assembly.with_places(bfloat_ranges.fence_ranges(llvm_ir)))


def _parse_bitcode(bitcode: bytes) -> Any:
    binding = _binding()
    return binding.parse_bitcode(bitcode, binding.create_context())


def diagnosed(output: str, llvm_ir: str, arch: Arch) -> CompileError:
    """LLVM's last message as an error, with the source location if LLVM names one."""
    errors = _ERROR_LINE.findall(output) or [output or "it ended without a word"]
    message, at = inline_assembly.place_in_message(errors[0], llvm_ir)
    place = _PLACE.fullmatch(message)
    if place:
        message = place["rest"]
        if place["line"] != "0":
            file = _source_path(place["file"], llvm_ir)
            at = SourceLocation(file, int(place["line"]), max(int(place["column"]) - 1, 0), is_claimed=True)
    return CompileError(f"LLVM cannot compile this for {arch.name}: {message}", at=at)


def _source_path(name: str, llvm_ir: str) -> str:
    """The path of a source file: a diagnostic only has its name, the line table has its directory too."""
    written = re.escape(inline_assembly.quoted(name))
    found = re.search(rf'!DIFile\(filename: "{written}", directory: "([^"]*)"', llvm_ir)
    return str(PurePath(inline_assembly.unquoted(found[1]), name)) if found else name
