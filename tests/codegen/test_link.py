from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from flydsl.arch import GFX942
from flydsl.codegen import link as link_module
from flydsl.codegen import llvm, pending_tool
from flydsl.codegen.assemble import assemble
from flydsl.codegen.link import PendingLink, find_linkers, link
from flydsl.errors import CompileError
from flydsl.hsaco import read_hsaco


@pytest.fixture
def obj(vector_add: str) -> bytes:
    return assemble(llvm.compile_module(vector_add, GFX942, 2).listing, GFX942)


@pytest.fixture(autouse=True)
def no_linker_refused_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link_module, "_refused", set())


def fake_lld(directory: Path, message: str) -> Path:
    """A linker that fails with a message and counts its calls in a file beside it."""
    directory.mkdir(parents=True)
    lld = directory / "ld.lld"
    lld.write_text(f"#!/bin/sh\necho called >> {directory}/calls\necho '{message}' >&2\nexit 1\n")
    lld.chmod(0o755)
    return lld


def test_rocms_linker_comes_first_and_ziglangs_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rocm = fake_lld(tmp_path / "rocm" / "llvm" / "bin", "")
    system = fake_lld(tmp_path / "bin", "")
    monkeypatch.setenv("ROCM_PATH", str(tmp_path / "rocm"))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    linkers = list(find_linkers())
    assert linkers[0] == (str(rocm),)
    assert (str(system),) in linkers
    assert linkers[-1][0].endswith("zig")
    assert linkers[-1][1:] == ("ld.lld",)


def test_a_linker_that_refuses_is_passed_over_and_not_asked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, obj: bytes
) -> None:
    fake_lld(tmp_path / "rocm" / "llvm" / "bin", "unknown abi version")
    monkeypatch.setenv("ROCM_PATH", str(tmp_path / "rocm"))
    for _ in range(2):
        assert set(read_hsaco(link(obj)).kernels) == {"vector_add"}
    assert (tmp_path / "rocm" / "llvm" / "bin" / "calls").read_text() == "called\n"


def test_a_linker_without_an_end_is_ended_and_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lld = fake_lld(tmp_path / "bin", "")
    lld.write_text("#!/bin/sh\nexec sleep 600\n")
    monkeypatch.setattr(pending_tool, "SECONDS", 0.1)
    monkeypatch.setattr(link_module, "find_linkers", lambda: iter([(str(lld),)]))
    with pytest.raises(CompileError, match="timed out"):
        link(b"")


def test_no_linker_at_all(monkeypatch: pytest.MonkeyPatch, obj: bytes) -> None:
    def none() -> Iterator[tuple[str, ...]]:
        return iter(())

    monkeypatch.setattr(link_module, "find_linkers", none)
    with pytest.raises(CompileError, match="ziglang"):
        link(obj)


def test_only_object_files_are_linked() -> None:
    with pytest.raises(CompileError, match=r"ld\.lld"):
        link(b"not an object")


def test_a_fork_meanwhile_does_not_keep_the_end_of_the_object_from_the_linker(obj: bytes) -> None:
    reader, writer = os.pipe()
    with PendingLink() as pending:
        child = os.fork()
        if child == 0:  # it outlives the link
            os.close(writer)
            os.read(reader, 1)
            os._exit(0)
        try:
            assert set(read_hsaco(pending.finish(obj)).kernels) == {"vector_add"}
        finally:
            os.close(writer)
            os.waitpid(child, 0)
            os.close(reader)


def test_a_linker_whose_object_never_comes_is_ended() -> None:
    with PendingLink() as pending:
        assert pending._tool is not None
        process = pending._tool._process
    assert process.returncode is not None
    with pytest.raises(ChildProcessError):
        os.waitpid(process.pid, 0)


def test_a_linker_that_cannot_be_started_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, obj: bytes
) -> None:
    lld = fake_lld(tmp_path / "rocm" / "llvm" / "bin", "")
    lld.write_text("#!/no/such/program\n")
    monkeypatch.setenv("ROCM_PATH", str(tmp_path / "rocm"))
    assert set(read_hsaco(link(obj)).kernels) == {"vector_add"}
    assert link_module._refused == {(str(lld),)}
