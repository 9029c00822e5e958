"""`python -m tests.simulator.isa.llvm_tests llvm/test/MC gfx1100`: the share of LLVM's instruction tests understood.

The folder is LLVM's, whose tests of the assembler and the disassembler say how each text is encoded. What the installed
LLVM encodes in the same way counts; what of it the simulator has no meaning for must be refused by name.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from flydsl.arch import Arch, get_arch
from flydsl.hsaco.assembler import AssemblerError
from flydsl.hsaco.listing import read_listing
from flydsl.simulator import Program
from tests.simulator.isa.operand_forms import taken

_FILES = {"gfx11": ("gfx11_",), "gfx115": ("gfx11_", "gfx1150_"), "gfx120": ("gfx12_",)}
"""The beginning of a GPU's name -> that of its files' names."""
_EXPECTED = re.compile(r"(?://|#) ([A-Z0-9-]+): *(.*?) *(?:;|//) encoding: \[([0-9a-fx,]+)\]")
_ENCODING = re.compile(r"gfx\d+_d?asm_([a-z0-9]+)")
_PRINTED = re.compile(r"\t([a-z].*?)\s*(?:;|//) encoding: \[(.*)\]")
_HALF = re.compile(r"\bv\d+\.[lh]\b")
_WAVE64 = ("-target-feature", "-wavefrontsize32", "-target-feature", "+wavefrontsize64")
_HALVES = ("-target-feature", "+real-true16")
_FEATURES = {(32, False): (), (64, False): _WAVE64, (32, True): _HALVES, (64, True): (*_WAVE64, *_HALVES)}
_AT_ONCE = 300  # lines: the assembler stops after some errors
_FAMILIES = {
    "sop1 sop2 sopc sopk sopp salu operands": "Scalar",
    "smem": "Scalar memory",
    "vop1 vop2 vop3 vop3c vop3cx features": "Vector, with DPP",
    "vopc vopcx": "Vector comparisons, with DPP",
    "vopd": "Pairs of operations (VOPD)",
    "vop3p wmma": "Packed, dot products, WMMA",
    "ds": "LDS",
    "mubuf buffer vbuffer": "Buffers",
    "flat global vflat": "Global memory, flat addresses, scratch",
    "mimg vimage vsample mtbuf exp vexport vinterp ldsdir vdsdir": "Graphics",
}


class Expected(NamedTuple):
    """A text, how it is encoded (bytes as LLVM writes them), and in waves of how many lanes."""

    text: str
    code: str
    lanes: int


def expectations(root: Path, arch: Arch) -> dict[Expected, str]:
    """What the tests in LLVM's folder expect for a GPU -> the encoding that their file's name tells."""
    starts = next(files for gpu, files in reversed(_FILES.items()) if arch.name.startswith(gpu))
    found: dict[Expected, str] = {}
    for path in sorted(root.rglob("gfx1*")):
        if path.name.startswith(starts) and "_err" not in path.name and (kind := _ENCODING.match(path.name)):
            for line in path.read_text(errors="replace").splitlines():
                if match := _EXPECTED.match(line):
                    lanes = 64 if match[1].startswith("W64") else 32
                    found.setdefault(Expected(match[2], match[3], lanes), kind[1])
    return found


def understood(expected: Iterable[Expected], arch: Arch) -> Iterator[tuple[Expected, bool]]:
    """Those that the installed LLVM encodes as its tests expect, and whether the simulator has a meaning for each.

    Raises AssertionError for one that is refused without a reason.
    """
    lines = list(expected)
    groups = [
        [one for one in lines if (one.lanes, _has_halves(one)) == (lanes, halves)]
        for lanes in (32, 64)
        for halves in (False, True)
    ]
    for group in groups:
        for start in range(0, len(group), _AT_ONCE):
            yield from _understood(group[start : start + _AT_ONCE], arch)


def _has_halves(one: Expected) -> bool:
    return _HALF.search(one.text) is not None


def _understood(lines: list[Expected], arch: Arch) -> Iterator[tuple[Expected, bool]]:
    lanes = lines[0].lanes
    features = _FEATURES[lanes, _has_halves(lines[0])]
    numbers, printed = taken([one.text for one in lines], arch, "-show-encoding", *features)
    encoded = [match.groups() for line in printed.splitlines() if (match := _PRINTED.match(line))]
    pairs = zip(numbers, encoded, strict=True)
    same = [(lines[number], text) for number, (text, code) in pairs if code == lines[number].code]
    listing = read_listing("\n".join(["L:", *(text for _, text in same), ""]))
    program = Program.from_listing({}, listing, arch, lanes)
    for (one, text), instruction in zip(same, program.instructions, strict=True):
        assert instruction.semantics is not None or instruction.problem, text
        yield one, instruction.semantics is not None


def main(root: str, *gpus: str) -> None:
    counts: dict[str, Counter[str]] = {}
    for gpu in gpus:
        arch = get_arch(gpu)
        kinds = expectations(Path(root), arch)
        for one, known in understood(kinds, arch):
            family = next(title for names, title in _FAMILIES.items() if kinds[one] in names.split())
            counts.setdefault(family, Counter()).update({gpu: 1, f"{gpu} understood": known})
            counts.setdefault("All", Counter()).update({gpu: 1, f"{gpu} understood": known})
    print("| instructions |", *(f"{gpu}: texts | understood |" for gpu in gpus))
    print("| --- |", *("--- | --- |" for _ in gpus))
    for family in (title for title in (*_FAMILIES.values(), "All") if title in counts):
        cells = (f"{counts[family][gpu]:,} | {counts[family][f'{gpu} understood']:,} |" for gpu in gpus)
        print(f"| {family} |", *cells)


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except AssemblerError as error:
        sys.exit(str(error))
