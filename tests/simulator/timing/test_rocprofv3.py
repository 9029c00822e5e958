"""A folder of `rocprofv3 --att` becomes the trace that it was written from; what is malformed is one clear error."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

from flydsl.errors import ArgumentError
from flydsl.simulator.timing import Stall, Trace, Unit
from flydsl.simulator.timing.rocprofv3 import read_thread_trace, unit_of_text
from tests.simulator.timing.rocprof_folder import write_folder
from tests.simulator.timing.synthetic import LOOP, PROLOGUE, synthetic


@pytest.fixture
def original() -> Trace:
    return synthetic(waves=4, iterations=3, seed=1)


@pytest.fixture
def folder(tmp_path: Path, original: Trace) -> Path:
    return write_folder(tmp_path, original)


def test_waves_instructions_and_events_are_those_of_the_original(folder: Path, original: Trace) -> None:
    read = read_thread_trace(folder)
    assert read.kernel == "synthetic"
    assert read.origin == "rocprofv3"
    assert read.arch == "gfx9"
    assert read.clock_mhz == pytest.approx(2100)
    assert [i.text for i in read.instructions[:-1]] == [i.text for i in original.instructions]
    assert [i.unit for i in read.instructions[:-1]] == [i.unit for i in original.instructions]
    assert [(i.file, i.line) for i in read.instructions[:-1]] == [(i.file, i.line) for i in original.instructions]
    for name in ("wave", "instruction", "issue", "stall"):
        assert (read.events[name] == original.events[name]).all(), name
    for name in ("simd", "slot", "start"):
        assert (read.waves[name] == original.waves[name]).all(), name
    assert read.cycles == int(original.waves["end"].max() - original.waves["start"].min())
    assert "4 waves on CU 1 of shader engine 0, of 4" in read.sampling
    assert Trace.from_json(read.to_json()).instructions == read.instructions


def test_stalls_have_the_reason_of_their_instruction(folder: Path) -> None:
    read = read_thread_trace(folder)
    stalled = {read.instructions[e["instruction"]].text: Stall(e["reason"]) for e in read.events if e["stall"]}
    assert stalled[LOOP[4].text] is Stall.MATRIX_BUSY
    assert stalled["s_barrier"] is Stall.BARRIER
    scalar, lds = len(PROLOGUE) - 1, len(PROLOGUE) + 2  # the same text, for loads of two kinds
    reasons = {int(e["instruction"]): Stall(e["reason"]) for e in read.events}
    assert (reasons[scalar], reasons[lds]) == (Stall.WAIT_SCALAR, Stall.WAIT_LDS)


def test_a_read_from_lds_lasts_until_the_wait_for_it(folder: Path) -> None:
    read = read_thread_trace(folder)
    row = int(np.flatnonzero(read.events["instruction"] == len(PROLOGUE) + 1)[0])
    wait = read.events[row + 1]
    assert read.events["latency"][row] == int(wait["issue"]) - int(read.events["issue"][row])


def test_the_source_is_that_of_the_folder(folder: Path, original: Trace) -> None:
    (folder / "source_0_kernel.py").write_text("first\n")
    (folder / "snapshots.json").write_text(json.dumps({"/": {"src": {"kernel.py": "source_0_kernel.py"}}}))
    assert read_thread_trace(folder).instructions[0].file == str(folder / "source_0_kernel.py")


def test_the_clock_is_what_is_known(folder: Path) -> None:
    assert read_thread_trace(folder, clock_mhz=1000).clock_mhz == 1000
    (folder / "realtime.json").unlink()
    assert read_thread_trace(folder, arch="gfx950").clock_mhz == 2400
    assert read_thread_trace(folder, arch="gfx950").arch == "gfx950"
    assert math.isnan(read_thread_trace(folder).clock_mhz)
    with pytest.raises(ArgumentError, match="a positive number, got -1"):
        read_thread_trace(folder, clock_mhz=-1)


def test_only_code_and_waves_are_needed(folder: Path) -> None:
    for name in ("filenames.json", "occupancy.json", "realtime.json"):
        (folder / name).unlink()
    read = read_thread_trace(folder)
    assert (read.arch, read.kernel, len(read.waves)) == ("unknown", "synthetic", 4)


def test_an_instruction_that_is_not_in_the_code_is_shown_as_such(folder: Path) -> None:
    file = folder / "se0_sm0_sl0_wv0.json"
    content = json.loads(file.read_text())
    content["wave"]["instructions"][0][4] = 9999
    file.write_text(json.dumps(content))
    read = read_thread_trace(folder)
    assert "did not find" in read.instructions[read.events["instruction"][0]].text


def changed(file: str, *path: str | int, to: object):
    """A function that puts another value into a file of a folder."""

    def change(folder: Path) -> None:
        content = json.loads((folder / file).read_text())
        inner = content
        for step in path[:-1]:
            inner = inner[step]
        inner[path[-1]] = to
        (folder / file).write_text(json.dumps(content))

    return change


WAVE = "se0_sm0_sl0_wv0.json"
MISTAKES = {
    "code is a text": (changed("code.json", "code", to="text"), r"code.json: code is 'text'"),
    "a line is short": (changed("code.json", "code", 3, to=["s_nop 0"]), r"code\[3\] is \['s_nop 0'\]"),
    "a number is a text": (changed("code.json", "code", 2, 2, to="two"), r"code\[2\] is 'two'"),
    "an address is negative": (changed("code.json", "code", 2, 5, to=-8), r"code\[2\] is -8"),
    "a wave is a list": (changed(WAVE, "wave", to=[]), r"wv0.json: wave is \[\]"),
    "a wave ends before it begins": (changed(WAVE, "wave", "end", to=0), r"wave.end is 0"),
    "an instruction is short": (changed(WAVE, "wave", "instructions", 0, to=[1, 2]), r"instructions\[0\] is \[1, 2\]"),
    "a time is a fraction": (changed(WAVE, "wave", "instructions", 1, 0, to=1.5), r"instructions\[1\] is 1.5"),
    "a stall is huge": (changed(WAVE, "wave", "instructions", 1, 2, to=1 << 40), r"instructions\[1\] is \["),
    "a cu is huge": (changed(WAVE, "wave", "cu", to=1 << 40), r"of CU 1099511627776"),
    "occupancy is short": (changed("occupancy.json", "0", 0, to=[1]), r"occupancy.json: 0\[0\] is \[1\]"),
    "no JSON": (lambda folder: (folder / WAVE).write_text('{"wave": '), r"wv0.json is not JSON"),
    "JSON without an end": (lambda folder: (folder / "code.json").write_text("[" * 100_000), r"code.json is not JSON"),
    "other bytes": (lambda folder: (folder / "code.json").write_bytes(b"\xff\xfe\x00"), r"code.json is not JSON"),
    "no code": (lambda folder: (folder / "code.json").unlink(), r"there is no code.json"),
    "a snapshot elsewhere": (
        lambda folder: (folder / "snapshots.json").write_text('{"a.py": "../../secret"}'),
        r"snapshots.json: a.py is '../../secret'",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_what_is_malformed_is_an_error_that_names_it(mistake: str, folder: Path) -> None:
    change, text = MISTAKES[mistake]
    change(folder)
    with pytest.raises(ArgumentError, match=text):
        read_thread_trace(folder)


def test_a_folder_without_waves_says_where_they_are(tmp_path: Path, original: Trace) -> None:
    inside = tmp_path / "ui_output_agent_1_dispatch_2"
    inside.mkdir()
    write_folder(inside, original)
    with pytest.raises(ArgumentError, match=r"ui_output_agent_1_dispatch_2"):
        read_thread_trace(tmp_path)
    with pytest.raises(ArgumentError, match="must be a folder"):
        read_thread_trace(tmp_path / "missing")


@pytest.mark.parametrize(
    ("text", "unit"),
    [
        ("v_exp_f32_e32 v0, v1", Unit.TRANSCENDENTAL),
        ("v_wmma_f32_16x16x16_f16 v[0:7], v[8:11], v[12:15], v[0:7]", Unit.MATRIX),
        ("buffer_load_dwordx4 v[0:3], v4, s[0:3], 0 offen lds", Unit.VECTOR_MEMORY),
        ("s_buffer_load_dword s0, s[0:3], 0x0", Unit.SCALAR_MEMORY),
        ("s_cbranch_scc0 12", Unit.BRANCH),
        ("s_wait_loadcnt 0x0", Unit.MESSAGE),
        ("s_cmp_eq_u32 s0, 0", Unit.SCALAR),
        ("v_cndmask_b32_e32 v0, v1, v2, vcc", Unit.VALU),
    ],
)
def test_units_by_name(text: str, unit: Unit) -> None:
    assert unit_of_text(text) is unit
