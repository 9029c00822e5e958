"""Right programs are left alone, and every wait that is missing in a wrong one is named: `races` has the programs."""

from __future__ import annotations

from typing import Any

import pytest

from flydsl.arch import get_arch
from flydsl.hsaco.listing import read_listing
from flydsl.simulator import GlobalRace, LdsRace, MissingWait
from flydsl.simulator.waits.missing import missing_waits
from tests.simulator.waits.launching import run
from tests.simulator.waits.races import CDNA4, CDNA5, MORE_CDNA, MORE_RDNA, RDNA3, RDNA4, Race

_CASES = {**CDNA4, **RDNA3, **RDNA4, **CDNA5, **MORE_CDNA, **MORE_RDNA}

# A listing does not tell which lanes are on, and where a branch goes.
_WARNED_OF = ("exec_mask", "a branch that is not taken")


@pytest.mark.slow
@pytest.mark.parametrize("case", _CASES.values(), ids=_CASES)
def test_launches_are_told_apart(case: Race) -> None:
    assert outcome(case) == case.outcome


def outcome(case: Race) -> Any:
    try:
        run(case.arch, case.text, "races", "waits", "uninitialized", workgroups=case.workgroups)
    except MissingWait as error:
        return error.counter, error.enough
    except (LdsRace, GlobalRace):
        return "race"
    return None


@pytest.mark.parametrize(("name", "case"), _CASES.items(), ids=_CASES)
def test_listings_are_told_apart(name: str, case: Race) -> None:
    """As far as registers tell: which bytes of LDS a wave accesses, only a launch knows."""
    found = {(one.counter, one.enough) for one in missing_waits(listing_of(case), get_arch(case.arch))}
    if case.outcome is None:
        assert bool(found) == (name in _WARNED_OF)
    elif not _is_of_memory(name, case):
        assert case.outcome in found


def listing_of(case: Race) -> Any:
    return read_listing(f"k:\n{case.text}\ns_endpgm\n")


def _is_of_memory(name: str, case: Race) -> bool:
    """True for an access to LDS that comes too early, which nothing in the listing of the wave itself tells."""
    tells = ("to LDS, ", "of what is stored")
    return case.outcome == "race" or any(t in name for t in tells) or name.startswith(("lds_", "dual_offset_lds"))


def test_the_corpus_is_covered() -> None:
    """45 cases for gfx950 less the two of several kernels, and 8 for gfx1151, right and wrong ones."""
    assert len(CDNA4) >= 43
    assert len(RDNA3) >= 8
    for cases in (CDNA4, RDNA3, MORE_CDNA, MORE_RDNA):
        assert {case.outcome is None for case in cases.values()} == {True, False}
