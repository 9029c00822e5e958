"""Write `kernels/tuned/*.json`: the best options of products of some sizes, by the model of time.

python -m tools.tune [family [arch [size ...]]]        such as: hgemm gfx942 16x512x7168

For each size, M x N x K, a search begins with the best options that the tables have for it and its neighbours, on any
GPU, and with those that AMD has measured for the nearest size on an MI355X. It changes one option at a time as long as
that is faster by the model by a percent. Between the sizes, `kernels.tuned` ranks what was found for them. A size of a
mixture is M x N x K x E, M rows for each of E experts.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import torch

from flydsl import env
from flydsl.arch import get_arch
from flydsl.errors import ArchError, ArgumentError
from flydsl.simulator import tracing
from kernels import hgemm_splitk, mixed_moe_gemm_2stage, moe_gemm_2stage, preshuffle_gemm, tuned
from kernels.kernels_common import require
from kernels.mfma_products import BITS
from kernels.moe_sorting_kernel import reference as sort

TABLES = Path(tuned.__file__).parent
ARCHS = ("gfx942", "gfx950")
Size = tuple[int, ...]
Options = dict[str, Any]
Tables = dict[str, dict[str, list[dict[str, Any]]]]
"""By GPU and kind of elements."""
ROWS = (16, 64, 256, 1024, 4096)
COLUMNS_AND_K = ((512, 1024), (512, 7168), (2048, 3072), (6144, 1536), (6144, 6144), (28672, 4096))
SIZES = tuple((m, n, k) for n, k in COLUMNS_AND_K for m in ROWS)
OF_EXPERTS = ((1, 8), (16, 32), (64, 32), (256, 8), (1024, 8))
"""Rows of each, and how many."""
FIRST_SIZES = tuple((m, n, k, experts) for n, k in ((256, 7168), (1536, 4096)) for m, experts in OF_EXPERTS)
SECOND_SIZES = tuple((m, k, n, experts) for m, n, k, experts in FIRST_SIZES)
GAIN = 0.99
"""A step of the search must be faster by this factor, or it would follow differences that mean nothing."""
LADDERS: Mapping[str, Sequence[int]] = {
    "tile_m": (16, 32, 64, 96, 128, 256), "tile_n": (16, 32, 64, 128, 192, 256), "row_bytes": (128, 256, 512),
    "tile_k": (64, 128, 256), "split": (1, 2, 3, 4, 5, 7, 8, 14, 16), "stages": (2, 3, 4, 6, 8),
}  # fmt: skip
WAVES = (
    (1, 1, 1), (1, 2, 1), (1, 4, 1), (2, 2, 1), (2, 4, 1), (1, 1, 2), (1, 2, 2), (2, 2, 2), (1, 1, 4), (1, 2, 4),
    (2, 2, 4),
)  # fmt: skip


def beside(ladder: str, value: int) -> Iterator[int]:
    """The values of a ladder next to one."""
    steps = LADDERS[ladder]
    yield from [x for x in steps if x < value][-1:]
    yield from [x for x in steps if x > value][:1]


def splits_near(value: int) -> Iterator[int]:
    """Those up to 2.5 times as many or as few: most do not divide the tiles along K."""
    yield from (x for x in LADDERS["split"] if x != value and max(x, value) <= 2.5 * min(x, value))


@dataclass(frozen=True)
class Family:
    """A kernel's options. kinds: a table each. start: some to begin with, the nearest first, of which one fits.
    neighbours: options that differ in one. others: further ones to begin with, for a GPU. sizes: those of its tables.

    launch: (kind, size, options, bytes of LDS that a workgroup may have), inside of `tracing`; raises ArgumentError for
    options that do not fit.
    """

    name: str
    kinds: Sequence[str]
    start: Callable[[Size], Iterator[Options]]
    neighbours: Callable[[Options], Iterator[Options]]
    launch: Callable[[str, Size, Options, int], None]
    others: Callable[[str, Size], Iterator[Options]] = lambda arch, size: iter(())
    sizes: Sequence[Size] = SIZES


def measured(family: str, size: Size) -> list[dict[str, int]]:
    """AMD's rows, the nearest first."""
    return tuned.nearest(family, **dict(zip("MNK", size, strict=True)))


def preshuffled_start(size: Size) -> Iterator[Options]:
    for row in measured("preshuffle_gemm", size):
        how = row["lds_stage"], bool(row["async_copy"]), row["xcd_swizzle"]
        yield preshuffle_gemm.Tile(row["tile_m"], row["tile_n"], row["tile_k"], *how)._asdict()


