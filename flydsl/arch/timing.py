"""The figures that a model of time needs: latencies, bandwidths, sizes of caches. Each says where it is from.

None of them is fitted to a kernel's time. Cycles of instructions are in `instruction_costs`, occupancy in `occupancy`.

- MT4G: the report of the microbenchmark MT4G (Technical University of Munich) for an MI300X, August 2025: pointer
  chases and streams.
- CDNA 3: AMD CDNA 3 Architecture White Paper, 2023. CDNA 4: its successor, 2025. CDNA 2: its predecessor, 2021.
- LLVM: SISchedule.td of LLVM 22, whose unit is four cycles.
- MAF: AMD's published max-achievable FLOPs. MI300X: "Measuring Max-Achievable FLOPs - Part 2", February 2025; MI325X:
  "Completing the GPU Performance Picture", October 2026.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace

from flydsl.arch.base import Arch
from flydsl.arch.gfx90a import GFX90A
from flydsl.arch.gfx942 import GFX942
from flydsl.arch.gfx950 import GFX950
from flydsl.errors import ArchError


@dataclass(frozen=True)
class Figure:
    """A number with its unit and source. sure: "published", "measured" by others, "scaled" from another GPU's, or
    "assumed" where nobody says."""

    value: float
    unit: str
    source: str
    sure: str

    def __str__(self) -> str:
        return f"{self.value:g} {self.unit} ({self.sure}: {self.source})"


def _published(value: float, unit: str, source: str) -> Figure:
    return Figure(value, unit, source, "published")


def _measured(value: float, unit: str, source: str = "MT4G") -> Figure:
    return Figure(value, unit, source, "measured")


def _assumed(value: float, unit: str, source: str) -> Figure:
    return Figure(value, unit, source, "assumed")


@dataclass(frozen=True)
class Timing:
    """The figures of an accelerator. Caches and LDS are per compute unit or XCD, memory is of the whole."""

    xcds: Figure
    compute_units_per_xcd: Figure
    clock_mhz: Figure
    scalar_latency: Figure
    branch_cycles: Figure
    barrier_cycles: Figure
    matrix_extra_latency: Figure
    lds_latency: Figure
    scalar_cache_latency: Figure
    scalar_miss_latency: Figure
    l1_bytes: Figure
    l1_ways: Figure
    l1_bytes_per_cycle: Figure
    l1_latency: Figure
    l1_address_cycles: Figure
    l2_bytes: Figure
    l2_ways: Figure
    l2_channels: Figure
    l2_read_bytes_per_cycle: Figure
    l2_write_bytes_per_cycle: Figure
    l2_latency: Figure
    infinity_cache_bytes: Figure
    infinity_cache_bytes_per_second: Figure
    infinity_cache_latency_ns: Figure
    memory_read_bytes_per_second: Figure
    memory_write_bytes_per_second: Figure
    memory_latency_ns: Figure
    launch_us: Figure
    dispatch_cycles_per_wave: Figure
    workgroup_start_cycles: Figure
    sustained_matrix_rates: Mapping[str, Figure]
    """By element type, the part of the peak that power allows for long; see `sustained_matrix_rate`."""

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


_MI300X = Timing(
    xcds=_published(8, "dies", "CDNA 3"),
    compute_units_per_xcd=_published(38, "compute units", "CDNA 3"),
    clock_mhz=_published(2100, "MHz", "MI300X data sheet, peak engine clock"),
    scalar_latency=_published(4, "cycles", "LLVM, WriteSALU"),
    branch_cycles=_published(32, "cycles", "LLVM, WriteBranch"),
    barrier_cycles=_assumed(16, "cycles", "a few issue slots of four cycles"),
    matrix_extra_latency=_published(
        8, "cycles", "wait states of VALU reads after MFMA in the CDNA 3 ISA, beyond its passes"
    ),
    lds_latency=_measured(52, "cycles"),
    scalar_cache_latency=_measured(48, "cycles"),
    scalar_miss_latency=_measured(172, "cycles"),
    l1_bytes=_published(32 * 1024, "bytes", "CDNA 3"),
    l1_ways=_published(64, "ways", "CDNA 3"),
    l1_bytes_per_cycle=_published(64, "bytes a cycle", "CDNA 3"),
    l1_latency=_measured(116, "cycles"),
    l1_address_cycles=_published(4, "cycles", "64 lanes, 16 addresses a cycle: GCN 3 ISA"),
    l2_bytes=_published(4 << 20, "bytes", "CDNA 3"),
    l2_ways=_published(16, "ways", "CDNA 3"),
    l2_channels=_published(16, "channels", "CDNA 3"),
    l2_read_bytes_per_cycle=_published(128, "bytes a cycle and channel", "CDNA 3"),
    l2_write_bytes_per_cycle=_published(64, "bytes a cycle and channel", "CDNA 3"),
    l2_latency=_measured(288, "cycles"),
    infinity_cache_bytes=_published(256 << 20, "bytes", "CDNA 3"),
    infinity_cache_bytes_per_second=_measured(
        11.9e12, "bytes a second", "Chips and Cheese, Testing AMD's Giant MI300X; 17.2e12 is the peak of CDNA 3"
    ),
    infinity_cache_latency_ns=_measured(237, "ns", "MT4G: 288 + 209 cycles at 2.1 GHz"),
    memory_read_bytes_per_second=_measured(3.962e12, "bytes a second", "MT4G: 3690 GiB/s, 75 % of the peak"),
    memory_write_bytes_per_second=_measured(4.420e12, "bytes a second", "MT4G: 4117 GiB/s, 83 % of the peak"),
    memory_latency_ns=_measured(428, "ns", "MT4G: 900 cycles at 2.1 GHz"),
    launch_us=_assumed(1.5, "us", "what profilers show for empty kernels; nobody publishes it for these GPUs"),
    dispatch_cycles_per_wave=_assumed(4, "cycles", "a wave for each issue slot of a die's dispatcher"),
    workgroup_start_cycles=_assumed(200, "cycles", "end of a workgroup until the next one's first instruction"),
    sustained_matrix_rates={
        "bf16": _published(0.542, "of the peak", "MAF of the MI300X: 708 of 1307 TFLOPS"),
        "f16": _published(0.500, "of the peak", "MAF of the MI300X: 654 of 1307 TFLOPS"),
        "8": _published(0.487, "of the peak", "MAF of the MI300X in FP8: 1273 of 2615 TFLOPS"),
    },
)

_OF_MI325X = "MAF of the MI325X, since that of the MI355X is not published"

_MI355X = replace(
    _MI300X,
    compute_units_per_xcd=_published(32, "compute units", "CDNA 4"),
    clock_mhz=_published(2400, "MHz", "MI355X data sheet, peak engine clock"),
    memory_read_bytes_per_second=Figure(5.98e12, "bytes a second", "75 % of 8e12, as on the MI300X", "scaled"),
    memory_write_bytes_per_second=Figure(6.67e12, "bytes a second", "83 % of 8e12, as on the MI300X", "scaled"),
    sustained_matrix_rates={
        "bf16": Figure(0.639, "of the peak", f"{_OF_MI325X}: 831 of 1300 TFLOPS", "scaled"),
        "f16": Figure(0.605, "of the peak", f"{_OF_MI325X}: 787 of 1300 TFLOPS", "scaled"),
        "8": Figure(0.540, "of the peak", f"{_OF_MI325X}: 1409 of 2610 TFLOPS", "scaled"),
    },
)

_MI250X = replace(
    _MI300X,
    xcds=_published(1, "dies", "CDNA 2: one of the two of an MI250X"),
    compute_units_per_xcd=_published(110, "compute units", "CDNA 2"),
    clock_mhz=_published(1700, "MHz", "MI250X data sheet"),
    l1_bytes=_published(16 * 1024, "bytes", "CDNA 2"),
    l2_bytes=_published(8 << 20, "bytes", "CDNA 2"),
    l2_channels=_published(32, "channels", "CDNA 2"),
    infinity_cache_bytes=_published(0, "bytes", "CDNA 2 has none"),
    memory_read_bytes_per_second=_measured(
        1.30e12, "bytes a second", "BabelStream on a die of the MI250X, 81 % of the peak"
    ),
    memory_write_bytes_per_second=_measured(1.30e12, "bytes a second", "BabelStream on a die of the MI250X"),
    memory_latency_ns=_assumed(428, "ns", "as on the MI300X"),
    sustained_matrix_rates={},
)

_TIMINGS: Mapping[str, Timing] = {GFX942.name: _MI300X, GFX950.name: _MI355X, GFX90A.name: _MI250X}


def is_timed(arch: Arch) -> bool:
    """True if the project has the figures of an architecture."""
    return arch.name in _TIMINGS


def timing(arch: Arch) -> Timing:
    """The figures of the accelerator that stands for an architecture. ArchError where the project has none."""
    if arch.name not in _TIMINGS:
        raise ArchError(
            f"latencies and bandwidths of {arch.name} are not known: its launches cannot be timed",
            hint=f"known: {', '.join(_TIMINGS)}",
        )
    return _TIMINGS[arch.name]
