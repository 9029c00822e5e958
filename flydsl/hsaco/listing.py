"""Read the assembly text that LLVM emits for a module: instructions, labels, and the source lines of `.loc`.

The text is the decoder: it exists for every target, and assembling it gives the object's machine code byte for byte.
"""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from dataclasses import dataclass, field

from flydsl.errors import SimulatorError, SourceLocation
from flydsl.hsaco.data import DATA_DIRECTIVES, MOST_BYTES, DataReader, DataSegment, unescaped


class ListingError(SimulatorError):
    """An error for an assembly listing, or one line of it, that this reader does not understand."""


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


_NUMBERED_LABEL = re.compile(r"(\d{1,9}):\s*(.*)")
_TO_NUMBERED_LABEL = re.compile(r"(s_c?branch\w*\s+)(\d{1,9})([fb])$")
_NAME_OF_NUMBERED = re.compile(r"\.L\d+\.\d+$")
_LABEL = re.compile(r"([A-Za-z_.$][\w.$@]*):$")
_FILE = re.compile(r'\.file\s+(\d+)\s+"((?:[^"\\]|\\.)*)"(?:\s+"((?:[^"\\]|\\.)*)")?')
_LOC = re.compile(r"\.loc\s+(\d+)\s+(\d+)(?:\s+(\d+))?")
_SECTION = re.compile(r"\.section\s+\"?([^\s,\"]+)")


_LINE_ENDS = re.compile(r"\r\n|\r|\n")  # those of the assembler, which are fewer than str.splitlines knows
_CONTROL_CHARACTERS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_REGISTER_COMMENT = re.compile(
    r"(?<=[\w\]]) ?/\*v(?:\d+|\[\d+:\d+\])(?:\.[lh])?\*/"
)  # the full name, after the encoded one
_TOKENS_BEFORE_COMMENT = re.compile(r'(?:[^";/]|"(?:[^"\\]|\\.)*"|/(?!/))*')

# Directives that compilers write and no instruction depends on: symbols, line tables, what is known of kernels.
_IGNORED = frozenset(
    (".globl", ".global", ".hidden", ".protected", ".internal", ".local", ".weak", ".type", ".size", ".ident", ".set")
).union((".addrsig", ".addrsig_sym", ".amdgcn_target"))
_IGNORED_PREFIXES = (".cfi_", ".amdgpu_", ".amdhsa_")
_PADDING = frozenset((".p2align", ".p2alignl", ".fill", ".zero"))
_DEBUGGING = frozenset((".byte", ".short", ".long", ".quad", ".ascii", ".asciz", ".uleb128", ".sleb128"))
_FORBIDDEN = re.compile(r"\.(include|incbin)\b", re.IGNORECASE)


