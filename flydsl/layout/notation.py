"""Parser for the notation of the DSL: `parse(str(x)) == x` for every value of the algebra.

value    := composed | layout | tuple | tile | swizzle
composed := (composed | swizzle | layout) "o" tuple "o" (layout | "[" composed "]")
layout   := tuple ":" tuple
tuple    := leaf | "(" [tuple ("," tuple)*] ")"
leaf     := number ("E" digits)* | "*"
number   := ["-"] digits | "?" ["{" ["i64"] ["div=" digits] "}"]
tile     := "[" [mode ("|" mode)*] "]"            mode := "*" | number | layout | tile
swizzle  := "S" "<" integer "," integer "," integer ">"
          | "CS" "<" integer "," integer "," path "," integer "," path ">"
path     := "[" [integer ("," integer)*] "]"
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from flydsl.layout.composed import ComposedLayout
from flydsl.layout.coordinate_swizzle import CoordSwizzle
from flydsl.layout.int_tuple import MAX_DEPTH, AnyTuple, as_int_tuple, normal_form
from flydsl.layout.layout import Layout
from flydsl.layout.leaf import Basis, Dynamic
from flydsl.layout.swizzle import Swizzle
from flydsl.layout.text import Inadmissible, operation
from flydsl.layout.tile import Tile

_TOKEN = re.compile(r"\s*(?:(-?[0-9]{1,4000}|i64|div|CS|[ESo()\[\]{}<>,:|*?=])|(\S))")
_EXCERPT = 40  # characters shown on either side of an error


@operation
def parse(text: str) -> Any:
    """The value that a text in the notation denotes. Spaces are ignored. Raises LayoutError that shows the wrong place.

    >>> parse("(4,(2,?{i64 div=8})):(1,(4,8))"), parse("S<3,3,3> o 0 o (8,64):(64,1)")
    ((4,(2,?{i64 div=8})):(1,(4,8)), S<3,3,3> o 0 o (8,64):(64,1))
    >>> parse("[8|*|4:2]"), parse("(1E0,*)")
    ([8|*|4:2], (1E0,*))
    >>> parse("(8,64):(64,1) o 0 o [CS<3,0,[0],3,[1]> o (0,8) o (8,8):(1E0,1E1)]")(1, 2)
    66
    """
    if not isinstance(text, str):
        raise Inadmissible("only text can be parsed", hint='for example "(4,8):(8,1)"')
    return _read(text)


@lru_cache(maxsize=4096)
def _read(text: str) -> Any:
    reader = _Reader(text)
    value = reader.value()
    reader.end()
    return (
        value
        if isinstance(value, (Layout, ComposedLayout, Tile, Swizzle, CoordSwizzle))
        else as_int_tuple(normal_form(value))
    )


class _Reader:
    """A recursive-descent parser with one method for each rule of the grammar."""

    def __init__(self, text: str) -> None:
        self.tokens: list[tuple[str, int]] = []
        self.position = 0
        self.text = text
        self.depth = 0
        for match in _TOKEN.finditer(text):
            if match[2]:
                raise self.wrong("unexpected character", match.start(2))
            self.tokens.append((match[1], match.start(1)))

    def wrong(self, what: str, at: int) -> Inadmissible:
        before, after = self.text[max(at - _EXCERPT, 0) : at], self.text[at : at + _EXCERPT]
        return Inadmissible(f"{what} at column {at + 1}: {before}>>>{after}")

    def peek(self) -> str:
        return self.tokens[self.position][0] if self.position < len(self.tokens) else ""

    def accept(self, token: str) -> bool:
        if self.peek() != token:
            return False
        self.position += 1
        return True

    def unexpected(self, wanted: str) -> Inadmissible:
        at = self.tokens[self.position][1] if self.position < len(self.tokens) else len(self.text)
        return self.wrong(f"expected {wanted}", at)

    def expect(self, token: str) -> None:
        if not self.accept(token):
            raise self.unexpected(repr(token))

    def end(self) -> None:
        if self.peek():
            raise self.unexpected("the end")

    def value(self) -> Any:
        if self.peek() == "[":
            return self.tile()
        value = self.function()
        while self.accept("o"):
            offset = self.tuple()
            self.expect("o")
            outer = self.composed_in_brackets() if self.peek() == "[" else self.tuple_or_layout()
            value = ComposedLayout(value, offset, outer)
        return value

    def function(self) -> Any:
        if self.peek() == "CS":
            return self.coordinate_swizzle()
        return self.swizzle() if self.peek() == "S" else self.tuple_or_layout()

    def composed_in_brackets(self) -> Any:
        self.expect("[")
        self.nested()
        value = self.value()
        self.depth -= 1
        self.expect("]")
        return value

    def tuple_or_layout(self) -> Any:
        shape = self.tuple()
        if not self.accept(":"):
            return shape
        if self.peek() == "*":
            raise self.unexpected("a stride")
        return Layout(shape, self.tuple())

    def nested(self) -> None:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise self.unexpected(f"nesting of at most {MAX_DEPTH}")

    def tuple(self) -> AnyTuple:
        if not self.accept("("):
            return self.leaf()
        self.nested()
        parts: list[AnyTuple] = []
        while not self.accept(")"):
            if parts:
                self.expect(",")
            parts.append(self.tuple())
        self.depth -= 1
        return tuple(parts)

    def leaf(self) -> Any:
        if self.accept("*"):
            return None
        number = self.number()
        modes = []
        while self.accept("E"):
            modes.append(self.integer())
        return Basis(number, tuple(modes)) if modes else number

    def number(self) -> int | Dynamic:
        if not self.accept("?"):
            return self.integer()
        width, divisibility = 32, 1
        if self.accept("{"):
            while not self.accept("}"):
                if self.accept("div"):
                    self.expect("=")
                    divisibility = self.integer()
                elif self.accept("i64"):
                    width = 64
                else:
                    raise self.unexpected("i64 or div=")
        if divisibility < 1:
            raise self.unexpected("a positive divisibility before this")
        return Dynamic(width, divisibility)

    def integer(self) -> int:
        token = self.peek()
        if not token.lstrip("-").isdigit():
            raise self.unexpected("a number")
        self.position += 1
        return int(token)

    def tile(self) -> Tile:
        self.expect("[")
        self.nested()
        modes: list[Any] = []
        while not self.accept("]"):
            if modes:
                self.expect("|")
            modes.append(self.tile() if self.peek() == "[" else self.tuple_or_layout())
        self.depth -= 1
        return Tile(tuple(modes))

    def swizzle(self) -> Swizzle:
        self.expect("S")
        self.expect("<")
        bits = self.integer()
        self.expect(",")
        base = self.integer()
        self.expect(",")
        shift = self.integer()
        self.expect(">")
        return Swizzle(bits, base, shift)

    def coordinate_swizzle(self) -> CoordSwizzle:
        self.expect("CS")
        self.expect("<")
        bits, base_row = self.before_comma(), self.before_comma()
        mode_row = self.path()
        self.expect(",")
        base_col = self.before_comma()
        mode_col = self.path()
        self.expect(">")
        return CoordSwizzle(bits, base_row, mode_row, base_col, mode_col)

    def before_comma(self) -> int:
        number = self.integer()
        self.expect(",")
        return number

    def path(self) -> Any:
        self.expect("[")
        modes: list[int] = []
        while not self.accept("]"):
            if modes:
                self.expect(",")
            modes.append(self.integer())
        return tuple(modes)
