"""Check that a listing belongs to a code object: assembled, it must give the same bytes.

The simulator decodes the listing and takes the rest from the code object. With the listing of another version of the
kernel it would silently compute something else than the GPU.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable

from flydsl.hsaco import unread_sources
from flydsl.hsaco.assembler import AssemblerError, NoAssemblerError, assemble
from flydsl.hsaco.elf import Contents, read_contents
from flydsl.hsaco.kernels import read_hsaco
from flydsl.hsaco.listing import ListingError

_TARGET = re.compile(r'^([ \t]*\.amdgcn_target[ \t]+)"([^"\n]*)"', re.MULTILINE)
_PROCESSOR = re.compile(r"(?:.*-)?(gfx\w+(?::\w+[+-])*)", re.ASCII)
_PREFETCHED = re.compile(r"instprefsize\(([^()\n]+)\)<<4\)&(\d+)\)>>4")
"""What LLVM 23 writes instead of the number of a kernel's cache lines; the assembler is one version older."""
_LINE_BYTES_LOG2 = 7
_MOST_SHOWN = 2000


def check_listing(hsaco: bytes, listing: str) -> None:
    """Raise ListingError if the machine code or the constants of a code object differ from the listing's.

    Bytes that the linker fills in are not compared. The assembler is ziglang's clang and takes some 50 ms; what it
    rejects is an error with its message. If it is not installed, a warning says that nothing was compared. This is
    safe: the simulator refuses harmful listings when it reads them, so a wrong listing can only give wrong results.
    """
    linked, target = read_contents(hsaco), read_hsaco(hsaco).target
    try:
        assembled = read_contents(_assemble(listing, target))
    except NoAssemblerError as error:
        warnings.warn(f"the listing was not compared with the code object: {error} (pip install ziglang)", stacklevel=3)
        return
    _compare(".text", assembled, linked, lambda: unread_sources.opcodes(listing, processor(target)))
    if len(linked.sections.get(".rodata", b"")) == len(assembled.sections.get(".rodata", b"")):
        _compare(".rodata", assembled, linked)  # otherwise the linker merged constants into it


def _compare(
    section: str, assembled: Contents, linked: Contents, opcodes: Callable[[], frozenset[int]] = frozenset
) -> None:
    """opcodes: for which `unread_sources` lets a field differ; asked for only where something does."""
    expected, found = linked.sections.get(section, b""), bytearray(assembled.sections.get(section, b""))
    if len(expected) != len(found):
        raise _mismatch(f"{section} has {len(expected)} bytes in the code object, {len(found)} by the listing")
    for field in assembled.filled_by_the_linker.get(section, ()):
        if field.stop <= len(found):
            found[field] = expected[field]
    if found != expected and not unread_sources.are_all_that_differs(bytes(found), expected, opcodes()):
        offset = next(i for i, (a, b) in enumerate(zip(expected, found, strict=True)) if a != b)
        raise _mismatch(f"{section} differs first at byte {offset:#x}")


def _mismatch(difference: str) -> ListingError:
    return ListingError(
        f"this is not the listing of this code object: {difference}",
        hint="take both from the same compilation; to run a listing that was changed on purpose, or that a compiler "
        "made apart from the code object, as IREE does: load(..., check_listing=False)",
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


def _assemble(listing: str, target: str) -> bytes:
    """The object that the assembler makes for the listing's target, or the code object's if the listing names none."""
    named = _TARGET.search(listing)
    gpu = processor(named[2] if named else target)
    if gpu.partition(":")[0] != processor(target).partition(":")[0]:
        raise _mismatch(f"the listing is for {gpu}, the code object for {processor(target)}")
    listing = _TARGET.sub(lambda line: f'{line[1]}"amdgcn-amd-amdhsa--{gpu}"', listing)
    listing = _PREFETCHED.sub(_prefetched, listing)
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
