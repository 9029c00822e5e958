"""Tolerances: by how much a figure may be worse than it was."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from flydsl.errors import ArgumentError

_AMOUNT = re.compile(r"(\d+(?:\.\d+)?)\s*(%?)")


@dataclass(frozen=True)
class Tolerance:
    """part: of what the figure was. amount: in its own unit."""

    part: float = 0.0
    amount: float = 0.0

    def of(self, before: float) -> float:
        """By how much a figure of this value may be worse."""
        return self.amount + self.part * before


Tolerances = Mapping[str, Tolerance]

NONE = Tolerance()
DEFAULT: Tolerances = {"time_us": Tolerance(part=0.03)}
"""Figure -> its tolerance; none where it is not here."""


def tolerance(amount: Any) -> Tolerance:
    """A tolerance as people write it: "5%" of what the figure was, or a number in its own unit.

    Raises ArgumentError for anything else.

    >>> tolerance("5 %"), tolerance(4)
    (Tolerance(part=0.05, amount=0.0), Tolerance(part=0.0, amount=4.0))
    """
    match = _AMOUNT.fullmatch(str(amount).strip())
    if match is None:
        raise ArgumentError(
            f"a tolerance must be a part or a number, got {amount!r}", hint='write "5%", or 4 for 4 of its unit'
        )
    number = float(match[1])
    return Tolerance(part=number / 100) if match[2] else Tolerance(amount=number)


def listed(lines: Iterable[str]) -> Tolerances:
    """Tolerances as a list of texts has them. Raises ArgumentError for a text of another form.

    >>> listed(["time_us = 5%", "vgprs = 4"])["vgprs"].of(20)
    4.0
    """
    found = {}
    for line in lines:
        name, equals, amount = (part.strip() for part in line.partition("="))
        if not (name and equals):
            raise ArgumentError(f"a tolerance must be of a figure, got {line!r}", hint='write "time_us = 5%"')
        found[name] = tolerance(amount)
    return found
