"""Each case runs on its GPU, in both backends, and COVERAGE.md says how many do."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest

from flydsl.arch import get_arch
from flydsl.errors import FlyError
from tests.simulator.conformance.registry import Case, cases, table

# What several GPUs of a family have, one row of the table of instructions serves: these stand for it in `make test`.
FIRST = {64: "gfx942", 32: "gfx1201"}  # by lanes of a wave
LISTED = set(cases())


def is_left_to_the_sweep(case: Case) -> bool:
    first = FIRST[get_arch(case.arch).wave_size]
    on_it = Case(case.name, first, case.check, case.refused, case.differs) in LISTED
    return case.in_sweep or (case.arch != first and on_it)


CASES = [pytest.param(case, marks=[pytest.mark.sweep] * is_left_to_the_sweep(case)) for case in cases()]


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.arch}-{case.check.__name__}")
def test_amds_expectation(case: Case) -> None:
    with pytest.raises(FlyError, match=case.refused) if case.refused else contextlib.nullcontext():
        case.check(case.arch)


def test_the_list_of_what_is_executed_says_how_many_pass() -> None:
    import flydsl.simulator

    assert table() in Path(flydsl.simulator.__path__[0], "COVERAGE.md").read_text()
