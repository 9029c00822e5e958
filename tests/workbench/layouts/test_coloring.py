"""The numbers on cells can be read on every colour that a cell may have."""

from __future__ import annotations

import numpy as np
import pytest

from workbench.layouts.coloring import LABEL, Coloring

NUMBERS = np.arange(16.0).reshape(4, 4)


def luminance(color: str) -> float:
    """WCAG 2, "relative luminance"."""
    parts = (int(color[i : i + 2], 16) / 255 for i in (1, 3, 5))
    linear = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return sum(share * part for share, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


@pytest.mark.parametrize("shade", [Coloring.ramp(NUMBERS, 0, 15), Coloring.steps(NUMBERS, "")], ids=["ramp", "steps"])
def test_labels_are_readable_on_every_colour(shade):
    for color in shade.colors:
        light, dark = sorted((luminance(color), luminance(LABEL)), reverse=True)
        assert (light + 0.05) / (dark + 0.05) >= 4.5, color


def test_the_ramp_goes_from_dark_to_light():
    lightness = [luminance(color) for color in Coloring.ramp(NUMBERS, 0, 15).colors]
    assert lightness == sorted(lightness)
