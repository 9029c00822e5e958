"""A whole compilation as one HTML page that opens from disk: it fetches nothing, and needs no server and no kernel.

The long parts, levels and diffs, are compressed separately; `page.js` inflates each when it is first shown. A page of
tens of thousands of lines stays below a megabyte and opens at once.
"""

from __future__ import annotations

import base64
import json
import warnings
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from flydsl.binary import BinaryLaunch, BinaryModule
from flydsl.codegen import CodeObject
from flydsl.compiler import CompiledArtifact, Launch, Pipeline
from flydsl.compiler.caching.saved import place_to_write
from flydsl.errors import ArgumentError
from flydsl.simulator.timing import Trace
from flydsl.system.garbage import collection_paused
from workbench.binary_report import binary_chapter, binary_heading
from workbench.kit import line_list
from workbench.kit.assets import asset_text
from workbench.kit.html import code, escape, message
from workbench.kit.static_page import static_page
from workbench.machine_code import content as machine_code
from workbench.machine_code.analysis import analyses
from workbench.machine_code.listing import summary_html
from workbench.resources.occupancy import kernel_html
from workbench.run.comparison import RunComparison
from workbench.run.counted_lines import linked_levels
from workbench.run.counters import MAX_LAUNCHES
from workbench.run.measures import limiting
from workbench.run.view import run_html
from workbench.stages import linked, strip
from workbench.stages.layout_list import layouts_html
from workbench.stages.levels import levels
from workbench.stages.linked import Linked
from workbench.stages.names import compilation_names
from workbench.stages.pipeline import pipeline_html
from workbench.stages.stage_facts import stage_diff
from workbench.stages.strip import Strip
from workbench.thread_trace import content as timeline
from workbench.thread_trace.comparison import TraceComparison
from workbench.thread_trace.overview import overview_image
from workbench.thread_trace.trace_view import TraceView
from workbench.thread_trace.view import trace_head_html, trace_tables_html

_MAX_ISA_LINES = 100_000
_MIN_PACKED_CHARS = 4000
_COMPRESSION = 7  # of zlib; 9 takes twice as long for a sixteenth less

Section = Callable[[], str]
"""Makes the HTML of a section."""


@dataclass(frozen=True)
class Chapter:
    """A part of the page that is made elsewhere. sections: by title."""

    name: str
    sections: Mapping[str, Section]


Subject = Pipeline | Launch | TraceView | TraceComparison | RunComparison | BinaryModule | BinaryLaunch | Chapter

_BODY = """<p id="needs-script"><strong>This page needs JavaScript</strong> to unpack its longer parts: the levels, the
diffs and the machine code. The script is in the page; nothing is fetched.</p>
{body}
<script>
{script}
</script>"""


def export(value: Any, path: str | Path) -> Path:
    """Write one self-contained HTML page of a pipeline, artifact, launch, trace, module, comparison, or several.

    A pipeline is shown as far as it has run; the page of a launch includes its counters.
    Raises ArgumentError for other objects, and if there is nothing to write or the folder does not exist.
    """
    values = value if isinstance(value, list | tuple) else [value]
    if not values:
        raise ArgumentError("there is no compilation to write a page of", hint="give a pipeline or an artifact")
    written = place_to_write(path)
    written.write_text(page([_subject(item) for item in values]), "utf-8")
    return written


def _subject(value: Any) -> Subject:
    if isinstance(value, CompiledArtifact):
        return value.pipeline
    if isinstance(value, Trace):
        return TraceView(value)
    if isinstance(value, Subject):
        return value
    raise ArgumentError(
        f"a {type(value).__name__} has no page",
        hint="export a pipeline (launch.lower(...)), an artifact, a launch (workbench.profile(...)), a trace, a module "
        "that was opened, or a comparison of runs or traces",
    )


