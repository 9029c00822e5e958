"""Colours for Python, MLIR, LLVM IR and AMD assembly: one expression per language.

No fixed colour has a contrast of 4.5 (WCAG 2, level AA) both with white and with the dark theme's near-black. So each
colour is mixed half and half with the page's own text colour: dark on light pages, light on dark ones. Browsers without
`color-mix` show plain text; the colours are an aid, and carry no information of their own.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Mapping
from functools import lru_cache
from html import escape

from workbench.kit.html import FAINT

_VIVID = {"op": "rgb(0,120,255)", "type": "rgb(170,0,255)", "literal": "rgb(230,90,0)"}
COLORS = {kind: f"color-mix(in srgb,{color},currentcolor)" for kind, color in _VIVID.items()}
TAGS = {kind: f'<span style="color:{color}">' for kind, color in COLORS.items()} | {
    "comment": f'<span style="{FAINT}">'
}

_STRING = r'"(?:[^"\\]|\\.)*"'
_NUMBER = r"(?<![\w%.#$])-?(?:0x[0-9a-fA-F]+|\d+\.?\d*(?:[eE][+-]?\d+)?)\b"
_PATTERNS = {
    "python": re.compile(
        rf"(?P<comment>#.*)|(?P<literal>{_STRING}|'(?:[^'\\]|\\.)*'|{_NUMBER})"
        rf"|(?P<op>\b(?:{'|'.join(keyword.kwlist)})\b|@[\w.]+)"
    ),
    "mlir": re.compile(
        rf"(?P<literal>{_STRING}|{_NUMBER})|(?P<comment>//.*)|(?P<type>![\w.]+|\b(?:index|none|[fiu]\d+|bf16)\b)"
        r"|(?P<op>(?<![\w%@#!.$])(?:[a-z_][\w]*\.)+[\w.]+|^\s*(?:module|return)\b)"
    ),
    "llvm": re.compile(
        rf"(?P<comment>;.*)|(?P<literal>{_STRING}|{_NUMBER})"
        r"|(?P<type>\b(?:ptr|void|half|float|double|bfloat|label|i\d+)\b)"
        r"|(?P<op>(?<== )[a-z]\w*|^\s+(?:br|ret|store|call|tail|fence|switch|unreachable)\b|\bdefine\b|\bdeclare\b)"
    ),
    "isa": re.compile(
        rf"(?P<comment>;.*|//.*)|(?P<op>^\s+[a-z]\w*)|(?P<type>\b[sva](?:\d+\b|\[\d+:\d+\])|\b(?:vcc|exec|m0|scc)\w*)"
        rf"|(?P<literal>{_STRING}|{_NUMBER})"
    ),
}
LANGUAGES = (*_PATTERNS, "text")

# The tag "fold" for pages without a script that opens folds: the contents become the tooltip of three dots.
TOOLTIP = "tooltip"


def highlight(line: str, language: str, tags: Mapping[str, str] = TAGS) -> str:
    """One line as HTML. language: one of `LANGUAGES`; "text" has no colours. tags: the opening `<span>` of each kind.

    A tag "fold", if there is one, is put around the contents of long types' brackets; `TOOLTIP` shows dots in place
    of them.

    >>> highlight("return a < 1", "python", {"op": '<span class="op">', "literal": '<span class="literal">'})
    '<span class="op">return</span> a &lt; <span class="literal">1</span>'
    """
    text = _marked(line, language)
    for mark, kind in _MARKS.items():
        if mark in text:
            text = text.replace(mark, tags[kind])
    text = folds_as_html(text, tags.get("fold", ""))
    return text.replace(_END, "</span>")


# Where a span begins and ends, while the line is not HTML yet: noncharacters, which no text has a use for.
_MARKS = {"\ufdd0": "op", "\ufdd1": "type", "\ufdd2": "literal", "\ufdd3": "comment"}
_END, _FOLD, _FOLD_END = "\ufdd4", "\ufdd5", "\ufdd6"
_MARK_OF = {kind: mark for mark, kind in _MARKS.items()}
_NONCHARACTERS = re.compile("[\ufdd0-\ufdd6]")

_MIN_FOLDED_CHARS, _MIN_FOLDED_FLY_CHARS = 24, 72  # layouts are what fly types are read for
_FOLDABLE = re.compile(rf"![a-z][\w.]*<|(?P<string>(?<== )\"[^\"\\]{{{_MIN_FOLDED_CHARS * 2},}}\")")
_FOLDS = re.compile(f"[{_FOLD}{_FOLD_END}]")
_WHOLE_FOLD = re.compile(f"{_FOLD}([^{_FOLD}{_FOLD_END}]*){_FOLD_END}")
_SPAN = re.compile(f"</?span[^>]*>|{_END}")
_BRACKET = re.compile(r"->|[<>]")


def with_folds(line: str) -> str:
    """A line of MLIR with marks around the contents of long types' brackets and of long string attributes."""
    parts, position = [], 0
    while found := _FOLDABLE.search(line, position):
        start, end = found.end(), _closing(line, found.end())
        if found["string"]:
            start, end = found.start() + 1, found.end() - 1
        least = _MIN_FOLDED_FLY_CHARS if found[0].startswith("!fly") else _MIN_FOLDED_CHARS
        is_long = end - start >= least
        parts += [line[position:start], *([_FOLD, line[start:end], _FOLD_END] if is_long else [line[start:end]])]
        position = end
    return "".join([*parts, line[position:]])


def without_folds(text: str) -> str:
    """A text without the marks of `with_folds`."""
    return _FOLDS.sub("", text)


def folds_as_html(html: str, tag: str) -> str:
    """The text with the marks of `with_folds` as the tag. Marks without their pair, or around a change, are removed."""
    if _FOLD not in html and _FOLD_END not in html:
        return html
    end = "</span>" * tag.count("<span")

    def folded(match: re.Match[str]) -> str:
        if not tag or "<u>" in match[1]:
            return match[1]
        return _as_tooltip(match[1]) if tag == TOOLTIP else f"{tag}{match[1]}{end}"

    return without_folds(_WHOLE_FOLD.sub(folded, html))


def _as_tooltip(content: str) -> str:
    """Three dots whose tooltip is the content, without its colours. content: HTML."""
    return f'<span title="{_SPAN.sub("", content)}" style="cursor:help">…</span>'


def _closing(line: str, start: int) -> int:
    """The position of the bracket that closes the one before `start`; the end of the line without one."""
    depth = 1
    for found in _BRACKET.finditer(line, start):
        depth += {"<": 1, ">": -1, "->": 0}[found[0]]
        if not depth:
            return found.start()
    return len(line)


@lru_cache(maxsize=1 << 15)
def _marked(line: str, language: str) -> str:
    """A line, escaped, with marks for spans. Levels and diffs show most lines of a module many times."""
    if not line.isascii():
        line = _NONCHARACTERS.sub("", line)
    if language == "mlir":
        line = with_folds(line)
    if pattern := _PATTERNS.get(language):
        line = pattern.sub(lambda match: f"{_MARK_OF[match.lastgroup or '']}{match[0]}{_END}", line)
    return escape(line)
