"""Debuggers stop in the kernel's own lines, and names hold the values of all lanes there."""

from __future__ import annotations

import gc
import io
import pdb
import re
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import flydsl
import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.errors import SimulatorError, TraceError
from flydsl.interpreter import debugging


def session(monkeypatch: pytest.MonkeyPatch, launch: Callable[[], Any], commands: str) -> str:
    """What pdb shows of a launch whose kernel calls breakpoint()."""
    shown = io.StringIO()
    debugger = pdb.Pdb(stdin=io.StringIO(commands), stdout=shown, nosigint=True, readrc=False)
    debugger.prompt = ""
    monkeypatch.setattr(sys, "breakpointhook", lambda: debugger.set_trace(sys._getframe(1)))
    before = sys.gettrace()
    try:
        with flydsl.interpreting():
            launch()
    finally:
        sys.settrace(before)
    return shown.getvalue()


@flyc.kernel
def stopping_kernel(a: fx.Tensor, out: fx.Tensor, n: fx.Int32):
    i = fx.thread_idx.x
    x = a[i]
    breakpoint()
    if i < n:
        x = x + 0.5
        out[i] = x
    tile = fx.make_rmem_tensor((2, 2), fx.Float32)
    tile.fill(1.0)
    tile[0, 1] = x
    y = tile.load()
    out[i] = y[0]


@flyc.jit
def stopping(a: fx.Tensor, out: fx.Tensor, n: fx.Int32):
    stopping_kernel(a, out, n).launch(grid=1, block=8)


def test_pdb_shows_lanes_steps_and_respects_masks(monkeypatch: pytest.MonkeyPatch):
    a = torch.arange(8.0)
    # From Python 3.13 on, pdb stops at breakpoint() itself, not behind it.
    first = "n\n" if sys.version_info >= (3, 13) else ""
    commands = first + "p x\np n\np x * 2\nn\nn\nn\np x\nn\nn\nn\nn\np tile\np a\nc\n"
    shown = session(monkeypatch, lambda: stopping(a, torch.zeros(8), 3), commands)
    assert "-> x = x + 0.5" in shown
    assert "0: 0  1  2  3  4  5  6  7" in shown
    assert "Int32(3)" in shown
    assert "0:  0   2   4   6   8  10  12  14" in shown  # an expression of the debugger's is executed, too
    assert "in 8 lanes, 3 of them active" in shown
    assert "0: 0.5  1.5  2.5    ·    ·    ·    ·    ·" in shown
    assert "Tensor of f32 in registers, (2,2):(1,2)" in shown
    assert "[[1. , 0.5]," in shown
    assert "Tensor of f32 in global memory, (8):(1)" in shown


@flyc.kernel
def conditional_kernel(a: fx.Tensor, out: fx.Tensor):
    i = fx.thread_idx.x
    total = fx.Float32(0.0)
    for k in range(8):
        total = total + a[k]
        if np.isnan(total.lanes).any():
            breakpoint()
    out[i] = total


@flyc.jit
def conditional(a: fx.Tensor, out: fx.Tensor):
    conditional_kernel(a, out).launch(grid=1, block=4)


def test_a_breakpoint_with_a_condition_of_python(monkeypatch: pytest.MonkeyPatch):
    a = torch.arange(8.0)
    a[5] = torch.nan
    shown = session(monkeypatch, lambda: conditional(a, torch.zeros(4)), "p k\nc\nc\nc\n")
    assert "Int32(5)" in shown
    assert shown.count("breakpoint()") <= 3


@flyc.kernel
def looping_kernel(a: fx.Tensor, out: fx.Tensor):
    i = fx.thread_idx.x
    x = a[i]
    for j in range(3):
        if i > 2:
            x = x + j  # the breakpoint's line
    out[i] = x


@flyc.jit
def looping(a: fx.Tensor, out: fx.Tensor):
    looping_kernel(a, out).launch(grid=1, block=8)


