"""Every form that a kernel takes on its way down, with the user's line of each line.

    source → traced → stage after stage → LLVM IR → optimized LLVM IR → ISA

Lines with the same origin (file and line of the user's source) are linked across all levels.
"""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

from flydsl.codegen import CodeObject
from flydsl.compiler import Pipeline
from flydsl.errors import SourceLocation
from flydsl.hsaco.listing import read_listing

Places = tuple[SourceLocation | None, ...]

_MLIR_ALIAS = re.compile(r"(#loc\d*) = loc\((.*)\)$")
_MLIR_PLACE = re.compile(r'"((?:[^"\\]|\\.)*)":(\d+):(\d+)|(#loc\d*)')
_MLIR_TRAILING = re.compile(r"loc\(((?:[^()\"]|\"(?:[^\"\\]|\\.)*\"|\((?:[^()\"]|\"(?:[^\"\\]|\\.)*\")*\))*)\)$")
_MAX_ALIAS_DEPTH = 16

_LLVM_DEBUG = re.compile(r",? !dbg !(\d+)")
_LLVM_NODE = re.compile(r"!(\d+) = (?:distinct )?!(\w+)\((.*)\)$")
_LLVM_FIELD = re.compile(r'(\w+): (?:"((?:[^"\\]|\\.)*)"|!?(\w+))')

_OPERATION = re.compile(r'^\s*(?:%[\w.$-]+(?::\d+)?(?:, )?)*(?: = )?"?([a-z_][\w]*(?:\.[\w]+)*)()"?')
_INSTRUCTION = re.compile(r"\t([a-z]\w*)()")
# A call counts as the intrinsic that it calls.
_LLVM_OPERATION = re.compile(r"\s+(?:%[\w.$-]+ = )?(?:(?:tail )?call [^@]*@(llvm\.[\w.]+)|([a-z]\w*))")


@dataclass(frozen=True)
class Level:
    """One form. language: as `workbench.highlight` names it. places: per line the user's line that it comes from.

    margins: HTML before each line, or empty.
    """

    name: str
    language: str
    lines: tuple[str, ...]
    places: Places
    margins: tuple[str, ...] = ()

    @cached_property
    def operation_names(self) -> tuple[str, ...]:
        """The name of each line's operation or instruction; empty if it has none."""
        pattern = {"isa": _INSTRUCTION, "llvm": _LLVM_OPERATION}.get(self.language, _OPERATION)
        found = (pattern.match(line) for line in self.lines)
        return tuple((match[1] or match[2] or "") if match is not None else "" for match in found)

    @cached_property
    def operations(self) -> Counter[str]:
        """The number of times that each operation or instruction occurs here."""
        return Counter(filter(None, self.operation_names))

    def text(self) -> str:
        """The lines as one text."""
        return "\n".join(self.lines)


def place_key(place: SourceLocation) -> str:
    """The key of an origin. It is shown to users, so the file name is its last part only."""
    return f"{posixpath.basename(place.file_label)}:{place.line}"


def levels(pipeline: Pipeline) -> list[Level]:
    """The forms of a compilation so far. A stage that changed nothing does not have one."""
    found = [mlir_level("traced", pipeline, 0)]
    for stage in pipeline:
        if stage.state == "done" and stage.changed and stage.phase != "C":
            found.append(mlir_level(f"{stage.index} {', '.join(stage.passes)}", pipeline, stage.index))
    if pipeline.finished:
        found += code_levels(pipeline.artifact.code)
    return [*source_levels(found), *found]


def code_levels(code: CodeObject) -> list[Level]:
    """LLVM IR as it comes from MLIR, the same optimized, and the machine code."""
    return [
        llvm_level("LLVM IR", code.llvm_ir),
        llvm_level("LLVM IR, optimized", code.optimized_llvm_ir),
        isa_level(code),
    ]


def source_levels(others: Sequence[Level]) -> list[Level]:
    """The user's functions: of each file, the lines from the first that something comes from to the last."""
    places: dict[str, list[SourceLocation]] = {}
    for level in others:
        for place in level.places:
            if place is not None:
                places.setdefault(place.file, []).append(place)
    found = []
    for file, inside in places.items():
        first, last = min(place.line for place in inside), max(place.line for place in inside)
        at = [SourceLocation(file, line, is_claimed=True) for line in range(first, last + 1)]
        lines = tuple(place.source_line or "" for place in at)
        if any(lines):
            found.append(Level(posixpath.basename(at[0].file_label), "python", lines, tuple(at)))
    return found


def mlir_level(name: str, pipeline: Pipeline, index: int) -> Level:
    """The module after a stage, 0 for the traced one."""
    text = pipeline.text_after(index)
    return Level(name, "mlir", tuple(text.splitlines()), mlir_places(pipeline.text_after(index, locations=True), text))


