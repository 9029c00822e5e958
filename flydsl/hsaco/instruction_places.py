"""Where each instruction of a listing is in the code: the listing is assembled with a label at each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from flydsl.hsaco.assembler import assemble
from flydsl.hsaco.elf import read_contents, read_symbols
from flydsl.hsaco.listing import read_listing

_LABEL = "flydsl_instruction_"


@dataclass(frozen=True)
class PlacedInstructions:
    """The instructions of a listing, with the bytes between which each is.

    lines: of the listing, from 1. The last instruction before padding, such as a function's last, ends after it.
    """

    texts: Sequence[str]
    lines: Sequence[int]
    starts: Sequence[int]
    code: bytes

    @property
    def ends(self) -> list[int]:
        return [*self.starts[1:], len(self.code)]

    def __iter__(self) -> Iterator[tuple[str, int, int]]:
        return zip(self.texts, self.starts, self.ends, strict=True)


def place_instructions(listing: str, gpu: str) -> PlacedInstructions:
    """Assemble a listing. gpu: a processor, with features if any. Raises as `assemble` and `read_listing` do."""
    found = read_listing(listing).instructions
    return place_lines(listing.split("\n"), [entry.text for entry in found], [entry.line for entry in found], gpu)


def place_lines(lines: Sequence[str], texts: Sequence[str], numbers: Sequence[int], gpu: str) -> PlacedInstructions:
    """The same for lines whose instructions are at the given line numbers, from 1."""
    labelled = list(lines)
    for i, number in enumerate(numbers):
        labelled[number - 1] = f"{_LABEL}{i}: {labelled[number - 1]}"
    data = assemble("\n".join(labelled), gpu)
    symbols = read_symbols(data)
    starts = [symbols[f"{_LABEL}{i}"] for i in range(len(numbers))]
    return PlacedInstructions(texts, numbers, starts, read_contents(data).sections.get(".text", b""))
