"""LLVM IR that says for a debugger which values the variables of the source have.

A call of `@fly.variable.N` on a value becomes a debug record: from there on, variable N has it. LLVM keeps such records
up to DWARF's lists of locations, and they change no machine code.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

CALLEE = "fly.variable."

_CALL = f"  call void @{CALLEE}"
_BITS = {"i1": 8}
_ENCODINGS = {"f": "float", "b": "float", "i": "signed", "u": "unsigned"}


@dataclass(frozen=True)
class DebugValue:
    """The meaning of one call: elements `offset` to `offset + count` of a variable have the value from here on.

    kernel: its symbol. name: "function:variable". element: as `flydsl.dialect.variables` lists them.
    elements: of the whole variable. line: of the assignment. ended: whether it has no value from here on.
    """

    kernel: str
    name: str
    element: str
    offset: int
    count: int
    elements: int
    line: int
    ended: bool = False

    @property
    def shape(self) -> str:
        """The number of the variable's elements, and their type: "4xf32", the name of its type in DWARF."""
        return f"{self.elements}x{self.element}"

    @property
    def title(self) -> str:
        """The name of the variable in DWARF, which tells its shape, too."""
        return f"{self.name} {self.shape}"


def with_debug_values(llvm_ir: str, values: Sequence[DebugValue], names: Collection[str]) -> str:
    """LLVM IR in which the calls of `CALLEE` and a number, the index of what they say, are debug records.

    names: of the variables that are kept; the calls for others are gone.
    """
    metadata = _Metadata(sum(line.startswith("!") for line in llvm_ir.splitlines()))
    lines = list(_lines(llvm_ir.splitlines(), values, names, metadata))
    return "\n".join([*lines, *metadata.lines, ""]).replace("emissionKind: LineTablesOnly", "emissionKind: FullDebug")


def _lines(
    lines: Sequence[str], values: Sequence[DebugValue], names: Collection[str], metadata: _Metadata
) -> Iterator[str]:
    scope = ""
    for line in lines:
        if line.startswith("define "):
            scope = line.partition("!dbg ")[2].split()[0]
        if line.startswith(_CALL):
            number, _, rest = line.removeprefix(_CALL).partition("(")
            operand = rest.rpartition(")")[0]
            if values[int(number)].name in names:
                yield metadata.record(operand, values[int(number)], scope)
        elif not (line.startswith("declare ") and f" void @{CALLEE}" in line):
            yield line


class _Metadata:
    """The metadata that the records refer to, each once."""

    def __init__(self, first: int) -> None:
        self.lines: list[str] = []
        self._first = first
        self._numbers: dict[str, str] = {}

    def _of(self, text: str) -> str:
        if text not in self._numbers:
            self._numbers[text] = f"!{self._first + len(self._numbers)}"
            self.lines.append(f"{self._numbers[text]} = {text}")
        return self._numbers[text]

    def record(self, operand: str, value: DebugValue, scope: str) -> str:
        bits = _BITS.get(value.element) or int("".join(filter(str.isdigit, value.element.replace("bf", "f"))))
        encoding = "boolean" if value.element == "i1" else _ENCODINGS[value.element[0]]
        size = bits * value.elements
        kind = self._of(f'!DIBasicType(name: "{value.shape}", size: {size}, encoding: DW_ATE_{encoding})')
        variable = self._of(f'!DILocalVariable(name: "{value.title}", scope: {scope}, type: {kind})')
        at = self._of(f"!DILocation(line: {value.line}, scope: {scope})")
        piece = f"DW_OP_LLVM_fragment, {bits * value.offset}, {bits * value.count}"
        expression = "" if value.count == value.elements or value.ended else piece
        if value.ended:
            operand = f"{operand.rpartition(' ')[0]} poison"
        return f"    #dbg_value({operand}, {variable}, !DIExpression({expression}), {at})"
