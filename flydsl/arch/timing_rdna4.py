"""The figures of RDNA 4: Radeon RX 9070 XT and RX 9060 XT. A compute unit of the model is a workgroup processor (WGP).

Little of this GPU is published, so many figures are scaled from its predecessors, or assumed:

- LLVM: GFX12SpeedModel in SISchedule.td. ACO: the cycles that Mesa's compiler estimates with (aco_statistics.cpp).
- RDNA 4: "RDNA 4" Instruction Set Architecture, and AMD's specifications of the RX 9070 XT and RX 9060 XT.
- RDNA: AMD RDNA Architecture White Paper, 2019.
- Chips and Cheese, RDNA 4: "AMD's RDNA4 Architecture", February 2025: the L1 of a shader array is gone, an L2 slice
  has twice the banks. RDNA 3: "Latency Testing is Hard", June 2023: 150.3 ns to the Infinity Cache of an RX 7900 XTX.
  RDNA 2: its latencies of an RX 6900 XT (2.25 GHz): the Infinity Cache 123.2 ns, the L2 20 ns less, the L0 another 66.
"""

from __future__ import annotations

from dataclasses import replace

from flydsl.arch.timing_figures import Figure, Timing, assumed, measured, published

_RDNA2 = "Chips and Cheese on an RX 6900 XT"


def _scaled(value: float, unit: str, source: str) -> Figure:
    return Figure(value, unit, source, "scaled")


RX_9070_XT = Timing(
    xcds=published(1, "dies", "RX 9070 XT"),
    compute_units_per_xcd=published(32, "workgroup processors", "RX 9070 XT: 64 compute units, two in each"),
    clock_mhz=published(2970, "MHz", "RX 9070 XT, boost clock"),
    issue_cycles=published(1, "cycles", "one instruction of a wave a cycle: RDNA"),
    vector_latency=published(5, "cycles", "LLVM, Write32Bit"),
    transcendental_latency=published(9, "cycles", "LLVM, WriteTrans32"),
    double_latency=published(38, "cycles", "LLVM, WriteDouble"),
    scalar_latency=published(2, "cycles", "LLVM, WriteSALU"),
    scalar_float_latency=published(4, "cycles", "LLVM, WriteSFPU"),
    branch_cycles=published(32, "cycles", "LLVM, WriteBranch"),
    barrier_cycles=assumed(4, "cycles", "a few issue slots"),
    matrix_extra_latency=assumed(4, "cycles", "the depth of the vector ALU, which executes them, beyond its first"),
    lds_pipes=published(2, "halves", "RDNA: an LDS has two halves of 32 banks, one next to each pair of SIMDs"),
    lds_bytes_per_cycle=published(128, "bytes a cycle and half", "RDNA; HIP's documentation: 256 of 64 banks"),
    lds_port_in_bytes=_scaled(
        128, "bytes a cycle", "tinygrad's traces of RDNA 3: a store of 16 bytes is issued in 5 cycles, one of 8 in 3"
    ),
    lds_port_out_bytes=published(128, "bytes a cycle", "RDNA: half of what 64 banks give"),
    lds_latency=_scaled(52, "cycles", "MT4G on an MI300X; 48 to 52 on all of CDNA"),
    scalar_cache_latency=assumed(30, "cycles", "ACO, for loads that hit"),
    scalar_miss_latency=assumed(200, "cycles", "ACO, for loads that miss"),
    vector_caches=published(2, "caches", "RDNA: one for each pair of SIMDs"),
    l1_bytes=published(32 * 1024, "bytes", "RX 9070 XT, as its driver says"),
    l1_ways=_scaled(32, "ways", "as that of RDNA 2"),
    l1_bytes_per_cycle=published(128, "bytes a cycle", "RDNA: a line of the L0 a cycle"),
    l1_fill_bytes_per_cycle=published(64, "bytes a cycle", "RDNA: from the next cache to an L0"),
    l1_latency=_scaled(83, "cycles", f"{_RDNA2}: 37 ns at 2.25 GHz"),
    l1_address_cycles=assumed(1, "cycles", "32 addresses a cycle, twice those of GCN"),
    l2_bytes=published(8 << 20, "bytes", "RX 9070 XT"),
    l2_ways=published(16, "ways", "RDNA"),
    l2_channels=_scaled(16, "channels", "as many as there are coherent stations and, on RDNA 2, slices"),
    l2_read_bytes_per_cycle=_scaled(128, "bytes a cycle and channel", "64 of RDNA, with twice the banks of a slice"),
    l2_write_bytes_per_cycle=_scaled(128, "bytes a cycle and channel", "64 of RDNA, with twice the banks of a slice"),
    l2_latency=_scaled(232, "cycles", f"{_RDNA2}: 103 ns at 2.25 GHz"),
    infinity_cache_bytes=published(64 << 20, "bytes", "RX 9070 XT"),
    infinity_cache_bytes_per_second=assumed(2.05e12, "bytes a second", "16 stations of 64 bytes a cycle at 2 GHz"),
    infinity_cache_latency_ns=_scaled(150, "ns", "Chips and Cheese on an RX 7900 XTX, through the vector caches"),
    memory_read_bytes_per_second=assumed(
        0.94 * 640e9, "bytes a second", "640e9 less refresh and turnarounds: nobody publishes a stream of this GPU"
    ),
    memory_write_bytes_per_second=assumed(0.94 * 640e9, "bytes a second", "as for reads"),
    memory_latency_ns=measured(
        278, "ns", "hipfire's chase through 128 MiB on gfx1201: 206 ns, with 72 MiB in caches at 150 ns"
    ),
    launch_us=assumed(1.5, "us", "what profilers show for empty kernels; nobody publishes it for this GPU"),
    dispatch_cycles_per_wave=assumed(1, "cycles", "four shader engines, each starting a wave in four cycles"),
    workgroup_start_cycles=assumed(200, "cycles", "end of a workgroup until the next one's first instruction"),
    sustained_matrix_rates={},
)

RX_9060_XT = replace(
    RX_9070_XT,
    compute_units_per_xcd=published(16, "workgroup processors", "RX 9060 XT: 32 compute units"),
    clock_mhz=published(3130, "MHz", "RX 9060 XT, boost clock"),
    l2_bytes=published(4 << 20, "bytes", "RX 9060 XT"),
    l2_channels=_scaled(8, "channels", "half of an RX 9070 XT"),
    infinity_cache_bytes=published(32 << 20, "bytes", "RX 9060 XT"),
    infinity_cache_bytes_per_second=assumed(1.02e12, "bytes a second", "8 stations of 64 bytes a cycle at 2 GHz"),
    memory_read_bytes_per_second=assumed(0.94 * 320e9, "bytes a second", "as on the RX 9070 XT"),
    memory_write_bytes_per_second=assumed(0.94 * 320e9, "bytes a second", "as on the RX 9070 XT"),
    dispatch_cycles_per_wave=assumed(2, "cycles", "two shader engines, each starting a wave in four cycles"),
)
