from __future__ import annotations

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

ROOT = Path(__file__).parents[2]
LOCK = threading.RLock()


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
def test_the_end_of_the_child_is_an_error(work: Callable[[], object], words: str) -> None:
    with pytest.raises(ProcessEndedError, match=words):
        run_isolated(work, lock=LOCK)
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)  # no child is left behind


def test_the_parents_state_stays_as_it_was() -> None:
    numbers = [1]

    def work() -> list[int]:
        numbers.append(2)
        return numbers

    assert run_isolated(work, lock=LOCK)[0] == [1, 2]
    assert numbers == [1]


def test_an_interrupt_ends_the_child_too() -> None:
    def interrupt(*_: object) -> NoReturn:
        raise KeyboardInterrupt

    previous = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    try:
        with pytest.raises(KeyboardInterrupt):
            run_isolated(signal.pause, lock=LOCK)
    finally:
        signal.signal(signal.SIGALRM, previous)
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)


def test_an_interrupt_during_the_fork_is_not_lost() -> None:
    """Python prints what its hooks at a fork raise, and goes on."""
    script = """
        import os, signal, threading
        from flydsl.codegen.isolate import run_isolated

        os.register_at_fork(before=lambda: signal.raise_signal(signal.SIGINT))
        handler = signal.getsignal(signal.SIGINT)
        try:
            run_isolated(signal.pause, lock=threading.RLock())
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
