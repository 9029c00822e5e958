"""What the figures of the model of time and the products must agree on."""

from __future__ import annotations

import pytest

from flydsl.arch import ARCHS, Arch
from flydsl.arch.products import product_of
from flydsl.arch.timing import is_timed, timing


@pytest.mark.parametrize("arch", [arch for arch in ARCHS if is_timed(arch)], ids=lambda arch: arch.name)
def test_no_memory_is_faster_than_that_of_its_product(arch: Arch) -> None:
    figures, peak = timing(arch), 1e9 * product_of(arch.name).memory_gb_per_s
    for figure in (figures.memory_read_bytes_per_second, figures.memory_write_bytes_per_second):
        assert 0.5 * peak < figure.value <= peak


@pytest.mark.parametrize("name", ["rx7600", "rx7900xtx", "rx9060xt", "rx9070xt"])
def test_gddr6_gives_the_same_share_of_its_peak(name: str) -> None:
    product = product_of(name)
    arch = next(arch for arch in ARCHS if arch.name == product.arch)
    assert timing(arch, product).memory_read_bytes_per_second.value == pytest.approx(0.94e9 * product.memory_gb_per_s)
