"""A cache folder is private, bounded, and never in the way."""

from __future__ import annotations

import os
from pathlib import Path

from flydsl.disk_cache import CacheFolder


def test_what_was_written_is_read(tmp_path: Path) -> None:
    assert CacheFolder(tmp_path / "c", 1000).write("a", b"one")
    assert CacheFolder(tmp_path / "c", 1000).read("a") == b"one"
    assert CacheFolder(tmp_path / "c", 1000).read("b") is None


def test_files_that_were_not_used_for_longest_go_first(tmp_path: Path) -> None:
    folder = CacheFolder(tmp_path / "c", 1000)
    for age, name in enumerate(("new", "middle", "old")):
        folder.write(name, bytes(300))
        os.utime(tmp_path / "c" / name, (1000 - age, 1000 - age))
    folder.read("old")
    folder.write("newest", bytes(300))
    assert {path.name for path in (tmp_path / "c").iterdir()} == {"old", "newest"}


def test_files_that_others_could_have_written_are_not_read(tmp_path: Path) -> None:
    folder = CacheFolder(tmp_path / "c", 1000)
    folder.write("a", b"one")
    (tmp_path / "c" / "a").chmod(0o622)
    assert folder.read("a") is None


def test_a_link_is_not_followed_out_of_the_folder(tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(b"secret")
    folder = CacheFolder(tmp_path / "c", 1000)
    folder.link("a", "../secret")
    assert folder.target("a") == "../secret"
    assert folder.read("a") is None


def test_a_folder_that_cannot_be_used_holds_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    folder = CacheFolder(tmp_path / "file", 1000)
    assert not folder.write("a", b"one")
    assert folder.read("a") is None
    assert folder.target("a") is None
    folder.link("a", "b")
