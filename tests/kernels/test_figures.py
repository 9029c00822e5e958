"""The machine code of the kernel library against that of FlyDSL 0.2.2, and the table that shows both."""

from __future__ import annotations

import re

import pytest

from tests.kernels import cases
from tools import kernel_table

_TABLE = {
    (name, arch): int(instructions)
    for name, arch, instructions in re.findall(
        r"^\| `(.+?)` \| (\w+) \| (\d+) / ", kernel_table.TABLE.read_text(), re.MULTILINE
    )
}
_EVERY = [(name, arch) for name, case in cases.every_case().items() for arch in case.archs]


def smallest(places: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Of every kernel the case with the fewest instructions, as the table has them, on one of its architectures: the
    first for one kernel, the next for another."""
    by_size = sorted(places, key=lambda place: _TABLE.get(place, 0), reverse=True)
    of_kernels: dict[str, dict[str, tuple[str, str]]] = {}
    for name, arch in by_size:
        of_kernels.setdefault(cases.every_case()[name].kernel, {})[arch] = name, arch
    return [list(archs.values())[number % len(archs)] for number, archs in enumerate(of_kernels.values())]


# A case is compiled for a second and more, so the rest is looked at by `make sweep`.
PLACES = smallest(_EVERY)
OTHER_PLACES = [place for place in _EVERY if place not in PLACES]


@pytest.mark.parametrize(("name", "arch"), PLACES)
@pytest.mark.diagonal(4)
def test_machine_code_is_at_least_as_good(name: str, arch: str) -> None:
    """Instructions, VGPRs and scratch at most the original's, occupancy at least, as many MFMA; the table is true.

    A change of the compiler moves an instruction here and there, for which nobody has to write the table anew.
    """
    check_figures(name, arch)


def check_figures(name: str, arch: str) -> None:
    found = cases.measured(cases.every_case()[name], arch)
    assert (name, arch) in _TABLE, "run `make table`"
    assert _TABLE[name, arch] == pytest.approx(found.instructions, rel=0.05), "run `make table`"
    original = cases.originals().get((name, arch))
    if original is not None:
        missed = found.misses(original)
        known = cases.known_misses().get((name, arch))
        assert bool(missed) == (known is not None), f"misses {missed}, listed: {known}"


def test_every_miss_is_one_of_a_case() -> None:
    assert not [place for place in cases.known_misses() if place[0] not in cases.every_case()]
