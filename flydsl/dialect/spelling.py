"""FlyDSL's spellings of operations that the dialect has in another form, for reading and printing text.

| written | held as |
|---|---|
| `fly.mma.make_fragment(a, %m, %t)`, `fly.tiled_mma.partition(a, ...)` | `(%m, %t) {operand = "a"}` |
| `fly.mma.make_fragment(b, %m, %t, stages = 2)` | `(%m, %t) {operand = "b", stages = 2 : i32}` |
| `fly.gemm(...) {traversalOrder = #fly<gemm_traversal_order mnk>}` | `{order = "MNK"}` |
| `fly.atom.set_value(%a, "soffset", %v)` | `(%a, %v) {field = "soffset"}` |
| `fly.recast_layout(32, 16, %l)`: new bits, old bits | `(%l) {args = array<i32: 16, 32>}` |
| `fly.make_shape(%m)`, `make_stride`, `make_coord` | `fly.make_int_tuple(%m) {role = "shape"}` |
| `fly.append<3>(%a, %b)`, `fly.prepend<3>(%a, %b)` | `(%a, %b) {args = array<i32: 3>}` |
| `fly.make_fragment_like(%t, f32)` | `(%t) {element = "f32"}` |
| `fly.print("{} {}", %a, %b)` | `(%a, %b) {format = "{} {}"}` |
| `%0:2 = fly.get_leaves(%t) : (T) -> (i32, i64)` | `fly.get_leaves.scalars(%t)` |

These are printed as they are written. Others are read only:

| read | as |
|---|---|
| `fly.mma_atom_call(%m, %d, [%a], [%b], %c)` | the same without brackets |
| `fly.mma_atom.make_fragment` | `fly.mma.make_fragment` |
| `fly.static : () -> T`, `fly.get_dyn_shared() : T` | `fly.static : T`, `fly.get_dyn_shared() : () -> T` |
| `fly.extract_aligned_pointer_as_index %m : T -> !llvm.ptr<1>` | its `fly.get_iter`, cast |
| `!fly.layout<(4, 8) : (1, 4)>`, `!fly.ptr<f32, buffer_desc>` | `!fly.layout<(4,8):(1,4)>`, `!fly.ptr<f32, #fly_rocdl.buffer_desc>` |
| `!fly.memref<f32, shared, 4:1, align<16>>` | the type without the alignment, which its pointer has |
| `rocdl.mfma.f32.16x16x4f32 %a, %b, %c, 0, 0, none`, `rocdl.raw.ptr.buffer.load %r, %o, %s, 0`, of a later LLVM | the immediates as constants, defined in front of it |
"""  # noqa: E501

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from itertools import count

from flydsl.dialect.types import parse_type, split_top_level
from flydsl.errors import FlyError

_ROLES = {"make_shape": "shape", "make_stride": "stride", "make_coord": "coord"}
_RENAMED = {"mma_atom.make_fragment": "mma.make_fragment"}
_IN_FRONT = ("mma.make_fragment", "tiled_mma.partition", "tiled_mma.partition_shape")

_KEYWORD = re.compile(r"\(\s*([a-z])\s*,\s*")
_STAGES = re.compile(r"\s*,\s*stages\s*=\s*(\d+)\s*\)$")
_ORDER = re.compile(r"traversalOrder\s*=\s*#fly<\s*gemm_traversal_order\s+(\w+)\s*>")
_FIELD = re.compile(r',\s*("\w*")\s*')
_ELEMENT = re.compile(r",\s*([\w]+)\s*\)$")
_TEXT = re.compile(r'\(\s*("(?:[^"\\\n]|\\.)*")\s*,?\s*')
_WIDTHS = re.compile(r"\(\s*(\d+)\s*,\s*(\d+)\s*,\s*")


