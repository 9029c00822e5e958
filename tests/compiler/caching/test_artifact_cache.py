"""Whole artifacts on disk: a process finds what another one compiled, and never what would be something else now."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import flydsl.compiler as flyc
from flydsl.compiler import jit_function
from flydsl.compiler.caching import artifact_cache
from flydsl.compiler.caching.observation import observed
from flydsl.errors import CompileError, FlyError
from flydsl.system.disk_cache import RecordFolder
from tests.processes import run_python

pytestmark = [pytest.mark.slow, pytest.mark.artifacts_on_disk]

PROGRAM = """
import collections, dataclasses, enum, functools, os, types
import flydsl.compiler as flyc, flydsl.expr as fx
STEP = 1
TABLE = [1, 2]
@dataclasses.dataclass(frozen=True)
class Plan:
    step: int = 0
    @property
    def twice(self):
        return 2 * self.step
class Mode(enum.Enum):
    A = 1
PLAN = Plan()
config = types.SimpleNamespace(step=0)
COUNTER = collections.Counter()
half = functools.partial(max, 0)
def outer(step):
    def inner(value, more=0):
        return value + step + more
    return inner
inner = outer(0)
def helper(value):
    return inner(value) + STEP + TABLE[0] + PLAN.twice + config.step + half(0) + Mode.A.value + COUNTER["a"]
@flyc.kernel
def kernel(A: fx.Tensor, value: fx.Int32, n: fx.Constexpr[int]):
    A[fx.thread_idx.x] = (helper(value) + n).to(A.dtype)
@flyc.jit
def fill(A: fx.Tensor, value: fx.Int32, n: fx.Constexpr[int] = 0):
    kernel(A, value, n).launch(grid=1, block=64)
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the artifacts, empty at first. Machine code is found where it always is."""
    place = tmp_path / "cache" / "artifacts"
    monkeypatch.setattr(artifact_cache, "_folder", lambda: RecordFolder(place, artifact_cache._MAX_BYTES))
    return place


@pytest.fixture
def compiled(folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the launchers that were traced, in order."""
    names: list[str] = []
    trace = jit_function.trace

    def counted(function: Any, *rest: Any) -> Any:
        names.append(function.__name__)
        return trace(function, *rest)

    monkeypatch.setattr(jit_function, "trace", counted)
    return names


def process(program: str = PROGRAM) -> dict[str, Any]:
    """The names of a program that has been loaded anew, with nothing in memory of what it compiled before."""
    names: dict[str, Any] = {"__name__": "program"}
    exec(compile(program, "<program>", "exec", dont_inherit=True), names)
    return names


def filled(names: dict[str, Any], *arguments: Any) -> float:
    A = torch.zeros(64)
    names["fill"](A, *(arguments or (0,)))
    return float(A[0])


def test_a_second_process_neither_traces_nor_compiles(compiled: list[str]) -> None:
    assert [filled(process(), 5), filled(process(), 6), filled(process(), 7)] == [8, 9, 10]
    assert compiled == ["fill"]


CHANGES: dict[str, tuple[Callable[[dict[str, Any]], Any], float]] = {
    "global": (lambda names: names.update(STEP=5), 7),
    "type of a global": (lambda names: names.update(STEP=1.0), 3),
    "item of a list": (lambda names: names["TABLE"].__setitem__(0, 3), 5),
    "object": (lambda names: names.update(PLAN=names["Plan"](2)), 7),
    "attribute": (lambda names: setattr(names["config"], "step", 4), 7),
    "method": (lambda names: setattr(names["Plan"], "twice", 9), 12),
    "closure": (lambda names: names.update(inner=names["outer"](2)), 5),
    "default": (lambda names: setattr(names["inner"], "__defaults__", (3,)), 6),
    "partial": (lambda names: names.update(half=names["functools"].partial(max, 2)), 5),
    "state of a dict's subclass": (lambda names: names["COUNTER"].update("a"), 4),
    "shadowed builtin": (lambda names: names.update(half=lambda _: 8), 11),
}


@pytest.mark.parametrize("change", CHANGES)
def test_changed_surroundings_compile_anew(change: str, compiled: list[str]) -> None:
    apply, result = CHANGES[change]
    assert filled(process()) == 3
    changed = process()
    apply(changed)
    assert filled(changed) == result
    assert len(compiled) == 2
    assert filled(process()) == 3
    again = process()
    apply(again)
    assert filled(again) == result
    assert len(compiled) == 2