def read_listing(text: str) -> Listing:
    """Read a listing. ListingError names the line that is not understood.

    Unknown directives are refused: the assembler might make code or data of them.
    """
    reader = _Reader()
    for number, line in enumerate(_LINE_ENDS.split(text), start=1):
        try:
            reader.read(_without_comment(line), number)
        except (ValueError, KeyError) as error:
            shown = line.strip()[:200]
            raise ListingError(f"line {number} of the listing is not understood: {shown!r} ({error})") from error
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
        self._files: dict[int, str] = {}
        self._location: SourceLocation | None = None
        self._section = ".text"
        self._in_kernel_descriptor = self._in_metadata = False
        self._padding_bytes = 0
        self._numbered: Counter[str] = Counter()

    def read(self, line: str, number: int) -> None:
        if self._in_metadata:
            self._in_metadata = line != ".end_amdgpu_metadata"
            return
        label, numbered = _LABEL.match(line), _NUMBERED_LABEL.match(line)
        if label:
            if _NAME_OF_NUMBERED.match(label[1]):
                raise ValueError("names like this one are those of labels such as `1:`")
            self._label(label[1])
        elif numbered and self._in_text:
            self._numbered[numbered[1]] += 1
            self._label(f".L{numbered[1]}.{self._numbered[numbered[1]]}")
            self.read(numbered[2], number)
        elif line.startswith("."):
            self._directive(line)
        elif line and self._in_text and not self._in_kernel_descriptor:
            text = _TO_NUMBERED_LABEL.sub(self._nearest, line)
            self.instructions.append(ListedInstruction(text, number, self._location))
        elif line and self._data is not None:
            raise ValueError("neither a label nor data")

    @property
    def _in_text(self) -> bool:
        return self._section.startswith(".text")

    @property
    def _data(self) -> DataReader | None:
        """The reader that collects the data of the section; None in other sections."""
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

    def _nearest(self, branch: re.Match[str]) -> str:
        """A branch to the next (1f) or the last (1b) of the labels of a number, by the name that it has here."""
        found = self._numbered[branch[2]] + (branch[3] == "f")
        return f"{branch[1]}.L{branch[2]}.{found}"

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
            self._in_metadata = True
        elif name in _PADDING:
            self._padding(name, rest)
        elif name not in _IGNORED and not name.startswith(_IGNORED_PREFIXES):
            self._other(name)

    def _padding(self, name: str, rest: str) -> None:
        """Count padding of code and of sections without data here. ValueError if there is too much."""
        numbers = [int(word, 0) for word in rest.split(",") if word.strip()]
        if name in (".p2align", ".p2alignl"):
            size = 1 << numbers[0] if numbers and 0 <= numbers[0] < 64 else -1
        else:
            size = numbers[0] * (numbers[1] if len(numbers) > 1 and name == ".fill" else 1) if numbers else -1
        self._padding_bytes += size
        if size < 0 or self._padding_bytes > MOST_BYTES:
            raise ValueError(f"so much padding is not simulated: at most {MOST_BYTES} bytes")

    def _other(self, name: str) -> None:
        """Skip debugging information. ValueError for other directives, and for those among code or data."""
        is_debugging_information = not self._in_text and self._data is None and not self._in_kernel_descriptor
        if not is_debugging_information or name not in _DEBUGGING:
            raise ValueError(f"the directive {name} is unknown here")

    def _file(self, line: str) -> None:
        if numbered := read_file(line):
            number, path = numbered
            self._files[number] = path

    def _loc(self, line: str) -> None:
        place = read_loc(line)
        if place is None:
            raise ValueError("expected .loc file line column")
        number, source_line, column = place
        file = self._files[number]
        # DWARF counts columns from 1 and says 0 for unknown; line 0 is an instruction of no particular line.
        found = SourceLocation(file, source_line, column - 1 if column else None, is_claimed=True)
        self._location = found if source_line else None


def read_file(line: str) -> tuple[int, str] | None:
    r"""The number and the path of a source file, from `.file`; None for another line.

    >>> read_file('.file 1 "/home" "k.py"')
    (1, '/home/k.py')
    >>> read_file(r'.file 1 "/Gr\303\266\303\237e\"n" "k.py"')
    (1, '/Größe"n/k.py')
    """
    match = _FILE.match(line)
    if match is None:
        return None
    directory, name = (match[2], match[3]) if match[3] is not None else ("", match[2])
    return int(match[1]), posixpath.join(*(unescaped(part).decode(errors="replace") for part in (directory, name)))


def read_loc(line: str) -> tuple[int, int, int] | None:
    """The number of the file, the line and the column (0: unknown) of `.loc`; None for another line."""
    match = _LOC.match(line)
    return match and (int(match[1]), int(match[2]), int(match[3] or 0))


def _without_comment(line: str) -> str:
    if _FORBIDDEN.search(line):
        raise ValueError("a listing does not take in other files")
    if ";" in line or "/" in line:
        code = _TOKENS_BEFORE_COMMENT.match(line)
        assert code is not None
        if not line.startswith('"', code.end()):  # a string without an end is for others to refuse
            line = code[0]
        if "/*" in _REGISTER_COMMENT.sub("", line) and '"' not in line:
            raise ValueError("comments begin with ; or //")
    line = line.strip()
    if _CONTROL_CHARACTERS.search(line.replace("\t", " ")):
        raise ValueError("a control character")
    return line