def read_operation(name: str, operands: str, number: str = "", rest: str = "") -> tuple[str, str, str]:
    """An operation's name, its operands in parentheses, and the attributes written among them.

    number: in angle brackets after the name. rest: of the line, after the operands.

    >>> read_operation("atom.set_value", '(%a, "soffset", %v)')
    ('atom.set_value', '(%a, %v)', 'field = "soffset"')
    """
    name = _RENAMED.get(name, name)
    if name in _ROLES:
        return "make_int_tuple", operands, f'role = "{_ROLES[name]}"'
    if name in _IN_FRONT and (match := _KEYWORD.match(operands)):
        operands, stages = _without_stages(f"({operands[match.end() :]}")
        return name, operands, f'operand = "{match[1]}"{stages}'
    if name == "atom.set_value" and (match := _FIELD.search(operands)):
        return name, operands[: match.start()] + operands[match.end() :], f"field = {match[1]}"
    if name in ("append", "prepend") and number:
        return name, operands, f"args = array<i32: {number[1:-1]}>"
    if name == "make_fragment_like" and (match := _ELEMENT.search(operands)):
        return name, f"{operands[: match.start()]})", f'element = "{match[1]}"'
    if name == "print" and (match := _TEXT.match(operands)):
        return name, f"({operands[match.end() :]}", f"format = {match[1]}"
    if name == "get_leaves" and not rest.rpartition("->")[2].strip().startswith("!fly."):
        return "get_leaves.scalars", operands, ""
    if name == "recast_layout" and (match := _WIDTHS.match(operands)):
        return name, f"({operands[match.end() :]}", f"args = array<i32: {match[2]}, {match[1]}>"
    return name, operands.replace("[", "").replace("]", ""), ""


def _without_stages(operands: str) -> tuple[str, str]:
    """The operands of a fragment, and the attribute of the stages among them."""
    match = _STAGES.search(operands)
    return (operands, "") if match is None else (f"{operands[: match.start()]})", f", stages = {match[1]} : i32")


def with_orders_as_texts(text: str) -> str:
    """Text in which the orders of products are texts.

    >>> with_orders_as_texts("{traversalOrder = #fly<gemm_traversal_order mnk>}")
    '{order = "MNK"}'
    """
    return _ORDER.sub(lambda match: f'order = "{match[1].upper()}"', text)


def _print(match: re.Match[str]) -> str:
    return f"fly.print({match[2]}{', ' if match[1] else ''}{match[1]}) :"


# The form to print: what `written_form` gives otherwise, and what replaces it.
_PRINTED: list[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]]] = [
    (re.compile(r'fly\.make_int_tuple(\([^()\n]*\)) \{role = "(shape|stride|coord)"\} :'), r"fly.make_\2\1 :"),
    (
        re.compile(
            r'fly\.(mma\.make_fragment|tiled_mma\.partition(?:_shape)?)\(([^()\n]*)\) \{operand = "([abc])"(?:, )?(\}?)'
        ),
        lambda m: f"fly.{m[1]}({m[3]}, {m[2]})" + ("" if m[4] else " {"),
    ),
    (
        re.compile(r"fly\.mma\.make_fragment\(([^()\n]*)\) \{stages = (\d+) : i32\} :"),
        r"fly.mma.make_fragment(\1, stages = \2) :",
    ),
    (
        re.compile(r'(fly\.gemm\([^()\n]*\) \{)order = "(\w+)"'),
        lambda m: f"{m[1]}traversalOrder = #fly<gemm_traversal_order {m[2].lower()}>",
    ),
    (
        re.compile(r'fly\.atom\.set_value\((%[^ ,()\n]+), (%[^ ,()\n]+)\) \{field = ("\w*")\} :'),
        r"fly.atom.set_value(\1, \3, \2) :",
    ),
    (re.compile(r"fly\.(append|prepend)\(([^()\n]*)\) \{args = array<i32: (\d+)>\} :"), r"fly.\1<\3>(\2) :"),
    (
        re.compile(r'fly\.make_fragment_like\((%[^ ,()\n]+)\) \{element = "(\w+)"\} :'),
        r"fly.make_fragment_like(\1, \2) :",
    ),
    (re.compile(r'fly\.print\(([^()\n]*)\) \{format = ("(?:[^"\\\n]|\\.)*")\} :'), _print),
    (re.compile(r"fly\.get_leaves\.scalars\("), "fly.get_leaves("),
    (
        re.compile(r"fly\.recast_layout\((%[^ ,()\n]+)\) \{args = array<i32: (\d+), (\d+)>\} :"),
        r"fly.recast_layout(\3, \2, \1) :",
    ),
]


def print_operations(text: str) -> str:
    """The spellings above put in place.

    >>> print_operations('fly.atom.set_value(%0, %1) {field = "soffset"} : T')
    'fly.atom.set_value(%0, "soffset", %1) : T'
    """
    for pattern, printed in _PRINTED:
        text = pattern.sub(printed, text)
    return text


@lru_cache(maxsize=4096)
def canonical_body(mnemonic: str, body: str) -> str:
    """The text between a type's angle brackets as the dialect prints it; unchanged if it cannot be read.

    >>> canonical_body("layout", "(4, 8) : (1, 4)")
    '(4,8):(1,4)'
    """
    try:
        return parse_type(f"!fly.{mnemonic}<{body}>").body
    except FlyError:
        return body  # whoever makes the type from it says what is wrong


