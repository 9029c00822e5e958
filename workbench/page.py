"""A whole compilation as one HTML page that opens from disk: it fetches nothing, and needs no server and no kernel."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from flydsl.compiler import CompiledArtifact, Pipeline
from flydsl.errors import ArgumentError
from workbench.html import code, details, escape, title
from workbench.ir import Diff
from workbench.isa import kernel_isa_html
from workbench.layout_list import layouts_html
from workbench.levels import levels
from workbench.linked import Linked, script, style
from workbench.machine_code.analysis import analyses
from workbench.occupancy import kernel_html
from workbench.pipeline import label, pipeline_html, stage_diff

_MAX_DIFF_LINES = 1000  # of each stage; the texts themselves are all there
_MAX_ISA_LINES = 100_000

_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy"
 content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:">
<meta name="viewport" content="width=device-width">
<title>{title}</title>
<style>
:root {{ color-scheme: light dark; }}
body {{ font-family: sans-serif; font-size: 14px; margin: 16px; }}
h1 {{ font-size: 20px; }} h2 {{ font-size: 17px; }}
{style}
</style>
</head>
<body>
{body}
<script>
{script}
for (const root of document.querySelectorAll("[data-linked]")) {{
  const data = JSON.parse(document.getElementById(root.dataset.linked).textContent);
  mount(root, data.meta, (level) => Promise.resolve(data.contents[level]));
}}
</script>
</body>
</html>
"""


def export(value: Any, path: str | Path) -> Path:
    """Write the page of a pipeline or an artifact, or of several. A pipeline is shown as far as it has run.

    Raises ArgumentError for anything else.
    """
    values = value if isinstance(value, list | tuple) else [value]
    written = Path(path)
    written.write_text(page([_pipeline(item) for item in values]), "utf-8")
    return written


def _pipeline(value: Any) -> Pipeline:
    if isinstance(value, CompiledArtifact):
        return value.pipeline
    if isinstance(value, Pipeline):
        return value
    raise ArgumentError(
        f"a {type(value).__name__} has no page", hint="export a pipeline (launch.lower(...)) or an artifact"
    )


def page(pipelines: Sequence[Pipeline]) -> str:
    """The text of the page."""
    names = ", ".join(f"{pipeline.name} for {pipeline.arch.name}" for pipeline in pipelines)
    body = "\n".join(_compilation(pipeline, f"levels-{i}") for i, pipeline in enumerate(pipelines))
    return _PAGE.format(title=escape(names), body=body, style=style(), script=script())


def _compilation(pipeline: Pipeline, data_id: str) -> str:
    linked = Linked(levels(pipeline))
    data = _json({"meta": linked.meta(), "contents": [linked.content(i) for i in range(len(linked.levels))]})
    parts = [
        f"<h1>{code(pipeline.name)} for {escape(pipeline.arch.name)}</h1>",
        "<h2>Pipeline</h2>",
        pipeline_html(pipeline),
        "<h2>Every level, line by line</h2>",
        f'<div data-linked="{data_id}"></div>',
        f'<script type="application/json" id="{data_id}">{data}</script>',
        "<h2>What each stage changed</h2>",
        *_diffs(pipeline),
        "<h2>Layouts</h2>",
        layouts_html(pipeline),
    ]
    if pipeline.finished:
        parts.append("<h2>Machine code</h2>")
        parts += [kernel_isa_html(a, max_lines=_MAX_ISA_LINES) for a in analyses(pipeline.artifact.code)]
        parts.append("<h2>Occupancy</h2>")
        parts += [kernel_html(kernel) for kernel in pipeline.artifact.kernels]
    return "\n".join(parts)


def _diffs(pipeline: Pipeline) -> list[str]:
    found = []
    for stage in pipeline:
        if stage.state == "done":
            diff: Diff = stage_diff(stage)
            if not diff.is_empty:
                summary = f"{stage.index} {code(label(stage))} {escape(diff.summary)}"
                found.append(details(summary, diff.html(max_lines=_MAX_DIFF_LINES)))
    return found or [title("No stage has run.")]


def _json(value: Any) -> str:
    """JSON that may stand in a script element: nothing in it ends the element."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