@pytest.mark.parametrize(
    ("before", "after", "result"),
    [
        ("value + step", "value - step - 1", 2),
        ("+ n)", "- n + 1)", 4),
        ("value: fx.Int32, n: fx.Constexpr[int]):", "value: fx.Int32, n: fx.Int32):", 3),
        ("return 2 * self.step", "return 2 * self.step + 1", 4),
        ("    A = 1", "    A = 6", 8),
        ("grid=1, block=64", "grid=1, block=32", 3),
        ("\nSTEP", "\n\nSTEP", 3),
    ],
)
def test_changed_source_compiles_anew(before: str, after: str, result: float, compiled: list[str]) -> None:
    assert before in PROGRAM
    filled(process())
    assert filled(process(PROGRAM.replace(before, after))) == result
    assert len(compiled) == 2


def test_arguments_have_artifacts_of_their_own(compiled: list[str]) -> None:
    calls = [(torch.zeros(64), 0), (torch.zeros(64).half(), 0), (torch.zeros(128)[::2], 0), (torch.zeros(64), 0, 1)]
    for _ in range(2):
        for call in calls:
            process()["fill"](*call)
            assert (call[0] == 3 + sum(call[2:])).all()
    assert len(compiled) == len(calls)


@pytest.mark.parametrize(("a", "b"), [((1,), (True,)), (0.0, -0.0), (1, True), ("1", 1), (None, False)], ids=str)
def test_constexprs_that_python_finds_equal(a: Any, b: Any, compiled: list[str]) -> None:
    program = PROGRAM.replace("n: fx.Constexpr[int] = 0", "other: fx.Constexpr, n: fx.Constexpr[int] = 0")
    for value in (a, b, a):
        filled(process(program), 0, value)
    assert len(compiled) == 2


