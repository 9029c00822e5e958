"""The machine code of the kernel library against that of FlyDSL 0.2.2, and the table that shows both."""

from __future__ import annotations

import re

import pytest

from tests.kernels import cases
from tools import kernel_table

_EVERY = [(number, name, arch) for number, (name, case) in enumerate(cases.every_case().items()) for arch in case.archs]
# A case is compiled for a second and more, so every third is looked at here, and the rest by `make sweep`.
_HERE = [place for place in _EVERY if place[0] % 3 == 0 and not cases.every_case()[place[1]].long]
PLACES = [
    pytest.param(name, arch, id=f"{name}-{arch}", marks=[] if number % 24 == 0 else pytest.mark.slow)
    for number, name, arch in _HERE
]
OTHER_PLACES = [(name, arch) for number, name, arch in _EVERY if (number, name, arch) not in _HERE]


@pytest.mark.parametrize(("name", "arch"), PLACES)
def test_machine_code_is_at_least_as_good(name: str, arch: str) -> None:
    """Instructions, VGPRs and scratch at most the original's, occupancy at least, as many MFMA; the table is true.

    A change of the compiler moves an instruction here and there, for which nobody has to write the table anew.
    """
    check_figures(name, arch)


def check_figures(name: str, arch: str) -> None:
    found = cases.measured(cases.every_case()[name], arch)
    shown = re.search(rf"^\| `{name}` \| {arch} \| (\d+) / ", kernel_table.TABLE.read_text(), re.MULTILINE)
    assert shown is not None, "run `make table`"
    assert int(shown[1]) == pytest.approx(found.instructions, rel=0.05), "run `make table`"
    original = cases.originals().get((name, arch))
    if original is not None:
        missed = found.misses(original)
        known = cases.known_misses().get((name, arch))
        assert bool(missed) == (known is not None), f"misses {missed}, listed: {known}"


def test_every_miss_is_one_of_a_case() -> None:
    assert not [place for place in cases.known_misses() if place[0] not in cases.every_case()]
