"""The pipeline view: a compilation's stages with what each one did."""

from __future__ import annotations

from flydsl.compiler import Pipeline, Stage
from workbench.html import badge, details, escape, table
from workbench.ir import diff_html

_HEADER = ("#", "stage", "phase", "state", "ms", "ops", "lines")


def pipeline_html(pipeline: Pipeline) -> str:
    """The stages of a pipeline as a table; a stage that failed shows its message."""
    title = f"<strong>{escape(pipeline.name)}</strong> for {escape(pipeline.arch.name)}"
    rows = [_row(stage) for stage in pipeline]
    failures = "".join(f"<pre>{escape(str(stage.error))}</pre>" for stage in pipeline if stage.error)
    return f"<div>{title}{table(_HEADER, rows, numbers=(0, 4))}{failures}</div>"


def _row(stage: Stage) -> list[str]:
    name = f'<code title="{escape(stage.summary)}">{escape(", ".join(stage.passes))}</code>'
    time = "" if stage.time_ms is None else f"{stage.time_ms:.2f}"
    state = badge(stage.state) if stage.state == "failed" else escape(stage.state)
    if stage.state != "done":
        return [str(stage.index), name, stage.phase, state, time, "", ""]
    ops = f"{stage.ops_before} → {stage.ops_after}"
    return [str(stage.index), name, stage.phase, state, time, ops, _line_counts(stage)]


def _line_counts(stage: Stage) -> str:
    """Lines added and removed, from the diff."""
    lines = stage.diff.splitlines()[2:]
    added = sum(line.startswith("+") for line in lines)
    removed = sum(line.startswith("-") for line in lines)
    return f"+{added} -{removed}" if added or removed else "no change"


def stage_html(stage: Stage) -> str:
    """One stage: what it is for, and its diff."""
    head = (
        f"<strong>{stage.index} <code>{escape(', '.join(stage.passes))}</code></strong>: "
        f"{escape(stage.summary)} ({escape(stage.state)})"
    )
    if stage.state == "failed":
        return f"<div>{head}<pre>{escape(str(stage.error))}</pre></div>"
    if stage.state != "done":
        return f"<div>{head}</div>"
    return f"<div>{head}{details(_line_counts(stage), diff_html(stage.before, stage.after), is_open=True)}</div>"
