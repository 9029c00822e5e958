"""Check that a listing belongs to a code object: assembled, it must give the same bytes.

The simulator decodes the listing and takes the rest from the code object. With the listing of another version of the
kernel it would compute something, and nothing would show that it is not what the GPU computes.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
import warnings
from pathlib import Path

from flydsl.hsaco.elf import Contents, read_contents
from flydsl.hsaco.kernels import read_hsaco
from flydsl.hsaco.listing import ListingError
from flydsl.ziglang import find_zig

_TARGET = re.compile(r'^([ \t]*\.amdgcn_target[ \t]+)"([^"\n]*)"', re.MULTILINE)
_PROCESSOR = re.compile(r"(?:.*-)?(gfx\w+(?::\w+[+-])*)", re.ASCII)
_SECONDS, _MOST_SHOWN = 60, 2000
# Of time (seconds), memory (KiB) and files (half KiB), where the system has such limits. A listing takes far less.
_LIMITS = "for limit in '-t 60' '-v 8388608' '-f 2097152'; do ulimit $limit 2>/dev/null; done"


def check_listing(hsaco: bytes, listing: str) -> None:
    """Raise ListingError if the machine code or the constants of a code object differ from the listing's.

    What the linker fills in is left out. The assembler is the clang that ziglang brings; it takes some 50 ms. What it
    does not accept is an error, in its words. Where it is not installed a warning says that nothing was compared: the
    simulator refuses whatever a listing could do harm with when it reads it, so that without the comparison a listing
    of something else computes something else, and no more.
    """
    linked = read_contents(hsaco)
    zig = find_zig()
    if zig is None:
        warnings.warn(
            "the listing was not compared with the code object: there is no assembler (pip install ziglang)",
            stacklevel=3,
        )
        return
    assembled = read_contents(_assemble(zig, listing, read_hsaco(hsaco).target))
    _compare(".text", assembled, linked)
    if len(linked.sections.get(".rodata", b"")) == len(assembled.sections.get(".rodata", b"")):
        _compare(".rodata", assembled, linked)  # otherwise the linker merged constants into it


def _compare(section: str, assembled: Contents, linked: Contents) -> None:
    expected, found = linked.sections.get(section, b""), bytearray(assembled.sections.get(section, b""))
    if len(expected) != len(found):
        raise _mismatch(f"{section} has {len(expected)} bytes in the code object, {len(found)} by the listing")
    for field in assembled.filled_by_the_linker.get(section, ()):
        if field.stop <= len(found):
            found[field] = expected[field]
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
        raise ListingError(f"the listing is for {target!r:.100}, which is no AMD GPU")
    return match[1]


def _assemble(zig: str, listing: str, target: str) -> bytes:
    """The object that the assembler makes for the listing's target, or the code object's if the listing names none."""
    named = _TARGET.search(listing)
    gpu = processor(named[2] if named else target)
    if gpu.partition(":")[0] != processor(target).partition(":")[0]:
        raise _mismatch(f"the listing is for {gpu}, the code object for {processor(target)}")
    listing = _TARGET.sub(lambda line: f'{line[1]}"amdgcn-amd-amdhsa--{gpu}"', listing)
    compiler = [zig, "clang", "-target", "amdgcn-amd-amdhsa", f"-mcpu={gpu}", "-c", "-x", "assembler"]
    limited = ["sh", "-c", f'{_LIMITS}; exec "$0" "$@"', *compiler]
    with tempfile.TemporaryDirectory(prefix="flydsl-listing-") as directory:
        source, output = Path(directory, "listing.s"), Path(directory, "listing.o")
        source.write_text(listing, "utf-8", errors="surrogateescape", newline="")
        done = _run([*limited, source.name, "-o", output.name], directory)
        if done.returncode or not output.exists():
            words = done.stderr.strip()[:_MOST_SHOWN] or f"it ended with status {done.returncode}"
            raise ListingError(
                f"the assembler does not accept this listing:\n{words}",
                hint="to run it all the same: load(..., check_listing=False)",
            )
        return output.read_bytes()


def _run(command: list[str], directory: str) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            command,
            cwd=directory,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            timeout=_SECONDS,
        )
    except subprocess.TimeoutExpired:
        raise ListingError(
            f"the assembler did not come to an end with this listing within {_SECONDS} seconds"
        ) from None
