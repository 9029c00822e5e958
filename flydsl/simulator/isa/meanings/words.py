"""Parts of mnemonics in words."""

from __future__ import annotations

import re

_BITS = re.compile(r"b(\d+)")
_TYPE = re.compile(r"[iu]\d+|b?f\d+")
_DWORDS = re.compile(r"dword(?:x(\d+))?")

_COMPARISONS = {"eq": "=", "ne": "≠", "lg": "<>", "lt": "<", "le": "≤", "gt": ">", "ge": "≥"}
_HALVES = {"lo": "lower", "hi": "upper"}
_SPACES = {
    "buffer": "the buffer",
    "global": "global memory",
    "flat": "flat memory",
    "scratch": "the lane's scratch",
    "ds": "LDS",
}
_SMALL = {
    **dict.fromkeys(("ubyte", "u8"), "a byte"),
    **dict.fromkeys(("sbyte", "i8"), "a byte with its sign"),
    **dict.fromkeys(("ushort", "u16"), "2 bytes"),
    **dict.fromkeys(("sshort", "i16"), "2 bytes with their sign"),
}


def in_words(part: str | None) -> str:
    """A comparison or a half in words, a type as "in f32"; bits without a type as a number of them.

    >>> in_words("ge"), in_words("b64"), in_words("f16"), in_words("3")
    ('≥', 'of 64 bits', 'in f16', '3')
    """
    text = part or ""
    if bits := _BITS.fullmatch(text):
        return f"of {bits[1]} bits"
    if _TYPE.fullmatch(text):
        return f"in {text}"
    return _COMPARISONS.get(text) or _HALVES.get(text) or text


def _size(text: str) -> str:
    if match := _DWORDS.fullmatch(text):
        return f"{4 * int(match[1] or 1)} bytes"
    if bits := _BITS.fullmatch(text):
        return f"{int(bits[1]) // 8} bytes"
    return _SMALL.get(text, text)


def of_group(name: str, part: str | None) -> str:
    """A named part: `space` and `size` of memory, `type` as `in_words` has it; any other as it is.

    >>> of_group("space", "ds"), of_group("size", "dwordx4"), of_group("small", "fp8")
    ('LDS', '16 bytes', 'fp8')
    """
    text = part or ""
    words = {"space": _SPACES.get(text, text), "size": _size(text), "type": in_words(text)}
    return words.get(name, text)
