"""Write an `or` of more than 32 bits by words where a word of it is known to be all ones.

LLVM 22.1's back end splits such an `or` late, into words, and makes x of x | -1 when it folds what is known then. What
is known is found by LLVM itself, in a copy of the module that compares each word with -1.

A write of ones at an index known at run time, into a vector that fits into two words, is such an `or` too, of the
vector and of a mask. It gets its ones from an empty inline assembly, which LLVM does not look into.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable
from typing import NamedTuple

from flydsl.codegen.llvm_bugs.ir_text import NAME, opaque, split_operands

_OR = re.compile(rf"(?m)^\s*(?P<name>{NAME}) = or (?:disjoint )?(?P<type>i\d+|<\d+ x i\d+>) (?P<operands>.*)$")
_WRITE_OF_ONES = re.compile(
    r"(?m)^(?P<start>\s*%\S+ = insertelement <\d+ x (?P<element>i8|i16)> [^\n]*, (?P=element) )-1, (?P<index>i\d+ %.*)$"
)
_WORD = 32
_KNOWN = "flydsl.word.is.all.ones"
_ANSWER = re.compile(rf"@{re.escape(_KNOWN)}\(i32 (?P<operation>\d+), i32 (?P<word>-?\d+), i1 true\)")
_SOME_ELEMENT = -1  # instead of the number of a word


def split_wide_ors(llvm_ir: str, simplify: Callable[[str], str]) -> str:
    """LLVM IR text, as LLVM prints it, in which no `or` has a word that the back end gets wrong.

    simplify: what LLVM makes of a module when it looks for instructions that are known.
    """
    llvm_ir = _WRITE_OF_ONES.sub(_of_opaque_ones, llvm_ir)
    found = [or_ for m in _OR.finditer(llvm_ir) if (or_ := _Or.of(m)) is not None]
    if not found:
        return llvm_ir
    known = _known_words(llvm_ir, found, simplify)
    return _replaced(llvm_ir, {or_: or_.by_words(known[i]) for i, or_ in enumerate(found) if i in known})


def _of_opaque_ones(write: re.Match[str]) -> str:
    element, word, ones = write["element"], f'%"word of {write.start()}"', f'%"ones of {write.start()}"'
    return (
        f"{opaque(word, 'i32', '-1', scalar=True)}\n  {ones} = trunc i32 {word} to {element}\n"
        f"{write['start']}{ones}, {write['index']}"
    )


def _known_words(llvm_ir: str, found: list[_Or], simplify: Callable[[str], str]) -> dict[int, set[int]]:
    """The words that are all ones, of each `or` that has one."""
    asking = _replaced(llvm_ir, {or_: "\n".join([*or_.questions(i), or_.text]) for i, or_ in enumerate(found)})
    answers = simplify(f"{asking}\ndeclare void @{_KNOWN}(i32, i32, i1)\n")
    known: dict[int, set[int]] = defaultdict(set)
    for answer in _ANSWER.finditer(answers):
        known[int(answer["operation"])].add(int(answer["word"]))
    return known


def _replaced(text: str, lines: dict[_Or, str]) -> str:
    parts, end = [], 0
    for or_, line in lines.items():
        parts += [text[end : or_.start], line]
        end = or_.start + len(or_.text)
    return "".join([*parts, text[end:]])


class _Or(NamedTuple):
    """An `or` of LLVM IR: its place and text, the name and the kind of its result, both operands, its metadata."""

    start: int
    text: str
    name: str
    kind: _Kind
    operands: tuple[str, str]
    tail: str

    @classmethod
    def of(cls, match: re.Match[str]) -> _Or | None:
        """None for what fits into a register, or is a mask of lanes."""
        kind = _Kind.of(match["type"])
        if kind.element_bits == 1 or (kind.elements == 0 and kind.element_bits <= _WORD):
            return None
        first, second, *tail = split_operands(match["operands"])
        return cls(match.start(), match[0], match["name"], kind, (first, second), "".join(f", {part}" for part in tail))

    def questions(self, number: int) -> list[str]:
        """Instructions that ask of each word of each operand, and of each element, whether it is all ones."""
        lines: list[str] = []
        for i, operand in enumerate(self.operands):
            name = _Names(f"question {number} of operand {i}")
            for k, word in enumerate(self.kind.words(operand, name, lines)):
                _ask(word, "i32", (number, k), name, lines)
            if self.kind.element_bits < _WORD:
                for element in range(self.kind.elements):
                    value = _add(lines, name.new(), f"extractelement {self.kind} {operand}, i32 {element}")
                    _ask(value, f"i{self.kind.element_bits}", (number, _SOME_ELEMENT), name, lines)
        return lines

    def by_words(self, known: set[int]) -> str:
        """The same value, word by word."""
        lines: list[str] = []
        name = _Names(f"words of {self.name.strip('%').replace(chr(34), '')}")
        first, second = (self.kind.words(operand, name, lines) for operand in self.operands)
        result = "poison"
        for k, (x, y) in enumerate(zip(first, second, strict=True)):
            value = "-1" if k in known else _add(lines, name.new(), f"or i32 {x}, {y}")
            result = _add(lines, name.new(), f"insertelement <{len(first)} x i32> {result}, i32 {value}, i32 {k}")
        self.kind.from_words(result, self.name, name, lines)
        return "\n".join(lines) + self.tail


class _Names:
    """Names with spaces, unlike LLVM's own."""

    def __init__(self, of: str) -> None:
        self._of = of
        self._count = 0

    def new(self) -> str:
        self._count += 1
        return f'%"{self._count} {self._of}"'


