"""The tiles of products that are launched without one, against the best of a sweep, by the model of time.

python -m tests.benchmarks.default_tiles [family [arch [trials]]]

For sizes that are not in the tables of `kernels/tuned`: the launcher's own choice, and the fastest of so many
configurations, drawn from all of them, and of those that are found from the fastest three and the launcher's step by
step.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from flydsl import env
from kernels import hgemm_splitk, mixed_moe_gemm_2stage, moe_gemm_2stage, preshuffle_gemm
from tools import tune

SIZES: Sequence[tune.Size] = (
    (1, 7168, 2048), (32, 1280, 8192), (96, 4608, 7168), (400, 8192, 1024), (2048, 1536, 7168), (3000, 4096, 4096),
    (640, 5120, 2880), (8192, 1024, 8192),
)  # fmt: skip


def preshuffled_space() -> Iterator[tune.Options]:
    names = ("tile_m", "tile_n", "row_bytes")
    for values in product(*(tune.LADDERS[name] for name in (*names, "split")), (1, 2), (False, True), (0, 4)):
        yield dict(zip((*names, "split_k", "lds_stage", "use_async_copy", "xcd_swizzle"), values, strict=True))


def half_space() -> Iterator[tune.Options]:
    tiles = product(*(tune.LADDERS[name] for name in ("tile_m", "tile_n", "tile_k")))
    ways = [*((stages, True) for stages in tune.LADDERS["stages"]), (1, False), (2, False)]
    for tile, waves, split, way, swizzle in product(tiles, tune.WAVES, tune.LADDERS["split"], ways, (0, 4)):
        how = {"split": split, "stages": way[0], "b_to_lds": way[1], "xcd_swizzle": swizzle}
        yield {"tile": [*tile], "waves": [*waves], **how}


OF_EXPERTS: Sequence[tune.Size] = ((4, 512, 4096, 16), (100, 768, 2048, 16))
"""Of stage 1; stage 2 has N and K the other way around."""


def experts_space(stage: int, mixed: bool) -> Iterator[tune.Options]:
    ladders = [(16, 32, 64, 128), (64, 128, 256), (128, 256, 512)]
    for tile_m, tile_n, row_bytes in product(*ladders):
        options = {"tile_m": tile_m, "tile_n": tile_n, "row_bytes": row_bytes}
        if not mixed:
            yield options
            continue
        for is_async, swizzle, b_nt, waves in product(
            (False, True), (0, 4), (0, 2), (1, 2, 4)[: 3 if stage == 1 else 1]
        ):
            how = {"use_async_copy": is_async, "xcd_swizzle": swizzle, "b_nt": b_nt}
            shared = {"tile_n": tile_n // waves, "k_wave": waves} if stage == 1 else {}
            yield options | how | shared


def of_experts(name: str, arch: str, kind: str, size: tune.Size) -> tune.Options:
    """What `default_tile` says; stage 2 has the blocks of rows of stage 1."""
    rows, n, k, experts = size
    module, stage = (mixed_moe_gemm_2stage if "mixed" in name else moe_gemm_2stage), int(name[-1])
    sizes: dict[str, Any] = {"model_dim": k, "inter_dim": n} if stage == 1 else {"model_dim": n, "inter_dim": k}
    sizes |= {"experts": experts, "topk": min(8, experts), "out_dtype": "bf16"}
    sizes["a_dtype" if "mixed" in name else "in_dtype"] = kind
    tile: tune.Options = {"tile_m": None}
    with env.replaced({"ARCH": arch}):
        for number in range(1, stage + 1):
            build = getattr(module, f"compile_{name[:-1]}{number}")
            how = sizes | {f"doweight_stage{number}": number == 2}
            tile = moe_gemm_2stage.default_tile(build, rows * experts // sizes["topk"], tile["tile_m"], **how)
    return tile | {"row_bytes": tile.pop("tile_k") * (4 if kind == "fp4" else 8) // 8}


SPACES: Mapping[str, Callable[[], Iterator[tune.Options]]] = {
    "preshuffle_gemm": preshuffled_space, "hgemm": half_space,
    **{f"{name}{stage}": partial(experts_space, stage, name != "moe_gemm")
       for name, stage in product(("moe_gemm", "mixed_moe_gemm"), (1, 2))},
}  # fmt: skip


def default(family: str, arch: str, kind: str, size: tune.Size) -> tune.Options:
    """The launcher's choice."""
    if "moe" in family:
        return of_experts(family, arch, kind, size)
    m, n, k = size
    if family == "hgemm":
        tile = hgemm_splitk.tile_of(m, n, k, arch)._asdict()
        return {name: [*x] if isinstance(x, tuple) else x for name, x in tile.items()}
    return preshuffle_gemm.tile_of(m, n, k, kind, arch)._asdict()


def behind(family: tune.Family, arch: str, kind: str, size: tune.Size, trials: int) -> float:
    """By which part the default is slower than the best of the sweep; prints both."""
    search = tune.Search(family, arch, kind, size)
    own = default(family.name, arch, kind, size)
    space = [*SPACES[family.name]()]
    random.Random(0).shuffle(space)
    fitting: list[Any] = []
    for options in space:
        if len(fitting) == trials:
            break
        if search.time_us(options) < float("inf"):
            fitting.append(options)
    fastest = sorted(fitting, key=search.time_us)[:3]
    time_us, best = min((search.best([start]) for start in (own, *fastest)), key=lambda found: found[0])
    later = search.time_us(own) / time_us - 1
    print(
        f"{arch} {kind} {size}: {search.time_us(own):.2f} us, {later:.1%} behind {time_us:.2f}\n  {own}\n  {best}",
        flush=True,
    )
    return later


def main(arguments: Sequence[str]) -> None:
    """Print each size, then all together."""
    wanted, archs, trials = arguments[:1], arguments[1:2] or tune.ARCHS, int(arguments[2]) if arguments[2:] else 100
    start, found = time.perf_counter(), list[float]()
    for family, arch in product(tune.FAMILIES, archs):
        for kind in family.kinds if family.name in wanted or not wanted else ():
            sizes = OF_EXPERTS if "moe" in family.name else SIZES
            swapped = [(m, k, n, *experts) for m, n, k, *experts in sizes]
            sizes = swapped if family.name.endswith("moe_gemm2") else sizes
            found.extend(behind(family, arch, kind, size, trials) for size in sizes)
    print(f"{len(found)} sizes: median {np.median(found):.1%}, 9 of 10 {np.quantile(found, 0.9):.1%}, "
          f"most {max(found):.1%} [{time.perf_counter() - start:.0f} s]")  # fmt: skip


if __name__ == "__main__":
    main(sys.argv[1:])
