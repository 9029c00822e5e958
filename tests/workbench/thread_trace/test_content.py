"""What the script gets, and the pages and widgets that have it."""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path

import numpy as np
import pytest

import workbench
from flydsl.errors import ArgumentError
from flydsl.simulator.timing import Trace
from tests.simulator.timing.synthetic import synthetic
from tests.workbench.test_page import Reader
from workbench.thread_trace.comparison import TraceComparison
from workbench.thread_trace.content import Content
from workbench.thread_trace.widget import ComparisonExplorer, TraceExplorer

COLUMNS = (
    *(("issue", "<f8", 0), ("length", "<u4", 0), ("latency", "<u4", 0), ("stall", "<u4", 0), ("instruction", "<u4", 0)),
    *(("reason", "u1", 0), ("start", "<f8", 1), ("end", "<f8", 1), ("first", "<u4", 2), ("simd", "<u4", 1)),
    ("cu", "<u4", 1),
)


def decoded(data: bytes, traces: list[Trace]) -> list[dict[str, np.ndarray]]:
    """The columns as timeline_data.js takes them: one after the other, each from a multiple of 8."""
    at, found = 0, []
    for trace in traces:
        counts = (len(trace.events), len(trace.waves), len(trace.waves) + 1)
        columns = {}
        for name, kind, of in COLUMNS:
            columns[name] = np.frombuffer(data, kind, counts[of], at)
            at += -(-columns[name].nbytes // 8) * 8
        found.append(columns)
    assert at == len(data)
    return found


def test_the_script_gets_who_ends_a_wait_for_a_signal() -> None:
    trace = dataclasses.replace(synthetic(waves=2, iterations=1), writers={1: 12})
    (found,) = json.loads(json.dumps(Content([trace], ["one"]).meta()))["traces"]
    assert found["stallNames"] == {"1": "waits for workgroup 12's signal"}


def test_the_columns_are_those_of_the_traces() -> None:
    traces = [synthetic(waves=5, iterations=3), synthetic(waves=2, iterations=1, seed=2)]
    content = Content(traces, ["one", "other"])
    for trace, columns, meta in zip(traces, decoded(content.data(), traces), content.meta()["traces"], strict=True):
        assert (columns["issue"] + meta["zero"] == trace.events["issue"]).all()
        for name in ("latency", "stall", "instruction", "reason"):
            assert (columns[name] == trace.events[name]).all()
        for wave in range(len(trace.waves)):
            mine = trace.events["wave"][columns["first"][wave] : columns["first"][wave + 1]]
            assert (mine == wave).all()
        assert len(set(columns["simd"].tolist())) == len(set(trace.waves["simd"].tolist()))
        assert sorted(wave for row in meta["rows"] for wave in row.get("waves", ())) == list(range(len(trace.waves)))


def test_every_instruction_has_its_line_and_its_place(tmp_path: Path) -> None:
    trace = synthetic(waves=1, iterations=1)
    meta = Content([trace], ["one"]).meta()
    (found,) = meta["traces"]
    assert len(found["code"]) == len(found["places"]) == len(trace.instructions)
    for instruction, place, number in zip(trace.instructions, found["places"], found["lineNumbers"], strict=True):
        if instruction.line is None:
            assert (place, number) == (None, 0)
        else:
            assert f"{instruction.line}  " in meta["sources"][place[0]]["lines"][place[1]]
            assert number == instruction.line
    assert json.loads(json.dumps(meta, allow_nan=False)) == meta


def test_the_page_has_the_timeline_and_without_a_script_the_picture(tmp_path: Path) -> None:
    trace = synthetic(waves=3, iterations=4)
    file = workbench.export([trace, TraceComparison(trace, synthetic(seed=1))], tmp_path / "page.html")
    found = Reader(file.read_text("utf-8"))
    places = [attrs["data-timeline"] for _, attrs in found.tags if "data-timeline" in attrs]
    assert places == ["part-0-timeline", "part-1-timeline"]
    for place in places:
        assert {place, f"{place}-data"} <= set(re.findall(r'id="([^"]+)"', file.read_text("utf-8")))
    assert sum(tag == "img" for tag, _ in found.tags) >= 3
    assert "What limits the loop most is waiting for LDS" in found.text
    assert "function mountTimeline" in file.read_text("utf-8")
    with pytest.raises(ArgumentError, match="has no page"):
        workbench.export(3, tmp_path / "other.html")


def test_a_page_without_a_trace_has_no_script_for_it(launcher, tensors, tmp_path: Path) -> None:
    file = workbench.export(launcher.lower(*tensors, 128), tmp_path / "page.html")
    assert "mountTimeline(element" not in file.read_text("utf-8")
    assert "function mountTimeline" not in file.read_text("utf-8")


def test_live_views_have_the_content_and_a_static_form(read) -> None:
    trace = synthetic(waves=2, iterations=2)
    live = workbench.explore(trace)
    assert isinstance(live, TraceExplorer)
    timeline = live.children[1]
    assert timeline.data == Content([trace], [trace.kernel]).data()
    assert "What limits the loop most is waiting for LDS" in read(live.static_html()).text
    both = workbench.explore(workbench.timeline(trace, synthetic(seed=4)))
    assert isinstance(both, ComparisonExplorer)
    assert len(both.children[0].meta["traces"]) == 2
    assert "before → after" in read(both.static_html()).text
    assert workbench.explore(workbench.timeline(trace)).static_text() == live.static_text()


def test_lines_are_escaped_and_coloured_alone(tmp_path: Path) -> None:
    source = tmp_path / "<script>.py"
    source.write_text("<script>alert(1)</script>\n" * 3)
    trace = synthetic(waves=1, iterations=1)
    evil = tuple(
        dataclasses.replace(i, text=f"{i.text} <img src=x onerror=alert(1)>", file=str(source), line=2)
        for i in trace.instructions
    )
    meta = Content([dataclasses.replace(trace, instructions=evil)], ["one"]).meta()
    lines = [*meta["traces"][0]["code"], *(line for file in meta["sources"] for line in file["lines"])]
    assert len(lines) > len(evil)
    assert {tag for line in lines for tag in re.findall(r"<(\w+)", line)} == {"span"}
