"""Trials in child processes: one that dies, hangs or takes too much memory is a finding, and the others go on."""

from __future__ import annotations

import contextlib
import os
import random
import resource
import select
import signal
import struct
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path

Trial = Callable[[random.Random], None]
"""Does one thing with what it is given, and raises AssertionError for a finding. Anything else raised is one, too."""

_BATCH = 250
_SECONDS_PER_TRIAL = 5.0  # of the processor, so that a busy machine makes no difference
_PATIENCE_SECONDS = 60.0
_MEMORY_BYTES = 1 << 31  # more than what the child starts with
_SHOWN = 25
_HEADER = struct.Struct("<iI")


def run_trials(trial: Trial, seed: int, count: int, prepare: Callable[[], None] = lambda: None) -> None:
    """Trials 0 to count - 1, each with numbers of its own. AssertionError tells the findings.

    prepare: what is done once in every child process, for which there is neither a limit of time nor of memory.
    """
    findings: list[str] = []
    start = 0
    while start < count and len(findings) < 4 * _SHOWN:
        start = _batch(trial, seed, start, min(start + _BATCH, count), prepare, findings)
    if findings:
        more = f"\n… and {len(findings) - _SHOWN} more" if len(findings) > _SHOWN else ""
        raise AssertionError("\n\n".join(findings[:_SHOWN]) + more)


def one(trial: Trial, seed: int, number: int) -> None:
    """One trial in this process, for finding out why it fails."""
    trial(random.Random(f"{seed}:{number}"))


def _batch(trial: Trial, seed: int, start: int, stop: int, prepare: Callable[[], None], findings: list[str]) -> int:
    """Run trials in a new child. Returns the number of the first one that was not made."""
    reading, writing = os.pipe()
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        os.close(reading)
        try:
            _work(trial, seed, start, stop, prepare, writing)
        finally:
            os._exit(0)
    os.close(writing)
    current = start - 1
    with open(reading, "rb") as messages:
        while True:
            if not select.select([messages], [], [], _PATIENCE_SECONDS)[0]:
                os.kill(child, signal.SIGKILL)
                findings.append(f"trial {current}: hangs")
                break
            header = messages.read(_HEADER.size)
            if len(header) < _HEADER.size:
                break
            number, size = _HEADER.unpack(header)
            if size:
                findings.append(f"trial {number}: {messages.read(size).decode(errors='replace')}")
            current = number
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) != signal.SIGKILL:
        findings.append(f"trial {current}: the process died of {signal.Signals(os.WTERMSIG(status)).name}")
    elif current < 0 or (os.WIFEXITED(status) and os.WEXITSTATUS(status)):
        findings.append(f"trial {current}: the process ended with status {status}")
    return current + 1 if current >= start else stop


def _work(trial: Trial, seed: int, start: int, stop: int, prepare: Callable[[], None], writing: int) -> None:
    prepare()
    _limit_memory()
    for number in range(start, stop):
        os.write(writing, _HEADER.pack(number, 0))
        began = time.process_time()
        finding = ""
        try:
            trial(random.Random(f"{seed}:{number}"))
        except AssertionError as error:
            finding = str(error)
        except BaseException:  # noqa: BLE001 - whatever it is, it is a finding
            finding = "".join(traceback.format_exc(limit=-6))
        took = time.process_time() - began
        if took > _SECONDS_PER_TRIAL:
            finding += f"\ntook {took:.1f} s"
        if finding:
            text = finding.encode()[:4000]
            os.write(writing, _HEADER.pack(number, len(text)) + text)


def _limit_memory() -> None:
    with contextlib.suppress(OSError, IndexError, ValueError):  # elsewhere than on Linux there is no limit
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        limit = pages * resource.getpagesize() + _MEMORY_BYTES
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