@lru_cache(maxsize=64)
def mlir_places(located: str, plain: str) -> Places:
    """The places in a module's text with locations, for each line of its text without.

    The location of an operation with regions is at its end; it is assigned to the operation's first line.
    """
    lines: list[str] = []
    defined: list[str] = []
    for line in located.splitlines():
        (defined if line.startswith("#loc") else lines).append(line)
    aliases = {match[1]: match[2] for line in defined if (match := _MLIR_ALIAS.match(line))}
    short_lines = plain.splitlines()
    if len(lines) != len(short_lines):
        raise ValueError(f"{len(lines)} lines with locations, {len(short_lines)} without")
    known: dict[str, SourceLocation | None] = {}  # a kernel has far fewer places than operations
    places: list[SourceLocation | None] = []
    opened: list[int] = []
    for number, (line, short) in enumerate(zip(lines, short_lines, strict=True)):
        body = _trailing_location(line)
        if body not in known:
            known[body] = _mlir_place(body, aliases)
        place = known[body]
        places.append(place)
        if short.lstrip().startswith("}") and opened:
            places[opened.pop()] = place
        if short.endswith("{"):
            opened.append(number)
    return tuple(places)


def _trailing_location(line: str) -> str:
    """The content of the `loc(...)` at the end of a line; nearly always an alias, which is found without a search."""
    start = line.rfind(" loc(#")
    if start >= 0 and line.endswith(")") and line[start + 6 : -1].isalnum():
        return line[start + 5 : -1]
    trailing = _MLIR_TRAILING.search(line)
    return trailing[1] if trailing else ""


def _mlir_place(body: str, aliases: dict[str, str], depth: int = 0) -> SourceLocation | None:
    """The first file position in a location, through aliases, fused and call-site locations."""
    if depth > _MAX_ALIAS_DEPTH:
        return None
    for file, line, column, alias in _MLIR_PLACE.findall(body):
        found = (
            _mlir_place(aliases.get(alias, ""), aliases, depth + 1)
            if alias
            else _location(file, int(line), int(column) - 1)
        )
        if found is not None:
            return found
    return None


def _location(file: str, line: int, column: int) -> SourceLocation | None:
    # A text that was parsed without locations has those of the text itself, in a file called "-".
    return (
        None
        if file == "-" or line == 0
        else SourceLocation(file, line, column if column >= 0 else None, is_claimed=True)
    )


def llvm_level(name: str, llvm_ir: str) -> Level:
    """LLVM IR, its debug information as places instead of text."""
    nodes = {
        match[1]: (match[2], _fields(match[3])) for line in llvm_ir.splitlines() if (match := _LLVM_NODE.match(line))
    }
    lines, places = [], []
    for line in llvm_ir.splitlines():
        if line.startswith("!"):
            continue
        debug = _LLVM_DEBUG.search(line)
        lines.append(_LLVM_DEBUG.sub("", line))
        places.append(_llvm_place(debug[1], nodes) if debug else None)
    return Level(name, "llvm", tuple(lines), tuple(places))


def _fields(text: str) -> dict[str, str]:
    return {name: quoted or bare for name, quoted, bare in _LLVM_FIELD.findall(text)}


def _llvm_place(node: str, nodes: dict[str, tuple[str, dict[str, str]]]) -> SourceLocation | None:
    kind, fields = nodes.get(node, ("", {}))
    if kind not in ("DILocation", "DISubprogram"):
        return None
    _, scope = nodes.get(fields.get("scope", ""), ("", {})) if kind == "DILocation" else (kind, fields)
    _, file = nodes.get(scope.get("file", ""), ("", {}))
    if not file or fields.get("line", "0") == "0":
        return None
    path = posixpath.join(file.get("directory", ""), file.get("filename", ""))
    return _location(path, int(fields["line"]), int(fields.get("column", "0")) - 1)


def isa_level(code: CodeObject) -> Level:
    """The machine code: the listing's lines, from each instruction the place that `.loc` gave it."""
    located = iter(read_listing(code.listing).instructions)
    lines, places = [], []
    in_descriptor = ended = False
    for line in code.isa.splitlines():
        directive = line.strip()
        in_descriptor = (in_descriptor or directive.startswith(".amdhsa_kernel")) and directive != ".end_amdhsa_kernel"
        ended = ended or directive.startswith(".amdgpu_metadata")
        is_instruction = _INSTRUCTION.match(line) is not None and not in_descriptor and not ended
        instruction = next(located, None) if is_instruction else None
        lines.append(line if instruction is None else f"\t{instruction.text}")
        places.append(None if instruction is None else instruction.location)
    return Level("ISA", "isa", tuple(lines), tuple(places))
