from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from flydsl.arch import get_arch
from flydsl.codegen import link as link_module
from flydsl.codegen import llvm
from flydsl.codegen.link import find_linkers, link
from flydsl.errors import CompileError
from flydsl.hsaco import read_hsaco


@pytest.fixture
def obj(vector_add: str) -> bytes:
    return llvm.compile_module(vector_add, get_arch("gfx942"), 2).obj


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
    monkeypatch.setattr(link_module, "_SECONDS", 0.1)
    monkeypatch.setattr(link_module, "find_linkers", lambda: iter([(str(lld),)]))
    with pytest.raises(CompileError, match="timed out"):
        link(b"")


def test_no_linker_at_all(monkeypatch: pytest.MonkeyPatch, obj: bytes) -> None:
    def none() -> Iterator[tuple[str, ...]]:
        return iter(())

    monkeypatch.setattr(link_module, "find_linkers", none)
    with pytest.raises(CompileError, match="ziglang"):
        link(obj)


def test_what_is_not_an_object_is_refused() -> None:
    with pytest.raises(CompileError, match=r"ld\.lld"):
        link(b"not an object")
