"""The printed form of modules with fly operations, and its reader.

MLIR prints dynamic dialects generically; people read and write

    %4 = fly.logical_divide(%0, %1) : (!fly.memref<f32, global, (?):(1)>, !fly.layout<64:1>) -> !fly.memref<...>
    %1 = fly.static : !fly.layout<64:1>

The two differ in quotes, in operations that take no operands, and in what `spelling` lists, so both directions are
rewritings of text.
"""

from __future__ import annotations

import re
from difflib import SequenceMatcher

from mlir import ir

from flydsl.dialect.context import context
from flydsl.dialect.location import source_location
from flydsl.dialect.ops import OPS, OPS_BY_MLIR_NAME, check, define_all
from flydsl.dialect.spelling import (
    canonical_body,
    print_operations,
    read_operation,
    with_immediates_as_values,
    with_orders_as_texts,
    with_pointers_cast,
)
from flydsl.dialect.stated import admits
from flydsl.dialect.types import FlyType, split_top_level
from flydsl.dialect.walk import operations
from flydsl.errors import CompileError, FlyError, LayoutError, SourceLocation

TEXT = "-"
"""MLIR's name for a text that is not a file, in the places it gives to operations."""

_LONGEST_ALIGNED = 4000  # characters of a line in which an error's column is looked for

# Written as `fly.static : T`, without operands or function type.
_RESULT_ONLY = ("static", "make_copy_atom", "make_mma_atom")

_GENERIC_OP = re.compile(r'"(fly\.\w+)"\(')
_GENERIC_RESULT_ONLY = re.compile(rf'"fly\.({"|".join(_RESULT_ONLY)})"\(\)((?: \{{[^\n]*?\}})?) : \(\) -> ')
_QUOTED_TYPE = re.compile(r'(!fly\.\w+)<"([^"]*)">')

# Strings and comments are matched first, and left as they are.
_WRITTEN_OP = re.compile(
    r'"(?:[^"\\\n]|\\.)*"|//[^\n]*|(?<![\w!#@$./])fly\.([a-z_0-9.]+)(<\d+>)?(?:(\([^)\n]*\))( \{\s*)?)?'
)
_WRITTEN_RESULT_ONLY = re.compile(
    rf'("fly\.(?:{"|".join(_RESULT_ONLY)})")((?: \{{[^\n]*?\}})?)(\s+): (?:\(\) -> |(?!\())'
)
_WRITTEN_WITHOUT_ARROW = re.compile(r'("fly\.get_dyn_shared"\(\))(\s+): (?!\()')
_GOES_ON = re.compile(r"\s*(?::|->)")  # a line that begins so is not an operation of its own
_TYPE_START = re.compile(r"!fly\.(\w+)<")


def to_text(op: ir.Operation | ir.Module, *, locations: bool = False) -> str:
    """Print an operation in the dialect's written form. locations: with `loc(...)` on every operation."""
    operation = op.operation if isinstance(op, ir.Module) else op
    return written_form(operation.get_asm(enable_debug_info=locations))


def written_form(generic: str) -> str:
    """MLIR's generic text in the written form.

    >>> written_form('%0 = "fly.static"() : () -> !fly.layout<"64:1">')
    '%0 = fly.static : !fly.layout<64:1>'
    """
    text = _GENERIC_RESULT_ONLY.sub(r"fly.\1\2 : ", generic)
    text = print_operations(_GENERIC_OP.sub(lambda m: f"fly.{OPS_BY_MLIR_NAME[m[1]].name}(", text))
    return _QUOTED_TYPE.sub(r"\1<\2>", text)


def generic_form(written: str) -> str:
    """The written form as text that MLIR parses.

    >>> generic_form("%0 = fly.static : !fly.layout<64:1>")
    '%0 = "fly.static"() : () -> !fly.layout<"64:1">'
    """
    text = _WRITTEN_OP.sub(_quote_op, with_orders_as_texts(with_pointers_cast(with_immediates_as_values(written))))
    text = _WRITTEN_RESULT_ONLY.sub(r"\1()\2\3: () -> ", text)
    text = _WRITTEN_WITHOUT_ARROW.sub(r"\1\2: () -> ", text)
    try:
        return _quote_types(text)
    except CompileError as error:
        error.at = written_place(error.at, written, text)
        raise


def _quote_op(match: re.Match[str]) -> str:
    if match[1] is None:
        return match[0]
    rest = _to_its_end(match.string, match.end())
    name, operands, attributes = read_operation(match[1], match[3] or "", match[2] or "", rest)
    if name not in OPS:
        raise CompileError(
            f"fly.{name} is not an operation of the fly dialect",
            at=_place(match.string, match.start()),
            hint=f"known: {', '.join(sorted(OPS))}",
        )
    try:
        results = len(list(split_top_level(_result_types(rest)))) if OPS[name].results else 1
        quoted = f'"fly.{OPS[name].mlir_name(operands.count("%"), results)}"{operands}'
    except LayoutError as error:
        raise CompileError(f"{error.message}: {match[0]}", at=_place(match.string, match.start())) from None
    opened = match[4] or ""
    if not attributes:
        return quoted + opened
    more = opened and not match.string.startswith("}", match.end())
    return f"{quoted} {{{attributes}{(', ' if more else '') if opened else '}'}"


