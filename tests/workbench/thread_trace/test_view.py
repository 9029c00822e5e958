"""The static view of a trace: what it says, that a sanitizer leaves it alone, that text is escaped."""

from __future__ import annotations

import base64
import dataclasses
import math
import re
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest

import workbench
from flydsl.errors import ArgumentError
from flydsl.errors.places import open_folder
from flydsl.simulator.timing import Trace, TracedInstruction
from flydsl.simulator.timing.hot_spots import hottest
from tests.simulator.timing.rocprof_folder import write_folder
from tests.simulator.timing.synthetic import synthetic, with_stall
from tests.simulator.timing.test_rocprofv3_counters import HEAD, row
from workbench.kit.png import png
from workbench.thread_trace.comparison import TraceComparison
from workbench.thread_trace.overview import MAX_ROWS, overview_svg
from workbench.thread_trace.palette import REASON_COLORS, UNIT_COLORS
from workbench.thread_trace.rows import rows
from workbench.thread_trace.view import trace_html, trace_text

EVIL = "<script>alert(1)</script><img src=x onerror=alert(2)>&amp;"


@pytest.fixture(scope="module")
def trace() -> Trace:
    return synthetic(waves=8, iterations=10)


def test_it_says_what_limits_and_where_the_time_goes(trace: Trace, read) -> None:
    for text in (read(trace_html(trace)).text, trace_text(trace)):
        assert "What limits the loop most is waiting for LDS" in text
        assert "ds_read_b128 (kernel.py:21)" in text
        assert "estimated by the timing model" in text
        assert "how far off is not known" in text
        assert "8 waves from seed 0." in text
        assert "LDS wait" in text
    text = read(trace_html(trace)).text
    assert trace.instructions[hottest(trace, 1)[0]].text in text
    assert "Utilisation and stalls" in text


def test_the_error_bar_is_shown(trace: Trace) -> None:
    assert " us ± 30 %, " in trace_text(dataclasses.replace(trace, error_percent=30.0))
    measured = dataclasses.replace(trace, origin="rocprofv3")
    assert "how far off" not in trace_text(measured)
    assert "measured" in trace_text(measured)


def test_without_a_clock_there_are_cycles_alone(trace: Trace, read) -> None:
    text = read(trace_html(dataclasses.replace(trace, clock_mhz=math.nan))).text
    assert "the clock is not known" in text
    assert "nan" not in text


def test_text_from_outside_is_escaped(trace: Trace, read) -> None:
    instructions = tuple(
        dataclasses.replace(i, text=f"{EVIL}{number}", file=f"/src/{EVIL}.py", line=1)
        for number, i in enumerate(trace.instructions)
    )
    evil = dataclasses.replace(trace, kernel=EVIL, arch=EVIL, sampling=EVIL, instructions=instructions)
    page = read(trace_html(evil))
    assert page.text.count(EVIL) > 5
    comparison = TraceComparison(evil, trace)
    assert EVIL in read(comparison._repr_html_()).text


def test_nothing_was_traced(read) -> None:
    trace = synthetic(waves=1)
    empty = Trace("k", "gfx942", 1.0, "model", 0, None, "nothing", (), trace.waves[:0], trace.events[:0])
    assert "k on gfx942" in read(trace_html(empty)).text
    assert trace_text(empty)
    assert read(TraceComparison(empty, trace)._repr_html_()).text
    waves_alone = dataclasses.replace(trace, events=trace.events[:0])
    assert read(trace_html(waves_alone)).text


def image(svg: str) -> tuple[np.ndarray, list[str]]:
    """The pixels of the picture's image, and its palette."""
    (packed,) = re.findall(r'href="data:image/png;base64,([^"]+)"', svg)
    return pixels_of(base64.b64decode(packed))


def pixels_of(content: bytes) -> tuple[np.ndarray, list[str]]:
    """A PNG of a palette, read."""
    assert content[:8] == b"\x89PNG\r\n\x1a\n"
    at, chunks = 8, {}
    while at < len(content):
        (length,) = struct.unpack(">I", content[at : at + 4])
        kind, body = content[at + 4 : at + 8], content[at + 8 : at + 8 + length]
        assert struct.unpack(">I", content[at + 8 + length : at + 12 + length])[0] == zlib.crc32(kind + body)
        chunks[kind] = body
        at += 12 + length
    width, height, depth, color = struct.unpack(">IIBB", chunks[b"IHDR"][:10])
    assert (depth, color) == (8, 3)
    lines = np.frombuffer(zlib.decompress(chunks[b"IDAT"]), np.uint8).reshape(height, width + 1)
    assert (lines[:, 0] == 0).all()
    palette = chunks[b"PLTE"]
    return lines[:, 1:], [f"#{palette[i : i + 3].hex()}" for i in range(0, len(palette), 3)]


