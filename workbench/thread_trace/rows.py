"""The rows of a timeline: the slots of the SIMDs, each with the waves that ran in it one after the other."""

from __future__ import annotations

from dataclasses import dataclass

from flydsl.simulator.timing import Trace
from flydsl.simulator.timing.perfetto import group_name


@dataclass(frozen=True)
class Row:
    """A slot. group: the compute unit. waves: rows of `Trace.waves`, in order; they do not overlap."""

    group: str
    name: str
    waves: tuple[int, ...]


def rows(trace: Trace) -> list[Row]:
    """The slots in order. Waves that overlap although they are said to have had the same slot get rows of their own."""
    found: list[tuple[tuple[int, ...], list[int]]] = []
    places = [tuple(int(row[name]) for name in ("xcd", "cu", "simd", "slot")) for row in trace.waves]
    for wave in sorted(range(len(trace.waves)), key=lambda w: (places[w], int(trace.waves["start"][w]))):
        same = (waves for place, waves in found if place == places[wave] and _ends_before(trace, waves[-1], wave))
        free = next(same, None)
        if free is None:
            found.append((places[wave], [wave]))
        else:
            free.append(wave)
    return [
        Row(group_name(trace, waves[0]), f"SIMD {place[2]} slot {place[3]}", tuple(waves)) for place, waves in found
    ]


def _ends_before(trace: Trace, wave: int, other: int) -> bool:
    return int(trace.waves["end"][wave]) <= int(trace.waves["start"][other])
