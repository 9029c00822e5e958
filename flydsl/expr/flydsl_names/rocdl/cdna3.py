"""FlyDSL's names for this architecture. The functions check the target by themselves."""

from __future__ import annotations

from typing import Any

from flydsl.expr.rocdl import waits

__all__ = ["s_waitcnt"]


def s_waitcnt(vmcnt: Any = None, lgkmcnt: Any = None, expcnt: Any = None) -> None:
    """Wait until counters are low enough: see `fx.rocdl.s_waitcnt`, which takes a bit field first."""
    waits.s_waitcnt(vmcnt=vmcnt, lgkmcnt=lgkmcnt, expcnt=expcnt)
