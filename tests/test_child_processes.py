from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from flydsl.child_processes import start_child
from flydsl.codegen.link import PendingLink
from flydsl.ziglang import run_tool

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


def test_a_program_that_is_not_there() -> None:
    with pytest.raises(OSError, match="no such program"):
        start_child(["no such program"])
