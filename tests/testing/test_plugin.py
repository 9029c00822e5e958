"""The plugin, as a project of its own uses it: each test runs pytest on a few files."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from tests.processes import run_python

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


@pytest.mark.parametrize("gpu", ["radeon"])
def test_with_a_parameter_of_its_own(gpu):
    assert gpu == "radeon"


class TestFixture:
    @pytest.fixture
    def gpu(self):
        return "instinct"

    def test_with_a_fixture_of_its_own(self, gpu):
        assert gpu == "instinct"
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

    def run(self, *options: str, cache: Path | None = None) -> str:
        """What pytest prints, with no other plugins, some of which take seconds to load. cache: none without one."""
        plugins = ("-p", "no:cacheprovider", "-p", "flydsl.testing.plugin", "-p", "workbench.pytest_pages")
        command = ["-m", "pytest", "-rsf", *plugins, *options]
        environment = {
            **os.environ,
            "COLUMNS": "200",
            "FLYDSL_RUNTIME_ENABLE_CACHE": str(int(cache is not None)),
            "FLYDSL_RUNTIME_CACHE_DIR": str(cache or ""),
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        }
        environment.pop("PYTEST_ADDOPTS", None)
        ended = run_python(*command, cwd=self._folder, env=environment)
        return ended.stdout + ended.stderr


def test_a_test_runs_once_for_each_gpu(tmp_path: Path) -> None:
    project = Project(tmp_path, TESTS)
    text = project.run("--gpu", "mi300x,rx9070xt", "-v")
    for name in ("test_everywhere[gfx942]", "test_everywhere[gfx1201]", "test_on_two[gfx942]", "test_without_a_gpu"):
        assert f"{name} PASSED" in text
    assert "6 passed" in text
    project.write("pytest.ini", "[pytest]\ngpus = gfx1250\n")
    text = project.run()
    assert "4 passed, 1 skipped" in text
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


WRITTEN_FOR_A_GPU = """
import pytest
import torch
from doubling import double

if not torch.cuda.is_available():
    pytest.skip("no GPU", allow_module_level=True)


@pytest.mark.parametrize("n", [64, 128])
def test_unedited(n):
    x = torch.randn(n, device="cuda")
    double(x, y := torch.empty_like(x))
    torch.testing.assert_close(y, 2 * x)
