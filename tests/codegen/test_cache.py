"""Compiled code on disk: what comes out of the cache is what LLVM made of the same input, or nothing does."""

from __future__ import annotations

import hashlib
import os
from base64 import urlsafe_b64encode
from importlib.metadata import Distribution
from pathlib import Path

import pytest

from flydsl.arch import get_arch
from flydsl.codegen import CodeObject, compile_llvm_ir
from flydsl.codegen.cache import recorded_digest
from flydsl.errors import CompileError
from tests.codegen.conftest import VECTOR_ADD


@pytest.fixture(autouse=True)
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("FLYDSL_RUNTIME_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("FLYDSL_RUNTIME_ENABLE_CACHE", "1")
    return tmp_path / "code"


def compiled(arch: str = "gfx942", llvm_ir: str = VECTOR_ADD, **options: object) -> CodeObject:
    return compile_llvm_ir(llvm_ir, get_arch(arch), **options)  # type: ignore[arg-type]


def test_the_second_time_gives_the_same_from_the_cache() -> None:
    first, second = compiled(), compiled()
    assert (first.from_cache, second.from_cache) == (False, True)
    assert (first.hsaco, first.listing, first.bitcode) == (second.hsaco, second.listing, second.bitcode)
    assert first.optimized_llvm_ir == second.optimized_llvm_ir
    assert first.kernels[0].resources == second.kernels[0].resources


@pytest.mark.parametrize(
    "other",
    [{"arch": "gfx950"}, {"opt_level": 1}, {"debug_info": True}, {"llvm_ir": VECTOR_ADD.replace("fadd", "fsub")}],
    ids=lambda other: next(iter(other)),
)
def test_what_decides_the_code_is_part_of_the_name(other: dict[str, object]) -> None:
    compiled()
    assert not compiled(**other).from_cache  # type: ignore[arg-type]


@pytest.mark.parametrize("damage", [b"", b"garbage", None], ids=["empty", "garbage", "changed"])
def test_a_damaged_entry_is_compiled_anew_and_replaced(folder: Path, damage: bytes | None) -> None:
    first = compiled()
    (entry,) = folder.iterdir()
    whole = entry.read_bytes()
    entry.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]) if damage is None else damage)
    again = compiled()
    assert not again.from_cache
    assert again.hsaco == first.hsaco
    assert entry.read_bytes() == whole


def test_it_can_be_turned_off(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    monkeypatch.setenv("FLYDSL_RUNTIME_ENABLE_CACHE", "0")
    assert not compiled().from_cache
    assert not compiled().from_cache
    assert not folder.exists()


def test_what_does_not_compile_is_not_kept(folder: Path) -> None:
    for _ in range(2):
        with pytest.raises(CompileError, match="LLVM does not accept"):
            compiled(llvm_ir=VECTOR_ADD.replace("fadd float", "fadd flaot"))
    assert not folder.exists() or not list(folder.iterdir())


def test_the_installers_digest_counts_until_the_file_changes(tmp_path: Path) -> None:
    library, info = tmp_path / "tool" / "lib.so", tmp_path / "tool-1.dist-info"
    library.parent.mkdir()
    info.mkdir()
    library.write_bytes(b"LLVM")
    digest = hashlib.sha256(b"LLVM")
    written = urlsafe_b64encode(digest.digest()).decode().rstrip("=")
    (info / "RECORD").write_text(f"tool/lib.so,sha256={written},4\ntool/other.so,,\ntool-1.dist-info/RECORD,,\n")
    package = Distribution.at(info)
    os.utime(library, (1, 1))
    assert recorded_digest(library, package) == digest.hexdigest()

    assert recorded_digest(tmp_path / "tool" / "other.so", package) is None
    library.write_bytes(b"LLV2")  # of the same size, but later
    os.utime(info / "RECORD", (1, 1))
    assert recorded_digest(library, package) is None
    library.write_bytes(b"longer")
    os.utime(library, (0, 0))
    assert recorded_digest(library, package) is None
