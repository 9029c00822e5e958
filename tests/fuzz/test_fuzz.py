"""Every fuzzer for a few trials; `make fuzz` makes many."""

from __future__ import annotations

import pytest

from tests.fuzz.__main__ import fuzzers

FUZZERS = fuzzers()
TRIALS = {"control_flow": 20, "programs": 64}  # of those that compile a program in each; 100 of the others


@pytest.mark.slow
@pytest.mark.parametrize("name", FUZZERS)
def test_a_few_trials(name: str) -> None:
    FUZZERS[name](1, TRIALS.get(name, 100))
