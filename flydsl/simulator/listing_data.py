"""Constant data in an assembly listing: `.long`, `.asciz`, `.zero` and their like, as bytes."""

from __future__ import annotations

import re

_INTEGERS = {".byte": 1, ".short": 2, ".long": 4, ".quad": 8}
_ESCAPE = re.compile(r"\\([0-7]{1,3}|.)")
_NAMED_ESCAPES = {"n": 10, "t": 9, "r": 13, "b": 8, "f": 12}

DATA_DIRECTIVES = (*_INTEGERS, ".ascii", ".asciz", ".zero", ".fill", ".p2align")


def append_data(data: bytearray, directive: str, operands: str) -> None:
    """Append what a directive emits. ValueError for what is not a plain constant.

    >>> data = bytearray(b"a")
    >>> append_data(data, ".p2align", "2, 0x0")
    >>> append_data(data, ".short", "-2")
    >>> bytes(data)
    b'a\\x00\\x00\\x00\\xfe\\xff'
    """
    if directive in _INTEGERS:
        size = _INTEGERS[directive]
        for word in operands.split(","):
            data += (int(word, 0) & ((1 << 8 * size) - 1)).to_bytes(size, "little")
    elif directive in (".ascii", ".asciz"):
        data += _string(operands) + (b"\0" if directive == ".asciz" else b"")
    elif directive == ".zero":
        data += bytes(int(operands.split(",")[0], 0))
    elif directive == ".fill":
        repeat, size, value = (int(word, 0) for word in operands.split(","))
        data += value.to_bytes(size, "little") * repeat
    elif directive == ".p2align":
        alignment = 1 << int(operands.split(",")[0], 0)
        data += bytes(-len(data) % alignment)


def _string(text: str) -> bytes:
    """The bytes of a quoted string with C escapes, octal ones included."""
    if not (text.startswith('"') and text.endswith('"')):
        raise ValueError("expected a quoted string")

    def replace(match: re.Match[str]) -> str:
        escaped = match[1]
        return chr(int(escaped, 8) & 255 if escaped[0] in "01234567" else _NAMED_ESCAPES.get(escaped, ord(escaped)))

    return _ESCAPE.sub(replace, text[1:-1]).encode("latin-1")