_STRING_OR_COMMENT = r'"(?:[^"\\\n]|\\.)*"|//[^\n]*'
_MODIFIER_NAMES = {"none": 0, "fp8_e4m3": 0, "fp8_e5m2": 1, "fp6_e2m3": 2, "fp6_e3m2": 3, "fp4_e2m1": 4}
_MODIFIER = rf"-?\d+\b|{'|'.join(_MODIFIER_NAMES)}"
_WITH_MODIFIERS = re.compile(
    rf"{_STRING_OR_COMMENT}|(?P<start>(?:%[\w$.-]+ = )?"
    r"rocdl\.(?:(?P<matrix>s?mfmac?\.)|raw\.ptr\.buffer\.(?!load\.lds))[\w.]+) "
    rf"(?P<operands>%[^:\n]*?, *(?:{_MODIFIER})(?: *,[^:\n]*?)?) *:(?P<gap>\s*)(?P<types>\([^()\n]*\))?"
)


def with_immediates_as_values(text: str) -> str:
    """Matrix and buffer instructions with numbers for their modifiers, with constants in their place, on the same line.

    >>> with_immediates_as_values("%3 = rocdl.mfma.f32.16x16x4f32 %0, %1, %2, 0, 0, none : (f32, f32, C) -> V")
    '%immediate_0_0 = llvm.mlir.constant(0 : i32) : i32 %3 = rocdl.mfma.f32.16x16x4f32 %0, %1, %2, \
%immediate_0_0, %immediate_0_0, %immediate_0_0 : (f32, f32, C, i32, i32, i32) -> V'
    """
    stem = "%immediate"
    while stem in text:
        stem += "_"
    count_of_calls = count()

    def rewrite(match: re.Match[str]) -> str:
        if match["start"] is None:
            return match[0]
        call = next(count_of_calls)
        operands = [operand.strip() for operand in match["operands"].split(",")]
        values = {
            operand: _MODIFIER_NAMES.get(operand, operand) for operand in operands if re.fullmatch(_MODIFIER, operand)
        }
        names = {value: f"{stem}_{call}_{i}" for i, value in enumerate(dict.fromkeys(map(str, values.values())))}
        constants = "".join(f"{names[value]} = llvm.mlir.constant({value} : i32) : i32 " for value in names)
        used = ", ".join(names[str(values[operand])] if operand in values else operand for operand in operands)
        types = match["types"] or ""
        if match["matrix"]:
            stated = iter(split_top_level(types[1:-1]))
            types = f"({', '.join('i32' if operand in values else next(stated, '') for operand in operands)})"
        return f"{constants}{match['start']} {used} :{match['gap']}{types}"

    return _WITH_MODIFIERS.sub(rewrite, text)


_START = r"fly\.extract_aligned_pointer_as_index *\(? *(?P<operand>%[\w$.#-]+) *\)?"
_POINTER_OF = re.compile(
    rf"{_STRING_OR_COMMENT}|(?P<result>%[\w$.-]+) = {_START}"
    r" *: *\(?(?P<type>!fly\.[^\n]*?)\)? *-> *(?P<pointer>!llvm\.ptr(?:<\d+>)?)"
)


def with_pointers_cast(text: str) -> str:
    """`fly.extract_aligned_pointer_as_index` as a cast of the tensor's pointer, on the same line.

    >>> with_pointers_cast("%1 = fly.extract_aligned_pointer_as_index %0 : !fly.ptr<f32, global> -> !llvm.ptr<1>")
    '%1 = builtin.unrealized_conversion_cast %0 : !fly.ptr<f32, global> to !llvm.ptr<1>'
    """

    def rewrite(match: re.Match[str]) -> str:
        if match["result"] is None:
            return match[0]
        kind, start, before = match["type"], match["operand"], ""
        if kind.startswith("!fly.memref<"):
            element, space, *_ = (part.strip() for part in kind.removeprefix("!fly.memref<").split(",", 2))
            pointer = f"!fly.ptr<{element}, {space}>"
            start = f"%start_{match['result'][1:]}"
            before = f"{start} = fly.get_iter({match['operand']}) : ({kind}) -> {pointer} "
            kind = pointer
        return f"{before}{match['result']} = builtin.unrealized_conversion_cast {start} : {kind} to {match['pointer']}"

    return _POINTER_OF.sub(rewrite, text)