@pytest.mark.parametrize("condition", ["j.lanes[0] == 2", "j == 2"])
def test_a_breakpoint_by_file_and_line_with_a_condition(condition: str):
    lines = Path(__file__).read_text().splitlines()
    line = next(number for number, text in enumerate(lines, 1) if text.endswith("# the breakpoint's line"))
    shown = io.StringIO()
    commands = f"b {__file__}:{line}, {condition}\nc\np j\np x\nc\n"
    debugger = pdb.Pdb(stdin=io.StringIO(commands), stdout=shown, nosigint=True, readrc=False)
    before = sys.gettrace()
    out = torch.zeros(8)
    try:
        with flydsl.interpreting():
            debugger.runcall(looping, torch.arange(8.0), out)
    finally:
        sys.settrace(before)
    assert "Int32(2)" in shown.getvalue()
    assert "0: ·  ·  ·  4  5  6  7  8" in shown.getvalue()
    assert out.tolist() == [0.0, 1.0, 2.0, 6.0, 7.0, 8.0, 9.0, 10.0]


@flyc.kernel
def branching_kernel(a: fx.Tensor, out: fx.Tensor, n: fx.Int32):
    i = fx.thread_idx.x
    total = fx.Float32(0)
    k = fx.Int32(0)
    while k < n and i < 8:  # while
        if i < 3 and k >= 0:  # if
            total += a[i]
        else:
            total -= a[i]
        k = k + 1
    for _ in range(n):  # for
        total += 1 if i < 3 else 2  # choice
    out[i] = total  # last


@flyc.jit
def branching(a: fx.Tensor, out: fx.Tensor, n: fx.Int32):
    branching_kernel(a, out, n).launch(grid=1, block=8)


def _line(comment: str) -> int:
    lines = Path(__file__).read_text().splitlines()
    return next(number for number, text in enumerate(lines, 1) if text.endswith(f"  # {comment}"))


def _without_hooks(stops: list[str]) -> set[str]:
    """Files of stops. Python calls hooks and finalizers of other tests' packages between any two lines."""
    return {file for file in stops if "site-packages" not in file}


def _debugged(kind: type[pdb.Pdb], commands: str) -> str:
    """What a debugger shows of a launch."""
    shown, before = io.StringIO(), sys.gettrace()
    debugger = kind(stdin=io.StringIO(commands), stdout=shown, nosigint=True, readrc=False)
    debugger.prompt = ""
    try:
        with flydsl.interpreting():
            debugger.runcall(branching, torch.arange(8.0), torch.zeros(8), 2)
    finally:
        debugger.clear_all_breaks()  # a process has one list of them
        sys.settrace(before)
    return shown.getvalue()


# Versions of Python differ in whether a loop's line is reached when the loop ends.
@pytest.mark.parametrize(("comment", "stops"), [("while", 2), ("if", 2), ("for", 2), ("choice", 2), ("last", 1)])
def test_a_breakpoint_stops_once_where_the_user_wrote_a_statement(comment: str, stops: int):
    line = _line(comment)
    shown = _debugged(debugging.Debugger, f"b {__file__}:{line}\nc\n" + "p 'k', k\nc\n" * 12)
    assert "NameError" not in shown
    hits = re.findall(r"^> (\S+)\((\d+)\)(\S+)\(\)", shown, re.MULTILINE)[1:]  # without runcall's first stop
    assert set(hits) == {(__file__, str(line), "branching_kernel")}
    assert len(hits) in (stops, stops + (comment in ("while", "for")))


@pytest.mark.parametrize("comment", ["while", "for", "last"])
def test_no_debugger_stops_in_a_function_that_only_reads_a_name(comment: str):
    shown = _debugged(pdb.Pdb, f"b {__file__}:{_line(comment)}\nc\n" + "p total\nc\n" * 12)
    assert "<lambda>()->" not in shown
    assert shown.count("<lambda>") <= (2 if comment == "while" else 0)  # one for `i < 8`, in each iteration


def test_next_goes_from_a_breakpoint_on_a_loop_through_the_kernel():
    shown = _debugged(debugging.Debugger, f"b {__file__}:{_line('while')}\nc\n" + "n\n" * 18 + "clear 1\nc\n")
    lines = [int(line) for line in re.findall(r"^> \S+\((\d+)\)branching_kernel", shown, re.MULTILINE)]
    first, last = _line("while"), _line("last")
    steps = [line - first for line in lines if line not in (first, _line("for"))]
    assert steps[: steps.index(last - first) + 1] == [1, 2, 4, 5, 1, 2, 4, 5, 7, 7, 8]
    stops = re.findall(r"^> (\S+)\(\d+\)", shown, re.MULTILINE)[1:]  # without runcall's first stop
    assert _without_hooks(stops) == {__file__}


