"""Live ranges: the runs of instructions in which each register is in use."""

from __future__ import annotations

from collections.abc import Sequence

from flydsl.hsaco.register_uses import RegisterSet
from workbench.machine_code.liveness import Pressure


def live_ranges(pressures: Sequence[Pressure]) -> dict[str, list[tuple[int, int]]]:
    """The runs of instructions at which each register is in use: the first and the last of each run.

    >>> from flydsl.hsaco.register_uses import registers_of
    >>> at = [registers_of(text) for text in ("v0", "v0 v1", "v1", "", "v0")]
    >>> live_ranges([Pressure(registers, registers) for registers in at])
    {'v0': [(0, 1), (4, 4)], 'v1': [(1, 2)]}
    """
    found: dict[str, list[tuple[int, int]]] = {}
    since: dict[str, int] = {}
    before = everything = 0
    for index, pressure in enumerate([*pressures, Pressure(RegisterSet(0), RegisterSet(0))]):
        now = pressure.before | pressure.after
        for name in RegisterSet(now & ~before).names():
            since[name] = index
        for name in RegisterSet(before & ~now).names():
            found.setdefault(name, []).append((since.pop(name), index - 1))
        before = now
        everything |= now
    return {name: found[name] for name in RegisterSet(everything).names()}
