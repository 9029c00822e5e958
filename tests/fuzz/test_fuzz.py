"""Every fuzzer for a few trials; `make fuzz` makes many."""

from __future__ import annotations

import pytest

from tests.fuzz.__main__ import fuzzers

pytestmark = pytest.mark.slow

FUZZERS = fuzzers()
# Of those that compile programs (several in a module), or start a process in each; 12 of the others.
TRIALS = {
    "barriers": 2,
    "control_flow": 2,
    "programs": 3,
    "conversions": 3,
    "integers": 2,
    "floats": 2,
    "calls": 2,
    "mlir_builders": 4,
    "tiles": 2,
    "lanes": 2,
    "atomics": 2,
    "vectors": 2,
    "staging": 2,
    "fly_opt": 3,
    "sweeps": 4,
    "spellings": 2,
    "saved_files": 10,
}


@pytest.mark.parametrize("name", FUZZERS)
def test_a_few_trials(name: str) -> None:
    FUZZERS[name](1, TRIALS.get(name, 12))
