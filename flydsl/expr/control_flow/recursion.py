"""Functions that call themselves without end while they are traced, as a runtime branch is traced on both ways.

Python would notice once its stack is full. By then each branch has compared the variables of all open calls, which
takes seconds.
"""

from __future__ import annotations

from collections import Counter

from flydsl.errors import TraceError
from flydsl.errors.places import TRACER, location_of, user_frames

MOST_CALLS = 128
"""Calls of a function inside of each other, each in a branch or loop of the one before."""
HINT = "what a runtime condition decides is traced on both ways: write a loop, which runs on the device"


def without_end(name: str) -> str:
    """The message for a function of that name."""
    return f"{name} calls itself without end while it is traced"


def refuse_endless_calls() -> None:
    """Raise TraceError, at its outermost call of itself, if more calls of a function than MOST_CALLS are open."""
    frames = list(user_frames(TRACER))
    code, count = Counter(frame.f_code for frame in frames).most_common(1)[0]
    if count > MOST_CALLS:
        outermost = [frame for frame in frames if frame.f_code is code][-1]
        at = location_of(code, outermost.f_lasti, outermost.f_lineno)
        raise TraceError(f"{without_end(code.co_name)}: {count} calls are open", at=at, hint=HINT)
