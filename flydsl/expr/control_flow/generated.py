"""Code that rewriting makes: a debugger must not take it for the user's, on whose lines it lies.

Rewriting marks the functions that it makes with a parameter that receives nothing. Those that only read a name have no
line of the user's. Those that hold a part of an expression do, as errors in it name the line.
"""

from __future__ import annotations

import dis
import functools
from itertools import pairwise
from types import CodeType

READING = "*__fly_reading"
"""The parameters of a function that reads a name."""
PART = "*__fly_part"
"""The parameters of a function that computes a part of the user's expression."""
FILE = "<frozen flydsl>"
"""The file of a function that reads a name: no debugger stops there."""
_CONTINUING = {"runtime", "otherwise", "end"}  # the first attribute of a handle in each statement after the first


def without_lines(code: CodeType) -> CodeType:
    """Code whose functions that read a name are in no file of the user's."""
    nested = [without_lines(const) if isinstance(const, CodeType) else const for const in code.co_consts]
    file = FILE if READING[1:] in code.co_varnames else code.co_filename
    return code.replace(co_consts=tuple(nested), co_filename=file)


def is_generated(code: CodeType) -> bool:
    """True for a function that the user's source does not have."""
    return not {READING[1:], PART[1:]}.isdisjoint(code.co_varnames)


@functools.lru_cache(maxsize=256)
def continuing(code: CodeType) -> frozenset[int]:
    """The instructions that begin a line again in the middle of one of the user's statements, as between the branches
    of an `if`, and at the end of a loop's body.
    """
    instructions = [one for one in dis.get_instructions(code) if one.opname not in ("CACHE", "NOP", "EXTENDED_ARG")]
    found = {
        handle.offset
        for handle, attribute in pairwise(instructions)
        if str(handle.argval).startswith("__fly_") and attribute.argval in _CONTINUING
    }
    return frozenset(offset for offset, _ in dis.findlinestarts(code) if offset in found)
