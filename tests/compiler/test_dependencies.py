"""Which modules a compiled launcher takes for constant."""

from __future__ import annotations

import types

import pytest

from flydsl.compiler.dependencies import is_library


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        ("/home/me/.local/lib/python3.11/site-packages/plans/__init__.py", True),  # pip install --user
        ("/usr/lib/python3/dist-packages/plans.py", True),  # Debian's, in an environment with --system-site-packages
        ("/home/me/my-packages/plans.py", False),
        ("/home/me/site-packages-of-mine/plans.py", False),
        (None, False),
    ],
)
def test_installed_packages_are_libraries_wherever_they_lie(file: str | None, expected: bool) -> None:
    module = types.ModuleType("plans")
    module.__file__ = file
    assert is_library(module) is expected
