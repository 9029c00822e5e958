"""The pipeline view: a compilation's stages, what each one did, and its diff."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from flydsl.compiler import Pipeline, Stage
from workbench.kit.highlight import highlight
from workbench.kit.html import code, details, escape, faint, listing, message, nowrap, table, title
from workbench.stages.diff import Diff, clipped
from workbench.stages.stage_facts import label, stage_diff
from workbench.stages.strip_picture import strip_image

_HEADER = ("#", "stage", "phase", "state", "ms", "ops", "lines", "purpose")
# Texts in a pipeline's display are cut off here, so that a large kernel does not blow up the notebook.
_MAX_DIFF_LINES = 60
_MAX_STAGE_LINES = 600
_MAX_INPUT_LINES = 200


def pipeline_html(pipeline: Pipeline, *, with_changes: bool = True) -> str:
    """The stages as a strip and a table, those that changed nothing folded, and the diffs of the others.

    with_changes: False leaves out the strip and the diffs.
    """
    shown = stages_html(pipeline, with_changes=with_changes)
    return f"<div>{pipeline_heading(pipeline)}{shown}{failures_html(pipeline)}</div>"


def pipeline_heading(pipeline: Pipeline) -> str:
    """The name, the target and the progress of a compilation."""
    return title(
        f"<strong>{code(pipeline.name)}</strong> for {escape(pipeline.arch.name)}: {escape(progress(pipeline))}"
    )


def progress(pipeline: Pipeline) -> str:
    """The progress of a pipeline."""
    return f"{pipeline.position} of {len(pipeline)} stages done"


def stages_html(pipeline: Pipeline, *, with_changes: bool = True) -> str:
    """The strip, the table and the diffs, without a heading."""
    diffs = {stage.index: stage_diff(stage) for stage in pipeline if stage.state == "done"}
    groups = _groups(pipeline, diffs)
    rows = [_row(group, diffs.get(group[0].index)) for group in groups]
    faint_rows = {i for i, group in enumerate(groups) if _is_unchanged(group[0], diffs)}
    changes = _changes_html(pipeline, diffs) if with_changes else ""
    picture = title(strip_image(pipeline)) if with_changes and diffs else ""
    return picture + table(_HEADER, rows, numbers=(0, 4), faint_rows=faint_rows) + changes


def failures_html(pipeline: Pipeline) -> str:
    """The stage that failed, with its message and its input."""
    return "".join(_failure_html(stage) for stage in pipeline if stage.state == "failed")


def _groups(pipeline: Pipeline, diffs: dict[int, Diff]) -> list[list[Stage]]:
    """The stages, one by one; successive ones that changed nothing together."""

    def group(stage: Stage) -> object:
        return "unchanged" if _is_unchanged(stage, diffs) else stage.index

    return [list(stages) for _, stages in groupby(pipeline, key=group)]


def _is_unchanged(stage: Stage, diffs: dict[int, Diff]) -> bool:
    return stage.index in diffs and diffs[stage.index].is_empty


def _row(stages: Sequence[Stage], diff: Diff | None) -> list[str]:
    first, last = stages[0], stages[-1]
    number = str(first.index) if first is last else nowrap(f"{first.index} to {last.index}")
    names = "".join(f"<div>{code(label(stage))}</div>" for stage in stages)
    state = f"<strong>{first.state}</strong>" if first.state == "failed" else escape(first.state)
    times = [stage.time_ms for stage in stages if stage.time_ms is not None]
    time = f"{sum(times):.2f}" if times else ""
    ops = "" if diff is None else nowrap(f"{first.ops_before} → {last.ops_after}")
    lines = "" if diff is None else nowrap(diff.summary) if len(diff.summary) < 15 else diff.summary
    purpose = "; ".join(dict.fromkeys(escape(stage.summary) for stage in stages))
    return [number, names, escape(first.phase), state, time, ops, lines, purpose]


def _changes_html(pipeline: Pipeline, diffs: dict[int, Diff]) -> str:
    changes = [
        details(f"{stage.index} {code(label(stage))} {diff.summary}", diff.html(max_lines=_MAX_DIFF_LINES))
        for stage in pipeline
        if (diff := diffs.get(stage.index)) is not None and not diff.is_empty
    ]
    if not changes:
        return ""
    content = f'<div style="margin-left:16px">{"".join(changes)}</div>'
    return details(f"What changed: {len(changes)} of {len(diffs)} stages", content)


def _failure_html(stage: Stage) -> str:
    shown = stage.before.splitlines()
    return message(_failure_text(stage)) + details(
        f"The input of {stage.index} {code(label(stage))}, {len(shown)} lines", text_html(shown, "mlir")
    )


def _failure_text(stage: Stage) -> str:
    """The reason why it failed. Errors that are not flydsl's own pass through, and only their call has the message."""
    return str(stage.error) if stage.error else f"{label(stage)} raised an exception, which the call that ran it shows"


def text_html(lines: Sequence[str], language: str, *, max_lines: int = _MAX_INPUT_LINES) -> str:
    """A highlighted listing, cut off after max_lines and saying so."""
    left = len(lines) - max_lines
    more = f"\n{faint(f'{left} more lines')}" if left > 0 else ""
    return listing("\n".join(highlight(clipped(line), language) for line in lines[:max_lines]) + more)


def stage_html(stage: Stage) -> str:
    """One stage: what it is for, and what it changed."""
    head = f"<strong>{stage.index} {code(label(stage))}</strong>: {escape(stage.summary)}"
    if stage.state == "failed":
        return f"<div>{title(head)}{_failure_html(stage)}</div>"
    if stage.state != "done":
        return f"<div>{title(f'{head} ({escape(stage.state)})')}</div>"
    diff = stage_diff(stage)
    if diff.is_empty:
        return f"<div>{title(head)}{title(diff.summary)}</div>"
    counts = f"{diff.summary} lines, {stage.ops_before} → {stage.ops_after} operations"
    return f"<div>{title(head)}{title(counts)}{diff.html(max_lines=_MAX_STAGE_LINES)}</div>"


def stage_text(stage: Stage) -> str:
    """The stage as text."""
    head = f"{stage.index} {label(stage)}: {stage.summary} ({stage.state})"
    if stage.state == "failed":
        return f"{head}\n{_failure_text(stage)}"
    changed = stage.state == "done" and not stage_diff(stage).is_empty
    return f"{head}\n{stage_diff(stage).text()}" if changed else head
