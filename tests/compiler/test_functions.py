"""Where kernels and launchers can be defined, and how they are called."""

from __future__ import annotations

import functools
import importlib.util
import os
import re
from pathlib import Path
from typing import Any

import pytest
import torch

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.errors import ArgumentError, TraceError
from tests.launchers import launcher_of
from tests.processes import run_python

SOURCE = '''
import flydsl.compiler as flyc
import flydsl.expr as fx

@flyc.kernel
def sum_kernel(A: fx.Tensor, B: fx.Tensor, n: fx.Int32):
    """Text that is not indented
as the code is."""
    total = fx.Float32(0)
    for i in range(n):
        total = total + A[i]
    B[fx.thread_idx.x] = total

@flyc.jit
def row_sum(A: fx.Tensor, B: fx.Tensor, n: fx.Int32):
    sum_kernel(A, B, n).launch(grid=1, block=64)
'''


def check(row_sum: Any) -> None:
    A, B = torch.arange(64.0), torch.zeros(64)
    row_sum(A, B, 10)
    assert (B == 45).all()


@pytest.mark.parametrize("future", ["", "from __future__ import annotations\n"])
def test_in_a_file(tmp_path: Path, future: str) -> None:
    check(load(tmp_path, future + SOURCE).row_sum)


def load(folder: Path, source: str) -> Any:
    path = folder / "kernels_of_a_test.py"
    path.write_text(source)
    spec = importlib.util.spec_from_file_location("kernels_of_a_test", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_in_a_file_that_was_edited_since(tmp_path: Path) -> None:
    module = load(tmp_path, SOURCE)
    path = tmp_path / "kernels_of_a_test.py"
    path.write_text(SOURCE.replace("total + A[i]", "total - A[i]"))
    os.utime(path, (1, 1))
    with pytest.raises(TraceError, match="source of sum_kernel has changed"):
        check(module.row_sum)
    path.write_text("# one line more\n" + SOURCE)
    os.utime(path, (2, 2))
    with pytest.raises(TraceError):
        check(module.row_sum)


def test_a_setting_in_a_module_of_the_users(tmp_path: Path) -> None:
    settings = load(tmp_path, "STEP = 1.0")

    @flyc.kernel
    def kernel(A: fx.Tensor):
        A[fx.thread_idx.x] = settings.STEP

    fill = launcher_of(kernel, grid=1, block=64)
    A = torch.zeros(64)
    for settings.STEP in (1.0, 2.0):
        fill(A)
        assert (A == settings.STEP).all()


def test_in_a_closure_and_with_a_default() -> None:
    def make(start: float) -> flyc.JitFunction:
        @flyc.kernel
        def kernel(A: fx.Tensor, B: fx.Tensor, n: fx.Int32, scale: fx.Constexpr[float] = 1.0):
            total = fx.Float32(start)
            for i in range(n):
                total += A[i] * scale
            B[fx.thread_idx.x] = total

        @flyc.jit
        def launch(A: fx.Tensor, B: fx.Tensor, n: fx.Int32 = 10, *, scale: fx.Constexpr[float] = 2.0):
            kernel(A, B, n, scale=scale).launch(grid=1, block=64)

        return launch

    launch, A, B = make(5.0), torch.arange(64.0), torch.zeros(64)
    launch(A, B)
    assert (B == 95).all()
    launch(n=2, B=B, A=A, scale=1.0)
    assert (B == 6).all()
    with pytest.raises(ArgumentError, match="takes 3 positional arguments, got 4"):
        launch(A, B, 1, 2.0)


def test_without_source() -> None:
    """Only what must be rewritten needs its source."""
    namespace: dict[str, Any] = {}
    exec(SOURCE, namespace)
    with pytest.raises(TraceError, match="source of sum_kernel cannot be read"):
        check(namespace["row_sum"])
    exec(SOURCE.replace("for i in range(n):", "for i in (1, 2, 42):"), namespace)
    check(namespace["row_sum"])
    exec(SOURCE.replace("for i in range(n):", "if n > 3:"), namespace)
    with pytest.raises(TraceError, match="cannot decide a Python branch") as caught:
        check(namespace["row_sum"])
    assert "linecache" in (caught.value.hint or "")


def test_decorators_stacked() -> None:
    calls = []

    def logged(function: Any) -> Any:
        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            calls.append(function.__name__)
            return function(*args, **kwargs)

        return wrapper

    @flyc.kernel
    @logged
    def kernel(A: fx.Tensor):
        A[fx.thread_idx.x] = 1.0

    @logged
    @flyc.jit
    @logged
    def launch(A: fx.Tensor):
        kernel(A).launch(grid=1, block=64)

    A = torch.zeros(64)
    launch(A)
    assert A.all()
    assert calls == ["launch", "launch", "kernel"]


def test_lambdas() -> None:
    kernel = flyc.kernel(lambda A, v: A.__setitem__(fx.thread_idx.x, v))
    launch = flyc.jit(lambda A, v: kernel(A, v).launch(grid=1, block=64))
    A = torch.zeros(64)
    launch(A, 2.5)
    assert (A == 2.5).all()
    looping = flyc.jit(lambda A: [kernel(A, 1.0).launch(grid=1, block=64) for _ in range(2)] and None)
    with pytest.raises(TraceError, match="must be written with def"):
        looping(A)


class Holder:
    @flyc.jit
    def method(self, A: fx.Tensor):
        fill_kernel(A).launch(grid=1, block=64)

    @staticmethod
    @flyc.jit
    def static(A: fx.Tensor):
        fill_kernel(A).launch(grid=1, block=64)


@flyc.kernel
def fill_kernel(A: fx.Tensor):
    A[fx.thread_idx.x] = 3.0


def test_methods() -> None:
    A = torch.zeros(64)
    Holder().static(A)
    assert (A == 3).all()
    A.zero_()
    Holder().method(A)
    assert (A == 3).all()


class Scale:
    def __init__(self, factor: float) -> None:
        self.factor = factor

    @flyc.kernel
    def kernel(self, A: fx.Tensor, n: fx.Int32):
        A[fx.thread_idx.x] = n * self.factor

    @flyc.jit
    def launch(self, A: fx.Tensor, n: fx.Int32):
        self.kernel(A, n).launch(grid=1, block=64)


def test_methods_know_their_object() -> None:
    A, twice, thrice = torch.zeros(64), Scale(2.0), Scale(3.0)
    for scale, n, expected in ((twice, 5, 10), (thrice, 5, 15), (twice, 6, 12)):
        scale.launch(A, n)
        assert (expected == A).all()
    twice.factor = 4.0
    twice.launch(A, 1)
    assert (A == 4).all()
    assert "scf" not in thrice.launch.lower(A, 1).origin
    flyc.compile(thrice.launch, A, 2)
    assert (A == 6).all()


@pytest.mark.parametrize("thing", [print, 3, functools.partial(check), fill_kernel, Holder])
def test_a_decorator_takes_only_functions(thing: Any) -> None:
    with pytest.raises(ArgumentError, match=r"@flyc\.jit must decorate a function"):
        flyc.jit(thing)


@pytest.mark.parametrize(
    ("annotation", "says"),
    [
        ("bytes", "not a type of the DSL"),
        ("fx.Nothing", "Nothing"),
        ("undefined", "undefined"),
        ("'fx.'", "not a type of the DSL"),
    ],
)
def test_annotations_that_mean_nothing(annotation: str, says: str) -> None:
    namespace: dict[str, Any] = {}
    exec(f"from __future__ import annotations\n{SOURCE.replace('n: fx.Int32', f'n: {annotation}')}", namespace)
    with pytest.raises(TraceError, match=says):
        check(namespace["row_sum"])


def test_names_that_mlir_does_not_take() -> None:
    @flyc.jit
    def kernels(A: fx.Tensor):
        größe(A).launch(grid=1, block=64)

    @flyc.kernel
    def größe(A: fx.Tensor):
        A[fx.thread_idx.x] = 1.0

    A = torch.zeros(64)
    kernels(A)
    assert A.all()


# --- notebooks and scripts -------------------------------------------------------------------------------------------


def test_in_notebook_cells(shell: Any, capsys: pytest.CaptureFixture[str]) -> None:
    shell.reset()
    shell.user_module.__spec__ = None  # which multiprocessing reads, and a reset takes away

    def run(cell: str) -> Any:
        result = shell.run_cell(cell)
        return result.error_before_exec or result.error_in_exec

    assert run("import torch\nA, B = torch.arange(64.0), torch.zeros(64)" + SOURCE) is None
    assert run("row_sum(A, B, 10)\nassert (B == 45).all()") is None
    # A cell that redefines the kernel, and the launcher of the other cell.
    assert run(SOURCE.replace("total + A[i]", "total + 2 * A[i]").split("@flyc.jit")[0]) is None
    assert run("row_sum(A, B, 10)\nassert (B == 90).all()") is None
    capsys.readouterr()
    assert isinstance(run("row_sum(A, B, 'x')"), ArgumentError)
    shown = capsys.readouterr().out.splitlines()
    assert len(shown) < 8
    assert any("row_sum(A, B, 'x')" in line for line in shown)
    assert isinstance(run(SOURCE.replace("+ A[i]", "+ oops") + "\nimport torch\nrow_sum(A, B, 10)"), NameError)
    text = re.sub(r"\x1b\[[0-9;]*m", "", capsys.readouterr().out)
    assert "total = total + oops" in text
    assert "jit_function.py" not in text.replace("skipping", "")
    assert len(text.splitlines()) < 60


@pytest.mark.slow
def test_in_a_script(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text("import torch" + SOURCE + "\nrow_sum(torch.zeros(64), torch.zeros(64, dtype=torch.int32), 3)\n")
    ended = run_python(script)
    lines = ended.stderr.splitlines()
    assert ended.returncode == 1
    assert len(lines) < 25
    assert any("B[fx.thread_idx.x] = total" in line for line in lines)
    assert any("ArgumentError: a store of f32 to a tensor of i32" in line for line in lines)


def test_rewriting_is_shown(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setenv("FLYDSL_DEBUG_AST_DIFF", "1")
    check(load(tmp_path, SOURCE).row_sum)
    diff = capsys.readouterr().out
    assert "-    for i in range(n):" in diff
    assert "__fly_for__" in diff


def test_an_error_about_a_definition_shows_its_name_and_not_the_decorator() -> None:
    @flyc.jit
    def launch_it(A: fx.Tensor, x: Unknown):  # noqa: F821
        pass

    with pytest.raises(TraceError, match="Unknown") as caught:
        launch_it(torch.zeros(4), 1)
    at = caught.value.at
    assert at is not None
    source, carets = at.excerpt()
    assert source.strip().startswith("def launch_it(")
    assert carets.strip() == "^" * len("launch_it")
    assert source.index("launch_it") == carets.index("^")
