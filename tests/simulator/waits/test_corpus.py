"""AMD's cases of races on every GPU: at run time, in the listing, and where loads come late."""

from __future__ import annotations

import numpy as np
import pytest

from flydsl.arch import get_arch
from flydsl.simulator.waits.missing import missing_waits
from tests.simulator.waits.corpus import GPUS, WRITTEN, expected, spelled, stored
from tests.simulator.waits.launching import run
from tests.simulator.waits.races import Race
from tests.simulator.waits.test_races import listing_of, outcome

_CASES = [(gpu, name) for gpu in GPUS for name, case in WRITTEN.items() if gpu in case.gpus]
_LATE_CHANGES_NOTHING = (
    "exec_mask_cross_wave_race",  # stores are never late, and the reader may be the second wave
    "fa_barrier_epoch, no wait",
    "f64_vgpr_race",  # what it loads is too small to change 1.0
)


@pytest.mark.parametrize(("gpu", "name"), _CASES)
def test_missing_waits_are_told_and_right_programs_left_alone(gpu: str, name: str) -> None:
    case = Race(gpu, spelled(WRITTEN[name].text, gpu), expected(WRITTEN[name], gpu))
    assert outcome(case) == case.outcome
    found = {(one.counter, one.enough) for one in missing_waits(listing_of(case), get_arch(gpu))}
    if case.outcome is None:
        assert found == set()
    elif case.outcome != "race" and "fa_barrier" not in name and "to_lds" not in name:
        assert case.outcome in found


@pytest.mark.slow
@pytest.mark.parametrize(("gpu", "name"), _CASES)
@pytest.mark.diagonal(2)
def test_late_loads_change_the_numbers_of_wrong_programs_alone(gpu: str, name: str) -> None:
    text = spelled(stored(WRITTEN[name].text), gpu)
    changes = not np.array_equal(run(gpu, text, "late"), run(gpu, text, "alignment"))
    if name not in _LATE_CHANGES_NOTHING:
        assert changes == (expected(WRITTEN[name], gpu) is not None)


def test_the_cases_are_of_both_kinds_on_every_gpu() -> None:
    for gpu in GPUS:
        outcomes = [expected(WRITTEN[name], gpu) for one, name in _CASES if one == gpu]
        assert outcomes.count(None) >= 13
        assert len(outcomes) >= 35