@pytest.mark.parametrize(
    ("name", "value"), [("ARCH", "gfx950"), ("FLYDSL_COMPILE_OPT_LEVEL", "3"), ("FLYDSL_DEBUG_ENABLE_DEBUG_INFO", "1")]
)
def test_settings_compile_anew(name: str, value: str, compiled: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COMPILE_ONLY", "1")
    first = process()["fill"].compile(torch.zeros(64), 0)
    monkeypatch.setenv(name, value)
    second = process()["fill"].compile(torch.zeros(64), 0)
    assert second.code.arch.name == (value if name == "ARCH" else first.code.arch.name)
    assert len(compiled) == 2


def test_hints_compile_anew(compiled: list[str]) -> None:
    for hints in ({}, {"waves_per_eu": 2}, {"waves_per_eu": 2}):
        flyc.compile[hints](process()["fill"], torch.zeros(64), 0)
    assert len(compiled) == 2


# --- what a trace reads from outside ---------------------------------------------------------------------------------

READS = """
import os, pathlib
import flydsl.compiler as flyc, flydsl.expr as fx
def step():
    return {read}
@flyc.kernel
def kernel(A: fx.Tensor):
    A[fx.thread_idx.x] = float(step())
@flyc.jit
def fill(A: fx.Tensor, value: fx.Int32):
    kernel(A).launch(grid=1, block=64)
"""
ENVIRONMENT_READS = [
    'os.environ.get("SOME_STEP", 0)',
    'os.getenv("SOME_STEP") or 0',
    'os.environ["SOME_STEP"] if "SOME_STEP" in os.environ else 0',
    'dict(os.environ).get("SOME_STEP", 0)',
    'getattr(os, "envi" + "ron").get("SOME" + "_STEP", 0)',
    'os.path.expandvars("$SOME_STEP").replace("$SOME_STEP", "0")',
]


@pytest.mark.parametrize("read", ENVIRONMENT_READS)
def test_variables_that_a_trace_reads(read: str, compiled: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SOME_STEP", raising=False)
    program = READS.format(read=read)
    assert filled(process(program)) == filled(process(program)) == 0
    monkeypatch.setenv("SOME_STEP", "3")
    assert filled(process(program)) == filled(process(program)) == 3
    assert len(compiled) == 2


def test_the_environment_is_as_it_was_after_a_trace(compiled: list[str]) -> None:
    environment, opened = type(os.environ).__getitem__, open
    filled(process(READS.format(read='os.environ.get("SOME_STEP", 0)')))
    assert type(os.environ).__getitem__ is environment
    assert open is opened


@pytest.mark.parametrize(
    "read", ['open("{0}").read()', 'pathlib.Path("{0}").read_text()', 'os.fspath(open("{0}").read())']
)
def test_files_that_a_trace_reads(read: str, compiled: list[str], tmp_path: Path) -> None:
    table = tmp_path / "table"
    table.write_text("1")
    program = READS.replace("{read}", read.format(table))
    assert filled(process(program)) == filled(process(program)) == 1
    table.write_text("12")
    assert filled(process(program)) == filled(process(program)) == 12
    assert len(compiled) == 2


def test_a_file_that_appears(compiled: list[str], tmp_path: Path) -> None:
    reading = "read()\ndef read():\n    try:\n        return open({0!r}).read()\n    except OSError:\n        return 0"
    program = READS.replace("{read}", reading.format(str(tmp_path / "table")))
    assert filled(process(program)) == filled(process(program)) == 0
    (tmp_path / "table").write_text("4")
    assert filled(process(program)) == 4


def test_an_error_of_open_is_the_users(compiled: list[str]) -> None:
    with pytest.raises(FileNotFoundError) as caught:
        filled(process(READS.replace("{read}", 'open("/nowhere/at/all")')))
    assert [frame.path for frame in caught.traceback if "flydsl" in str(frame.path)][1:] == []


def test_traces_of_two_threads_keep_their_inputs_apart() -> None:
    first, second = observed(), observed()
    of_first = first.__enter__()
    second.__enter__()
    second.__exit__(None, None, None)
    with open(__file__):
        pass
    first.__exit__(None, None, None)
    assert list(of_first.files) == [__file__]


@pytest.mark.parametrize("state", ["threading.Lock()", "(i for i in ())", "open(os.devnull)"])
def test_an_object_that_says_nothing_of_its_state_is_not_kept(state: str, compiled: list[str], folder: Path) -> None:
    program = READS.format(read="float(STATE is None)") + f"\nimport threading\nSTATE = {state}"
    assert filled(process(program)) == filled(process(program)) == 0
    assert len(compiled) == 2
    assert not list(folder.glob("*"))


# --- the folder ------------------------------------------------------------------------------------------------------


def the_file(folder: Path) -> Path:
    (file,) = folder.iterdir()
    return file


IN_ITS_PLACE: dict[str, Callable[[Path, bytes], Any]] = {
    "a directory": lambda path, _: path.mkdir(),
    "nothing": lambda path, _: None,
    "half of it": lambda path, content: path.write_bytes(content[: len(content) // 2]),
    "a flipped bit": lambda path, content: path.write_bytes(content[:-9] + bytes([content[-9] ^ 1]) + content[-8:]),
    "another's": lambda path, content: (path.write_bytes(content), path.chmod(0o666)),
}


@pytest.mark.parametrize("what", IN_ITS_PLACE)
def test_anything_may_lie_in_its_place(what: str, compiled: list[str], folder: Path) -> None:
    filled(process())
    file = the_file(folder)
    content = file.read_bytes()
    file.unlink()
    IN_ITS_PLACE[what](file, content)
    assert filled(process(), 2) == 5
    assert len(compiled) == 2


@pytest.mark.parametrize("field", ["arch", "code", "module", "kernels", "hints", "times_ms", "observation"])
def test_a_record_that_is_none_of_ours(field: str, compiled: list[str], folder: Path) -> None:
    filled(process())
    name, records = the_file(folder).name, RecordFolder(folder, 1 << 30)
    record = records.find(name)
    assert record is not None
    for count, value in enumerate((None, [], b"garbage", "garbage", {"a": 1}, 7), start=2):
        records.add(name, {**record, field: value})
        assert filled(process(), 2) == 5
        assert len(compiled) == count, value


def test_a_folder_that_cannot_be_written(compiled: list[str], folder: Path) -> None:
    folder.parent.mkdir()
    folder.write_text("a file")
    assert filled(process()) == filled(process()) == 3
    assert len(compiled) == 2


@pytest.mark.skipif(os.getuid() == 0, reason="root may write everywhere")
def test_a_folder_that_may_only_be_read(compiled: list[str], folder: Path) -> None:
    filled(process())
    folder.chmod(0o500)
    assert filled(process()) == 3
    filled(process(), 0, 1)
    assert len(compiled) == 2


def test_the_folder_is_bounded(compiled: list[str], folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    filled(process())
    monkeypatch.setattr(artifact_cache, "_MAX_BYTES", 3 * the_file(folder).stat().st_size)
    for n in range(5):
        filled(process(), 0, n)
    assert sum(file.stat().st_size for file in folder.iterdir()) <= 3 * max(f.stat().st_size for f in folder.iterdir())
    assert filled(process(), 0, 4) == 7
    assert len(compiled) == 5


def test_a_notebooks_cells_are_not_kept(compiled: list[str], folder: Path) -> None:
    names: dict[str, Any] = {"__name__": "program"}
    exec(compile(PROGRAM, "/tmp/ipykernel_123/456.py", "exec", dont_inherit=True), names)
    assert filled(names) == 3
    assert not folder.exists()


def test_the_cache_can_be_turned_off(compiled: list[str], folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLYDSL_RUNTIME_ENABLE_CACHE", "0")
    filled(process())
    assert not folder.exists()


def test_run_only(compiled: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    filled(process())
    monkeypatch.setenv("FLYDSL_RUNTIME_RUN_ONLY", "1")
    assert filled(process(), 3) == 6
    with pytest.raises(CompileError, match="fill is not in the cache"):
        filled(process(), 0, 1)


# --- what an artifact from disk shows --------------------------------------------------------------------------------


def test_it_shows_what_a_compiled_one_shows(compiled: list[str]) -> None:
    first, second = (process()["fill"].compile(torch.zeros(64), 0) for _ in range(2))
    assert second.isa == first.isa
    assert second.hsaco == first.hsaco
    assert second.code.optimized_llvm_ir == first.code.optimized_llvm_ir
    assert second.kernels[0].resources == first.kernels[0].resources
    assert len(compiled) == 1
    mine, kept = first.pipeline, second.pipeline
    assert repr(kept) == repr(mine)
    assert [stage.after for stage in kept] == [stage.after for stage in mine]
    assert kept["fly-layout-lowering"].diff == mine["fly-layout-lowering"].diff


def test_a_capture_sees_a_compilation(compiled: list[str]) -> None:
    filled(process())
    with flyc.capture_launches() as launches:
        filled(process())
    assert compiled == ["fill"] * 2
    assert launches[0].pipeline.finished


def test_printf_survives(compiled: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    program = PROGRAM.replace("    A[fx", '    fx.printf("value {}", value)\n    A[fx')
    filled(process(program), 4)
    first = capsys.readouterr().out
    filled(process(program), 4)
    assert capsys.readouterr().out == first == "value 4\n" * 64
    assert len(compiled) == 1


def test_an_error_names_the_line_of_the_launch(compiled: list[str]) -> None:
    program = PROGRAM.replace("block=64", "block=value").replace("grid=1", "grid=(1, 1, 1)")
    messages = []
    for _ in range(2):
        names = process(program)
        names["fill"](torch.zeros(64), 64)
        with pytest.raises(FlyError) as caught:
            names["fill"](torch.zeros(64), 4096)
        messages.append(str(caught.value))
    assert messages[0] == messages[1]
    assert "<program>:" in messages[0]
    assert len(compiled) == 1


# --- real processes --------------------------------------------------------------------------------------------------

SCRIPT = textwrap.dedent(
    """
    import sys, torch
    import flydsl.compiler as flyc, flydsl.expr as fx
    from flydsl.compiler import jit_function
    traced, trace = [], jit_function.trace
    jit_function.trace = lambda *arguments: traced.append(1) or trace(*arguments)

    BLOCK = 64
    @flyc.kernel
    def kernel(A: fx.Tensor, n: fx.Int32):
        for i in range(fx.thread_idx.x, n, BLOCK):
            A[i] = A[i] + 1.0
    @flyc.jit
    def add(A: fx.Tensor, n: fx.Int32):
        kernel(A, n).launch(grid=1, block=BLOCK)

    A = torch.zeros(100)
    add(A, 100)
    print(len(traced), A.unique().tolist())
    """
)


@pytest.mark.slow
def test_processes_share_artifacts(tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    environment = os.environ | {"FLYDSL_RUNTIME_CACHE_DIR": str(tmp_path / "cache")}
    environment["FLYDSL_SIMULATOR_BACKEND"] = "lockstep"

    def starting() -> subprocess.Popen[str]:
        return subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True, env=environment)

    script.write_text(SCRIPT)
    racing = [starting() for _ in range(2)]
    printed = [process.communicate(timeout=300)[0].strip() for process in racing]
    assert [line.partition(" ")[2] for line in printed] == ["[1.0]"] * 2
    assert starting().communicate(timeout=300)[0].strip() == "0 [1.0]"
    script.write_text(SCRIPT.replace("+ 1.0", "+ 2.0"))
    assert run_python(script, env=environment).stdout.strip() == "1 [2.0]"


def test_copies_of_this_package_have_one_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def version(place: Path, source: str) -> str:
        (place / "part").mkdir(parents=True)
        (place / "part" / "module.py").write_text(source)
        monkeypatch.setattr(artifact_cache, "_ROOT", place)
        return artifact_cache.tools_version.__wrapped__()

    here = version(tmp_path / "here", "x = 1")
    assert version(tmp_path / "far" / "away", "x = 1") == here
    assert version(tmp_path / "changed", "x = 2") != here