def test_a_png_has_its_pixels() -> None:
    pixels = np.arange(12, dtype=np.uint8).reshape(3, 4) % 3
    read, palette = pixels_of(png(pixels, ["#000000", "#ff8000", "#ffffff"]))
    assert (read == pixels).all()
    assert palette == ["#000000", "#ff8000", "#ffffff"]


def test_the_picture_has_a_bar_where_an_instruction_is() -> None:
    trace = synthetic(waves=1, iterations=2, jitter=0)
    pixels, palette = image(overview_svg(trace))
    first, last = int(trace.waves["start"][0]), int(trace.waves["end"][0])
    for event in trace.events:
        column = int((int(event["issue"]) + 1 - first) / (last - first) * pixels.shape[1])
        unit = trace.instructions[event["instruction"]].unit
        assert palette[pixels[0, column]] == UNIT_COLORS[unit]
    shown = {palette[number] for number in np.unique(pixels)}
    assert {REASON_COLORS[reason] for reason in np.unique(trace.events["reason"]) if reason} <= shown


def test_many_waves_are_counted_where_they_are_not_drawn() -> None:
    svg = overview_svg(synthetic(waves=MAX_ROWS + 5, iterations=1))
    assert "5 more rows of waves are not drawn" in svg
    assert len(overview_svg(synthetic(waves=64, iterations=60))) < 60_000


def test_waves_of_a_slot_share_a_row_unless_they_overlap() -> None:
    trace = synthetic(waves=3, iterations=1)
    waves = trace.waves.copy()
    waves["simd"], waves["slot"] = 0, 0
    waves["start"], waves["end"] = [10, 20, 25], [20, 30, 40]
    assert [one.waves for one in rows(dataclasses.replace(trace, waves=waves))] == [(0, 1), (2,)]


def test_two_traces_are_compared(read) -> None:
    before = synthetic(waves=4, iterations=10, jitter=0)
    after = synthetic(waves=4, iterations=10, jitter=0, loop=with_stall("s_waitcnt", 10))
    comparison = workbench.compare(before, after)
    assert comparison.names == ("before", "after")
    quantities = {quantity.name: quantity for quantity in comparison.quantities()}
    wait = quantities["waiting for LDS, cycles of a wave"]
    assert (wait.before, wait.after) == (1000, 100)
    assert wait.cells()[-1] == "-90.0%"
    place, _, _ = comparison.lines()[0]
    assert place.line == 21
    text = read(comparison._repr_html_()).text
    assert "-90.0%" in text
    assert "kernel.py:21" in text
    with pytest.raises(ArgumentError, match="a trace must be"):
        workbench.compare(before, "text")
    with pytest.raises(ArgumentError, match="no stages"):
        workbench.compare(before, after, 3)


def test_a_trace_is_opened_from_wherever_it_comes(trace: Trace, tmp_path: Path, read) -> None:
    saved = tmp_path / "trace.json"
    saved.write_text(trace.to_json())
    assert repr(workbench.timeline(saved)) == repr(workbench.timeline(trace))
    folder = tmp_path / "ui_output_agent_1_dispatch_1"
    folder.mkdir()
    write_folder(folder, trace)
    counters = tmp_path / "counter_collection.csv"
    counters.write_text(HEAD + row(1, "synthetic", "SQ_WAVES", 10) + row(1, "synthetic", "SQ_INSTS_LDS", 200))
    measured = workbench.timeline(str(folder), counters=counters, arch="gfx942")
    text = read(measured._repr_html_()).text
    assert "measured" in text
    assert "SQ_INSTS_LDS of a wave" in text
    assert workbench.timeline(trace, folder).names == ("rocprofv3", "model")
    for wrong, message in (
        (3, "got int"),
        (counters, "has counters, and no trace"),
        (tmp_path / "x", "must be a folder"),
    ):
        with pytest.raises(ArgumentError, match=message):
            workbench.timeline(wrong)
    with pytest.raises(ArgumentError, match="beside one trace"):
        workbench.timeline(trace, folder, counters=[counters])


def test_lines_of_the_source_are_shown(tmp_path: Path, read) -> None:
    source = tmp_path / "kernel.py"
    source.write_text("".join(f"line_{number} = {number}\n" for number in range(1, 40)))
    open_folder(source)  # a trace may come from anyone
    trace = synthetic(waves=2, iterations=3)
    placed = tuple(
        TracedInstruction(i.address, i.text, i.unit, str(source) if i.line else None, i.line)
        for i in trace.instructions
    )
    text = read(trace_html(dataclasses.replace(trace, instructions=placed))).text
    assert "21  line_21 = 21" in text
    assert str(tmp_path) not in text