def _to_its_end(text: str, start: int) -> str:
    """The text from `start` to the operation's end, which is the line's unless its types go on in the next ones.

    >>> _to_its_end("(%a)\\n  : (i32)\\n  -> i32\\n%1 = ...", 4).split()
    [':', '(i32)', '->', 'i32']
    """
    end = text.find("\n", start)
    while end >= 0 and (text.count("(", start, end) > text.count(")", start, end) or _GOES_ON.match(text, end)):
        end = text.find("\n", end + 1)
    return text[start:] if end < 0 else text[start:end]


def _result_types(rest: str) -> str:
    """The types after the arrow in the rest of an operation, without parentheses."""
    types = rest.rpartition("->")[2].strip()
    return types.removeprefix("(").removesuffix(")")


def _quote_types(text: str) -> str:
    """Put the parameter of every outermost fly type in quotes; types nested in it stay part of that string."""
    parts: list[str] = []
    position = 0
    while match := _TYPE_START.search(text, position):
        end = _closing_bracket(text, match.end())
        body = text[match.end() : end].strip('"')
        parts += [text[position : match.end()], f'"{canonical_body(match[1], body)}"', ">"]
        position = end + 1
    return "".join(parts) + text[position:]


def _closing_bracket(text: str, start: int) -> int:
    depth = 1
    for i in range(start, len(text)):
        if text[i] == "<":
            depth += 1
        elif text[i] == ">" and text[i - 1] != "-":
            depth -= 1
            if depth == 0:
                return i
    raise CompileError("the type that begins here has no closing '>'", at=_place(text, start))


def _place(text: str, position: int) -> SourceLocation:
    """A position in a text that is being read."""
    line_start = text.rfind("\n", 0, position) + 1
    return SourceLocation(TEXT, text.count("\n", 0, position) + 1, len(text[line_start:position].encode()))


def parse_module(text: str) -> ir.Module:
    """Read a module in the written (or generic) form and check it.

    Raises CompileError with MLIR's message, or where an operation's result type is not what its operands give, at a
    place in the file `TEXT`. MLIR ends the process over some texts: from outside they are read by `fly_opt.run`.
    """
    with context(), ir.Location.unknown():
        generic = generic_form(text)
        define_all()
        try:
            module = ir.Module.parse(generic)
        except ir.MLIRError as error:
            raise _unreadable(error, text, generic) from None
        try:
            verify_types(module.operation)
        except CompileError as error:
            error.at = written_place(error.at, text, generic)
            raise
        return module


def _unreadable(error: ir.MLIRError, text: str, generic: str) -> CompileError:
    """MLIR's message, at the place in the written form."""
    if not error.error_diagnostics:
        return CompileError(f"this is not a module that MLIR can read: {written_form(str(error))}")
    first = error.error_diagnostics[0]
    at = written_place(source_location(first.location), text, generic)
    if at is not None and at.column is not None:
        at = SourceLocation(at.file, at.line, at.column, at.column + 1)
    return CompileError(f"this is not a module that MLIR can read: {written_form(first.message)}", at=at)


def written_place(at: SourceLocation | None, text: str, generic: str) -> SourceLocation | None:
    """A place in the generic form as one in the written form, which has the same lines.

    Places in other files, which the text itself names, stay.
    """
    if at is None or at.file != TEXT:
        return at
    written, read = (form.split("\n")[at.line - 1 :][:1] for form in (text, generic))
    if at.column is None or not written or not read:
        return SourceLocation(at.file, at.line)
    column = _aligned(read[0], written[0], len(read[0].encode()[: at.column].decode(errors="ignore")))
    return SourceLocation(at.file, at.line, len(written[0][:column].encode()))


def _aligned(read: str, written: str, column: int) -> int:
    """The column of a written line at which a column of the line that was made from it stands."""
    if len(read) > _LONGEST_ALIGNED:
        return min(column, len(written))
    for _, start, end, written_start, written_end in SequenceMatcher(None, read, written, False).get_opcodes():
        if start <= column < end:
            return min(written_start + column - start, written_end)
    return len(written)


def verify_types(root: ir.Operation) -> None:
    """Check every fly operation's operands and result types. Raises CompileError with the operation."""
    for op in operations(root):
        if op.name in OPS_BY_MLIR_NAME:
            _verify(op)


def _verify(op: ir.Operation) -> None:
    at = source_location(op.location)
    try:
        expected = [t.ir if isinstance(t, FlyType) else t for t in check(op)]
    except FlyError as error:
        raise CompileError(f"{error.message}, in {written_form(str(op))}", at=at, hint=error.hint) from None
    actual = [result.type for result in op.results]
    if expected != actual and not (len(expected) == len(actual) and all(map(admits, actual, expected))):
        wanted, got = (written_form(", ".join(map(str, types))) or "nothing" for types in (expected, actual))
        raise CompileError(f"the result is {wanted}, not {got}, in {written_form(str(op))}", at=at)
