"""Figures of the model of time, and the list of those that a GPU has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace

_TIMES = ("cycles", "ns", "us")
_OFF = {"published": 0.0, "measured": 0.1, "fitted": 0.2, "scaled": 0.3, "assumed": 1.0}
"""How far off a figure may be: others measure within a tenth, one that is fitted to times of kernels also takes in
whatever else they lose, generations differ by less than a third; of what is assumed, nothing is known but its order of
magnitude."""


@dataclass(frozen=True)
class Figure:
    """A number with its unit and source. sure: "published", "measured" by others, "fitted" to times of kernels,
    "scaled" from another GPU's, or "assumed" where no source has it."""

    value: float
    unit: str
    source: str
    sure: str

    @property
    def slower(self) -> Figure:
        """The figure as far off as one of its kind may be, in the direction that costs time.

        >>> assumed(200, "cycles", "").slower.value, measured(4e12, "bytes a second").slower.value
        (400.0, 3636363636363.636)
        """
        factor = 1 + _OFF[self.sure]
        if "bytes a" in self.unit or "of the peak" in self.unit:
            return replace(self, value=self.value / factor)
        return replace(self, value=self.value * factor) if self.unit in _TIMES else self

    def __str__(self) -> str:
        return f"{self.value:g} {self.unit} ({self.sure}: {self.source})"


def published(value: float, unit: str, source: str) -> Figure:
    return Figure(value, unit, source, "published")


def measured(value: float, unit: str, source: str = "MT4G") -> Figure:
    return Figure(value, unit, source, "measured")


def fitted(value: float, unit: str, source: str) -> Figure:
    return Figure(value, unit, source, "fitted")


def scaled(value: float, unit: str, source: str) -> Figure:
    return Figure(value, unit, source, "scaled")


def assumed(value: float, unit: str, source: str) -> Figure:
    return Figure(value, unit, source, "assumed")


@dataclass(frozen=True)
class Timing:
    """The figures of an accelerator. Caches and LDS are per compute unit or XCD, memory is of the whole.

    A compute unit is what a workgroup runs on: of RDNA, a workgroup processor. vector_caches, lds_pipes: of a compute
    unit; a cache serves the SIMDs next to it, a pipe the workgroups whose LDS is behind it. l1_address_cycles: of an
    access of a wave of the usual size. lds_port_in_bytes: what a pair of SIMDs sends to the LDS in a cycle, addresses
    of four bytes included; lds_port_out_bytes: what it gets from there. l2_atomic_cycles: for which an atomic operation
    holds a channel, whatever part of 64 bytes it changes. launch_us: what a launch takes beside its work among repeated
    ones, cold_launch_us: alone, on a GPU that was idle. *_latency: cycles from issue to the first instruction that
    can use the result.
    """

    xcds: Figure
    compute_units_per_xcd: Figure
    clock_mhz: Figure
    issue_cycles: Figure
    vector_latency: Figure
    transcendental_latency: Figure
    double_latency: Figure
    scalar_latency: Figure
    scalar_float_latency: Figure
    branch_cycles: Figure
    barrier_cycles: Figure
    matrix_extra_latency: Figure
    lds_pipes: Figure
    lds_bytes_per_cycle: Figure
    lds_port_in_bytes: Figure
    lds_port_out_bytes: Figure
    lds_latency: Figure
    scalar_cache_latency: Figure
    scalar_miss_latency: Figure
    vector_caches: Figure
    l1_bytes: Figure
    l1_ways: Figure
    l1_bytes_per_cycle: Figure
    l1_fill_bytes_per_cycle: Figure
    l1_latency: Figure
    l1_address_cycles: Figure
    l2_bytes: Figure
    l2_ways: Figure
    l2_channels: Figure
    l2_read_bytes_per_cycle: Figure
    l2_write_bytes_per_cycle: Figure
    l2_atomic_cycles: Figure
    l2_latency: Figure
    infinity_cache_bytes: Figure
    infinity_cache_bytes_per_second: Figure
    infinity_cache_latency_ns: Figure
    memory_read_bytes_per_second: Figure
    memory_write_bytes_per_second: Figure
    memory_latency_ns: Figure
    launch_us: Figure
    cold_launch_us: Figure
    dispatch_cycles_per_wave: Figure
    workgroup_start_cycles: Figure
    sustained_matrix_rates: Mapping[str, Figure]
    """By element type, the part of the peak that power allows for long; see `sustained_matrix_rate`."""

    def slower(self) -> Timing:
        """The same accelerator if all that is not known for certain were to its disadvantage."""
        rates = {name: figure.slower for name, figure in self.sustained_matrix_rates.items()}
        single = {name: figure.slower for name, figure in self.figures() if "[" not in name}
        return replace(self, sustained_matrix_rates=rates, **single)

    def figures(self) -> Iterator[tuple[str, Figure]]:
        """Every figure with its name."""
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, Figure):
                yield field.name, value
            else:
                yield from ((f"{field.name}[{key}]", figure) for key, figure in value.items())

    def sustained_matrix_rate(self, element: str) -> float:
        """The part of the peak rate of matrix instructions that a long launch has: power limits the clock.

        element: as in a mnemonic; of those without a figure of their own, 1.
        """
        for name, figure in self.sustained_matrix_rates.items():
            if name in element:
                return figure.value
        return 1.0