"""


def test_tests_that_were_written_for_a_gpu(tmp_path: Path) -> None:
    project = Project(tmp_path, WRITTEN_FOR_A_GPU)
    assert "4 passed" in project.run("--pose", "--gpu", "mi300x,rx9070xt")
    assert "1 skipped" in project.run()


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
    cache = tmp_path / "cache"
    assert "2 passed" in project.run("--gpu", "gfx942,gfx1201", "--update-figures", cache=cache)
    kept = project.read("test_doubling.figures.txt")
    assert re.search(r"\n  executed_instructions +\d+\n", kept)
    assert kept.index("on gfx1201") < kept.index("on gfx942")
    project.write("doubling.py", KERNEL.replace("x[i] * 2", "fx.math.sin(x[i])"))
    text = project.run("--report-html", "pages", "--junitxml", "report.xml", cache=cache)
    lines = text[text.index("double_kernel_0 on gfx942 is worse than in test_doubling.figures.txt: ") :].splitlines()
    assert re.search(r"time_us [\d.]+ -> [\d.]+ \(\+[\d.]+, \+\d+ %\)", lines[0])
    assert re.search(r"also worse: .*executed_instructions \d+ -> \d+ \(\+\d+\)", lines[1])
    assert re.search(r"first difference: \S*doubling.py:\d+  ", lines[2])
    assert re.search(r"doubling.py:\d+  y\[i\] = fx.math.sin\(x\[i\]\): \d+ -> \d+ instructions, ", text)
    assert "where the time went, in cycles of a wave:" in text
    assert "if this is meant: pytest --update-figures" in text
    assert "where the time went" in project.read("report.xml")
    page = project.read("pages/test_doubling.py-test_figures[gfx942].html")
    assert "Machine code of double_kernel_0, before and now" in page
    assert "Stages of double_kernel_0, before and now" in page
    assert "math.sin" in page[page.index("Stages of double_kernel_0") :]
    assert "is not in the cache folder" not in page
    assert "test_figures[gfx942].html" in project.read("pages/index.html")
    project.write("doubling.py", KERNEL)
    project.write("test_doubling.figures.txt", re.sub(r"(executed_instructions +)\d+", r"\g<1>999", kept))
    text = project.run()
    assert "1 passed" in text
    assert "better figures than are kept: --update-figures takes them over" in text
    assert re.search(
        r"test_figures: double_kernel_0 on gfx942, LLVM \S+: executed_instructions 999 -> \d+ \(-\d+\)", text
    )
    project.run("--gpu", "gfx942,gfx1201", "--update-figures")
    assert project.read("test_doubling.figures.txt") == kept


TOLERANT = FIGURES.replace(
    "def test_figures", "import pytest\n\n\n@pytest.mark.tolerances(executed_instructions='50%')\ndef test_figures"
)


def test_tolerances_and_a_wrong_result(tmp_path: Path) -> None:
    """A wrong result is told of first; the figures are in a section of the report."""
    project = Project(tmp_path, TOLERANT)
    project.run("--update-figures")
    kept = project.read("test_doubling.figures.txt")
    count = int(re.findall(r"executed_instructions +(\d+)", kept)[0])
    project.write("test_doubling.figures.txt", kept.replace(f" {count}\n", f" {round(count / 1.4)}\n"))
    assert "1 passed" in project.run()
    project.write("test_doubling.figures.txt", kept.replace(f" {count}\n", f" {round(count / 1.6)}\n"))
    assert "executed_instructions" in project.run()
    project.write("test_doubling.py", TOLERANT + "    assert not 'a wrong result'\n")
    text = project.run("--gpu", "gfx942")
    shown = text[text.index("____ test_figures[gfx942]") :].splitlines()
    assert "test_figures fails on gfx942: AssertionError: " in "".join(shown[1:3])
    assert "figures that are worse, too" in text
    project.write("pytest.ini", "[pytest]\nfigure_tolerances = executed_instructions is 3\n")
    assert "a tolerance must be of a figure, got 'executed_instructions is 3'" in project.run()


ON_ONE_GPU = """
import torch
from doubling import double


def test_wrong_on_one(gpu):
    double(torch.ones(64), y := torch.empty(64))
    assert (y == 2).all() or gpu.name == "gfx942"
    assert gpu.name != "gfx1201", "a wrong result"
"""


def test_results_are_reused_until_something_changes(tmp_path: Path) -> None:
    project = Project(tmp_path, ON_ONE_GPU)
    run, cache = ("--reuse", "--gpu", "gfx942,gfx950,gfx1201", "--durations", "5"), tmp_path / "cache"
    text = project.run(*run, cache=cache)
    assert "1 failed, 2 passed" in text
    assert "test_wrong_on_one fails on gfx1201: AssertionError: a wrong result" in text
    assert "test_doubling.py::test_wrong_on_one fails on gfx1201, and passes on gfx942, gfx950" in text
    assert re.search(r"compilation   simulation     the rest\n +\d+\.\d+s +\d+\.\d+s +\d+\.\d+s  test_doubling", text)
    assert "1 failed, 2 unchanged" in project.run(*run, cache=cache)
    project.write("doubling.py", KERNEL + "\n\nUNUSED = 3\n")
    assert "2 unchanged" in project.run(*run, cache=cache)
    project.write("doubling.py", KERNEL.replace("* 2", "* 2.0"))
    assert "1 failed, 2 passed" in project.run(*run, cache=cache)
