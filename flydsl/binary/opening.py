"""Open a code object from a file."""

from __future__ import annotations

from pathlib import Path

from flydsl.arch import get_arch
from flydsl.binary.disassembly import disassembled
from flydsl.binary.module import BinaryModule
from flydsl.codegen import CodeObject
from flydsl.compiler.debugging.missing_waits import warn_of_missing_waits
from flydsl.compiler.user_error import user_facing
from flydsl.errors import ArgumentError, CompileError
from flydsl.errors.places import open_folder
from flydsl.hsaco import HsacoError, read_hsaco
from flydsl.hsaco.same_code import check_listing as compare

_BUNDLES = (b"__CLANG_OFFLOAD_BUNDLE__", b"CCOB")


@user_facing
def open_binary(path: str | Path, listing: str | Path | None = None, *, check_listing: bool = True) -> BinaryModule:
    """Open a code object: a linked ELF file for an AMD GPU, as HIP, Triton and others load it.

    listing: its assembly, by default the file beside it with the suffix .s. Without one, the code is disassembled by
    an llvm-objdump. Either is assembled and compared with the code object. Without an llvm-objdump that knows the GPU,
    the module still has its kernels and their resources, and anything else raises an error that says what is missing.
    check_listing: if False, the listing is not compared, and runs whatever the code object holds: for an LLVM that
    encodes differently from the assembler here. If the listing was compiled separately and differs in registers only,
    these are taken from the code object, with a warning.

    Warns of data that is used before the wait for it, on some path through the code.

    Raises ArgumentError for a file that cannot be read, HsacoError for one that is not a code object, and ListingError
    for the listing of other code.
    """
    file = Path(path)
    data = _bytes_of(file)
    open_folder(listing or file)
    contents = read_hsaco(data)
    arch = get_arch(contents.arch_name)
    beside = file.with_suffix(".s")
    source = Path(listing) if listing is not None else beside if beside.exists() and beside != file else None
    try:
        text = disassembled(data, contents) if source is None else _text_of(source)
    except CompileError as error:
        return BinaryModule(CodeObject(arch, "", 0, b"", data, ""), file.name, unlisted=error)
    if check_listing:
        text = compare(data, text)
    code = CodeObject(arch, "", 0, b"", data, text)
    warn_of_missing_waits(code, is_from_llvm=False)
    return BinaryModule(code, file.name)


def _bytes_of(file: Path) -> bytes:
    try:
        data = file.read_bytes()
    except OSError as error:
        raise ArgumentError(
            f"{file}: {error.strerror}", hint="pass the path of a code object, usually .hsaco or .co"
        ) from None
    if data.startswith(_BUNDLES):
        raise HsacoError(
            f"{file.name} is a bundle of code objects for several GPUs",
            hint="extract one with clang-offload-bundler --unbundle --type=o --targets=...",
        )
    return data


def _text_of(file: Path) -> str:
    try:
        return file.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ArgumentError(
            f"the listing {file}: {error}", hint="pass the assembly that a compiler writes with -S"
        ) from None
