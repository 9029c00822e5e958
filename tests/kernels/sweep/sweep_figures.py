"""The machine code of the cases that take long to compile: `make sweep`."""

from __future__ import annotations

import pytest

from tests.kernels import cases
from tests.kernels.test_figures import check_figures

PLACES = [(name, arch) for name, case in cases.every_case().items() if case.long for arch in case.archs]


@pytest.mark.parametrize(("name", "arch"), PLACES)
def test_machine_code_is_at_least_as_good(name: str, arch: str) -> None:
    check_figures(name, arch)
