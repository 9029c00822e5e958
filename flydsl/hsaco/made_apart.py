"""Listings that were compiled separately from their code object: IREE runs LLVM once for each.

The two runs may allocate registers differently, and reorder instructions that do not depend on each other. Apart from
that the listing has the same instructions. Those that differ are read from the code object here, so that the simulator
runs what the GPU runs. No disassembler is needed: at each place the instructions nearby are tried, with the registers
and numbers for which the assembler gives the bytes at that place.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from flydsl.hsaco.assembler import AssemblerError
from flydsl.hsaco.instruction_places import PlacedInstructions, place_lines

_NUMBER = re.compile(
    r"(?<![\w.])(?:(?P<file>[vsa])(?:(?P<register>\d+)|\[(?P<first>\d+):(?P<last>\d+)\])|(?P<number>0x[0-9a-f]+|\d+))"
    r"(?!\w|\.\d)"
)
_SPECIAL_REGISTER = re.compile(r"\bvcc(?:_lo|_hi)?\b")
_REGISTER_BITS, _NUMBER_BITS, _LARGEST_INLINE = 8, 32, 64
_ERROR = re.compile(r"^[^:\n]*:(\d+):\d+: error:", re.MULTILINE)
_WITH_PLACES = ("s_branch", "s_cbranch", "s_call")
_NEARBY = 8
_LARGEST_SHARE = 0.5


def take_instructions(listing: str, placed: PlacedInstructions, code: bytes, gpu: str) -> str | None:
    """The listing with the instructions of the code; None if the code is another one, or cannot be read.

    placed: the listing's instructions. code: the section .text; parts that are not compared are equal to those of
    `placed`.
    """
    if len(code) != len(placed.code):
        return None
    differing = [i for i, (_, start, end) in enumerate(placed) if placed.code[start:end] != code[start:end]]
    if len(differing) > _LARGEST_SHARE * len(placed.texts):
        return None
    texts = _Encodings(placed.texts, gpu).read(code, placed, differing)
    if texts is None or Counter(map(_without_registers, texts)) != Counter(map(_without_registers, placed.texts)):
        return None
    lines = listing.split("\n")
    for i in differing:
        lines[placed.lines[i] - 1] = f"\t{texts[i]}"
    return "\n".join(lines)


def _without_registers(text: str) -> str:
    numbers = _NUMBER.sub(lambda match: str(int(match["number"], 0)) if match["number"] else "register", text)
    return _SPECIAL_REGISTER.sub("register", numbers)


@dataclass(frozen=True)
class _Change:
    """One bit of one number of an instruction. delta: the bits of the encoding that change with it, as a number."""

    which: int
    bit: int
    delta: int


@dataclass(frozen=True)
class _Encoding:
    """An instruction's bytes, and the bits of them that each bit of its numbers changes."""

    text: str
    base: bytes
    changes: Sequence[_Change]

    def read(self, code: bytes) -> str | None:
        """The instruction with the numbers that give these bytes; None if there are none."""
        wanted, taken = _as_number(code) ^ _as_number(self.base), Counter[int]()
        for change in self.changes:
            if change.delta and wanted & change.delta == change.delta:
                wanted ^= change.delta
                taken[change.which] ^= 1 << change.bit
        return _with_changed(self.text, taken) if wanted == 0 else None


class _Encodings:
    """The encodings of a listing's instructions, determined on demand."""

    def __init__(self, texts: Sequence[str], gpu: str) -> None:
        self._texts, self._gpu = texts, gpu
        self._known: dict[str, _Encoding] = {}

    def read(self, code: bytes, placed: PlacedInstructions, differing: Sequence[int]) -> list[str] | None:
        """The texts, with the differing ones as the code has them; None if one of these is not found."""
        result, ends = list(self._texts), placed.ends
        self._learn({text for i in differing for text in self._nearby(i)})
        for run in _runs(differing):
            at, end = placed.starts[run[0]], ends[run[-1]]
            for i in run:  # instructions of several sizes may have changed places
                text, size = self._read_one(code[at:end], self._nearby(i))
                if text is None:
                    return None
                result[i], at = text, at + size
            if at != end:
                return None
        return result

    def _nearby(self, index: int) -> list[str]:
        around = range(max(index - _NEARBY, 0), min(index + _NEARBY + 1, len(self._texts)))
        return [self._texts[i] for i in sorted(around, key=lambda i: abs(i - index))]

    def _read_one(self, code: bytes, candidates: Iterable[str]) -> tuple[str | None, int]:
        """The instruction that this code begins with, and its size."""
        for encoding in (self._known[text] for text in candidates if text in self._known):
            size = len(encoding.base)
            if size <= len(code) and (text := encoding.read(code[:size])) is not None:
                return text, size
        return None, 0

    def _learn(self, texts: set[str]) -> None:
        new = sorted(text for text in texts if not text.startswith(_WITH_PLACES))
        variants = {
            text: [(*bit, _with_changed(text, {bit[0]: 1 << bit[1]})) for bit in _bits_of(text)] for text in new
        }
        encoded = _encoded([*new, *(other for changed in variants.values() for _, _, other in changed)], self._gpu)
        for text, base in ((text, encoded[text]) for text in new if text in encoded):
            changes = [
                _Change(which, bit, _as_number(encoded[other]) ^ _as_number(base))
                for which, bit, other in variants[text]
                if len(encoded.get(other, b"")) == len(base)
            ]
            self._known[text] = _Encoding(text, base, changes)


def _runs(numbers: Sequence[int]) -> list[list[int]]:
    """Ascending numbers in groups of those that follow each other."""
    result: list[list[int]] = []
    for number in numbers:
        if result and result[-1][-1] == number - 1:
            result[-1].append(number)
        else:
            result.append([number])
    return result


def _as_number(code: bytes) -> int:
    return int.from_bytes(code, "little")


def _bits_of(text: str) -> Iterator[tuple[int, int]]:
    """All bits of all numbers of an instruction: which number, and which bit."""
    for which, match in enumerate(_NUMBER.finditer(text)):
        for bit in range(_NUMBER_BITS if match["number"] else _REGISTER_BITS):
            yield which, bit


def _with_changed(text: str, changed: Mapping[int, int]) -> str:
    """An instruction with other numbers. changed: the bits to flip, by the number's place."""
    counted = iter(range(len(text)))

    def other(match: re.Match[str]) -> str:
        bits = changed.get(next(counted), 0)
        if match["number"]:
            number = int(match["number"], 0) ^ bits
            return match[0] if not bits else str(number) if number <= _LARGEST_INLINE else hex(number)
        if match["register"]:
            return f"{match['file']}{int(match['register']) ^ bits}"
        first, last = int(match["first"]), int(match["last"])
        return f"{match['file']}[{first ^ bits}:{last - first + (first ^ bits)}]"

    return _NUMBER.sub(other, text)


def _encoded(texts: Iterable[str], gpu: str) -> dict[str, bytes]:
    """The bytes of those instructions that the assembler accepts."""
    left = list(dict.fromkeys(texts))
    while left:
        try:
            placed = place_lines(left, left, range(1, len(left) + 1), gpu)
        except AssemblerError as error:
            refused = {int(number) - 1 for number in _ERROR.findall(str(error))}
            left = [text for i, text in enumerate(left) if i not in refused] if refused else []
        else:
            return {text: placed.code[start:end] for text, start, end in placed}
    return {}
