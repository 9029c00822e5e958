"""The numbers on cells can be read on every colour that a cell may have."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from workbench.layouts.bank_colors import bank_colors
from workbench.layouts.coloring import LABEL, Coloring

NUMBERS = np.arange(16.0).reshape(4, 4)


def luminance(color: str) -> float:
    """WCAG 2, "relative luminance"."""
    parts = (int(color[i : i + 2], 16) / 255 for i in (1, 3, 5))
    linear = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return sum(share * part for share, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


SHADES = {
    "ramp": Coloring.ramp(NUMBERS, 0, 15),
    "steps": Coloring.steps(NUMBERS, ""),
    "32 banks": Coloring.distinct(NUMBERS, bank_colors(32), ""),
    "64 banks": Coloring.distinct(NUMBERS, bank_colors(64), ""),
}


@pytest.mark.parametrize("shade", SHADES.values(), ids=SHADES.keys())
def test_labels_are_readable_on_every_colour(shade):
    for color in shade.colors:
        light, dark = sorted((luminance(color), luminance(LABEL)), reverse=True)
        assert (light + 0.05) / (dark + 0.05) >= 4.5, color


def test_the_ramp_goes_from_dark_to_light():
    lightness = [luminance(color) for color in Coloring.ramp(NUMBERS, 0, 15).colors]
    assert lightness == sorted(lightness)


@pytest.mark.parametrize(("count", "least"), [(32, 20), (64, 12)])
def test_every_bank_has_a_colour_of_its_own(count, least):
    """A difference of 12 in some part of 255 is seen side by side; the numbers say it too."""
    colors = [[int(color[i : i + 2], 16) for i in (1, 3, 5)] for color in bank_colors(count)]
    nearest = min(max(abs(a - b) for a, b in zip(one, other, strict=True)) for one, other in combinations(colors, 2))
    assert nearest >= least
