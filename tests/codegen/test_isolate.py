from __future__ import annotations

import errno
import io
import os
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pytest

from flydsl.codegen.isolate import ProcessEndedError, run_isolated
from flydsl.system.temporary_files import NoRoomError, temporary_folder

ROOT = Path(__file__).parents[2]
LOCK = threading.RLock()


class FullFile(io.FileIO):
    """A file on a disk without room."""

    def write(self, _: object) -> NoReturn:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.fixture
def forked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The processes that are forked, by number; other tests may have left some of their own."""
    fork, found = os.fork, []

    def recorded() -> int:
        found.append(fork())
        return found[-1]

    monkeypatch.setattr(os, "fork", recorded)
    return found


def check_that_none_is_left(forked: list[int]) -> None:
    assert forked
    for process in forked:
        with pytest.raises(ChildProcessError):
            os.waitpid(process, os.WNOHANG)


def fail() -> NoReturn:
    raise RuntimeError("inner words")


def exit_with_words() -> NoReturn:
    os.write(2, b"error: last words\n")
    os._exit(3)


def test_result_and_output_come_back() -> None:
    def work() -> tuple[int, bytes]:
        os.write(2, b"a warning\n")
        return os.getpid(), b"x" * 1_000_000

    (pid, data), output = run_isolated(work, lock=LOCK)
    assert pid != os.getpid()
    assert data == b"x" * 1_000_000
    assert output == "a warning"


@pytest.mark.parametrize(
    ("work", "words"),
    [
        (os.abort, "without a word"),
        (exit_with_words, "last words"),
        (fail, "inner words"),
        (lambda: os.kill(os.getpid(), signal.SIGSEGV), "without a word"),
    ],
    ids=["abort", "exit", "exception", "signal"],
)
def test_the_end_of_the_child_is_an_error(work: Callable[[], object], words: str, forked: list[int]) -> None:
    with pytest.raises(ProcessEndedError, match=words):
        run_isolated(work, lock=LOCK)
    check_that_none_is_left(forked)


def test_the_parents_state_stays_as_it_was() -> None:
    numbers = [1]

    def work() -> list[int]:
        numbers.append(2)
        return numbers

    assert run_isolated(work, lock=LOCK)[0] == [1, 2]
    assert numbers == [1]


def test_an_interrupt_ends_the_child_too(forked: list[int]) -> None:
    parent = os.getpid()

    def interrupt_and_stay() -> None:
        os.kill(parent, signal.SIGINT)
        signal.pause()

    previous = signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job may have it ignored
    try:
        with pytest.raises(KeyboardInterrupt):
            run_isolated(interrupt_and_stay, lock=LOCK)
    finally:
        signal.signal(signal.SIGINT, previous)
    check_that_none_is_left(forked)


def test_an_interrupt_during_the_fork_is_not_lost() -> None:
    """Python prints what its hooks at a fork raise, and goes on."""
    script = """
        import os, signal, threading, time
        from flydsl.codegen.isolate import run_isolated

        signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job may have it ignored
        os.register_at_fork(before=lambda: signal.raise_signal(signal.SIGINT))
        handler = signal.getsignal(signal.SIGINT)
        try:
            run_isolated(lambda: time.sleep(30), lock=threading.RLock())
        except KeyboardInterrupt:
            print("interrupted")
        assert signal.getsignal(signal.SIGINT) is handler
        try:
            os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            print("no child is left")
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout.split("\n")[:2] == ["interrupted", "no child is left"]
    assert done.stderr == ""


@pytest.mark.parametrize("way", ["ignored", "waited for elsewhere"])
def test_somebody_else_may_fetch_the_childs_status(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if way != "ignored":
        monkeypatch.setattr("flydsl.codegen.isolate._await_end", lambda pid: os.waitpid(pid, 0))
    previous = signal.signal(signal.SIGCHLD, signal.SIG_IGN if way == "ignored" else signal.SIG_DFL)
    try:
        assert run_isolated(lambda: "whole", lock=LOCK) == ("whole", "")
        with pytest.raises(ProcessEndedError, match="last words"):
            run_isolated(exit_with_words, lock=LOCK)
    finally:
        signal.signal(signal.SIGCHLD, previous)


def test_no_room_for_the_result_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("flydsl.codegen.isolate.temporary_file", lambda: FullFile(os.memfd_create("full"), "r+"))
    with pytest.raises(NoRoomError, match="No space left"):
        run_isolated(lambda: "something", lock=LOCK)


def test_no_room_for_the_result_of_isolated_work_in_isolated_work(monkeypatch: pytest.MonkeyPatch) -> None:
    def work() -> object:
        monkeypatch.setattr("flydsl.codegen.isolate.temporary_file", lambda: FullFile(os.memfd_create("full"), "r+"))
        return run_isolated(lambda: "something", lock=LOCK)

    with pytest.raises(NoRoomError, match="TMPDIR"):
        run_isolated(work, lock=LOCK)


def test_an_error_about_another_file_is_no_lack_of_room(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), temporary_folder():
        (tmp_path / "absent").read_bytes()
    with pytest.raises(NoRoomError), temporary_folder() as folder:
        (folder / "absent" / "file").write_bytes(b"")


def test_no_temporary_folder_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> NoReturn:
        raise FileNotFoundError(2, "No usable temporary directory found")

    monkeypatch.setattr("tempfile.TemporaryFile", full)
    monkeypatch.setattr("tempfile.TemporaryDirectory", full)
    with pytest.raises(NoRoomError, match="No usable"):
        run_isolated(lambda: "something", lock=LOCK)
    with pytest.raises(NoRoomError, match="No usable"), temporary_folder():
        pass
