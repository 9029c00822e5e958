"""The machine code of the cases that `make test` leaves out: `make sweep`."""

from __future__ import annotations

import pytest

from tests.kernels.test_figures import OTHER_PLACES, check_figures


@pytest.mark.parametrize(("name", "arch"), OTHER_PLACES)
def test_machine_code_is_at_least_as_good(name: str, arch: str) -> None:
    check_figures(name, arch)
