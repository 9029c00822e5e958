"""The ISA view: the machine code's listing, kernels first."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from flydsl.codegen import CodeObject
from flydsl.compiler import CompiledArtifact
from workbench.html import code, details, escape, faint, listing

_FUNCTION = re.compile(r'\s*\.type\s+(?P<name>".*"|\S+),@function')
_SECTION = re.compile(r"\s*\.section\b")
_INSTRUCTION = re.compile(r"\t[a-z]")


@dataclass(frozen=True)
class Listing:
    """An assembly listing taken apart.

    functions: name -> its lines, from the label to the end of its section. rest: every other line: directives, the
    kernel descriptors, metadata.
    """

    functions: dict[str, tuple[str, ...]]
    rest: tuple[str, ...]

    @staticmethod
    def of(isa: str) -> Listing:
        """Take a listing of LLVM's apart."""
        functions: dict[str, list[str]] = {}
        rest: list[str] = []
        name, target = "", rest
        for line in isa.splitlines():
            if declaration := _FUNCTION.match(line):
                name = declaration["name"]
            elif name and line.startswith(f"{name}:"):
                target = functions[name] = []
            elif _SECTION.match(line):
                name, target = "", rest
            target.append(line)
        return Listing({name: tuple(lines) for name, lines in functions.items()}, tuple(rest))


def isa_html(artifact: CompiledArtifact | CodeObject, *, is_open: bool = True) -> str:
    """Each function's code, then, folded, what surrounds it."""
    parts = Listing.of(artifact.isa)
    functions = "".join(
        details(f"ISA of {code(name)}, {_instructions(lines)} instructions", _listing(lines), is_open=is_open)
        for name, lines in parts.functions.items()
    )
    return functions + details(f"Directives and metadata, {len(parts.rest)} lines", _listing(parts.rest))


def isa_text(artifact: CompiledArtifact | CodeObject) -> str:
    """The code of each function."""
    return "\n\n".join("\n".join(lines) for lines in Listing.of(artifact.isa).functions.values())


def _instructions(lines: Iterable[str]) -> int:
    return sum(_INSTRUCTION.match(line) is not None for line in lines)


def _listing(lines: Iterable[str]) -> str:
    return listing("\n".join(map(_line, lines)))


def _line(line: str) -> str:
    """Comments, which name source lines, stand back; labels stand out."""
    instruction, semicolon, comment = line.partition(";")
    shown = escape(instruction)
    if not line.startswith(("\t", " ", ";")):
        shown = f"<strong>{shown}</strong>"
    return shown + (faint(";" + escape(comment)) if semicolon else "")
