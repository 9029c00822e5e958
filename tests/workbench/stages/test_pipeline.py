"""The pipeline view."""

from __future__ import annotations

import re

import pytest

from flydsl.compiler import Stage
from flydsl.compiler.stages import StageSpec
from flydsl.errors import CompileError
from tests.stages import STAGE_COUNT
from workbench.display import VIEWS
from workbench.kit.html import FAINT
from workbench.stages.pipeline import pipeline_html, stage_html
from workbench.stages.stage_facts import stage_diff


@pytest.fixture
def failed(pipeline):
    """A pipeline whose second stage fails."""

    def fail(compilation) -> None:
        raise CompileError("this went wrong")

    pipeline.stages[1] = Stage(pipeline, 2, StageSpec("failing-pass", "A", "it fails", (fail,)))
    with pytest.raises(CompileError):
        pipeline.run()
    return pipeline


def test_it_shows_how_far_it_is(pipeline, read):
    assert f"0 of {STAGE_COUNT} stages done" in read(pipeline_html(pipeline)).text
    pipeline.run(until="fly-layout-lowering")
    page = read(pipeline_html(pipeline))
    assert f"3 of {STAGE_COUNT} stages done" in page.text
    stage = pipeline["fly-layout-lowering"]
    assert f"{stage.ops_before} → {stage.ops_after}" in page.text
    changed = sum(stage.changed for stage in pipeline.stages[:3])
    assert f"What changed: {changed} of 3 stages" in page.text


def test_looking_runs_nothing(pipeline):
    pipeline.step()
    for value in (pipeline, *pipeline):
        VIEWS[type(value)][0](value)
    assert pipeline.position == 1


def test_successive_stages_that_changed_nothing_are_one_line(pipeline):
    pipeline.run()
    table = pipeline_html(pipeline).split("<table")[1].split("</table>")[0]
    runs, before = 0, False
    for stage in pipeline:
        runs += not stage.changed and not before
        before = not stage.changed
    unchanged = [stage for stage in pipeline if not stage.changed]
    assert 0 < runs < len(unchanged)
    assert table.count(f'<tr style="{FAINT}">') == runs == table.count("no change")
    assert table.count("<tr") == 1 + runs + len(pipeline) - len(unchanged)
    assert not [stage.name for stage in pipeline if f"<code>{stage.passes[0]}" not in table]


def test_a_failed_stage_keeps_its_input_and_its_message(failed, read):
    for text in (read(pipeline_html(failed)).text, read(stage_html(failed[2])).text, VIEWS[Stage][1](failed[2])):
        assert "this went wrong" in text
    assert "<strong>failed</strong>" in pipeline_html(failed)
    for line in failed[2].before.splitlines():
        assert line in read(pipeline_html(failed)).text


def test_a_stage_that_broke_says_so(pipeline, read):
    """An exception that is not flydsl's: a mistake in a pass that someone is writing."""

    def fail(compilation) -> None:
        raise ZeroDivisionError("by nothing")

    pipeline.stages[0] = Stage(pipeline, 1, StageSpec("failing-pass", "A", "it breaks", (fail,)))
    with pytest.raises(ZeroDivisionError):
        pipeline.run()
    for text in (read(pipeline_html(pipeline)).text, read(stage_html(pipeline[1])).text, VIEWS[Stage][1](pipeline[1])):
        assert "failing-pass: ZeroDivisionError: by nothing" in text
    assert "The input of 1 failing-pass" in read(pipeline_html(pipeline)).text


def test_a_stage_shows_every_line_that_changed(pipeline, read):
    pipeline.run()
    for stage in pipeline:
        html = stage_html(stage)
        read(html)  # as it is, and with what the dots stand for in place of them
        page = read(re.sub(r'<span title="([^"]*)" style="cursor:help">…</span>', r"\1", html)).text
        changed = [change for change in stage_diff(stage).changes if change.sign in "+-" and len(change.text) < 1000]
        assert [change.text for change in changed if change.sign + change.text not in page] == []
        assert ("no change" in page) == (not stage.changed)
