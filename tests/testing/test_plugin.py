"""The plugin, as a project of its own uses it: each test runs pytest on a few files."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

KERNEL = """
import torch
import flydsl.compiler as flyc
import flydsl.expr as fx


@flyc.kernel
def double_kernel(x: fx.Tensor, y: fx.Tensor):
    i = fx.block_idx.x * 64 + fx.thread_idx.x
    y[i] = x[i] * 2


@flyc.jit
def double(x: fx.Tensor, y: fx.Tensor):
    double_kernel(x, y).launch(grid=x.shape[0] // 64, block=64)
"""
TESTS = """
import pytest
import torch
import flydsl.expr as fx
from doubling import double


@pytest.fixture
def x():
    return torch.randn(128)


def test_everywhere(gpu, x):
    double(x, y := torch.empty(128))
    assert torch.equal(y, 2 * x)


@pytest.mark.gpus("mi300x", "mi355x")
def test_on_two(gpu, x):
    assert gpu.name in ("gfx942", "gfx950")


def test_without_a_gpu():
    pass
"""
ON_CUDA = """
import torch
from doubling import double


def test_on_cuda(gpu):
    x = torch.randn(128, device="cuda")
    double(x, y := torch.empty_like(x))
    assert torch.equal(y, 2 * x)
    assert torch.cuda.get_device_properties(0).gcnArchName == gpu.name
"""


class Project:
    """A folder with a kernel and its tests."""

    def __init__(self, folder: Path, tests: str) -> None:
        self._folder = folder
        self.write("doubling.py", KERNEL)
        self.write("test_doubling.py", tests)

    def write(self, name: str, text: str) -> None:
        (self._folder / name).write_text(text)

    def read(self, name: str) -> str:
        return (self._folder / name).read_text()

    def run(self, *options: str) -> str:
        """What pytest prints, with no other plugins, some of which take seconds to load."""
        plugins = ("-p", "no:cacheprovider", "-p", "flydsl.testing.plugin")
        command = [sys.executable, "-m", "pytest", "-rsf", *plugins, *options]
        environment = {
            **os.environ,
            "COLUMNS": "200",
            "FLYDSL_RUNTIME_ENABLE_CACHE": "0",
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        }
        environment.pop("PYTEST_ADDOPTS", None)
        ended = subprocess.run(command, cwd=self._folder, env=environment, capture_output=True, text=True, check=False)
        return ended.stdout + ended.stderr


def test_a_test_runs_once_for_each_gpu(tmp_path: Path) -> None:
    project = Project(tmp_path, TESTS)
    text = project.run("--gpu", "mi300x,rx9070xt", "-v")
    for name in ("test_everywhere[gfx942]", "test_everywhere[gfx1201]", "test_on_two[gfx942]", "test_without_a_gpu"):
        assert f"{name} PASSED" in text
    assert "4 passed" in text
    project.write("pytest.ini", "[pytest]\ngpus = gfx1250\n")
    text = project.run()
    assert "2 passed, 1 skipped" in text
    assert "the test is for gfx942, gfx950, and the run for gfx1250" in text


LACKING = """
import torch
import flydsl.compiler as flyc
import flydsl.expr as fx


@flyc.kernel
def product_kernel(y: fx.Tensor):
    pair, sums = fx.vector.full(4, 1.0, fx.Float16), fx.vector.full(4, 0.0, fx.Float32)
    y[fx.thread_idx.x] = fx.rocdl.mfma_f32_16x16x16f16(fx.T.f32x4, [pair, pair, sums, 0, 0, 0])[0]


@flyc.jit
def product(y: fx.Tensor):
    product_kernel(y).launch(grid=1, block=64)


def test_product(gpu):
    product(torch.empty(64))


def test_error_of_its_own(gpu):
    raise RuntimeError("this is no skip")
"""


RACING = """
import pytest
import torch
import flydsl.compiler as flyc
import flydsl.expr as fx


@flyc.kernel
def racing_kernel(y: fx.Tensor):
    tile = fx.make_view(fx.get_dyn_shared(fx.Float32), fx.make_layout(128, 1))
    t = fx.thread_idx.x
    tile[t] = 1.0
    y[t] = tile[127 - t]


@flyc.jit
def racing(y: fx.Tensor):
    racing_kernel(y).launch(grid=1, block=128, smem=512)


def test_racing():
    racing(torch.empty(128))


@pytest.mark.check("races")
def test_racing_under_a_mark():
    racing(torch.empty(128))
"""


def test_checks_and_what_a_gpu_lacks(tmp_path: Path) -> None:
    project = Project(tmp_path, LACKING)
    project.write("test_racing.py", RACING)
    text = project.run("--gpu", "gfx1201")
    assert "2 failed, 1 passed, 1 skipped" in text
    assert re.search(r"SKIPPED .*gfx1201 does not have it", text)
    assert "this is no skip" in text
    assert "FAILED test_racing.py::test_racing_under_a_mark - flydsl.simulator.errors.LdsRace" in text
    text = project.run("--check", "races,waits", "test_racing.py")
    assert "2 failed" in text


def test_a_gpu_that_poses_as_torchs(tmp_path: Path) -> None:
    project = Project(tmp_path, ON_CUDA)
    assert "3 passed" in project.run("--pose", "--gpu", "mi300x,rx9070xt,gfx1250")
    assert "1 failed" in project.run("--gpu", "mi300x")


def test_options_that_name_nothing(tmp_path: Path) -> None:
    project = Project(tmp_path, TESTS)
    assert "unknown architecture 'mi999'" in project.run("--gpu", "mi999")
    assert "there is no check 'racing'" in project.run("--check", "racing", "-k", "without")


FIGURES = """
import torch
from doubling import double


def test_figures(gpu, kernel_figures):
    kernel_figures(double, torch.ones(128), torch.empty(128))
"""


def test_figures_are_kept_beside_the_test_and_compared(tmp_path: Path) -> None:
    project = Project(tmp_path, FIGURES)
    assert "test_doubling.figures.txt has no figures of test_figures: double_kernel_0 on gfx942" in project.run()
    assert "2 passed" in project.run("--gpu", "gfx942,gfx1201", "--update-figures")
    kept = project.read("test_doubling.figures.txt")
    assert re.search(r"\n  executed instructions +\d+\n", kept)
    assert kept.index("on gfx1201") < kept.index("on gfx942")
    project.write("doubling.py", KERNEL.replace("x[i] * 2", "fx.math.sin(x[i])"))
    text = project.run()
    lines = text[text.index("double_kernel_0 on gfx942 is worse than in test_doubling.figures.txt: ") :].splitlines()
    assert re.search(r"(vgprs|sgprs|instructions, \w+) \d+ -> \d+ \(\+\d+\)", lines[0])
    assert any(re.search(r"executed instructions \d+ -> \d+ \(\+\d+\)", line) for line in lines)
    assert "if this is meant: pytest --update-figures" in text
    project.write("doubling.py", KERNEL)
    project.write("test_doubling.figures.txt", re.sub(r"(executed instructions +)\d+", r"\g<1>999", kept))
    text = project.run()
    assert "1 passed" in text
    assert "better figures than are kept: --update-figures takes them over" in text
    assert re.search(
        r"test_figures: double_kernel_0 on gfx942, LLVM \S+: executed instructions 999 -> \d+ \(-\d+\)", text
    )
    project.run("--gpu", "gfx942,gfx1201", "--update-figures")
    assert project.read("test_doubling.figures.txt") == kept
