"""A cache folder is private, bounded, and never in the way."""

from __future__ import annotations

import errno
import os
import stat
import threading
from pathlib import Path

import pytest

from flydsl.system import disk_cache
from flydsl.system.disk_cache import CacheFolder, RecordFolder


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


def test_many_small_files_stay_near_the_bound(tmp_path: Path) -> None:
    folder = CacheFolder(tmp_path / "c", 1 << 20)
    for number in range(400):
        folder.write(str(number), bytes(1 << 12))
    assert sum(path.stat().st_size for path in (tmp_path / "c").iterdir()) <= 1.25 * (1 << 20)


def test_small_writes_rarely_look_at_the_whole_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, looks = CacheFolder(tmp_path / "c", 1 << 24), []
    monkeypatch.setattr("os.scandir", lambda path, scan=os.scandir: looks.append(path) or scan(path))
    for number in range(400):
        folder.write(str(number), bytes(1 << 12))
    assert len(looks) < 100


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


IN_A_FILES_PLACE = {
    "a directory": lambda path: path.mkdir(),
    "a full directory": lambda path: (path / "inner").mkdir(parents=True),
    "a named pipe": os.mkfifo,
    "a link to itself": lambda path: path.symlink_to(path.name),
    "an unreadable file": lambda path: path.touch(mode=0),
    "an empty file": lambda path: path.touch(mode=0o600),
}


@pytest.mark.parametrize("what", IN_A_FILES_PLACE)
def test_anything_may_stand_in_a_files_place(what: str, tmp_path: Path) -> None:
    folder = CacheFolder(tmp_path / "c", 1000)
    folder.write("other", b"one")
    IN_A_FILES_PLACE[what](tmp_path / "c" / "a")
    assert not folder.read("a")
    is_written = folder.write("a", b"two")
    assert folder.read("a") == (b"two" if is_written else None)
    assert folder.read("other") == b"one"
    folder.link("a", "other")
    assert not [path.name for path in (tmp_path / "c").iterdir() if path.name.startswith(".")]


@pytest.mark.parametrize("umask", [0, 0o22, 0o77])
def test_folders_are_private_whatever_the_umask(umask: int, tmp_path: Path) -> None:
    previous = os.umask(umask)
    try:
        assert CacheFolder(tmp_path / "a" / "b" / "c", 1000).write("a", b"one")
    finally:
        os.umask(previous)
    for folder in ("a", "a/b", "a/b/c"):
        assert stat.S_IMODE((tmp_path / folder).stat().st_mode) == 0o700


def test_a_folder_that_others_can_replace_is_not_used(tmp_path: Path) -> None:
    around = tmp_path / "open"
    around.mkdir()
    around.chmod(0o777)
    with pytest.warns(UserWarning, match=r"nothing is cached in .*: other users can replace what is in .*/open"):
        assert not CacheFolder(around / "c", 1000).write("a", b"content")
    around.chmod(0o1777)  # sticky, as /tmp is
    assert CacheFolder(around / "c", 1000).write("a", b"content")


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o702])
def test_a_folder_that_others_can_write_to_is_not_used(mode: int, tmp_path: Path) -> None:
    CacheFolder(tmp_path / "c", 1000).write("a", b"one")
    (tmp_path / "c").chmod(mode)
    assert CacheFolder(tmp_path / "c", 1000).read("a") is None
    assert not CacheFolder(tmp_path / "c", 1000).write("b", b"two")


@pytest.mark.parametrize("call", ["mkstemp", "replace"])
def test_a_full_disk_only_costs_time(call: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = CacheFolder(tmp_path / "c", 1000)
    folder.write("a", b"one")

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(f"flydsl.system.disk_cache.{'tempfile' if call == 'mkstemp' else 'os'}.{call}", full)
    assert not folder.write("a", b"two")
    assert folder.read("a") == b"one"
    assert [path.name for path in (tmp_path / "c").iterdir()] == ["a"]


def test_one_at_a_time_is_in_a_block_of_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, refused, is_over = CacheFolder(tmp_path, 1 << 20), threading.Event(), False
    seen: list[tuple[bool, bool]] = []
    lock = disk_cache._locked

    def locked(descriptor: int) -> bool:
        is_locked = lock(descriptor)
        if not is_locked:
            refused.set()
        return is_locked

    def enter() -> None:
        with folder.alone("name") as did_wait:
            seen.append((did_wait, is_over))

    monkeypatch.setattr(disk_cache, "_locked", locked)
    with folder.alone("name") as first, folder.alone("other") as other:
        thread = threading.Thread(target=enter)
        thread.start()
        assert refused.wait(60)
        is_over = True
    thread.join()
    assert (first, other) == (False, False)
    assert seen == [(True, True)]
    assert not list(tmp_path.iterdir())


def test_a_name_that_was_used_outlasts_one_that_was_not(tmp_path: Path) -> None:
    folder = CacheFolder(tmp_path / "c", 1000)
    for name in ("used", "unused"):
        folder.link(name, "pack")
        os.utime(tmp_path / "c" / name, (1000, 1000), follow_symlinks=False)
    assert folder.target("used") == "pack"
    used, unused = ((tmp_path / "c" / name).lstat().st_mtime for name in ("used", "unused"))
    assert used > unused == 1000


def test_a_record_is_stored_small(tmp_path: Path) -> None:
    records = RecordFolder(tmp_path / "c", 1 << 20)
    record = {"listing": "\tv_add_f32_e32 v0, v1, v2\n" * 1000}
    assert records.add("a", record)
    assert records.find("a") == record
    assert (tmp_path / "c" / "a").stat().st_size < 1000
    for damaged in (b"", b"garbage", (tmp_path / "c" / "a").read_bytes()[:-5]):
        (tmp_path / "c" / "a").write_bytes(damaged)
        assert records.find("a") is None
