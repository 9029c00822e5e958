"""The figures of RDNA 4: Radeon RX 9070 XT and RX 9060 XT. A compute unit of the model is a workgroup processor (WGP).

Little of this GPU is published, so many figures are scaled from its predecessors, or assumed. Those that are equal to
RDNA 3's stand in `timing_rdna3`, with their sources:

- LLVM: GFX12SpeedModel in SISchedule.td, which has most of GFX11SpeedModel's latencies.
- RDNA 4: "RDNA 4" Instruction Set Architecture, and AMD's specifications of the RX 9070 XT and RX 9060 XT.
- RDNA: AMD RDNA Architecture White Paper, 2019.
- Chips and Cheese, RDNA 4: "AMD's RDNA4 Architecture", February 2025: the L1 of a shader array is gone, an L2 slice
  has twice the banks. RDNA 3: "Latency Testing is Hard", June 2023: 150.3 ns to the Infinity Cache of an RX 7900 XTX.
  RDNA 2: its latencies of an RX 6900 XT (2.25 GHz): the Infinity Cache 123.2 ns, the L2 20 ns less, the L0 another 66.
"""

from __future__ import annotations

from dataclasses import replace

from flydsl.arch.products import PRODUCTS
from flydsl.arch.timing_figures import assumed, measured, published, scaled
from flydsl.arch.timing_rdna3 import RX_7900_XTX, memory_bandwidth

_RDNA2 = "Chips and Cheese on an RX 6900 XT"

RX_9070_XT = replace(
    RX_7900_XTX,
    xcds=published(1, "dies", "RX 9070 XT"),
    compute_units_per_xcd=published(32, "workgroup processors", "RX 9070 XT: 64 compute units, two in each"),
    clock_mhz=published(2970, "MHz", "RX 9070 XT, boost clock"),
    transcendental_latency=published(9, "cycles", "LLVM, WriteTrans32"),
    matrix_extra_latency=assumed(4, "cycles", "the depth of the vector ALU, which executes them, beyond its first"),
    lds_port_in_bytes=scaled(
        128, "bytes a cycle", "tinygrad's traces of RDNA 3: a store of 16 bytes is issued in 5 cycles, one of 8 in 3"
    ),
    l1_bytes=published(32 * 1024, "bytes", "RX 9070 XT, as its driver says"),
    l1_latency=scaled(83, "cycles", f"{_RDNA2}: 37 ns at 2.25 GHz"),
    l2_bytes=published(8 << 20, "bytes", "RX 9070 XT"),
    l2_channels=scaled(16, "channels", "as many as there are coherent stations and, on RDNA 2, slices"),
    l2_read_bytes_per_cycle=scaled(128, "bytes a cycle and channel", "64 of RDNA, with twice the banks of a slice"),
    l2_write_bytes_per_cycle=scaled(128, "bytes a cycle and channel", "64 of RDNA, with twice the banks of a slice"),
    l2_latency=scaled(232, "cycles", f"{_RDNA2}: 103 ns at 2.25 GHz"),
    infinity_cache_bytes=published(64 << 20, "bytes", "RX 9070 XT"),
    infinity_cache_bytes_per_second=assumed(2.05e12, "bytes a second", "16 stations of 64 bytes a cycle at 2 GHz"),
    infinity_cache_latency_ns=scaled(150, "ns", "Chips and Cheese on an RX 7900 XTX, through the vector caches"),
    memory_read_bytes_per_second=memory_bandwidth(
        PRODUCTS["rx9070xt"], "640e9 less refresh and turnarounds: no stream of this GPU is published"
    ),
    memory_write_bytes_per_second=memory_bandwidth(PRODUCTS["rx9070xt"], "as for reads"),
    memory_latency_ns=measured(
        278, "ns", "hipfire's chase through 128 MiB on gfx1201: 206 ns, with 72 MiB in caches at 150 ns"
    ),
    dispatch_cycles_per_wave=assumed(1, "cycles", "four shader engines, each starting a wave in four cycles"),
)

RX_9060_XT = replace(
    RX_9070_XT,
    compute_units_per_xcd=published(16, "workgroup processors", "RX 9060 XT: 32 compute units"),
    clock_mhz=published(3130, "MHz", "RX 9060 XT, boost clock"),
    l2_bytes=published(4 << 20, "bytes", "RX 9060 XT"),
    l2_channels=scaled(8, "channels", "half of an RX 9070 XT"),
    infinity_cache_bytes=published(32 << 20, "bytes", "RX 9060 XT"),
    infinity_cache_bytes_per_second=assumed(1.02e12, "bytes a second", "8 stations of 64 bytes a cycle at 2 GHz"),
    memory_read_bytes_per_second=memory_bandwidth(PRODUCTS["rx9060xt"], "as on the RX 9070 XT"),
    memory_write_bytes_per_second=memory_bandwidth(PRODUCTS["rx9060xt"], "as on the RX 9070 XT"),
    dispatch_cycles_per_wave=assumed(2, "cycles", "two shader engines, each starting a wave in four cycles"),
)
