"""Warn of waits that machine code misses: what LLVM compiles waits for itself, inline assembly and copies may not."""

from __future__ import annotations

import warnings

from flydsl.codegen import CodeObject


def warn_of_missing_waits(code: CodeObject) -> None:
    """Warn, at the line that uses it, of everything that may still be under way there, on some path through the code.

    Only code with inline assembly or copies past the registers is looked at. `checking("waits")` looks at the rest, and
    at waves that wait for each other.
    """
    from flydsl.hsaco.listing import read_listing
    from flydsl.simulator.waits.missing import may_miss, missing_waits  # which most compilations do without

    if not may_miss(code.listing):
        return
    for missing in missing_waits(read_listing(code.listing), code.arch):
        at = missing.at or missing.started_at
        place = (at.file, at.line) if at else ("<kernel>", 1)
        warnings.warn_explicit(f"a wait is missing: {missing}", UserWarning, *place)
