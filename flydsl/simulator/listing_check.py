"""Is a listing the one of a code object? Assembled, it must give the very bytes.

The simulator decodes the listing and takes the rest from the code object. With the listing of another version of the
kernel it would compute something, and nothing would show that it is not what the GPU computes.
"""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
import tempfile
import warnings
from pathlib import Path

from flydsl.hsaco import Contents, read_contents
from flydsl.simulator.errors import ListingError

_TARGET = re.compile(r'^\s*\.amdgcn_target\s+"([\w-]+?)--([\w:+-]+)"', re.MULTILINE)


def check_listing(hsaco: bytes, listing: str) -> None:
    """ListingError if the machine code or the constants of a code object are not what the listing says.

    What the linker fills in is left out. The assembler is the clang that ziglang brings; it takes some 50 ms. A warning
    says so where it is not there, or does not accept the listing.
    """
    try:
        assembled = read_contents(_assemble(listing))
    except _Unassembled as reason:
        warnings.warn(f"the listing was not compared with the code object: {reason}", stacklevel=3)
        return
    linked = read_contents(hsaco)
    _compare(".text", assembled, linked)
    if len(linked.sections.get(".rodata", b"")) == len(assembled.sections.get(".rodata", b"")):
        _compare(".rodata", assembled, linked)  # otherwise the linker merged constants into it


class _Unassembled(Exception):
    """Why there is nothing to compare with."""


def _compare(section: str, assembled: Contents, linked: Contents) -> None:
    expected, found = linked.sections.get(section, b""), bytearray(assembled.sections.get(section, b""))
    if len(expected) != len(found):
        raise _mismatch(f"{section} has {len(expected)} bytes in the code object, {len(found)} by the listing")
    for field in assembled.filled_by_the_linker.get(section, ()):
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


def _assemble(listing: str) -> bytes:
    target = _TARGET.search(listing)
    if target is None:
        raise _Unassembled("it does not say its .amdgcn_target")
    command = [_zig(), "clang", "-target", target[1], f"-mcpu={target[2]}", "-c", "-x", "assembler"]
    with tempfile.TemporaryDirectory(prefix="flydsl-listing-") as directory:
        source, output = Path(directory, "listing.s"), Path(directory, "listing.o")
        source.write_text(listing, "utf-8")
        done = subprocess.run(
            [*command, source.name, "-o", output.name],
            cwd=directory,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
        if done.returncode or not output.exists():
            raise _Unassembled(done.stderr.strip() or f"the assembler ended with status {done.returncode}")
        return output.read_bytes()


def _zig() -> str:
    try:
        spec = importlib.util.find_spec("ziglang")
    except ImportError:
        spec = None
    zig = shutil.which("zig", path=str(Path(spec.origin).parent)) if spec and spec.origin else None
    if zig is None:
        raise _Unassembled("there is no assembler (pip install ziglang)")
    return zig
