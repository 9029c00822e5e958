"""What all tests share."""

from __future__ import annotations

from pathlib import Path

import pytest

# Folders of tests that compile and run whole kernels, or start an IPython shell for each test.
SLOW_FOLDERS = ("kernels", "workbench")
HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of slow folders, which `make fast` leaves out."""
    for item in items:
        if item.path.is_relative_to(HERE) and item.path.relative_to(HERE).parts[0] in SLOW_FOLDERS:
            item.add_marker(pytest.mark.slow)
