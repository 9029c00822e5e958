"""Every fuzzer for a few trials; `make fuzz` makes many."""

from __future__ import annotations

import pytest

from tests.fuzz.__main__ import fuzzers

pytestmark = pytest.mark.slow

FUZZERS = fuzzers()
# Of those that compile programs (several in a module), or start a process in each; 25 of the others.
TRIALS = {
    "barriers": 2,
    "control_flow": 3,
    "programs": 5,
    "conversions": 5,
    "integers": 3,
    "floats": 2,
    "calls": 3,
    "mlir_builders": 4,
    "tiles": 3,
    "lanes": 2,
    "atomics": 2,
    "vectors": 2,
    "staging": 2,
    "fly_opt": 5,
    "sweeps": 4,
    "spellings": 2,
    "saved_files": 20,
}


@pytest.mark.parametrize("name", FUZZERS)
def test_a_few_trials(name: str) -> None:
    FUZZERS[name](1, TRIALS.get(name, 25))
