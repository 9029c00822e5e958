"""The ink of pictures that are saved without paper."""

from __future__ import annotations

import pytest

from workbench.kit.plot_theme import PLOT, SAVED_INK


def luminance(color: str) -> float:
    channels = (int(color[i : i + 2], 16) / 255 for i in (1, 3, 5))
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return sum(weight * c for weight, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


@pytest.mark.parametrize("page", ["#ffffff", "#111111"], ids=["light", "dark"])
def test_a_saved_picture_can_be_read_on_any_page(page: str) -> None:
    assert PLOT["font"] == {"color": SAVED_INK}
    low, high = sorted((luminance(SAVED_INK), luminance(page)))
    assert (high + 0.05) / (low + 0.05) > 4.3
