"""The listing that belongs to a code object: assembled, it must give the same bytes.

The simulator decodes the listing and takes the rest from the code object. With the listing of another version of the
kernel it would silently compute something else than the GPU.
"""

from __future__ import annotations

import re
import warnings

from flydsl.hsaco import made_apart, unread_sources
from flydsl.hsaco.assembler import AssemblerError, NoAssemblerError, assemble
from flydsl.hsaco.elf import Contents, read_contents
from flydsl.hsaco.instruction_places import place_instructions
from flydsl.hsaco.kernels import read_hsaco
from flydsl.hsaco.listing import ListingError

_TARGET = re.compile(r'^([ \t]*\.amdgcn_target[ \t]+)"([^"\n]*)"', re.MULTILINE)
_PROCESSOR = re.compile(r"(?:.*-)?(gfx\w+(?::\w+[+-])*)", re.ASCII)
_PREFETCHED = re.compile(r"instprefsize\(([^()\n]+)\)<<4\)&(\d+)\)>>4")
"""The expression that LLVM 23 writes for the number of a kernel's cache lines; the assembler is of LLVM 22."""
_LINE_BYTES_LOG2 = 7
_MOST_SHOWN = 2000


def check_listing(hsaco: bytes, listing: str) -> str:
    """The listing that belongs to a code object: this one, or one with its instructions as the code object has them.

    A listing is of the same code if it has the same instructions, but for the registers that hold their values and the
    order. Those that differ are then read from the code object (`made_apart`), and a warning says how many they are.
    Bytes that the linker fills in are not compared, nor fields that no instruction reads (`unread_sources`).

    Raises ListingError for a listing of other machine code or constants. The assembler is ziglang's clang and takes
    some 50 ms; what it rejects is an error with its message. If it is not installed, a warning says that nothing was
    compared. This is safe: the simulator refuses harmful listings when it reads them, so a wrong listing can only give
    wrong results.
    """
    linked, target = read_contents(hsaco), read_hsaco(hsaco).target
    prepared, gpu = _prepared(listing, target)
    try:
        assembled = read_contents(_assembled(prepared, gpu))
    except NoAssemblerError as error:
        warnings.warn(f"the listing was not compared with the code object: {error} (pip install ziglang)", stacklevel=3)
        return listing
    if len(linked.sections.get(".rodata", b"")) == len(assembled.sections.get(".rodata", b"")):
        _compare(".rodata", *_compared(".rodata", assembled, linked))  # otherwise the linker merged constants into it
    found, expected = _compared(".text", assembled, linked)
    if found == expected:
        return listing
    placed = place_instructions(prepared, gpu)
    expected = _as_assembled(assembled.sections[".text"], found, unread_sources.as_assembled(expected, placed))
    if expected == placed.code:
        return listing
    own = made_apart.take_instructions(listing, placed, expected, gpu)
    if own is None:
        _compare(".text", placed.code, expected)
        return listing
    changed = sum(a != b for a, b in zip(own.split("\n"), listing.split("\n"), strict=True))
    warnings.warn(
        f"{changed} of {len(placed.texts)} instructions have other registers or another order in the code object than "
        "in the listing, which was compiled apart from it: they are shown and run as the code object has them",
        stacklevel=3,
    )
    return own


def _compared(section: str, assembled: Contents, linked: Contents) -> tuple[bytes, bytes]:
    """A section by the listing, with what the linker fills in, and of the code object. ListingError for two sizes."""
    expected, found = linked.sections.get(section, b""), bytearray(assembled.sections.get(section, b""))
    if len(expected) != len(found):
        raise _mismatch(f"{section} has {len(expected)} bytes in the code object, {len(found)} by the listing")
    for field in assembled.filled_by_the_linker.get(section, ()):
        if field.stop <= len(found):
            found[field] = expected[field]
    return bytes(found), expected


def _as_assembled(assembled: bytes, filled: bytes, expected: bytes) -> bytes:
    """The expected bytes, without those that the linker has filled in."""
    pairs = zip(assembled, filled, expected, strict=True)
    return bytes(a if a != b else c for a, b, c in pairs)


def _compare(section: str, found: bytes, expected: bytes) -> None:
    if found != expected:
        offset = next(i for i, (a, b) in enumerate(zip(expected, found, strict=True)) if a != b)
        raise _mismatch(f"{section} differs first at byte {offset:#x}")


def _mismatch(difference: str) -> ListingError:
    return ListingError(
        f"this is not the listing of this code object: {difference}",
        hint="take both from the same compilation; to run a listing that was changed on purpose: "
        "load(..., check_listing=False)",
    )


def processor(target: str) -> str:
    """The processor with its features. Compilers have spelled targets in several ways.

    >>> processor("amdgcn-amd-amdhsa--gfx942:sramecc+:xnack-")
    'gfx942:sramecc+:xnack-'
    >>> processor("amdgpu9.42-amd-amdhsa-unknown-gfx942")
    'gfx942'
    """
    match = _PROCESSOR.fullmatch(target)
    if match is None:
        raise ListingError(f"the listing is for {target!r:.100}, which is not an AMD GPU")
    return match[1]


def _prepared(listing: str, target: str) -> tuple[str, str]:
    """The listing as the assembler takes it, and the GPU: the listing's, or the code object's if that names none."""
    named = _TARGET.search(listing)
    gpu = processor(named[2] if named else target)
    if gpu.partition(":")[0] != processor(target).partition(":")[0]:
        raise _mismatch(f"the listing is for {gpu}, the code object for {processor(target)}")
    listing = _TARGET.sub(lambda line: f'{line[1]}"amdgcn-amd-amdhsa--{gpu}"', listing)
    return _PREFETCHED.sub(_prefetched, listing), gpu


def _assembled(listing: str, gpu: str) -> bytes:
    try:
        return assemble(listing, gpu)
    except AssemblerError as error:
        raise ListingError(
            f"the assembler does not accept this listing:\n{str(error)[:_MOST_SHOWN]}",
            hint="to run it all the same: load(..., check_listing=False)",
        ) from None


def _prefetched(match: re.Match[str]) -> str:
    """The expression for the number of lines of the code, or the largest that the field holds."""
    bytes_, mask = match[1], int(match[2])
    lines = f"((({bytes_})+{(1 << _LINE_BYTES_LOG2) - 1})>>{_LINE_BYTES_LOG2})"
    return f"({lines}-max({lines}-{mask >> 4},0))<<4)&{mask})>>4"