@flyc.kernel
def resting_kernel(out: fx.Tensor, n: fx.Int32):
    acc = fx.Float32(0)
    tenth = fx.Float32(0.1)
    breakpoint()
    for k in range(n):
        if k > 5:
            acc += 1
            tenth += 1
    out[fx.thread_idx.x] = acc + tenth


@flyc.jit
def resting(out: fx.Tensor, n: fx.Int32):
    resting_kernel(out, n).launch(grid=1, block=4)


def test_display_does_not_take_a_loop_for_a_change(monkeypatch: pytest.MonkeyPatch):
    shown = io.StringIO()
    commands = io.StringIO("display acc\ndisplay tenth\n" + "n\n" * 8 + "c\n")
    debugger = debugging.Debugger(stdin=commands, stdout=shown, nosigint=True, readrc=False)
    monkeypatch.setattr(sys, "breakpointhook", lambda: debugger.set_trace(sys._getframe(1)))
    before = sys.gettrace()
    try:
        with flydsl.interpreting():
            resting(torch.zeros(4), 2)
    finally:
        sys.settrace(before)
    assert "display tenth: Float32(0.1)" in shown.getvalue()
    assert "[old: " not in shown.getvalue()


@flyc.kernel
def failing_kernel(a: fx.Tensor, out: fx.Tensor):
    i = fx.thread_idx.x
    index = i * 3
    out[i] = a[index]


@flyc.jit
def failing(a: fx.Tensor, out: fx.Tensor):
    failing_kernel(a, out).launch(grid=1, block=8)


def test_values_stand_behind_an_error():
    with (
        flydsl.interpreting(),
        pytest.raises(SimulatorError, match=r"reads 4 bytes outside of .* element 9[\s\S]*lane 3") as failed,
    ):
        failing(torch.zeros(8), torch.zeros(8))
    frames = [frame for frame, _ in traceback.walk_tb(failed.value.__traceback__)]
    kernel = next(frame for frame in frames if frame.f_code.co_name == "failing_kernel")
    assert "0:  0   3   6   9  12  15  18  21" in repr(kernel.f_locals["index"])
    assert kernel.f_locals["index"].lanes.tolist() == list(range(0, 24, 3))


class Reached(Exception):
    """What a kernel raises."""


@flyc.kernel
def raising_kernel(a: fx.Tensor):
    i = fx.thread_idx.x
    x = a[i]
    if i < 3:
        raise_at(x * 2)


def raise_at(twice: Any) -> None:
    raise Reached


@flyc.jit
def raising(a: fx.Tensor):
    raising_kernel(a).launch(grid=1, block=8)


@pytest.mark.parametrize(
    ("launch", "function", "shown"),
    [
        (lambda: failing(torch.zeros(8), torch.arange(8.0)), "failing_kernel", "0:  1   4   7  10  13  16  19  22"),
        (lambda: raising(torch.arange(8.0)), "raise_at", "0: 1  3  5  ·  ·  ·  ·  ·"),
    ],
)
def test_expressions_behind_an_error(launch: Any, function: str, shown: str):
    with flydsl.interpreting(), pytest.raises(Exception) as failed:  # noqa: PT011 - of two classes
        launch()
    output = io.StringIO()
    commands = io.StringIO("p index + 1 if 'index' in dir() else twice + 1\nup\nq\n")
    debugger = pdb.Pdb(stdin=commands, stdout=output, nosigint=True, readrc=False)
    debugger.reset()
    debugger.interaction(None, failed.value.__traceback__)
    assert f"{function}()" in output.getvalue().splitlines()[0]  # not the interpreter's innermost function
    assert shown in output.getvalue()
    with flydsl.interpreting():
        conditional(torch.arange(8.0), out := torch.zeros(4))
    assert out.tolist() == [28.0] * 4


@flyc.kernel
def printing_kernel(a: fx.Tensor, out: fx.Tensor):
    i = fx.thread_idx.x
    x = a[i]
    print("x is", x)
    print(f"half of it {x / 2:.2f}, {fx.make_layout((4, 2), (2, 1))}")
    out[i] = x


