"""The model of time against published measurements.

python -m tests.benchmarks.timing_accuracy [preshuffle_gemm, hgemm, mixed_moe or gdr_decode [every nth [first]]]

`kernels/tuned` has times of FlyDSL's kernels on an MI355X, from AMD's tuning tables. Our own kernels with the same
tiles and options are timed by the model. Nothing in the model is fitted to these rows.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from kernels.tuned import measured

if TYPE_CHECKING:
    from flydsl.simulator.estimates import Estimate

GFX950 = {"ARCH": "gfx950", "FLYDSL_GPU_ARCH": "gfx950"}
"""What makes launchers compile for the GPU of the measurements."""
SHORT_US = 10.0
"""Below this, a launch is mostly fixed costs, which differ between machines."""


@dataclass(frozen=True)
class Compared:
    """A row of the measurements, and what the model says."""

    row: Mapping[str, str]
    modelled_us: float
    error_percent: float | None
    """What is printed with the estimate."""

    @property
    def measured_us(self) -> float:
        return float(self.row["us"])

    @property
    def error(self) -> float:
        """Relative: above 0 where the model is too slow."""
        return self.modelled_us / self.measured_us - 1

    @property
    def is_within(self) -> bool:
        """Whether the error is at most what is printed."""
        return self.error_percent is not None and 100 * abs(self.error) <= self.error_percent

    @property
    def kind(self) -> str:
        """The kind of launch, by what it is limited by: fixed costs, weights or a state from memory, or the product."""
        if int(self.row.get("split_k", 1)) > 1:
            return "parts of K"
        if self.measured_us <= SHORT_US:
            return "short"
        if "stage" in self.row:
            return f"stage {self.row['stage']}"
        if "state_bits" in self.row:
            return f"state of {self.row['state_bits']} bits"
        return "few rows" if int(self.row["M"]) <= 128 else "some rows" if int(self.row["M"]) <= 1024 else "many rows"

    def __str__(self) -> str:
        sizes = [" x ".join(self.row[n] for n in names if n in self.row) for names in ("MNK", _TILE)]
        options = [f"{k} {v}" for k, v in self.row.items() if k not in ("us", *"MNK", *_TILE)]
        return (
            f"{', '.join([*filter(None, sizes), *options])}: {self.measured_us:.1f} us, model {self.modelled_us:.1f} "
            f"({self.error:+.0%}, said +-{self.error_percent} %)"
        )


def preshuffle_gemm(row: Mapping[str, str]) -> None:
    """Launch FlyDSL's fp8 product of a row: A and B with scales, C in bf16."""
    import torch

    from kernels.preshuffle_gemm import compile_preshuffle_gemm_a8

    m, n, k = (int(row[name]) for name in "MNK")
    launch = compile_preshuffle_gemm_a8(
        K=k,
        **{name: int(row[name]) for name in (*_TILE, "lds_stage", "xcd_swizzle")},
        use_async_copy=row["async_copy"] == "1",
        waves_per_eu=int(row["waves_per_eu"]) or None,
        in_dtype="fp8",
        out_dtype="bf16",
    )
    a, b = (torch.empty(size, dtype=torch.uint8).view(torch.float8_e4m3fn) for size in (m * k, n * k))
    c, bias = torch.empty(m * n, dtype=torch.bfloat16), torch.empty(0, dtype=torch.bfloat16)
    launch(c, a, b, torch.empty(m), torch.empty(n), bias, m, n)


