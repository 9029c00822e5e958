"""The figures of CDNA 2, 3 and 4: MI250X, MI300X and MI355X.

- MT4G: reports of the microbenchmark MT4G (Technical University of Munich): pointer chases and streams. MI210 and
  MI300X: August 2025; MI350P, half of an MI355X at 2.2 GHz: September 2026.
- CDNA 3: AMD CDNA 3 Architecture White Paper, 2023. CDNA 4: its successor, 2025. CDNA 2: its predecessor, 2021.
- LLVM: SISchedule.td of LLVM 22, whose unit is four cycles.
- MAF: AMD's published max-achievable FLOPs. MI300X: "Measuring Max-Achievable FLOPs - Part 2", February 2025; MI325X:
  "Completing the GPU Performance Picture", October 2026.
"""

from __future__ import annotations

from dataclasses import replace

from flydsl.arch.timing_figures import Timing, assumed, fitted, measured, published, scaled

_ATOMICS = "AMD's times of mixtures of experts on an MI355X, at whose end each workgroup adds a tile; see ACCURACY.md"

MI300X = Timing(
    xcds=published(8, "dies", "CDNA 3"),
    compute_units_per_xcd=published(38, "compute units", "CDNA 3"),
    clock_mhz=published(2100, "MHz", "MI300X data sheet, peak engine clock"),
    issue_cycles=published(4, "cycles", "a SIMD has its turn every fourth cycle: CDNA 3 ISA"),
    vector_latency=published(4, "cycles", "LLVM, Write32Bit"),
    transcendental_latency=published(16, "cycles", "LLVM, WriteTrans32"),
    double_latency=published(4, "cycles", "LLVM, WriteDouble of SIDPGFX940FullSpeedModel"),
    scalar_latency=published(4, "cycles", "LLVM, WriteSALU"),
    scalar_float_latency=published(4, "cycles", "there are no such instructions: as WriteSALU"),
    branch_cycles=published(32, "cycles", "LLVM, WriteBranch"),
    barrier_cycles=assumed(16, "cycles", "a few issue slots of four cycles"),
    matrix_extra_latency=published(
        8, "cycles", "wait states of VALU reads after MFMA in the CDNA 3 ISA, beyond its passes"
    ),
    lds_pipes=published(1, "pipe", "CDNA 3"),
    lds_bytes_per_cycle=published(128, "bytes a cycle", "CDNA 3"),
    lds_port_in_bytes=published(64, "bytes a cycle", "ROCm Compute Profiler: addresses and data share it"),
    lds_port_out_bytes=published(64, "bytes a cycle", "ROCm Compute Profiler"),
    lds_latency=measured(52, "cycles"),
    scalar_cache_latency=measured(48, "cycles"),
    scalar_miss_latency=measured(172, "cycles"),
    vector_caches=published(1, "cache", "CDNA 3"),
    l1_bytes=published(32 * 1024, "bytes", "CDNA 3"),
    l1_ways=published(64, "ways", "CDNA 3"),
    l1_bytes_per_cycle=published(
        128, "bytes a cycle", "ROCm Compute Profiler's peak: 61.3 TB/s of 228 compute units of an MI300A"
    ),
    l1_fill_bytes_per_cycle=published(64, "bytes a cycle", "CDNA 3"),
    l1_latency=measured(116, "cycles"),
    l1_address_cycles=published(4, "cycles", "64 lanes, 16 addresses a cycle: GCN 3 ISA"),
    l2_bytes=published(4 << 20, "bytes", "CDNA 3"),
    l2_ways=published(16, "ways", "CDNA 3"),
    l2_channels=published(16, "channels", "CDNA 3"),
    l2_read_bytes_per_cycle=published(128, "bytes a cycle and channel", "CDNA 3"),
    l2_write_bytes_per_cycle=published(64, "bytes a cycle and channel", "CDNA 3"),
    l2_atomic_cycles=scaled(14, "cycles", f"as on the MI355X: {_ATOMICS}"),
    l2_latency=measured(288, "cycles"),
    infinity_cache_bytes=published(256 << 20, "bytes", "CDNA 3"),
    infinity_cache_bytes_per_second=measured(
        11.9e12, "bytes a second", "Chips and Cheese, Testing AMD's Giant MI300X; 17.2e12 is the peak of CDNA 3"
    ),
    infinity_cache_latency_ns=measured(237, "ns", "MT4G: 288 + 209 cycles at 2.1 GHz"),
    memory_read_bytes_per_second=measured(3.962e12, "bytes a second", "MT4G: 3690 GiB/s, 75 % of the peak"),
    memory_write_bytes_per_second=measured(4.420e12, "bytes a second", "MT4G: 4117 GiB/s, 83 % of the peak"),
    memory_latency_ns=measured(428, "ns", "MT4G: 900 cycles at 2.1 GHz"),
    launch_us=assumed(
        1.5, "us", "what profilers show for empty kernels; TransferBench has 4.04 between two HIP events, which count"
    ),
    cold_launch_us=measured(
        3.8, "us", "TransferBench, pull request 297: 4.04 for 256 empty workgroups, of which 0.2 is their dispatch"
    ),
    dispatch_cycles_per_wave=assumed(4, "cycles", "a wave for each issue slot of a die's dispatcher"),
    workgroup_start_cycles=assumed(200, "cycles", "end of a workgroup until the next one's first instruction"),
    sustained_matrix_rates={
        "bf16": published(0.542, "of the peak", "MAF of the MI300X: 708 of 1307 TFLOPS"),
        "f16": published(0.500, "of the peak", "MAF of the MI300X: 654 of 1307 TFLOPS"),
        "8": published(0.487, "of the peak", "MAF of the MI300X in FP8: 1273 of 2615 TFLOPS"),
    },
)

