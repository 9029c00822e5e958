"""Names, flags and operands in the text of an LLVM instruction, and types of a parameter list."""

from __future__ import annotations

NAME = r'%(?:"[^"]*"|[-\w.$]+)'
"""A regular expression of a local value's name."""

ANY_SIGN = {"nsz", "fast"}
"""The flags of an operation that is indifferent to the sign of a zero."""


def split_operands(operands: str) -> list[str]:
    """The operands, which commas separate. A constant vector has commas of its own.

    >>> split_operands("%a, <2 x i32> <i32 5, i32 -1>, !dbg !7")
    ['%a', '<2 x i32> <i32 5, i32 -1>', '!dbg !7']
    """
    parts, depth, start = [], 0, 0
    for i, character in enumerate(operands):
        depth += character in "<([{"
        depth -= character in ">)]}"
        if character == "," and depth == 0:
            parts.append(operands[start:i].strip())
            start = i + 1
    return [*parts, operands[start:].strip()]