def hgemm(row: Mapping[str, str]) -> None:
    """Launch FlyDSL's bf16 product of a row, whose K may be split. As FlyDSL's, a lane adds 16 bytes to C."""
    import torch

    from kernels.hgemm_splitk import compile_hgemm_kernel

    m, n, k, tile_m, tile_n = (int(row[name]) for name in (*"MNK", *_TILE[:2]))
    launch = compile_hgemm_kernel(
        "bf16", n, k, B_TO_LDS=row["b_to_lds"] == "1", HAS_BIAS=row["bias"] == "1", ADD_VEC=8,
        **{name.upper(): int(row[name]) for name in (*_TILE, "stages", "split_k")},
        **{f"BLOCK_{x.upper()}_WARPS": int(row[f"warps_{x}"]) for x in "mnk"},
    )  # fmt: skip
    c, a, b, bias = (torch.empty(size, dtype=torch.bfloat16) for size in (m * n, m * k, n * k, n))
    words = torch.zeros(-(-m // tile_m) * (n // tile_n), dtype=torch.int32)
    launch(c, a, b, bias, m, words, words)


def gdr_decode(row: Mapping[str, str]) -> None:
    """Launch the decode step of the gated delta rule of a row: heads of 128 x 128, a token each, in bf16."""
    import torch

    from kernels.gdr_decode import build_gdr_decode_module

    batch, k_heads, v_heads = (int(row[name]) for name in ("B", "HK", "HV"))
    kind = {"16": "bf16", "32": "f32"}[row["state_bits"]]
    sharing = {name: int(row[name]) for name in ("parts", "waves", "k_lanes")}
    launch = build_gdr_decode_module(k_heads, v_heads, state_dtype=kind, **sharing)
    counts = (k_heads * 128, k_heads * 128, v_heads * 128, v_heads, v_heads)
    query, key, value, a, b = (torch.empty(batch * count, dtype=torch.bfloat16) for count in counts)
    state = torch.empty(batch * v_heads * 128 * 128, dtype=torch.bfloat16 if kind == "bf16" else torch.float32)
    bias, numbers = torch.empty(v_heads, dtype=torch.bfloat16), torch.arange(batch, dtype=torch.int32)
    launch(query, key, value, a, b, bias, torch.empty(v_heads), numbers, state, torch.empty_like(value), batch)


def mixed_moe(row: Mapping[str, str]) -> None:
    """Launch a stage of FlyDSL's mixture of experts with weights of fp4 of a row, as aiter's tuner launches it.

    Tokens go to experts at random. The grid has room for the worst that could be, so that its last blocks have no rows.
    """
    import torch

    from kernels import mixed_moe_gemm_2stage as mixed
    from kernels.moe_gemm_2stage import MoeGemm2Mode, sum_by
    from tests.benchmarks.amd_times import routed

    tokens, model, inter, experts, topk, unit = (
        int(row[name]) for name in ("tokens", "model_dim", "inter_dim", "experts", "topk", "unit")
    )
    is_first, rounded = row["stage"] == "1", row["out"] in mixed.ROUNDED
    sizes: dict[str, Any] = {name: int(row[name]) for name in (*_TILE, "experts", "topk", "xcd_swizzle", "b_nt")}
    if row["interleaved"] == "1":
        sizes["tile_n"] //= 2  # theirs counts rows of the weights, of the gate and of up in turn
    sizes |= {"model_dim": model, "inter_dim": inter, "a_dtype": row["a"], "out_dtype": row["out"]}
    sizes |= {"waves_per_eu": int(row["waves_per_eu"]) or None}
    if is_first:
        gates = mixed.GateMode.INTERLEAVE if row["interleaved"] == "1" else mixed.GateMode.SEPARATED
        launch = mixed.compile_mixed_moe_gemm1(
            doweight_stage1=False, act=row["act"], gate_mode=gates, k_wave=int(row["k_wave"]), **sizes
        )
    else:
        mode = MoeGemm2Mode.ATOMIC if row["accumulate"] == "1" else MoeGemm2Mode.REDUCE
        sizes |= {"doweight_stage2": True, "persist_m": 1, "sort_block_m": unit, "mode": mode}
        launch = sum_by(mixed.compile_mixed_moe_gemm2, zero_intermediate=False, **sizes)
    n, k, rows_of_a = (inter, model, tokens) if is_first else (model, inter, tokens * topk)
    columns, bits = 2 * n if is_first else n, 4 if row["a"] == "fp4" else 8
    ids, numbers = routed(tokens, experts, topk, unit)
    valid, blocks = len(ids), min(tokens * topk, -(-(tokens * topk + experts * unit - topk) // unit))
    ids = torch.nn.functional.pad(ids, (0, blocks * unit - valid), value=tokens)
    numbers = torch.nn.functional.pad(numbers, (0, blocks - len(numbers)))
    counts = (rows_of_a * k * bits // 8, experts * columns * k // 2, len(ids) * k // 32, experts * columns * k // 32)
    activations, weights, *scales = (torch.zeros(count, dtype=torch.uint8) for count in counts)
    weights = weights.view(experts, -1)  # may be more elements than a mode can have
    out = torch.zeros(tokens * n * (topk if is_first else 1), dtype=torch.uint8 if rounded else torch.bfloat16)
    tables = (ids, numbers, torch.ones(len(ids)), torch.tensor([valid, tokens], dtype=torch.int32))
    bias, out_scales = torch.zeros(1), torch.zeros(len(ids) * 8 * -(-n // 256), dtype=torch.uint8)
    extra = (bias, out_scales) if is_first else (bias,)
    launch(out, activations, weights, *scales, *tables, *extra, tokens, columns, k, len(numbers))


_TILE = ("tile_m", "tile_n", "tile_k")
FAMILIES: Mapping[str, Callable[[Mapping[str, str]], None]] = {
    "preshuffle_gemm": preshuffle_gemm, "hgemm": hgemm, "mixed_moe": mixed_moe, "gdr_decode": gdr_decode,
}  # fmt: skip


def modelled(family: str, row: Mapping[str, str]) -> Estimate:
    """What the model says of a row: the time of all its launches."""
    from flydsl import env
    from flydsl.simulator import tracing

    with env.replaced(GFX950), tracing() as traced:
        FAMILIES[family](row)
    return traced.estimate


def rows(family: str, step: int = 1, first: int = 0) -> list[Mapping[str, str]]:
    """Every `step`-th of the measured rows, from row `first` on."""
    return list(measured(family)[first::step])


def compared(family: str, step: int = 1, first: int = 0) -> Iterator[Compared]:
    """Rows with what the model says; see `rows`."""
    for row in rows(family, step, first):
        found = modelled(family, row)
        yield Compared(row, found.time_us, found.error_percent)


def rank_correlation(pairs: Sequence[Compared]) -> float:
    """Spearman's, between measured and modelled times."""
    ranks = [
        np.argsort(np.argsort(values)) for values in ([p.measured_us for p in pairs], [p.modelled_us for p in pairs])
    ]
    return float(np.corrcoef(ranks[0], ranks[1])[0, 1])


def median_error(pairs: Sequence[Compared]) -> float:
    """The median of the absolute relative errors."""
    return float(np.median([abs(p.error) for p in pairs]))


def summary(pairs: Sequence[Compared]) -> list[str]:
    """A table: for all rows and for each kind, how many there are, the rank correlation and the errors."""
    long = [p for p in pairs if p.kind != "short"]
    groups: dict[str, Sequence[Compared]] = {"all": pairs, f"over {SHORT_US:g} us": long}
    for pair in pairs:
        groups[pair.kind] = [*groups.get(pair.kind, []), pair]
    lines = ["| rows | number | Spearman | median error | 9 of 10 are within | bias | within what is said |"]
    lines.append("|---" * 7 + "|")
    for name, group in groups.items():
        errors = np.abs([p.error for p in group])
        parts = [np.median(errors), np.quantile(errors, 0.9), np.mean([p.is_within for p in group])]
        median, most, within = (f"{part:.0%}" for part in parts)
        bias = np.median([p.error for p in group])
        figures = f"{rank_correlation(group):.3f} | {median} | {most} | {bias:+.0%} | {within}"
        lines.append(f"| {name} | {len(group)} | {figures} |")
    return lines


def main(arguments: Sequence[str]) -> None:
    """Print each row, then the table."""
    start, pairs = time.perf_counter(), list[Compared]()
    family, *which = arguments or ["preshuffle_gemm"]
    for pair in compared(family, *map(int, which)):
        pairs.append(pair)
        print(pair, f"[{time.perf_counter() - start:.0f} s]", flush=True)
    print("\n".join(summary(pairs)))


if __name__ == "__main__":
    main(sys.argv[1:])
