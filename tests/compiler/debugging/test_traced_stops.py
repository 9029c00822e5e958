"""`breakpoint()` in a kernel that is not interpreted points at the interpreter."""

from __future__ import annotations

import io
import pdb
import sys

import pytest
import torch

import flydsl.compiler as flyc
import flydsl.expr as fx


@flyc.kernel
def stopping_kernel(out: fx.Tensor):
    t = fx.thread_idx.x
    breakpoint()
    out[t] = t


@flyc.jit
def stopping(out: fx.Tensor):
    stopping_kernel(out).launch(grid=1, block=8)


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    """What Python's own pdb shows, in which a user prints t and goes on."""
    out = io.StringIO()

    class Scripted(pdb.Pdb):
        def __init__(self) -> None:
            super().__init__(stdin=io.StringIO("p t\nc\n"), stdout=out, nosigint=True, readrc=False)

    def set_trace() -> None:
        raise AssertionError("it stops elsewhere")

    set_trace.__module__ = "pdb"  # pytest has put its own there
    monkeypatch.setattr(pdb, "set_trace", set_trace)
    monkeypatch.setattr(pdb, "Pdb", Scripted)
    monkeypatch.setattr(sys, "breakpointhook", sys.__breakpointhook__)
    return out


def test_it_points_at_the_interpreter(shown: io.StringIO, capsys: pytest.CaptureFixture[str]) -> None:
    before = sys.gettrace()
    try:
        stopping(torch.zeros(8, dtype=torch.int32))
    finally:
        sys.settrace(before)
    assert "with flydsl.interpreting():" in capsys.readouterr().err
    assert "stopping_kernel" in shown.getvalue()
    assert "Int32(?)" in shown.getvalue()
    assert sys.breakpointhook is sys.__breakpointhook__


def test_another_debugger_stops_in_the_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    stops: list[str] = []
    monkeypatch.setattr(sys, "breakpointhook", lambda: stops.append(sys._getframe(1).f_code.co_name))
    stopping.lower(torch.zeros(8, dtype=torch.int32))
    assert stops == ["stopping_kernel"]
