"""The marks and fixtures that all tests share."""

from __future__ import annotations

import gc
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
# Tests that compile and run many whole kernels, start a browser or for each test an IPython shell, or try very many
# layouts.
SLOW = [
    HERE / "browser",
    HERE / "kernels",
    HERE / "workbench",
    HERE / "compiler" / "test_layout_readings.py",
    HERE / "compiler" / "test_random_programs.py",
    HERE / "layout" / "test_admission.py",
    HERE / "layout" / "test_laws.py",
    HERE / "passes" / "test_math_functions.py",
    HERE / "passes" / "test_narrow_floats.py",
]


def pytest_configure() -> None:
    """Take Ctrl-C, which a shell has its background jobs ignore: several tests send one."""
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark slow tests, which `make fast` leaves out."""
    for item in items:
        if any(item.path.is_relative_to(place) for place in SLOW):
            item.add_marker(pytest.mark.slow)


@pytest.fixture(autouse=True)
def without_artifacts_on_disk(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have each test trace and compile, whatever an earlier run left on disk, unless it is about that."""
    if not request.node.get_closest_marker("artifacts_on_disk"):
        monkeypatch.setattr("flydsl.compiler.jit_function.place_of", lambda *_: None)


def pytest_collection_finish() -> None:
    """Leave modules and tests, which live as long as the process, out of every later garbage collection."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def shell() -> Iterator[Any]:
    """The shell of this process. Whoever cleared it would have other tests print what they display."""
    from IPython.core.interactiveshell import InteractiveShell  # takes a third of a second
    from traitlets.config import Config

    config = Config()
    config.HistoryManager.enabled = False
    yield InteractiveShell.instance(config=config)
    InteractiveShell.clear_instance()
