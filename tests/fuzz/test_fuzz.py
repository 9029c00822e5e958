"""Every fuzzer for a few trials; `make fuzz` makes many."""

from __future__ import annotations

import pytest

from tests.fuzz.__main__ import fuzzers

pytestmark = pytest.mark.slow

FUZZERS = fuzzers()
# Of those that compile programs (several in a module), or start a process in each; 50 of the others.
TRIALS = {
    "barriers": 4,
    "control_flow": 6,
    "programs": 10,
    "conversions": 10,
    "integers": 6,
    "floats": 4,
    "calls": 6,
    "mlir_builders": 8,
    "tiles": 6,
    "lanes": 3,
    "atomics": 3,
    "vectors": 3,
    "staging": 4,
    "fly_opt": 10,
    "sweeps": 8,
    "spellings": 2,
    "saved_files": 40,
}


@pytest.mark.parametrize("name", FUZZERS)
def test_a_few_trials(name: str) -> None:
    FUZZERS[name](1, TRIALS.get(name, 50))
