"""Random programs of control flow; `make fuzz` makes many more."""

from __future__ import annotations

import pytest

from tests.fuzz.fuzz_control_flow import check

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.diagonal(2)
def test_random_programs(seed: int) -> None:
    check(seed)
