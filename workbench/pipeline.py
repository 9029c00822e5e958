"""The pipeline view: a compilation's stages, what each one did, and its diff."""

from __future__ import annotations

from itertools import pairwise

from flydsl.compiler import Pipeline, Stage
from workbench.html import code, details, escape, message, nowrap, table, title
from workbench.ir import Diff

_HEADER = ("#", "stage", "phase", "state", "ms", "ops", "lines", "purpose")
# Each stage's diff is cut off here, so that a pipeline of a large kernel does not blow up the notebook.
_MAX_DIFF_LINES = 300


def pipeline_html(pipeline: Pipeline) -> str:
    """The stages as a table, in which those that changed nothing stand back, and the diffs of the others, folded."""
    head = f"<strong>{code(pipeline.name)}</strong> for {escape(pipeline.arch.name)}: {escape(progress(pipeline))}"
    return f"<div>{title(head)}{stages_html(pipeline)}</div>"


def progress(pipeline: Pipeline) -> str:
    """How far a pipeline has come."""
    return f"{pipeline.position} of {len(pipeline)} stages done"


def stages_html(pipeline: Pipeline) -> str:
    """The table and the diffs, without a heading; what failed is below with its message."""
    diffs = _diffs(pipeline)
    rows = [_row(stage, diffs.get(stage.index)) for stage in pipeline]
    unchanged = {i for i, stage in enumerate(pipeline) if stage.index in diffs and not diffs[stage.index].lines}
    stages = table(_HEADER, rows, numbers=(0, 4), faint_rows=unchanged)
    failures = "".join(message(str(stage.error)) for stage in pipeline if stage.error)
    return stages + _changes_html(pipeline, diffs) + failures


def _diffs(pipeline: Pipeline) -> dict[int, Diff]:
    """What each stage that ran did, by the stage's number. Each module is printed once."""
    texts = [pipeline.text_after(index) for index in range(pipeline.position + 1)]
    return {i: Diff.between(before, after) for i, (before, after) in enumerate(pairwise(texts), start=1)}


def _row(stage: Stage, diff: Diff | None) -> list[str]:
    state = f"<strong>{stage.state}</strong>" if stage.error else escape(stage.state)
    time = "" if stage.time_ms is None else f"{stage.time_ms:.2f}"
    ops = "" if diff is None else nowrap(f"{stage.ops_before} → {stage.ops_after}")
    lines = "" if diff is None else nowrap(diff.summary)
    purpose = escape(stage.summary)
    return [str(stage.index), code(_label(stage)), escape(stage.phase), state, time, ops, lines, purpose]


def _changes_html(pipeline: Pipeline, diffs: dict[int, Diff]) -> str:
    changes = [
        details(f"{stage.index} {code(_label(stage))} {diff.summary}", diff.html(max_lines=_MAX_DIFF_LINES))
        for stage in pipeline
        if (diff := diffs.get(stage.index)) is not None and diff.lines
    ]
    if not changes:
        return ""
    content = f'<div style="margin-left:16px">{"".join(changes)}</div>'
    return details(f"What changed: {len(changes)} of {len(diffs)} stages", content)


def stage_html(stage: Stage) -> str:
    """One stage: what it is for, and what it changed."""
    head = f"<strong>{stage.index} {code(_label(stage))}</strong>: {escape(stage.summary)}"
    if stage.error:
        return f"<div>{title(head)}{message(str(stage.error))}</div>"
    if stage.state != "done":
        return f"<div>{title(f'{head} ({escape(stage.state)})')}</div>"
    diff = Diff.between(stage.before, stage.after)
    counts = f"{diff.summary} lines, {stage.ops_before} → {stage.ops_after} operations" if diff.lines else diff.summary
    return f"<div>{title(head)}{title(counts)}{diff.html() if diff.lines else ''}</div>"


def stage_text(stage: Stage) -> str:
    """The same as text."""
    head = f"{stage.index} {_label(stage)}: {stage.summary} ({stage.state})"
    if stage.error:
        return f"{head}\n{stage.error}"
    return f"{head}\n{stage.diff}" if stage.state == "done" and stage.changed else head


def _label(stage: Stage) -> str:
    return ", ".join(stage.passes)
