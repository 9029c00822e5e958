"""An estimated time, and its error."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Estimate:
    """The time of one or more launches, in microseconds.

    error_percent: what 9 of 10 launches of its kind that were compared with a GPU are within (`timing/ACCURACY.md`).
    If none was, is_compared is False, and it is how much longer the launch is if the figures of the model are as far
    off as they may be (`flydsl.arch.timing_figures`), but no less than for other kinds. None where nothing is known.
    """

    time_us: float
    error_percent: float | None = None
    is_compared: bool = True

    def __str__(self) -> str:
        """The time with its error.

        >>> print(Estimate(12.345, 35), Estimate(12.345, 60, is_compared=False), Estimate(12.345), sep=", ")
        12.35 us ± 35 %, 12.35 us ± ~60 %, 12.35 us ± ?
        """
        return f"{self.time_us:.4g} us {self.error}"

    @property
    def error(self) -> str:
        """The error alone."""
        if self.error_percent is None:
            return "± ?"
        return f"± {'' if self.is_compared else '~'}{self.error_percent:.0f} %"

    @property
    def meaning(self) -> str:
        """The error, in words."""
        if self.error_percent is None:
            return "how far off is not known"
        if not self.is_compared:
            return (
                "no launch of its kind was compared with a GPU: ± is what the uncertainty of the model's figures makes"
            )
        return f"9 of 10 launches of its kind that were compared with a GPU are within {self.error_percent:.0f} %"


LEGEND = (
    "± is what 9 of 10 launches of the kind that were compared with a GPU are within; with ~ none was, and it is what "
    "the uncertainty of the model's figures makes; ? is not known"
)
"""The meaning of the errors in a table."""


def together(estimates: Iterable[Estimate]) -> Estimate:
    """The time of launches one after the other, as if they were all off in the same direction.

    >>> print(together([Estimate(10, 20), Estimate(30, 40)]), together([Estimate(10, 20), Estimate(1)]), sep=", ")
    40 us ± 35 %, 11 us ± ?
    """
    found = list(estimates)
    time = sum(one.time_us for one in found)
    errors = [one.error_percent for one in found]
    if not time or None in errors:
        return Estimate(time)
    error = sum(one.time_us * (one.error_percent or 0) for one in found) / time
    return Estimate(time, error, all(one.is_compared for one in found))
