"""The machine code of the kernel library against that of FlyDSL 0.2.2, and the table that shows both."""

from __future__ import annotations

import re

import pytest

from tests.kernels import cases
from tools import kernel_table

_EVERY = [(number, name, arch) for number, (name, case) in enumerate(cases.every_case().items()) for arch in case.archs]
# Of other GPUs than CDNA every fourth case; the rest is looked at by `make sweep`, as is what compiles for long.
PLACES = [
    pytest.param(name, arch, id=f"{name}-{arch}", marks=[] if number % 8 == 0 else pytest.mark.slow)
    for number, name, arch in _EVERY
    if not cases.every_case()[name].long and (arch in cases.ARCHS or number % 4 == 0)
]
OTHER_PLACES = [
    (name, arch)
    for number, name, arch in _EVERY
    if cases.every_case()[name].long or (arch not in cases.ARCHS and number % 4)
]


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