@collection_paused()  # each line is several objects, and they stay until the page is written
def page(subjects: Sequence[Subject]) -> str:
    """The text of the page: a list of contents, then each compilation and each trace."""
    names = _names(subjects)
    chapters = {f"part-{i}": _chapter(subject, f"part-{i}") for i, subject in enumerate(subjects)}
    contents = _contents(dict(zip(chapters, names, strict=True)), chapters)
    body = [
        f'<h1 id="{part}">{code(name)}</h1>\n{_sections(part, chapters[part])}'
        for part, name in zip(chapters, names, strict=True)
    ]
    uses = [linked, strip, machine_code, *([timeline] if any(_has_timeline(subject) for subject in subjects) else [])]
    script = "\n".join([line_list.script(), *(part.script() for part in uses), asset_text(__file__, "page.js")])
    whole = _BODY.format(body="\n".join([contents, *body]), script=script)
    return static_page(", ".join(names), whole, "\n".join(part.style() for part in uses))


def _has_timeline(subject: Subject) -> bool:
    return isinstance(subject, TraceView | TraceComparison) or (isinstance(subject, Launch) and bool(subject.traces))


def _names(subjects: Sequence[Subject]) -> list[str]:
    """The titles of the parts of the page."""
    pipelines = {
        index: subject.pipeline if isinstance(subject, Launch) else subject
        for index, subject in enumerate(subjects)
        if isinstance(subject, Pipeline | Launch)
    }
    names = dict(zip(pipelines, compilation_names(list(pipelines.values())), strict=True))
    return [names[index] if index in names else _name(subject) for index, subject in enumerate(subjects)]


def _name(subject: Subject) -> str:
    if isinstance(subject, TraceView):
        return f"{subject.trace.kernel} on {subject.trace.arch}"
    if isinstance(subject, BinaryModule | BinaryLaunch):
        return binary_heading(subject)
    if isinstance(subject, Chapter):
        return subject.name
    assert isinstance(subject, TraceComparison | RunComparison)
    return " → ".join(subject.names)


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


def _chapter(subject: Subject, part: str) -> dict[str, str]:
    """The HTML of each section, by its title. part: begins the names of its packed parts."""
    return {name: _make(name, section) for name, section in _section_makers(subject, part).items()}


def _make(name: str, section: Section) -> str:
    """The HTML of a section; if it fails, a line that says so, so that the page still has the others."""
    try:
        return section()
    except Exception as error:  # noqa: BLE001 - one section must not cost the others
        warnings.warn(f"the page has no section {name!r}: {error}", stacklevel=5)
        return message(f"This section could not be made: {type(error).__name__}: {error}")


def _section_makers(subject: Subject, part: str) -> Mapping[str, Section]:
    if isinstance(subject, Chapter):
        return subject.sections
    if isinstance(subject, TraceView):
        return _trace_sections(subject, part)
    if isinstance(subject, TraceComparison):
        traces = subject.before, subject.after
        return {
            "Timelines": lambda: _timeline(traces, subject.names, f"{part}-timeline", ""),
            "Numbers and pictures": subject._repr_html_,
        }
    if isinstance(subject, RunComparison):
        return {"Counters of both": subject._repr_html_}
    if isinstance(subject, BinaryModule | BinaryLaunch):
        chapter = binary_chapter(subject, _MAX_ISA_LINES)
        return {name: partial(_pack_html, html, f"{part}-{n}-packed") for n, (name, html) in enumerate(chapter.items())}
    return _compilation_sections(subject, part)


def _trace_sections(view: TraceView, part: str) -> dict[str, Section]:
    """The sections of a trace: with its script, the page shows the timeline in place of the picture."""
    trace = view.trace
    return {
        "Time": lambda: trace_head_html(trace),
        "Timeline": lambda: _timeline((trace,), (trace.kernel,), f"{part}-timeline", overview_image(trace)),
        "Utilisation, stalls, hot spots": lambda: "\n".join(trace_tables_html(trace, view.measured, _MAX_ISA_LINES)),
    }


def _timeline(traces: Sequence[Trace], names: Sequence[str], part: str, picture: str) -> str:
    """The place of a timeline, and what belongs there: names and lines, and the columns of the events."""
    content = timeline.Content(traces, names)
    packed = [_pack(_json(content.meta()), part), _pack(content.data(), f"{part}-data")]
    return "\n".join([f'<div data-timeline="{part}">{picture}</div>', *packed])


