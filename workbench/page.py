"""A whole compilation as one HTML page that opens from disk: it fetches nothing, and needs no server and no kernel.

The long parts, levels and diffs, are compressed separately; `page.js` inflates each when it is first shown. A page of
tens of thousands of lines stays below a megabyte and opens at once.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from flydsl.compiler import CompiledArtifact, Launch, Pipeline
from flydsl.errors import ArgumentError
from workbench.kit.html import code, details, escape, title
from workbench.machine_code.analysis import analyses
from workbench.machine_code.listing import kernel_isa_html
from workbench.resources.occupancy import kernel_html
from workbench.run.counted_lines import linked_levels
from workbench.run.counters import MAX_LAUNCHES
from workbench.run.measures import limiting
from workbench.run.view import run_html
from workbench.stages.diff import Diff
from workbench.stages.layout_list import layouts_html
from workbench.stages.levels import levels
from workbench.stages.linked import Linked, script, style
from workbench.stages.names import compilation_names
from workbench.stages.pipeline import label, pipeline_html, stage_diff

_MAX_DIFF_LINES = 5000  # of each stage; the texts themselves are all there
_MAX_ISA_LINES = 100_000
_MIN_PACKED_CHARS = 4000

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
<p id="needs-script"><strong>This page needs JavaScript</strong> to unpack its longer parts: the levels, the diffs and
the machine code. The script is in the page; nothing is fetched.</p>
{body}
<script>
{script}
</script>
</body>
</html>
"""


def export(value: Any, path: str | Path) -> Path:
    """Write the page of a pipeline, an artifact or a launch, or of several.

    A pipeline is shown as far as it has run; the page of a launch includes its counters.
    Raises ArgumentError for other objects, and if there is nothing to write or the folder does not exist.
    """
    values = value if isinstance(value, list | tuple) else [value]
    if not values:
        raise ArgumentError("there is no compilation to write a page of", hint="give a pipeline or an artifact")
    written = Path(path)
    if not written.parent.is_dir():
        raise ArgumentError(f"{written}: there is no folder {written.parent} to write it to")
    written.write_text(page([_subject(item) for item in values]), "utf-8")
    return written


def _subject(value: Any) -> Pipeline | Launch:
    if isinstance(value, CompiledArtifact):
        return value.pipeline
    if isinstance(value, Pipeline | Launch):
        return value
    raise ArgumentError(
        f"a {type(value).__name__} has no page",
        hint="export a pipeline (launch.lower(...)), an artifact, or a launch (workbench.profile(...))",
    )


def page(subjects: Sequence[Pipeline | Launch]) -> str:
    """The text of the page: a list of contents, then each compilation."""
    pipelines = [subject.pipeline if isinstance(subject, Launch) else subject for subject in subjects]
    names = compilation_names(pipelines)
    chapters = {f"part-{i}": _chapter(subject, f"part-{i}") for i, subject in enumerate(subjects)}
    contents = _contents(dict(zip(chapters, names, strict=True)), chapters)
    body = [
        f'<h1 id="{part}">{code(name)}</h1>\n{_sections(part, chapters[part])}'
        for part, name in zip(chapters, names, strict=True)
    ]
    return _PAGE.format(
        title=escape(", ".join(names)), body="\n".join([contents, *body]), style=style(), script=script() + _script()
    )


def _contents(names: dict[str, str], chapters: dict[str, dict[str, str]]) -> str:
    """The list of contents. names: of each chapter."""

    def sections(part: str) -> str:
        return " · ".join(f'<a href="#{part}-{n}">{escape(name)}</a>' for n, name in enumerate(chapters[part]))

    items = [f'<li><a href="#{part}">{code(name)}</a>: {sections(part)}</li>' for part, name in names.items()]
    return f'<nav aria-label="Contents"><ol>{"".join(items)}</ol></nav>'


def _sections(part: str, chapter: dict[str, str]) -> str:
    return "\n".join(
        f'<h2 id="{part}-{n}">{escape(name)}</h2>\n{html}' for n, (name, html) in enumerate(chapter.items())
    )


@cache
def _script() -> str:
    return (Path(__file__).parent / "page.js").read_text("utf-8")


def _chapter(subject: Pipeline | Launch, part: str) -> dict[str, str]:
    """The HTML of each section about a compilation, by its title. part: begins the names of its packed parts."""
    pipeline = subject.pipeline if isinstance(subject, Launch) else subject
    found = {
        "Pipeline": pipeline_html(pipeline, with_changes=False),
        "Every level, line by line": _linked(Linked(levels(pipeline)), f"{part}-level"),
        "What each stage changed": "\n".join(_diffs(pipeline, f"{part}-diff")),
        "Layouts": layouts_html(pipeline),
    }
    if pipeline.finished:
        listings = (kernel_isa_html(one, max_lines=_MAX_ISA_LINES) for one in analyses(pipeline.artifact.code))
        packed = [_packed_html(html, f"{part}-isa-{number}") for number, html in enumerate(listings)]
        found["Machine code"] = "\n".join(packed)
        found["Occupancy"] = "\n".join(map(kernel_html, pipeline.artifact.kernels))
    if isinstance(subject, Launch):
        found["Run"] = _run(subject, part.replace("part", "run"))
    return found


def _linked(linked: Linked, part: str) -> str:
    """The place of the linked levels, and what belongs there: one part for each level, and one for what they share."""
    contents = [_packed(_json(linked.content(i)), f"{part}-{i}") for i in range(len(linked.levels))]
    return "\n".join([f'<div data-linked="{part}"></div>', _packed(_json(linked.meta()), part), *contents])


def _run(launch: Launch, part: str) -> str:
    """The counters of a launch: static, then with linked lines."""
    parts = [run_html(launch, max_lines=_MAX_ISA_LINES)]
    for i, counters in enumerate(launch.counters[:MAX_LAUNCHES]):
        parts.append(f"<h3>{escape(counters.heading)}, line by line</h3>")
        parts.append(_linked(Linked(linked_levels(counters, limiting(counters))), f"{part}-{i}"))
    return "\n".join(parts)


def _diffs(pipeline: Pipeline, part: str) -> list[str]:
    found = []
    for stage in pipeline:
        if stage.state == "done":
            diff: Diff = stage_diff(stage)
            if not diff.is_empty:
                summary = f"{stage.index} {code(label(stage))} {escape(diff.summary)}"
                shown = diff.html(max_lines=_MAX_DIFF_LINES)
                found.append(details(summary, _packed_html(shown, f"{part}-{stage.index}")))
    return found or [title("No stage has run.")]


def _packed_html(html: str, part: str) -> str:
    """HTML, packed where it is long: the script puts it in its place once that is in sight."""
    if len(html) < _MIN_PACKED_CHARS:
        return html
    return f'<div data-packed="{part}"></div>{_packed(html, part)}'


def _packed(text: str, part: str) -> str:
    """A text that is not shown: zlib's format (RFC 1950) in base64, which cannot end the element that it is in."""
    packed = base64.b64encode(zlib.compress(text.encode(), 9)).decode()
    return f'<script type="application/x-packed" id="{part}">{packed}</script>'


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