def _ask(value: str, kind: str, about: tuple[int, int], name: _Names, lines: list[str]) -> None:
    answer = _add(lines, name.new(), f"icmp eq {kind} {value}, -1")
    lines.append(f"  call void @{_KNOWN}(i32 {about[0]}, i32 {about[1]}, i1 {answer})")


class _Kind(NamedTuple):
    """An integer of `element_bits` bits, or a vector of them. elements: 0 for an integer alone."""

    elements: int
    element_bits: int

    @classmethod
    def of(cls, text: str) -> _Kind:
        """The kind of a type, which is given as LLVM writes it."""
        *count, bits = re.findall(r"\d+", text)
        return cls(int(count[0]) if count else 0, int(bits))

    def __str__(self) -> str:
        return f"<{self.elements} x i{self.element_bits}>" if self.elements else f"i{self.element_bits}"

    @property
    def _wider(self) -> _Kind:
        """With elements that fill words, or of which some fill one: LLVM's back end has no others."""
        bits = self.element_bits
        if self.elements and bits in (8, 16):
            return self
        return _Kind(self.elements, -(-bits // _WORD) * _WORD)

    @property
    def _longer(self) -> _Kind:
        """The same kind, longer, so that its bits are whole words."""
        if self.elements == 0 or self.element_bits >= _WORD:
            return self
        per_word = _WORD // self.element_bits
        return _Kind(-(-self.elements // per_word) * per_word, self.element_bits)

    def words(self, value: str, name: _Names, lines: list[str]) -> list[str]:
        """The words of 32 bits of a value, the lowest first. What computes them is added to the lines."""
        wide, whole = self._wider, self._wider._longer
        if wide != self:
            value = _add(lines, name.new(), f"sext {self} {value} to {wide}")
        if self.elements == 0:  # LLVM knows more of a shifted number than of one as a vector
            shifted = [
                _add(lines, name.new(), f"lshr {wide} {value}, {bit}") for bit in range(0, wide.element_bits, _WORD)
            ]
            return [_add(lines, name.new(), f"trunc {wide} {part} to i32") for part in shifted]
        if whole != wide:
            mask = _mask([*range(wide.elements), *[None] * (whole.elements - wide.elements)])
            value = _add(lines, name.new(), f"shufflevector {wide} {value}, {wide} poison, {mask}")
        kind = f"<{whole._words} x i32>"
        value = _add(lines, name.new(), f"bitcast {whole} {value} to {kind}")
        return [_add(lines, name.new(), f"extractelement {kind} {value}, i32 {k}") for k in range(whole._words)]

    @property
    def _words(self) -> int:
        return max(self.elements, 1) * self.element_bits // _WORD

    def from_words(self, words: str, result: str, name: _Names, lines: list[str]) -> None:
        """Add to the lines what makes a value of its words, and gives it the name `result`."""
        wide, whole = self._wider, self._wider._longer
        steps = [f"bitcast <{whole._words} x i32> {{}} to {whole}"]
        if whole != wide:
            steps.append(f"shufflevector {whole} {{}}, {whole} poison, {_mask(list(range(wide.elements)))}")
        if wide != self:
            steps.append(f"trunc {wide} {{}} to {self}")
        for step in steps[:-1]:
            words = _add(lines, name.new(), step.format(words))
        _add(lines, result, steps[-1].format(words))


def _add(lines: list[str], name: str, operation: str) -> str:
    lines.append(f"  {name} = {operation}")
    return name


def _mask(elements: list[int | None]) -> str:
    text = ", ".join(f"i32 {'poison' if element is None else element}" for element in elements)
    return f"<{len(elements)} x i32> <{text}>"