def _compilation_sections(subject: Pipeline | Launch, part: str) -> dict[str, Section]:
    """The sections about a compilation, and its launch."""
    pipeline = subject.pipeline if isinstance(subject, Launch) else subject
    found: dict[str, Section] = {
        "Pipeline": lambda: pipeline_html(pipeline, with_changes=False),
        "What each stage changed": lambda: _stages(pipeline, f"{part}-stage"),
        "Every level, line by line": lambda: _linked(Linked(levels(pipeline)), f"{part}-level"),
        "Layouts": lambda: layouts_html(pipeline),
    }
    if pipeline.finished:
        found["Machine code"] = lambda: _machine_code(pipeline.artifact.code, f"{part}-isa")
        found["Occupancy"] = lambda: "\n".join(map(kernel_html, pipeline.artifact.kernels))
    if isinstance(subject, Launch):
        found["Run"] = lambda: _run(subject, part.replace("part", "run"))
        for number, trace in enumerate(subject.traces[:MAX_LAUNCHES]):
            found[f"Time of {trace.kernel}"] = partial(_trace_whole, trace, part.replace("part", f"trace-{number}"))
    return found


def _trace_whole(trace: Trace, part: str) -> str:
    """All that there is of a trace."""
    return "\n".join(section() for section in _trace_sections(TraceView(trace), part).values())


def _machine_code(code_object: CodeObject, part: str) -> str:
    """A summary of each kernel, and the place of its code."""
    parts = []
    for number, analysis in enumerate(analyses(code_object)):
        name = analysis.kernel.name
        place = f'<div data-isa="{part}-{number}"></div>'
        packed = _pack(_json(machine_code.content(code_object, name)), f"{part}-{number}")
        parts.append(f"<h3>{code(name)}</h3>{summary_html(analysis)}{place}{packed}")
    return "\n".join(parts)


def _linked(shown: Linked, part: str) -> str:
    """The place of the linked levels, and what belongs there: one part for each level, and one for what they share."""
    contents = [_pack(_json(shown.content(i)), f"{part}-{i}") for i in range(len(shown.levels))]
    return "\n".join([f'<div data-linked="{part}"></div>', _pack(_json(shown.meta()), part), *contents])


def _run(launch: Launch, part: str) -> str:
    """The counters of a launch: static, then with linked lines."""
    parts = [run_html(launch, max_lines=_MAX_ISA_LINES)]
    for i, counters in enumerate(launch.counters[:MAX_LAUNCHES]):
        parts.append(f"<h3>{escape(counters.heading)}, line by line</h3>")
        parts.append(_linked(Linked(linked_levels(counters, limiting(counters))), f"{part}-{i}"))
    return "\n".join(parts)


def _stages(pipeline: Pipeline, part: str) -> str:
    """The place of the timeline of the stages, and what belongs there: the figures, and one part for each diff."""
    shown = Strip(pipeline)
    packed = [
        _pack(_json(shown.content(i)), f"{part}-{i}")
        for i, stage in enumerate(pipeline)
        if stage.state == "done" and not stage_diff(stage).is_empty
    ]
    return "\n".join([f'<div data-stages="{part}"></div>', _json_element(shown.meta(), part), *packed])


def _json_element(value: Any, part: str) -> str:
    """A value for the script, in an element that is not shown. No text in it can end that element."""
    return f'<script type="application/json" id="{part}">{_json(value).replace("<", chr(92) + "u003c")}</script>'


def _pack_html(html: str, part: str) -> str:
    """HTML, packed if it is long: the script unpacks it when its place comes into view."""
    if len(html) < _MIN_PACKED_CHARS:
        return html
    return f'<div data-packed="{part}"></div>{_pack(html, part)}'


def _pack(content: str | bytes, part: str) -> str:
    """Data as zlib's format (RFC 1950) in base64, which cannot end the element that it is in."""
    plain, kind = (content.encode(), "packed") if isinstance(content, str) else (content, "packed-bytes")
    packed = base64.b64encode(zlib.compress(plain, _COMPRESSION)).decode()
    return f'<script type="application/x-{kind}" id="{part}">{packed}</script>'


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
