"""The counters' CSV of rocprofv3, and the trace beside it."""

from __future__ import annotations

from pathlib import Path

import pytest

from flydsl.errors import ArgumentError
from flydsl.simulator.timing.rocprofv3_counters import compared, of_kernel, read_counters
from tests.simulator.timing.synthetic import synthetic

HEAD = (
    '"Correlation_Id","Dispatch_Id","Agent_Id","Queue_Id","Process_Id","Thread_Id","Grid_Size","Kernel_Id",'
    '"Kernel_Name","Workgroup_Size","LDS_Block_Size","Scratch_Size","VGPR_Count","Accum_VGPR_Count","SGPR_Count",'
    '"Counter_Name","Counter_Value","Start_Timestamp","End_Timestamp"\n'
)


def row(dispatch: int, kernel: str, counter: str, value: object, end: int = 3000) -> str:
    return f'1,{dispatch},"Agent 4",1,9,9,1024,7,"{kernel}",256,0,0,8,0,16,"{counter}",{value},1000,{end}\n'


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "counter_collection.csv"
    rows = [
        row(2, "synthetic.kd", "SQ_WAVES", 100),
        row(2, "synthetic.kd", "SQ_INSTS_MFMA", 1600),
        row(2, "synthetic.kd", "GRBM_COUNT", "4.5e3"),
        row(1, "void other<int, 2>(float)", "SQ_WAVES", 5),
    ]
    path.write_text(HEAD + "".join(rows))
    return path


def test_dispatches_are_read(file: Path) -> None:
    other, mine = read_counters(file)
    assert (other.dispatch, other.kernel, other.counters) == (1, "void other<int, 2>(float)", {"SQ_WAVES": 5})
    assert mine.counters == {"SQ_WAVES": 100, "SQ_INSTS_MFMA": 1600, "GRBM_COUNT": 4500}
    assert mine.time_us == 2.0
    assert of_kernel([other, mine], "synthetic") == [mine]
    assert of_kernel([other, mine], "unknown") == [other, mine]


def test_passes_of_a_dispatch_are_put_together(file: Path, tmp_path: Path) -> None:
    second = tmp_path / "second.csv"
    second.write_text(HEAD + row(2, "synthetic.kd", "SQ_INSTS_LDS", 3, end=9000))
    mine = read_counters(file, second)[1]
    assert mine.counters["SQ_INSTS_LDS"] == 3
    assert mine.time_us == 2.0


def test_the_trace_stands_beside_what_was_measured(file: Path) -> None:
    trace = synthetic(waves=4, iterations=8)
    found = {one.name: one for one in compared(trace, read_counters(file)[1])}
    assert found["time"].traced == trace.time_us
    mfma = found["SQ_INSTS_MFMA of a wave"]
    assert (mfma.measured, mfma.traced, mfma.error_percent) == (16, 16, 0)
    assert found["GRBM_COUNT"].traced is None
    assert found["GRBM_COUNT"].error_percent is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b\n1,2\n", "no column Dispatch_Id"),
        ("", "no column Dispatch_Id"),
        (HEAD + row(1, "k", "SQ_WAVES", "many"), ":2: Counter_Value must be a number, got 'many'"),
        (HEAD + row(1, "k", "SQ_WAVES", "nan"), ":2: Counter_Value must be a number, got 'nan'"),
        (HEAD + "1,2,3\n", ":2: a row of"),
        (HEAD + '1,"unfinished', "cannot be read"),
    ],
)
def test_what_is_malformed_is_an_error_that_names_it(text: str, message: str, tmp_path: Path) -> None:
    file = tmp_path / "bad.csv"
    file.write_text(text)
    with pytest.raises(ArgumentError, match=message):
        read_counters(file)


def test_a_file_that_is_missing(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match="cannot be read"):
        read_counters(tmp_path / "missing.csv")
