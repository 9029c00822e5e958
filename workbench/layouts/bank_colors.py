"""Colours for LDS banks, each different from all others, and light enough for black text.

Banks next to each other differ in hue, those that share a hue in lightness. The colours are taken from OKLCH, where
equal steps look equally large: Björn Ottosson, "A perceptual color space for image processing" (2020).
"""

from __future__ import annotations

from functools import cache
from math import cos, radians, sin

_HUES = 8
_TURN = 7.0  # degrees from one round of hues to the next
_LIGHTEST, _DARKEST = 0.93, 0.62
_LEAST_CHROMA, _MOST_CHROMA = 0.05, 0.15


@cache
def bank_colors(count: int) -> tuple[str, ...]:
    """The colours of a number of banks, as "#rrggbb".

    >>> len(set(bank_colors(32)))
    32
    """
    rounds = -(-count // _HUES)
    return tuple(_color(bank % _HUES, bank // _HUES, rounds) for bank in range(count))


def _color(hue: int, turn: int, rounds: int) -> str:
    share = turn / max(rounds - 1, 1)
    lightness = _LIGHTEST + share * (_DARKEST - _LIGHTEST)
    # Light colours have little room for chroma; three hues apart is easier to tell than one.
    chroma = _LEAST_CHROMA + (0.35 + 0.65 * share) * (_MOST_CHROMA - _LEAST_CHROMA)
    angle = hue * 3 % _HUES * 360 / _HUES + turn * _TURN + 20
    return "#" + "".join(f"{part:02x}" for part in _srgb(lightness, chroma, radians(angle)))


def _srgb(lightness: float, chroma: float, angle: float) -> list[int]:
    """A colour of OKLCH in sRGB; what is outside of it is cut off."""
    a, b = chroma * cos(angle), chroma * sin(angle)
    long = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3
    middle = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3
    short = (lightness - 0.0894841775 * a - 1.2914855480 * b) ** 3
    linear = (
        4.0767416621 * long - 3.3077115913 * middle + 0.2309699292 * short,
        -1.2684380046 * long + 2.6097574011 * middle - 0.3413193965 * short,
        -0.0041960863 * long - 0.7034186147 * middle + 1.7076147010 * short,
    )
    return [round(255 * _gamma(min(max(part, 0.0), 1.0))) for part in linear]


def _gamma(part: float) -> float:
    return 12.92 * part if part <= 0.0031308 else 1.055 * part ** (1 / 2.4) - 0.055
