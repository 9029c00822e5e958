"""The wheel that `make wheel` builds, installed where nothing of the checkout can be imported."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import venv
from collections.abc import Callable
from pathlib import Path
from zipfile import ZipFile

import pytest

from tests.notebooks import NOTEBOOKS

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]
NOTEBOOK_PACKAGES = ("IPython", "anywidget", "ipywidgets", "jupyterlab", "plotly", "traitlets")
PACKAGES = ("flydsl", "workbench", "kernels")
# What decides what make, pip and Python find: under `make test`, all of it is about the checkout.
LEFT_OUT = ("PYTHON", "PIP", "MAKE", "MFLAGS", "FLYDSL")

# Also prints where the packages lie. A view that cannot be shown prints a traceback and raises nothing.
RUN_NOTEBOOK = """
import json, sys
import flydsl, kernels, workbench
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

config = Config()
config.HistoryManager.enabled = False
shell = InteractiveShell.instance(config=config)
failures = []
shell.showtraceback = lambda *_, **__: failures.append(repr(sys.exc_info()[1]))
for cell in json.load(open(sys.argv[1]))["cells"]:
    if cell["cell_type"] == "code" and "raises-exception" not in cell["metadata"].get("tags", ()):
        shell.run_cell("".join(cell["source"])).raise_error()
assert not failures, failures
print("packages", *(package.__file__ for package in (flydsl, workbench, kernels)))
"""

TRACED_SOFTMAX = """
import torch
from flydsl.simulator import tracing
from kernels.softmax_kernel import build_softmax_module, reference

A = torch.randn(5, 512)
C = torch.empty_like(A)
with tracing(execute=True) as traced:
    build_softmax_module(5, 512)(A, C, 5)
assert torch.allclose(C, reference(A))
assert traced.time_us > 0 and len(traced.launches[0].trace.events)
"""

Run = Callable[..., str]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Run a command in a folder without anything else, without the package index; gives what it prints."""
    home = tmp_path_factory.mktemp("home")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(LEFT_OUT)}
    private = {"HOME": home, "IPYTHONDIR": home / "ipython", "FLYDSL_RUNTIME_CACHE_DIR": home / "cache"}
    environment = kept | {name: str(folder) for name, folder in private.items()} | {"PIP_NO_INDEX": "1"}

    def output(*command: str | Path, cwd: Path = home) -> str:
        done = subprocess.run(
            command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=300, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return output


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory, run: Run) -> Path:
    """The wheel, built in a copy of the checkout: other tests read this one."""
    copy = tmp_path_factory.mktemp("copy")
    ignored = shutil.ignore_patterns("__pycache__", ".*", "ruff.toml")
    for name in PACKAGES:
        shutil.copytree(ROOT / name, copy / name, ignore=ignored)
    for name in ("pyproject.toml", "Makefile", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, copy)
    (copy / "build" / "lib" / "flydsl").mkdir(parents=True)
    (copy / "build" / "lib" / "flydsl" / "deleted.py").touch()  # left by an earlier build
    run("make", "--old-file=setup", "wheel", f"PYTHON={sys.executable}", cwd=copy)
    (built,) = (copy / "dist").glob("*.whl")
    return built


@pytest.fixture(scope="module")
def binaries(tmp_path_factory: pytest.TempPathFactory, wheel: Path, run: Run) -> Path:
    """The programs of an environment with the wheel, which borrows only what the wheel requires.

    A folder that a .pth file names is searched last, and its own .pth files, such as that of an editable installation,
    are not read.
    """
    environment = tmp_path_factory.mktemp("environment")
    venv.create(environment, symlinks=True)
    python = environment / "bin" / "python"
    run(sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-deps", "--no-compile", wheel)
    (site_packages,) = environment.glob("lib/python*/site-packages")
    borrowed = [path for path in sys.path if path.endswith("-packages")]
    (site_packages / "requirements.pth").write_text("\n".join(borrowed))
    return python.parent


def test_has_every_file_but_documents(wheel: Path) -> None:
    expected = {
        str(path.relative_to(wheel.parents[1]))
        for package in PACKAGES
        for path in (wheel.parents[1] / package).rglob("*")
        if path.is_file() and (path.suffix != ".md" or path.is_relative_to(wheel.parents[1] / "workbench" / "template"))
    }
    packed = {name for name in ZipFile(wheel).namelist() if ".dist-info/" not in name}
    assert packed == expected


def test_runs_its_tour(binaries: Path, tmp_path: Path, run: Run) -> None:
    run(binaries / "workbench", "tour", tmp_path, "--copy-only")
    assert sorted(path.name for path in tmp_path.iterdir()) == [path.name for path in NOTEBOOKS]
    printed = run(binaries / "python", "-I", "-c", RUN_NOTEBOOK, tmp_path / "00_tour.ipynb")
    assert printed.count("Result correct: True") == 2
    *_, places = (line for line in printed.splitlines() if line.startswith("packages "))
    assert all(Path(place).is_relative_to(binaries.parent) for place in places.split()[1:])


def test_its_programs_trace_a_kernel_of_the_library(binaries: Path, tmp_path: Path, run: Run) -> None:
    script, page = tmp_path / "softmax.py", tmp_path / "softmax.html"
    script.write_text(TRACED_SOFTMAX)
    assert "wrote" in run(binaries / "workbench", "export", script, page)
    assert "v_exp_f32" in page.read_text()
    assert "--fly-layout-lowering" in run(binaries / "fly-opt", "--help")


# Finds no package of the extra `notebook`, as in an installation for CI.
WITHOUT_NOTEBOOK = f"""
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {NOTEBOOK_PACKAGES}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Missing())
"""

IMPORT_EVERYTHING = """
import importlib, pkgutil
import flydsl, kernels, workbench

failed = {}
for package in (flydsl, kernels, workbench):
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        try:
            importlib.import_module(module.name)
        except ImportError as error:
            failed[module.name] = str(error)
says = {text.splitlines()[0].partition(", which is ")[2] for text in failed.values()}
print("failed", sorted({name.split(".")[0] for name in failed}), "and say", says)
"""


def test_without_the_extra_the_compiler_works_and_views_say_what_to_install(
    binaries: Path, tmp_path: Path, run: Run
) -> None:
    (tmp_path / "sitecustomize.py").write_text(WITHOUT_NOTEBOOK)
    printed = run(binaries / "python", "-c", WITHOUT_NOTEBOOK + TRACED_SOFTMAX + IMPORT_EVERYTHING, cwd=tmp_path)
    (line,) = (line for line in printed.splitlines() if line.startswith("failed"))
    assert line == "failed ['workbench'] and say {\"not installed: pip install 'flydsl-workbench[notebook]'\"}"