_MI350P = "MT4G on an MI350P"
_OF_MI325X = "MAF of the MI325X, since that of the MI355X is not published"

MI355X = replace(
    MI300X,
    compute_units_per_xcd=published(32, "compute units", "CDNA 4"),
    clock_mhz=published(2400, "MHz", "MI355X data sheet, peak engine clock"),
    lds_port_out_bytes=measured(128, "bytes a cycle", f"{_MI350P}: 220 for both pairs; 75 bytes in"),
    lds_latency=measured(48, "cycles", _MI350P),
    scalar_miss_latency=measured(167, "cycles", _MI350P),
    l1_latency=measured(112, "cycles", _MI350P),
    l2_latency=measured(256, "cycles", _MI350P),
    l2_atomic_cycles=fitted(14, "cycles", _ATOMICS),
    infinity_cache_latency_ns=measured(202, "ns", f"{_MI350P}: 444 cycles at 2.2 GHz"),
    memory_latency_ns=measured(349, "ns", f"{_MI350P}: 768 cycles at 2.2 GHz"),
    memory_read_bytes_per_second=scaled(5.98e12, "bytes a second", "75 % of 8e12, as on the MI300X"),
    memory_write_bytes_per_second=scaled(6.67e12, "bytes a second", "83 % of 8e12, as on the MI300X"),
    sustained_matrix_rates={
        "bf16": scaled(0.639, "of the peak", f"{_OF_MI325X}: 831 of 1300 TFLOPS"),
        "f16": scaled(0.605, "of the peak", f"{_OF_MI325X}: 787 of 1300 TFLOPS"),
        "8": scaled(0.540, "of the peak", f"{_OF_MI325X}: 1409 of 2610 TFLOPS"),
    },
)

_MI210 = "MT4G on an MI210, a die as those of the MI250X"

MI250X = replace(
    MI300X,
    xcds=published(1, "dies", "CDNA 2: one of the two of an MI250X"),
    compute_units_per_xcd=published(110, "compute units", "CDNA 2"),
    clock_mhz=published(1700, "MHz", "MI250X data sheet"),
    l1_bytes=published(16 * 1024, "bytes", "CDNA 2"),
    l1_bytes_per_cycle=published(64, "bytes a cycle", "CDNA 2"),
    l2_bytes=published(8 << 20, "bytes", "CDNA 2"),
    l2_channels=published(32, "channels", "CDNA 2"),
    infinity_cache_bytes=published(0, "bytes", "CDNA 2 has none"),
    memory_read_bytes_per_second=measured(
        1.30e12, "bytes a second", "BabelStream on a die of the MI250X, 81 % of the peak"
    ),
    memory_write_bytes_per_second=measured(1.30e12, "bytes a second", "BabelStream on a die of the MI250X"),
    lds_latency=measured(50, "cycles", _MI210),
    scalar_miss_latency=measured(175, "cycles", _MI210),
    l1_latency=measured(124, "cycles", _MI210),
    l2_latency=measured(302, "cycles", _MI210),
    memory_latency_ns=measured(436, "ns", f"{_MI210}: 741 cycles at 1.7 GHz"),
    sustained_matrix_rates={},
)
