"""Warnings of missing waits: LLVM inserts those of the code it compiles, but not all that inline assembly and copies
need."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

from flydsl.codegen import CodeObject
from flydsl.errors.places import user_frame
from flydsl.system.interrupts import holding

if TYPE_CHECKING:
    from flydsl.simulator.waits.missing import MissingWait

_ASSEMBLY = "ASMSTART"
_MAY_MISS = re.compile(
    rf"{_ASSEMBLY}|^\s+(buffer_load_\S+ [^;\n]* lds\b|\w+_load_lds_|\w+_async_(to|from)_lds|tensor_)", re.MULTILINE
)
_COMPUTES = re.compile(r"^[ \t]+(v_|s_(mov|lsh|and|or|add_[ui]|mul|cmp|nop|setprio)).*$", re.MULTILINE)
_has_warned: ContextVar[bool] = ContextVar("flydsl_has_warned_of_missing_waits", default=False)


@contextmanager
def without_second_warnings() -> Iterator[None]:
    """Compile without warnings in the block: the code has been warned of already, in another form."""
    with holding(_has_warned, True):
        yield


def warn_of_missing_waits(code: CodeObject, *, is_from_llvm: bool = True) -> None:
    """Warn, at the line that uses it, of data that may not have arrived there, on some path through the code. There is
    one warning for all that the same wait would order.

    Of code that LLVM has compiled, only inline assembly and copies past the registers are checked, and without assembly
    only the copies. Where the source is not known, the warning is at the line that opens the code object.
    `checking("waits")` checks the rest, and waves that wait for each other.
    """
    if _has_warned.get() or (is_from_llvm and not may_miss(code.listing)):
        return
    # Most compilations do without these, and in a second process they take longer than all the rest.
    from flydsl.hsaco.listing import read_listing
    from flydsl.simulator.waits.missing import reports_of_missing_waits

    registers = not is_from_llvm or _ASSEMBLY in code.listing
    # What computes has no part in copies, and is most of a kernel; the other lines keep their numbers.
    text = code.listing if registers else _COMPUTES.sub("", code.listing)
    for missing in reports_of_missing_waits(read_listing(text), code.arch, registers=registers):
        at = missing.at or missing.started_at
        why = _around_assembly(code.listing, missing) if is_from_llvm else ""
        warnings.warn_explicit(
            f"a wait is missing: {missing}{why}", UserWarning, *((at.file, at.line) if at else _calling_line())
        )


def _around_assembly(text: str, missing: MissingWait) -> str:
    """The change to inline assembly that misses wait states before or behind it, where LLVM inserts none: its
    hazard recognizer does not look into the text. It puts copies of the operands there, which the source does not show.
    """
    if missing.counter:
        return ""
    lines = text.splitlines()
    if _is_assembly(lines, missing.started_line):
        place = "at the end of the assembly's text"
    elif _is_assembly(lines, missing.isa_line):
        place = "at the start of the assembly's text"
    else:
        return ""
    return f"; write it {place}: LLVM inserts no wait states around inline assembly, and may copy its operands there"


def _is_assembly(lines: list[str], number: int) -> bool:
    """True if a line of a listing, counted from 1, is between the marks of inline assembly."""
    marks = (line for line in reversed(lines[:number]) if "ASMSTART" in line or "ASMEND" in line)
    return _ASSEMBLY in next(marks, "")


def may_miss(text: str) -> bool:
    """False if a listing of LLVM needs no check: it has neither inline assembly nor copies past the registers."""
    return _MAY_MISS.search(text) is not None


def _calling_line() -> tuple[str, int]:
    """The line of the user's program that compiles or opens the code."""
    frame = user_frame()
    return (frame.f_code.co_filename, frame.f_lineno) if frame is not None else ("<kernel>", 1)
