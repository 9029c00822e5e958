"""`workbench check`: cases of modules, and what a module lacks."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import pytest

from flydsl.errors import ArgumentError
from flydsl.testing import Checker
from flydsl.testing.check import Outcome
from workbench.__main__ import main

MODULE = """
import torch
import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.testing import Case

SHAPES = ((64,), (128,))


@flyc.jit
def inner(y: fx.Tensor, i: fx.Int32, v: fx.Float32):
    y[i] = v


@flyc.kernel
def double_kernel(x: fx.Tensor, y: fx.Tensor):
    i = fx.block_idx.x * 64 + fx.thread_idx.x
    inner(y, i, x[i] * 2)


@flyc.jit
def double(x: fx.Tensor, y: fx.Tensor):
    double_kernel(x, y).launch(grid=x.shape[0] // 64, block=64)


def reference(x):
    return x * 2


def cases(n):
    yield Case(double, {"x": torch.randn(n), "y": torch.empty(n)})
"""
_numbers = itertools.count()


def outcomes(folder: Path, text: str, shapes: int | None = 1) -> list[Outcome]:
    """Those of a module on one GPU."""
    file = folder / f"checked_{next(_numbers)}.py"
    file.write_text(text)
    return list(Checker(["mi300x"], shapes=shapes).check(file))


def test_a_module_that_is_right(tmp_path: Path) -> None:
    found = outcomes(tmp_path, MODULE, None)
    assert [(one.case, one.arch, one.state) for one in found] == [
        ("double (64,)", "gfx942", "ok"), ("double (128,)", "gfx942", "ok")
    ]  # fmt: skip
    assert "time_us" in str(found[0])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("x[i] * 2)", "x[i] * 3)", "AssertionError: y is wrong: Tensor-likes are not close!"),
        ("inner(y, i, x", "inner(y, 0, x", "GlobalRace"),
        ("SHAPES = ((64,), (128,))", "", "the module has no SHAPES"),
        ("def cases", "def _cases", "no cases(*shape) says how a shape is launched"),
        ("def reference", "def _reference", "nothing says what double computes"),
        ("@flyc.kernel", "@flyc.jit\ndef other(x: fx.Tensor):\n    pass\n\n\n@flyc.kernel", "no case launches it"),
        ("@flyc.kernel", "@flyc.kernel\ndef other(x: fx.Tensor):\n    pass\n\n\n@flyc.kernel", "no case launches it"),
        ("return x * 2", "return x * 2, x", "reference returned 2 results for the tensors that it does not take: y"),
    ],
)
def test_what_is_found(tmp_path: Path, old: str, new: str, said: str) -> None:
    assert old in MODULE
    failed = [one for one in outcomes(tmp_path, MODULE.replace(old, new)) if one.state == "failed"]
    assert any(said in str(one) for one in failed), failed


def test_what_a_gpu_lacks_is_skipped(tmp_path: Path) -> None:
    text = MODULE.replace("torch.empty(n)}", 'torch.empty(n)}, gpus=("gfx1201",)')
    assert outcomes(tmp_path, text) == []
    lacking = MODULE.replace("x[i] * 2)", "x[i] + fx.rocdl.wmma_f32_16x16x16_f16(1, [2])[0])")
    assert [one.state for one in outcomes(tmp_path, lacking)] == ["skipped"]


def test_figures_beside_the_module(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / f"checked_{next(_numbers)}.py"
    file.write_text(MODULE)
    command = ["check", str(file), "--gpu", "gfx942", "--shapes", "1"]
    assert main([*command, "--update-figures"]) == 0
    kept = file.with_suffix(".figures.txt")
    text = re.sub(r"(VALU_instructions +)\d+", r"\g<1>1", kept.read_text())
    kept.write_text(re.sub(r"(executed_instructions +)\d+", r"\g<1>999", text))
    capsys.readouterr()
    assert main(command) == 1
    text = capsys.readouterr().out
    assert "is worse than in" in text
    assert "--update-figures takes it over: executed_instructions 999 -> " in text


def test_folders_without_modules(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match="there is no module of Python"):
        list(Checker().check(tmp_path))
