"""Read the assembly text that LLVM emits for a module: instructions, labels, and the source lines of `.loc`.

The text is the decoder: it exists for every target, and assembling it gives the object's machine code byte for byte.
"""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass, field

from flydsl.errors import SourceLocation
from flydsl.simulator.errors import ListingError
from flydsl.simulator.listing_data import DATA_DIRECTIVES, DataReader, DataSegment


@dataclass(frozen=True)
class ListedInstruction:
    """One instruction as written; `line` is its line in the listing, from 1."""

    text: str
    line: int
    location: SourceLocation | None


@dataclass(frozen=True)
class Listing:
    """All instructions of a module in order, and its data.

    labels gives for each label the index of the instruction that follows it.
    """

    instructions: tuple[ListedInstruction, ...]
    labels: dict[str, int]
    constants: DataSegment = field(default_factory=DataSegment)
    variables: DataSegment = field(default_factory=DataSegment)


_LABEL = re.compile(r"([A-Za-z_.$][\w.$@]*):$")
_FILE = re.compile(r'\.file\s+(\d+)\s+"((?:[^"\\]|\\.)*)"(?:\s+"((?:[^"\\]|\\.)*)")?')
_LOC = re.compile(r"\.loc\s+(\d+)\s+(\d+)(?:\s+(\d+))?")
_SECTION = re.compile(r"\.section\s+\"?([^\s,\"]+)")


def read_listing(text: str) -> Listing:
    """Read a listing. ListingError names the line that is not understood."""
    reader = _Reader()
    for number, line in enumerate(text.splitlines(), start=1):
        try:
            reader.read(_without_comment(line), number)
        except (ValueError, KeyError) as error:
            raise ListingError(f"line {number} of the listing is not understood: {line.strip()!r} ({error})") from error
        if reader.ended:
            break
    constants, variables = reader.constants.segment(), reader.variables.segment()
    if variables.relocations:
        raise ListingError(
            f"a global variable holds the address of {variables.relocations[0].symbol}",
            hint="the simulator gives addresses anew for every launch; a constant may hold one",
        )
    return Listing(tuple(reader.instructions), reader.labels, constants, variables)


class _Reader:
    def __init__(self) -> None:
        self.instructions: list[ListedInstruction] = []
        self.labels: dict[str, int] = {}
        self.constants, self.variables = DataReader(), DataReader()
        self.ended = False
        self._files: dict[int, str] = {}
        self._location: SourceLocation | None = None
        self._section = ".text"
        self._in_kernel_descriptor = False

    def read(self, line: str, number: int) -> None:
        label = _LABEL.match(line)
        if label:
            self._label(label[1])
        elif line.startswith("."):
            self._directive(line)
        elif line and self._in_text and not self._in_kernel_descriptor:
            self.instructions.append(ListedInstruction(line, number, self._location))

    @property
    def _in_text(self) -> bool:
        return self._section.startswith(".text")

    @property
    def _data(self) -> DataReader | None:
        """What the data of the section goes to; None in other sections."""
        if self._in_kernel_descriptor:
            return None
        if self._section.startswith((".rodata", ".data.rel.ro")):
            return self.constants
        return self.variables if self._section.startswith((".data", ".bss")) else None

    def _label(self, name: str) -> None:
        if self._in_text:
            self.labels[name] = len(self.instructions)
            if name.startswith(".Lfunc_end"):
                self._location = None
        elif self._data is not None:
            self._data.label(name)

    def _directive(self, line: str) -> None:
        name, _, rest = line.replace("\t", " ").partition(" ")
        section = _SECTION.match(line)
        if section or name in (".text", ".data", ".bss", ".rodata"):
            self._section = section[1] if section else name
        elif self._data is not None and name in DATA_DIRECTIVES:
            self._data.append(name, rest.strip())
        elif name == ".file":
            self._file(line)
        elif name == ".loc":
            self._loc(line)
        elif name in (".amdhsa_kernel", ".end_amdhsa_kernel"):
            self._in_kernel_descriptor = name == ".amdhsa_kernel"
        elif name == ".amdgpu_metadata":
            self.ended = True

    def _file(self, line: str) -> None:
        match = _FILE.match(line)
        if match:
            directory, name = (match[2], match[3]) if match[3] is not None else ("", match[2])
            self._files[int(match[1])] = posixpath.join(_unescape(directory), _unescape(name))

    def _loc(self, line: str) -> None:
        match = _LOC.match(line)
        if match is None:
            raise ValueError("expected .loc file line column")
        file, source_line, column = self._files[int(match[1])], int(match[2]), int(match[3] or 0)
        # DWARF counts columns from 1 and says 0 for unknown; line 0 is an instruction of no particular line.
        self._location = SourceLocation(file, source_line, column - 1 if column else None) if source_line else None


def _without_comment(line: str) -> str:
    if ";" not in line and "//" not in line:
        return line.strip()
    return re.split(r"(?:;|//)(?=(?:[^\"]*\"[^\"]*\")*[^\"]*$)", line, maxsplit=1)[0].strip()


def _unescape(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text)
