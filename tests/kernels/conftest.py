"""Kernels run as a user's program runs them; those of tests that are checked in both backends of the simulator, or,
under checks, in the machine that has them."""

from __future__ import annotations

from typing import Any

import pytest

import flydsl.runtime.simulated
from flydsl.simulator import launch
from flydsl.simulator.checks import enabled_checks
from tests.kernels import checks
from tests.simulator import backends

FOLDER_IS_SLOW = True  # they compile and launch the library


def _launch(*args: Any, **options: Any) -> Any:
    alone = enabled_checks() or checks.INDICES_TOO  # whose rehearsals add in another order each time
    return (launch if alone else backends.launch_both)(*args, **options)


def is_checked(test: pytest.Item) -> bool:
    """Whether the launches of a test are checked even in `make test`, whichever other tests run."""
    mark = test.get_closest_marker("checked")
    combination = test.callspec.indices.values() if hasattr(test, "callspec") else ()
    return mark is not None and ("all" in mark.args or not any(combination))


@pytest.fixture(autouse=True)
def _checks_of_this_test(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "marked", is_checked(request.node))
    if checks.ALL or checks.marked:
        monkeypatch.setattr(flydsl.runtime.simulated, "launch", _launch)


@pytest.fixture
def on_gfx1100(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARCH", "gfx1100")


@pytest.fixture
def on_gfx1201(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARCH", "gfx1201")


@pytest.fixture
def on_gfx1250(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARCH", "gfx1250")