def preshuffled_neighbours(options: Options) -> Iterator[Options]:
    for stages, is_async in product((1, 2), (False, True)):
        yield {**options, "lds_stage": stages, "use_async_copy": is_async}
    for name in ("tile_m", "tile_n", "row_bytes"):
        yield from ({**options, name: value} for value in beside(name, options[name]))
    yield {**options, "xcd_swizzle": 0 if options["xcd_swizzle"] else 4}
    yield from ({**options, "split_k": value} for value in splits_near(options["split_k"]))


def launch_preshuffled(kind: str, size: Size, options: Options, lds_bytes: int) -> None:
    m, n, k = size
    tile = preshuffle_gemm.Tile(**options)
    require(tile.narrowed(n, k, kind, lds_bytes) == tile, f"{tile}", "one that needs no narrowing")
    launch = preshuffle_gemm.compile_preshuffle_gemm_a8(K=k, in_dtype=kind, out_dtype="bf16", **tile.options(kind))
    a, b = (torch.empty(count * k * BITS[kind][0] // 8, dtype=torch.uint8) for count in (m, n))
    if kind == "bf16":
        a, b = a.view(torch.bfloat16), b.view(torch.bfloat16)
    c, scales = torch.empty(m * n, dtype=torch.bfloat16), (torch.empty(m), torch.empty(n))
    words = [torch.zeros(-(-m // tile.tile_m) * (n // tile.tile_n), dtype=torch.int32)] if tile.split_k > 1 else []
    launch(c, a, b, *scales, c[:n], *words, m, n)


def half_start(size: Size) -> Iterator[Options]:
    for row in measured("hgemm", size):
        tile, waves = ([row[f"{what}_{x}"] for x in "mnk"] for what in ("tile", "warps"))
        how = {"split": row["split_k"], "stages": row["stages"], "b_to_lds": bool(row["b_to_lds"])}
        yield {"tile": tile, "waves": waves, **how, "xcd_swizzle": 0}


def like_shuffled(arch: str, size: Size) -> Iterator[Options]:
    """The options of the nearest products of a shuffled B, without a ring."""
    rows = tuned.modelled("preshuffle_gemm")[arch]["bf16"]
    for row in sorted(rows, key=partial(tuned.distance, size))[:2]:
        tile = preshuffle_gemm.Tile(**row["options"])
        how = {"split": tile.split_k, "stages": tile.lds_stage, "b_to_lds": False, "xcd_swizzle": tile.xcd_swizzle}
        yield {"tile": [tile.tile_m, tile.tile_n, tile.row_bytes // 2], "waves": [1, 4, 1], **how}


def half_neighbours(options: Options) -> Iterator[Options]:
    (tile_m, tile_n, tile_k), split = options["tile"], options["split"]
    yield from (ring_neighbours if options["b_to_lds"] else direct_neighbours)(options)
    yield from ({**options, "split": value} for value in splits_near(split))
    yield from ({**options, "tile": [value, tile_n, tile_k]} for value in beside("tile_m", tile_m))
    yield from ({**options, "tile": [tile_m, value, tile_k]} for value in beside("tile_n", tile_n))
    yield from ({**options, "tile": [tile_m, tile_n, value]} for value in beside("tile_k", tile_k))
    yield from ({**options, "waves": list(waves)} for waves in WAVES)
    yield {**options, "xcd_swizzle": 0 if options["xcd_swizzle"] else 4}


def ring_neighbours(options: Options) -> Iterator[Options]:
    (tile_m, tile_n, tile_k), stages = options["tile"], options["stages"]
    # Half the depth of tiles, twice as many of them: as much on its way.
    yield {**options, "tile": [tile_m, tile_n, tile_k // 2], "stages": stages * 2}
    yield {**options, "tile": [tile_m, tile_n, tile_k * 2], "stages": max(2, stages // 2)}
    yield from ({**options, "stages": value} for value in beside("stages", stages))
    yield {**options, "b_to_lds": False, "stages": 2}


def direct_neighbours(options: Options) -> Iterator[Options]:
    yield {**options, "stages": 3 - options["stages"]}
    yield {**options, "b_to_lds": True, "stages": 3}


def launch_half(kind: str, size: Size, options: Options, lds_bytes: int) -> None:
    m, n, k = size
    tile = hgemm_splitk.Tile.of(options)
    require(tile.narrowed(n, k, lds_bytes) == tile, f"{tile}", "one that needs no narrowing")
    c, a, b = (torch.empty(count, dtype=torch.bfloat16) for count in (m * n, m * k, n * k))
    words = torch.zeros(-(-m // tile.tile[0]) * (n // tile.tile[1]), dtype=torch.int32)
    hgemm_splitk.compile_hgemm_kernel(kind, n, k, **tile.options())(c, a, b, c, m, words, words)


def experts_start(stage: int, mixed: bool, size: Size) -> Iterator[Options]:
    """Tiles with about as many rows as an expert has. Stage 2 has those of stage 1."""
    if stage == 2:
        m, n, k, experts = size
        tables = tuned.modelled("mixed_moe_gemm1" if mixed else "moe_gemm1")
        rows = [row for kinds in tables.values() for row in kinds[FIRST_KIND[mixed]]]
        tile_m = min(rows, key=partial(tuned.distance, (m, k, n, experts)))["options"]["tile_m"]
    else:
        tile_m = max(x for x in (16, 32, 64) if x <= max(tuned.LEAST_ROWS, size[0]))
    mixed_options = {"use_async_copy": False, "xcd_swizzle": 0, "b_nt": 0, **({} if stage == 2 else {"k_wave": 1})}
    for tile_n, row_bytes in product((128, 64, 256), (256, 128)):
        yield {"tile_m": tile_m, "tile_n": tile_n, "row_bytes": row_bytes, **(mixed_options if mixed else {})}


def experts_neighbours(stage: int, mixed: bool, options: Options) -> Iterator[Options]:
    if mixed:
        yield {**options, "use_async_copy": not options["use_async_copy"]}
        yield {**options, "b_nt": 2 - options["b_nt"]}
        yield {**options, "xcd_swizzle": 0 if options["xcd_swizzle"] else 4}
        if stage == 1:
            for waves in (1, 2, 4):
                yield {**options, "k_wave": waves, "tile_n": options["tile_n"] * options["k_wave"] // waves}
    for name in ("tile_n", "row_bytes", *(["tile_m"] if stage == 1 else [])):
        yield from ({**options, name: value} for value in beside(name, options[name]))


def launch_experts(stage: int, mixed: bool, kind: str, size: Size, options: Options, lds_bytes: int) -> None:
    """A stage whose tokens go to experts at random, 8 each at most."""
    rows, n, k, experts = size
    topk = min(8, experts)
    tokens, a_bits = rows * experts // topk, 4 if kind == "fp4" else 8
    columns, of_tokens = (2 * n, 1) if stage == 1 else (n, topk)
    how: Options = {f"doweight_stage{stage}": stage == 2, "a_dtype" if mixed else "in_dtype": kind, "out_dtype": "bf16"}
    how |= {"model_dim": k, "inter_dim": n} if stage == 1 else {"model_dim": n, "inter_dim": k}
    how |= {"experts": experts, "topk": topk, **options, "tile_k": options["row_bytes"] * 8 // a_bits}
    del how["row_bytes"]
    module = mixed_moe_gemm_2stage if mixed else moe_gemm_2stage
    launch = getattr(module, f"compile_{'mixed_' if mixed else ''}moe_gemm{stage}")(**how)
    chosen = torch.rand(tokens, experts, generator=torch.Generator().manual_seed(0)).topk(topk).indices
    ids, weights, numbers, valid = sort(chosen, torch.ones(tokens, topk), experts, options["tile_m"])
    activations = torch.empty(tokens * of_tokens * k * a_bits // 8, dtype=torch.uint8)
    w = torch.empty(experts, columns * k // (2 if mixed else 1), dtype=torch.uint8)
    scales = [torch.ones(tokens * of_tokens), torch.ones(experts * columns)]
    if mixed:
        scales = [
            torch.empty(x * 8 * -(-k // 256), dtype=torch.uint8) for x in (-(-len(ids) // 32) * 32, experts * columns)
        ]
    out = torch.empty(tokens * (topk if stage == 1 else 1) * n, dtype=torch.bfloat16)
    others = [torch.empty(1)] * ((2 if stage == 1 else 1) if mixed else 0)
    blocks, columns = int(valid[0]) // options["tile_m"], columns if mixed else n
    launch(out, activations, w, *scales, ids, numbers, weights, valid, *others, tokens, columns, k, blocks)


def of_experts(name: str, kinds: Sequence[str], stage: int, mixed: bool) -> Family:
    """A stage of a mixture."""
    start, neighbours = partial(experts_start, stage, mixed), partial(experts_neighbours, stage, mixed)
    launch, sizes = partial(launch_experts, stage, mixed), FIRST_SIZES if stage == 1 else SECOND_SIZES
    return Family(name, kinds, start, neighbours, launch, sizes=sizes)


FIRST_KIND = ("fp8", "fp4")
FAMILIES = (
    Family("preshuffle_gemm", ("fp8", "bf16"), preshuffled_start, preshuffled_neighbours, launch_preshuffled),
    Family("hgemm", ("bf16",), half_start, half_neighbours, launch_half, like_shuffled),
    *(of_experts(f"moe_gemm{stage}", ("fp8",), stage, False) for stage in (1, 2)),
    *(of_experts(f"mixed_moe_gemm{stage}", ("fp4",), stage, True) for stage in (1, 2)),
)


class Search:
    """The times of a size's options, by the model. Those that do not fit take for ever."""

    def __init__(self, family: Family, arch: str, kind: str, size: Size) -> None:
        self.family, self.arch, self.kind, self.size = family, arch, kind, size
        self.times = dict[str, float]()

    def time_us(self, options: Options) -> float:
        """All launches together."""
        key = json.dumps(options)
        if key not in self.times:
            self.times[key] = self._modelled(options)
        return self.times[key]

    def _modelled(self, options: Options) -> float:
        tile_m = options["tile_m"] if "tile_m" in options else options["tile"][0]
        if tile_m > max(tuned.LEAST_ROWS, 2 * self.size[0] - 1):
            return float("inf")
        room = get_arch(self.arch).lds_bytes_per_workgroup
        try:
            with env.replaced({"ARCH": self.arch, "FLYDSL_GPU_ARCH": self.arch}), tracing() as traced:
                self.family.launch(self.kind, self.size, options, room)
        except (ArgumentError, ArchError):
            return float("inf")
        return sum(launched.trace.time_us for launched in traced.launches)

    def best(self, starts: Sequence[Options]) -> tuple[float, Options]:
        """The time and the options that no neighbour is faster than."""
        best = min(starts, key=self.time_us)
        tried = list[str]()
        while (step := self._faster(best, tried)) is not None:
            best = step
        return self.time_us(best), best

    def _faster(self, best: Options, tried: list[str]) -> Options | None:
        for options in self.family.neighbours(best):
            key = json.dumps(options)
            if key not in tried:
                tried.append(key)
                if self.time_us(options) < GAIN * self.time_us(best):
                    return options
        return None


def searched(family: Family, arch: str, kind: str, size: Size, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The row of a table. rows: those that are there, of any GPU."""
    begun, search = time.perf_counter(), Search(family, arch, kind, size)
    near = sorted(rows, key=partial(tuned.distance, size))[:4]
    start = next(x for x in family.start(size) if search.time_us(x) < float("inf"))
    tables = ({**start, **row["options"]} for row in near)
    time_us, options = search.best([*tables, start, *family.others(arch, size)])
    row = {**dict(zip("MNKE", size, strict=False)), "us": round(time_us, 2), "options": options}
    print(
        family.name, arch, kind, row, len(search.times), "tried,", round(time.perf_counter() - begun), "s", flush=True
    )
    return row


def write(family: Family, archs: Sequence[str], sizes: Sequence[Size]) -> None:
    """Search sizes for some GPUs, and write each row when it is found; the others stay."""
    path = TABLES / f"{family.name}.json"
    tables: Tables = json.loads(path.read_text()) if path.exists() else {}
    for arch, kind, size in product(archs, family.kinds, sizes):
        get_arch(arch)
        others = [row for kinds in tables.values() for row in kinds.get(kind, ())]
        table = tables.setdefault(arch, {}).setdefault(kind, [])
        row = searched(family, arch, kind, size, others)
        table[:] = sorted([row, *(x for x in table if size_of(x) != size)], key=lambda x: (x["N"], x["K"], x["M"]))
        path.write_text(text(tables))


def size_of(row: Mapping[str, Any]) -> Size:
    return tuple(row[name] for name in "MNKE" if name in row)


def text(tables: Tables) -> str:
    """JSON with a line for each size."""
    lines = []
    for arch, kinds in sorted(tables.items()):
        each = [f'"{kind}": [\n  ' + ",\n  ".join(map(json.dumps, rows)) + "\n ]" for kind, rows in kinds.items()]
        lines.append(f'"{arch}": {{\n ' + ",\n ".join(each) + "\n}")
    return "{" + ",\n".join(lines) + "}\n"


def main(arguments: Sequence[str]) -> None:
    """Search all, or one family, for some GPUs, or one and some sizes."""
    wanted, archs, named = arguments[:1], arguments[1:2] or ARCHS, arguments[2:]
    sizes = [tuple(map(int, size.split("x"))) for size in named]
    for family in FAMILIES:
        if not wanted or family.name in wanted:
            mine = [arch for arch in archs if arch == "gfx950" or "mixed" not in family.name]
            write(family, mine, sizes or family.sizes)


if __name__ == "__main__":
    main(sys.argv[1:])
