"""Facts about a stage: its passes, its diff, and the figures of both that views show."""

from __future__ import annotations

import math
from typing import Any

from flydsl.compiler import Stage
from workbench.stages.diff import Diff


def label(stage: Stage) -> str:
    """A stage's passes."""
    return ", ".join(stage.passes)


def stage_diff(stage: Stage) -> Diff:
    """The effect of a stage that ran."""
    return Diff.between(stage.before, stage.after, "mlir")


def stage_facts(stage: Stage) -> dict[str, Any]:
    """The figures, by the names that `strip.js` has for them. time: in ms."""
    diff = stage_diff(stage) if stage.state == "done" else None
    return {
        "number": stage.index,
        "name": label(stage),
        "phase": stage.phase,
        "purpose": stage.summary,
        "state": stage.state,
        "time": None if stage.time_ms is None else round(stage.time_ms, 3),
        "added": 0 if diff is None else diff.counts["+"],
        "removed": 0 if diff is None else diff.counts["-"],
        "summary": "" if diff is None else diff.summary,
        "isEmpty": diff is None or diff.is_empty,
        "ops": "" if diff is None else f"{stage.ops_before} → {stage.ops_after}",
        "error": str(stage.error) if stage.error else "",
    }


def bar_height(amount: float, least: float, most: float) -> float:
    """The height of a bar, up to 1: logarithmic, as one stage often takes a hundred times as long as another."""
    return 0.0 if amount <= 0 else min(1.0, max(0.06, math.log1p(amount / least) / math.log1p(most / least)))
