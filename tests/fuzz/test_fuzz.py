"""Every fuzzer for a few trials; `make fuzz` makes many."""

from __future__ import annotations

import pytest

from tests.fuzz.__main__ import fuzzers

FUZZERS = fuzzers()
# Of those that compile programs (several in a module), or start a process in each; 100 of the others.
TRIALS = {
    "barriers": 8,
    "control_flow": 20,
    "programs": 32,
    "conversions": 32,
    "calls": 25,
    "mlir_builders": 30,
    "tiles": 30,
    "fly_opt": 50,
    "sweeps": 40,
}


@pytest.mark.slow
@pytest.mark.parametrize("name", FUZZERS)
def test_a_few_trials(name: str) -> None:
    FUZZERS[name](1, TRIALS.get(name, 100))
