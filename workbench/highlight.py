"""Colours for Python, MLIR, LLVM IR and AMD assembly: one expression per language.

The colours keep a contrast of more than 3.8 on white and on the dark theme's near-black alike. They are an aid: nothing
is said by colour alone.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Mapping
from html import escape

COLORS = {"op": "#0a84c6", "type": "#9a6ad0", "literal": "#c0651a"}
TAGS = {kind: f'<span style="color:{color}">' for kind, color in COLORS.items()} | {
    "comment": '<span style="opacity:0.6">'
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


def highlight(line: str, language: str, tags: Mapping[str, str] = TAGS) -> str:
    """One line as HTML. language: one of `LANGUAGES`; "text" has no colours. tags: the opening `<span>` of each kind.

    >>> highlight("return a < 1", "python")
    '<span style="color:#0a84c6">return</span> a &lt; <span style="color:#c0651a">1</span>'
    """
    pattern = _PATTERNS.get(language)
    if pattern is None:
        return escape(line)
    parts, position = [], 0
    for match in pattern.finditer(line):
        parts.append(f"{escape(line[position : match.start()])}{tags[match.lastgroup or '']}{escape(match[0])}</span>")
        position = match.end()
    return "".join(parts) + escape(line[position:])
