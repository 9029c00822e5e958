"""What holds for every view: complete, reproducible, safe to put on a page."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

import workbench
from flydsl.binary import BinaryKernel, BinaryLaunch, BinaryModule
from flydsl.compiler import Launch, Stage
from flydsl.compiler.stages import StageSpec
from flydsl.errors import ArgumentError, CompileError
from flydsl.simulator.counters import Counting, LaunchCounters
from flydsl.simulator.stepping.simulation import Simulation
from flydsl.simulator.timing import Trace, TracedLaunch, Tracing
from flydsl.sweeps import Row, Table
from workbench.display import VIEWS
from workbench.kit import html
from workbench.kit.highlight import LANGUAGES, highlight
from workbench.kit.html import ON_PAPER
from workbench.resources.occupancy import kernels_html
from workbench.stages.diff import Diff
from workbench.stages.pipeline import pipeline_html, stage_html

EVIL = "<script>alert(1)</script><img src=x onerror=alert(2)>&amp;\"'"
texts = st.text(st.sampled_from("<>&\"'/ab\n ;:@+-\t%!{}"), max_size=60)


def shown(value: object) -> tuple[str, str]:
    as_html, as_text = VIEWS[type(value)]
    return as_html(value), as_text(value)


def everything(pipeline) -> list[object]:
    kernel = pipeline.artifact.kernels[0]
    return [pipeline, *pipeline, pipeline.artifact, pipeline.artifact.code, kernel, kernel.resources, kernel.occupancy]


def test_every_view_survives_the_sanitizer_and_escapes_the_source(pipeline, read):
    # Other tests show launches and what is known of them, sweeps, and programs of other compilers.
    others = {Simulation, Launch, LaunchCounters, Counting, Trace, TracedLaunch, Tracing, Table, Row}
    others |= {BinaryModule, BinaryKernel, BinaryLaunch}
    assert {type(value) for value in everything(pipeline)} == set(VIEWS) - others
    for value in everything(pipeline):
        as_html, as_text = shown(value)
        assert read(as_html).text.strip()
        assert as_text.strip()


def test_the_source_file_is_named_as_text_without_its_folder(pipeline, read):
    page = read(shown(pipeline.artifact)[0])
    # The file's name, of which the path keeps what follows the last slash.
    assert "<script>alert(1)<&script>.py:8" in page.text
    for value in everything(pipeline):
        assert not [text for text in shown(value) if "/kernels0/" in text or "/tmp" in text]


def test_views_are_the_same_each_time(launcher, tensors):
    one, other = launcher.lower(*tensors, 128), launcher.lower(*tensors, 128)
    assert shown(one) == shown(other)
    for a, b in zip(everything(one)[1:], everything(other)[1:], strict=True):
        assert shown(a) == shown(b)


def test_an_extension_shows_values_but_leaves_containers_alone(notebook):
    notebook.run("p = launch.lower(A, B, C, 128); k = p.artifact.kernels[0]")
    kernel = notebook.shell.user_ns["k"]
    formats, _ = notebook.shell.display_formatter.format(kernel)
    assert formats["text/html"] == shown(kernel)[0] + ON_PAPER
    assert formats["text/plain"] == shown(kernel)[1]
    formats, _ = notebook.shell.display_formatter.format([kernel.occupancy])
    assert formats["text/plain"] == repr([kernel.occupancy])


PARTS = [html.code, html.message, lambda text: Diff.between("", text).html()]
PARTS += [lambda text, language=language: Diff.between("", text, language).html() for language in LANGUAGES]
PARTS += [lambda text, language=language: highlight(text, language) for language in LANGUAGES]


@pytest.mark.parametrize("part", PARTS)
@given(text=texts)
def test_parts_show_any_text_as_it_is(part, text: str, read):
    lines = read(part(text)).text
    assert [line for line in text.splitlines() if line not in lines] == []


def test_names_and_messages_are_escaped_everywhere(pipeline, read):
    kernel = pipeline.artifact.kernels[0]
    kernel = dataclasses.replace(kernel, info=kernel.info._replace(name=EVIL))
    assert EVIL in read(kernels_html([kernel])).text
    assert EVIL in read(shown(kernel)[0]).text
    failed = failing(pipeline, CompileError(EVIL, hint=EVIL))
    failed.name = EVIL
    assert read(pipeline_html(failed)).text.count(EVIL) >= 4  # pipeline, stage, message, hint
    assert read(stage_html(failed[2])).text.count(EVIL) >= 4
    assert EVIL not in pipeline_html(failed)


def failing(pipeline, error: CompileError):
    """The pipeline with a second stage that fails."""
    pipeline = type(pipeline)(pipeline.name, pipeline.traced, pipeline.arch, pipeline.arguments, pipeline.signature)

    def fail(compilation) -> None:
        raise error

    pipeline.stages[1] = Stage(pipeline, 2, StageSpec(EVIL, "A", EVIL, (fail,)))
    with pytest.raises(CompileError):
        pipeline.run()
    return pipeline


@pytest.mark.parametrize("name", ["occupancy_figure", "roofline_figure", "heat_map_figure", "pareto_figure"])
def test_a_figure_of_something_else_says_what_it_takes(pipeline, name: str) -> None:
    with pytest.raises(ArgumentError, match=rf"{name}\(\) does not take a Pipeline") as raised:
        getattr(workbench, name)(pipeline)
    assert raised.value.hint
