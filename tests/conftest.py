"""The marks and fixtures that all tests share."""

from __future__ import annotations

import gc
import os
import random
import re
import signal
import sys
from collections.abc import Generator, Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from _pytest.doctest import DoctestModule

HERE = Path(__file__).parent
_FILE_IS_SLOW = re.compile(r"^pytestmark = (\[|)\s*pytest\.mark\.slow\b", re.MULTILINE)
_FOLDER_IS_SLOW = re.compile(r"^FOLDER_IS_SLOW = True\b", re.MULTILINE)


@cache
def is_slow(place: Path) -> bool:
    """Whether all tests of a file or folder are slow. It is read from the text, so that `make fast` need not import it.

    A slow file has the line `pytestmark = pytest.mark.slow`, the conftest.py of a slow folder `FOLDER_IS_SLOW = True`.
    Slow are sweeps over many kernels, targets, formats, layouts or programs, tests that start a browser, a shell, a
    cluster or another compiler each, and those that load Jupyter's server.
    """
    if place != HERE and place.parent.is_relative_to(HERE) and is_slow(place.parent):
        return True
    says, file = (_FOLDER_IS_SLOW, place / "conftest.py") if place.is_dir() else (_FILE_IS_SLOW, place)
    return file.is_file() and file.suffix == ".py" and says.search(file.read_text(encoding="utf-8")) is not None


collect_ignore = ["benchmarks"]  # no tests, and imports that take seconds


class DoctestsOfFilesWithExamples:
    """Keeps pytest from importing a module to look for doctests if its text has none: five files of six."""

    @pytest.hookimpl(wrapper=True)
    def pytest_collect_file(self, file_path: Path) -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
        collectors = yield
        if any(isinstance(each, DoctestModule) for each in collectors) and b">>>" not in file_path.read_bytes():
            return [each for each in collectors if not isinstance(each, DoctestModule)]
        return collectors


def pytest_configure(config: pytest.Config) -> None:
    """Set up the process: no garbage collection, Ctrl-C, threads.

    Collecting tests makes no garbage, and looking for it would take a fifth of the time. Several tests send a Ctrl-C,
    which processes ignore that a shell started in the background. Where several processes run tests, a launch has one
    thread, as each process takes a core; tests of threads say how many.
    """
    gc.disable()
    config.pluginmanager.register(DoctestsOfFilesWithExamples())
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if "PYTEST_XDIST_WORKER" in os.environ:
        os.environ.setdefault("FLYDSL_SIMULATOR_THREADS", "1")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Whether `make fast` need not even import a file."""
    return True if config.option.markexpr == "not slow" and is_slow(collection_path) else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark slow tests, which `make fast` omits, deselect those of the sweep, and run the files with slow tests first.

    The last files to run are then short, so that no process still has a long one when the others have none.
    """
    for_the_sweep = left_to_the_sweep(items)
    for item in for_the_sweep:
        item.add_marker(pytest.mark.sweep)
    if "sweep" not in config.option.markexpr:
        config.hook.pytest_deselected(items=for_the_sweep)
        items[:] = [item for item in items if not item.get_closest_marker("sweep")]
    draw_the_same_examples()
    for item in items:
        if is_slow(item.path):
            item.add_marker(pytest.mark.slow)
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in slow)


def draw_the_same_examples() -> None:
    """Keep Hypothesis from drawing constants of this project's sources.

    It would read all modules that are imported, which takes seconds, and its examples would differ with every change
    and with the other tests of the process.
    """
    if "hypothesis" in sys.modules:
        from hypothesis.internal.conjecture import providers

        providers.is_local_module_file = lambda path: False


def left_to_the_sweep(items: list[pytest.Item]) -> list[pytest.Item]:
    """The tests that only the sweep runs, by the mark `diagonal(n)`: all but one in n combinations of the parameters.

    A combination stays if the numbers of its values add up to a multiple of n, so that each value of a parameter stays,
    with some values of the others. A test that is asked for alone stays, too.
    """
    tests: dict[Any, list[Any]] = {}
    for item in items:
        if item.get_closest_marker("diagonal"):
            tests.setdefault((item.path, item.originalname), []).append(item)  # type: ignore[attr-defined]
    left = []
    for cases in tests.values():
        (step,) = cases[0].get_closest_marker("diagonal").args
        # Values are numbered by their ids, as pytest 9.2 has no public number of a value (`callspec.indices` counts
        # combinations). Parameters of one `parametrize` share an id.
        values = zip(*(case.callspec._idlist for case in cases), strict=True)
        numbers = map(sum, zip(*map(in_order, values), strict=True))
        left += [case for case, number in zip(cases, numbers, strict=True) if number % step and len(cases) > 1]
    return left


def in_order(values: Iterable[str]) -> list[int]:
    """A number for each value, by the order of their first appearances."""
    numbers: dict[str, int] = {}
    return [numbers.setdefault(value, len(numbers)) for value in values]


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    """Seed random numbers, so that a test draws the same ones whichever tests this process ran before."""
    random.seed(0)
    np.random.seed(0)
    if "torch" in sys.modules:
        # torch.manual_seed would also look for GPUs, which takes half a millisecond.
        sys.modules["torch"].default_generator.manual_seed(0)


@pytest.fixture(autouse=True)
def without_artifacts_on_disk(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make each test trace and compile, whatever earlier runs left on disk, unless it is marked `artifacts_on_disk`."""
    if not request.node.get_closest_marker("artifacts_on_disk"):
        monkeypatch.setattr("flydsl.compiler.jit_function.place_of", lambda *_: None)


@pytest.fixture(scope="session", autouse=True)
def cache_of_zig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Give zig, which builds libraries for some tests, a folder for its cache if there is no home folder."""
    with pytest.MonkeyPatch.context() as patch:
        if not os.access(os.environ.get("HOME", ""), os.W_OK):
            patch.setenv("ZIG_GLOBAL_CACHE_DIR", str(tmp_path_factory.mktemp("zig")))
        yield


def pytest_collection_finish() -> None:
    """Exclude modules and tests, which live as long as the process, from garbage collections."""
    gc.enable()
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def shell() -> Iterator[Any]:
    """The IPython shell of this process. Tests must not clear it: others would then print what they display."""
    from IPython.core.interactiveshell import InteractiveShell  # takes a third of a second
    from traitlets.config import Config

    config = Config()
    config.HistoryManager.enabled = False
    yield InteractiveShell.instance(config=config)
    InteractiveShell.clear_instance()
