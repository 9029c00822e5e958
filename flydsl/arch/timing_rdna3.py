"""The figures of RDNA 3 and 3.5. A compute unit of the model is a workgroup processor (WGP).

More is measured of the RX 7900 XTX than of RDNA 4; of the others what differs is published, or scaled from it:

- LLVM: GFX11SpeedModel in SISchedule.td. ACO: the cycles that Mesa's compiler estimates with (aco_statistics.cpp).
- RDNA: AMD RDNA Architecture White Paper, 2019. ROCm: "AMD GPU specifications" of its documentation.
- A chase: loads that depend on each other, over 32 KiB to 24 GiB of an RX 7900 XTX; a published table of a vector cache
  of 32 KiB, 256 KiB of L1, 6 MiB of L2 and 96 MiB of Infinity Cache: 81, 136, 226.6 and 575.5 cycles.
- Chips and Cheese, "Latency Testing is Hard", June 2023: 150.3 ns to the Infinity Cache of an RX 7900 XTX in its higher
  power state, by vector loads.
- Strix Halo: lhl/strix-halo-testing on GitHub, 2025: copies of 212.6 GB/s, 221 GB/s in memtest_vulkan.

The L1 of a shader array, 256 KiB between the L0 and the L2, is not in the model: what it would keep comes from the L2.
"""

from __future__ import annotations

from dataclasses import replace

from flydsl.arch.products import PRODUCTS, Product
from flydsl.arch.timing_figures import Figure, Timing, assumed, measured, published, scaled

_CHASE = "a chase on an RX 7900 XTX"
_ROCM = "ROCm, AMD GPU specifications"


def memory_bandwidth(product: Product, source: str) -> Figure:
    """The bytes a second that GDDR6 gives: its peak less refresh and turnarounds."""
    return assumed(0.94 * 1e9 * product.memory_gb_per_s, "bytes a second", source)


RX_7900_XTX = Timing(
    xcds=published(1, "dies", "RX 7900 XTX, with compute units"),
    compute_units_per_xcd=published(48, "workgroup processors", f"{_ROCM}: 96 compute units, two in each"),
    clock_mhz=published(2500, "MHz", "RX 7900 XTX, boost clock"),
    issue_cycles=published(1, "cycles", "one instruction of a wave a cycle: RDNA"),
    vector_latency=published(5, "cycles", "LLVM, Write32Bit"),
    transcendental_latency=published(10, "cycles", "LLVM, WriteTrans32"),
    double_latency=published(38, "cycles", "LLVM, WriteDouble"),
    scalar_latency=published(2, "cycles", "LLVM, WriteSALU"),
    scalar_float_latency=published(4, "cycles", "LLVM, WriteSFPU"),
    branch_cycles=published(32, "cycles", "LLVM, WriteBranch"),
    barrier_cycles=assumed(4, "cycles", "a few issue slots"),
    matrix_extra_latency=measured(
        2, "cycles", "AMD's tensilelite on gfx1151: 34 from one WMMA to the next that needs it, 32 of them its own"
    ),
    lds_pipes=published(2, "halves", "RDNA: an LDS has two halves of 32 banks, one next to each pair of SIMDs"),
    lds_bytes_per_cycle=published(128, "bytes a cycle and half", "RDNA; HIP's documentation: 256 of 64 banks"),
    lds_port_in_bytes=measured(
        128, "bytes a cycle", "tinygrad's traces of RDNA 3: a store of 16 bytes is issued in 5 cycles, one of 8 in 3"
    ),
    lds_port_out_bytes=published(128, "bytes a cycle", "RDNA: half of what 64 banks give"),
    lds_latency=scaled(52, "cycles", "MT4G on an MI300X; 48 to 52 on all of CDNA"),
    scalar_cache_latency=assumed(30, "cycles", "ACO, for loads that hit"),
    scalar_miss_latency=assumed(200, "cycles", "ACO, for loads that miss"),
    vector_caches=published(2, "caches", "RDNA: one for each pair of SIMDs"),
    l1_bytes=published(32 * 1024, "bytes", f"{_ROCM}: L0 vector cache"),
    l1_ways=scaled(32, "ways", "as that of RDNA 2"),
    l1_bytes_per_cycle=published(128, "bytes a cycle", "RDNA: a line of the L0 a cycle"),
    l1_fill_bytes_per_cycle=published(64, "bytes a cycle", "RDNA: from the next cache to an L0"),
    l1_latency=measured(81, "cycles", _CHASE),
    l1_address_cycles=assumed(1, "cycles", "32 addresses a cycle, twice those of GCN"),
    l2_bytes=published(6 << 20, "bytes", _ROCM),
    l2_ways=published(16, "ways", "RDNA"),
    l2_channels=scaled(24, "channels", "one for each 256 KiB, as on RDNA 2"),
    l2_read_bytes_per_cycle=published(64, "bytes a cycle and channel", "RDNA"),
    l2_write_bytes_per_cycle=published(64, "bytes a cycle and channel", "RDNA"),
    l2_atomic_cycles=assumed(1, "cycles", "as a store of 64 bytes"),
    l2_latency=measured(227, "cycles", _CHASE),
    infinity_cache_bytes=published(96 << 20, "bytes", _ROCM),
    infinity_cache_bytes_per_second=published(3.5e12, "bytes a second", "AMD, effective bandwidth with the memory's"),
    infinity_cache_latency_ns=measured(150.3, "ns", "Chips and Cheese on an RX 7900 XTX, through the vector caches"),
    memory_read_bytes_per_second=memory_bandwidth(
        PRODUCTS["rx7900xtx"], "960e9 less refresh and turnarounds: no published stream was found"
    ),
    memory_write_bytes_per_second=memory_bandwidth(PRODUCTS["rx7900xtx"], "as for reads"),
    memory_latency_ns=scaled(
        278, "ns", "hipfire's chase on gfx1201; the chase here has 825 ns over 24 GiB, most of it translation"
    ),
    launch_us=assumed(1.5, "us", "what profilers show for empty kernels; not published for this GPU"),
    cold_launch_us=scaled(3.8, "us", "as on an Instinct GPU: TransferBench, pull request 297"),
    dispatch_cycles_per_wave=assumed(1, "cycles", "six shader engines, each starting a wave in four cycles"),
    workgroup_start_cycles=assumed(200, "cycles", "end of a workgroup until the next one's first instruction"),
    sustained_matrix_rates={},
)


