from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import pytest

from flydsl.codegen.link import PendingLink
from flydsl.system.child_processes import end_child, start_child
from flydsl.system.ziglang import run_tool

SLEEP = ("sleep", "600")
started: list[int] = []


class Interrupted(subprocess.Popen[bytes]):
    """A process during whose start Ctrl-C is pressed."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        started.append(self.pid)
        signal.raise_signal(signal.SIGINT)


@pytest.fixture(autouse=True)
def ctrl_c(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    started.clear()
    monkeypatch.setattr(subprocess, "Popen", Interrupted)
    previous = signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job may have it ignored
    yield
    signal.signal(signal.SIGINT, previous)


@pytest.mark.parametrize("start", [lambda: start_child(SLEEP), lambda: run_tool(SLEEP, 600), PendingLink])
def test_an_interrupt_while_a_child_starts_leaves_none(start: Callable[[], object]) -> None:
    with pytest.raises(KeyboardInterrupt) as caught:
        start()
    (child,) = started
    with pytest.raises(ChildProcessError):
        os.waitpid(child, os.WNOHANG)
    assert caught.traceback  # what it holds is not gone yet


def _interrupt_as_the_lock_is_taken(frame: FrameType, event: str, called: Any) -> None:
    """Python's profile function: press Ctrl-C where a `Popen` that waits with a limit of time has its lock."""
    if event == "c_return" and frame.f_code.co_name == "_wait" and called.__name__ == "acquire":
        sys.setprofile(None)
        signal.raise_signal(signal.SIGINT)


def test_an_interrupt_while_popen_takes_its_lock_ends_the_child(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()  # of what interrupts the start
    process = start_child(SLEEP)
    sys.setprofile(_interrupt_as_the_lock_is_taken)
    try:
        with pytest.raises(KeyboardInterrupt):
            process.wait(60)
    finally:
        sys.setprofile(None)
    end_child(process)
    assert process.returncode == -signal.SIGKILL


def test_a_program_that_is_not_there() -> None:
    with pytest.raises(OSError, match="no such program"):
        start_child(["no such program"])