@flyc.jit
def printing(a: fx.Tensor, out: fx.Tensor):
    printing_kernel(a, out).launch(grid=1, block=4)


def test_print_prints_values(capsys: pytest.CaptureFixture[str]):
    with flydsl.interpreting():
        printing(torch.arange(4.0), torch.zeros(4))
    shown = capsys.readouterr().out
    assert "x is Float32 in 4 lanes\n     0: 0  1  2  3" in shown
    assert "half of it [0.00, 0.50, 1.00, 1.50], (4,2):(2,1)" in shown


@flyc.kernel
def asking_kernel(a: fx.Tensor, out: fx.Tensor):
    i = fx.thread_idx.x
    assert bool(fx.block_idx.x == 0)
    with pytest.raises(TraceError, match="holds in 3 of 8 active lanes"):
        bool(i < 3)
    out[i] = a[i]


@flyc.jit
def asking(a: fx.Tensor, out: fx.Tensor):
    asking_kernel(a, out).launch(grid=1, block=8)


def test_a_condition_has_a_truth_where_lanes_agree():
    with flydsl.interpreting():
        asking(torch.arange(8.0), torch.zeros(8))


def test_lanes_are_known_to_the_interpreter_only():
    @flyc.kernel
    def kernel(out: fx.Tensor):
        out[fx.thread_idx.x] = float(fx.thread_idx.x.lanes[0])

    @flyc.jit
    def launch(out: fx.Tensor):
        kernel(out).launch(grid=1, block=4)

    with flydsl.interpreting():
        launch(torch.zeros(4))
    with pytest.raises(TraceError, match="whose values are known on the device only"):
        launch(torch.zeros(4))


def test_what_has_failed_lends_its_values_to_no_other_launch():
    """Values are known by their addresses, and a module that is gone makes room for the next one."""

    @flyc.kernel
    def failing_kernel(out: fx.Tensor):
        assert bool(fx.thread_idx.x < 2)

    @flyc.jit
    def failing(out: fx.Tensor):
        failing_kernel(out).launch(grid=1, block=4)

    gc.freeze()  # so that no collection looks at what other tests have left, which it need not
    for _ in range(8):
        with flydsl.interpreting(), suppress(TraceError):
            failing(torch.zeros(4))
        gc.collect()
        test_lanes_are_known_to_the_interpreter_only()


@flyc.kernel
def one_line_kernel(a: fx.Tensor, out: fx.Tensor, n: fx.Int32):
    i = fx.thread_idx.x
    total = a[i]
    if n == 3: breakpoint()  # noqa: E701  # fmt: skip
    for j in range(n):
        if i > j:
            total = total + a[j]
    out[i] = total


@flyc.jit
def one_line(a: fx.Tensor, out: fx.Tensor, n: fx.Int32):
    one_line_kernel(a, out, n).launch(grid=1, block=4)


def test_breakpoint_goes_from_line_to_line_of_the_kernel(monkeypatch: pytest.MonkeyPatch):
    shown = io.StringIO()
    commands = "display total\n" + "n\n" * 12 + "c\n"
    debugger = debugging.Debugger(stdin=io.StringIO(commands), stdout=shown, nosigint=True, readrc=False)
    monkeypatch.setattr(debugging, "_debuggers", [debugger])
    monkeypatch.setattr(sys, "breakpointhook", sys.__breakpointhook__)
    monkeypatch.delenv("PYTHONBREAKPOINT", raising=False)
    before, out = sys.gettrace(), torch.zeros(4)
    try:
        with flydsl.interpreting():
            one_line(torch.arange(4.0), out, 3)
    finally:
        sys.settrace(before)
    places = re.findall(r"> (\S+)\(\d+\)", shown.getvalue())
    assert len(places) > 8, shown.getvalue()
    assert _without_hooks(places) == {__file__}
    assert "display total: Float32 in 4 lanes" in shown.getvalue()
    assert "[old: " in shown.getvalue()
    assert out.tolist() == [0.0, 1.0, 3.0, 6.0]
    assert sys.breakpointhook is sys.__breakpointhook__