def _smaller(name: str, infinity_cache_mib: int, infinity_cache_tera: Figure, engines: int) -> Timing:
    """The figures of another product: its sizes, and what is scaled to them."""
    product = PRODUCTS[name]
    memory = memory_bandwidth(product, "as on the RX 7900 XTX")
    return replace(
        RX_7900_XTX,
        compute_units_per_xcd=published(product.multiprocessors, "workgroup processors", _ROCM),
        clock_mhz=published(product.clock_mhz, "MHz", f"{product.name}, boost clock"),
        l2_bytes=published(product.l2_mib << 20, "bytes", _ROCM),
        l2_channels=scaled(4 * product.l2_mib, "channels", "one for each 256 KiB, as on RDNA 2"),
        l1_latency=scaled(81, "cycles", _CHASE),
        l2_latency=scaled(227, "cycles", _CHASE),
        infinity_cache_bytes=published(infinity_cache_mib << 20, "bytes", _ROCM),
        infinity_cache_bytes_per_second=infinity_cache_tera,
        infinity_cache_latency_ns=scaled(150.3, "ns", "Chips and Cheese on an RX 7900 XTX"),
        memory_read_bytes_per_second=memory,
        memory_write_bytes_per_second=memory,
        dispatch_cycles_per_wave=assumed(4 // min(engines, 4), "cycles", "each shader engine: a wave in four cycles"),
    )


def _of_chiplets(tera: float, count: int) -> Figure:
    return scaled(tera * 1e12, "bytes a second", f"3.5e12 of the RX 7900 XTX with six memory dies, here {count}")


_NO_CACHE = published(0, "bytes a second", f"{_ROCM}: there is none")
_LPDDR_LATENCY = assumed(350, "ns", "LPDDR5X answers later than GDDR6; by how much is not published")

RX_7800_XT = _smaller("rx7800xt", 64, _of_chiplets(2.33, 4), 3)
RX_7600 = replace(
    _smaller("rx7600", 32, _of_chiplets(1.17, 2), 2),
    infinity_cache_latency_ns=scaled(95, "ns", "Tom's Hardware: that of the RX 7900 XTX takes up to 58 % longer"),
)
RADEON_780M = replace(_smaller("780m", 0, _NO_CACHE, 1), memory_latency_ns=_LPDDR_LATENCY)
RADEON_890M = replace(_smaller("890m", 0, _NO_CACHE, 1), memory_latency_ns=_LPDDR_LATENCY)
RADEON_860M = replace(_smaller("860m", 0, _NO_CACHE, 1), memory_latency_ns=_LPDDR_LATENCY)
_STRIX_HALO = measured(215e9, "bytes a second", "Strix Halo: copies of 212.6e9, and 221e9 in memtest_vulkan")
RADEON_8060S = replace(
    _smaller("8060s", 32, assumed(5e11, "bytes a second", "Chips and Cheese saw 335e9; its peak is not published"), 2),
    memory_read_bytes_per_second=_STRIX_HALO,
    memory_write_bytes_per_second=_STRIX_HALO,
    memory_latency_ns=_LPDDR_LATENCY,
)
