"""Each case runs on its GPU, in both backends, and COVERAGE.md says how many do."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest

from flydsl.errors import FlyError
from tests.simulator.conformance.registry import Case, cases, table

CASES = [pytest.param(case, marks=[pytest.mark.sweep] if case.in_sweep else []) for case in cases()]


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.arch}-{case.check.__name__}")
def test_amds_expectation(case: Case) -> None:
    with pytest.raises(FlyError, match=case.refused) if case.refused else contextlib.nullcontext():
        case.check(case.arch)


def test_the_list_of_what_is_executed_says_how_many_pass() -> None:
    import flydsl.simulator

    assert table() in Path(flydsl.simulator.__path__[0], "COVERAGE.md").read_text()
