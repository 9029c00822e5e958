"""The runtime in C: how it is translated. What it does is held by the agreement of both backends."""

from pathlib import Path

import pytest

from flydsl.errors import SimulatorError
from flydsl.simulator.native import runtime
from flydsl.simulator.native.runtime import Translation, source
from flydsl.system.temporary_files import NoRoomError

TRIPLES = ["x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu", "arm64-apple-darwin"]


@pytest.mark.slow
@pytest.mark.parametrize("triple", TRIPLES)
@pytest.mark.parametrize("part", ["runtime", "counting", "tracing"])
def test_every_host_has_it_and_no_cpu_is_named(part: str, triple: str) -> None:
    """clang checks, too, that it lays the structures out as ctypes does."""
    llvm_ir = Translation(source(part), triple).result()
    assert "target-cpu" not in llvm_ir
    assert "target-features" not in llvm_ir
    assert "target triple" not in llvm_ir


def test_what_handlers_call_is_there() -> None:
    llvm_ir = Translation(source("runtime"), TRIPLES[0]).result()
    functions = ["leave", "resolve_scalar", "permute_lanes", "scatter_lanes"]
    functions += [f"resolve_{space}" for space in ("global", "lds", "scratch", "flat")]
    functions += [f"{move}{n}" for move in ("gather", "scatter") for n in (1, 2, 3, 4)]
    functions += [f"{move}_bytes{n}" for move in ("gather", "scatter") for n in (1, 2)]
    assert [f for f in functions if f"@{f}(" not in llvm_ir] == []


def test_clangs_words_are_in_the_error() -> None:
    with pytest.raises(SimulatorError, match="undeclared identifier 'nothing'"):
        Translation("int f(void) { return nothing; }", TRIPLES[0]).result()


def test_without_a_compiler_the_error_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtime, "find_zig", lambda: None)
    with pytest.raises(SimulatorError, match="pip install ziglang"):
        Translation(source("runtime"), TRIPLES[0])


def test_a_compiler_of_another_machine_is_an_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    zig = tmp_path / "zig"
    zig.write_bytes(b"\x7fELF of another machine")
    zig.chmod(0o755)
    monkeypatch.setattr(runtime, "find_zig", lambda: str(zig))
    with pytest.raises(SimulatorError, match="does not start: Exec format error"):
        Translation(source("runtime"), TRIPLES[0])


def test_no_room_for_the_source_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtime, "temporary_file", lambda: open("/dev/full", "w+b", buffering=0))  # noqa: SIM115
    with pytest.raises(NoRoomError, match="No space left"):
        Translation(source("runtime"), TRIPLES[0])


def test_no_room_for_what_clang_writes_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    zig = tmp_path / "zig"
    zig.write_text("#!/bin/sh\necho \"error: unable to write '-': 'No space left on device'\" >&2\nexit 1\n")
    zig.chmod(0o755)
    monkeypatch.setattr(runtime, "find_zig", lambda: str(zig))
    with pytest.raises(NoRoomError, match="unable to write '-'"):
        Translation(source("runtime"), TRIPLES[0]).result()
