"""Collectives of several GPUs, launched by one alone: it is all of its peers, whose signals it has from the start."""

from __future__ import annotations

from functools import cache, partial
from typing import Any

import torch

from kernels import custom_all_reduce_kernel as kernel
from tests.kernels.cases import ARCHS, Case

_LAUNCHERS = {"ar1": "run_1stage_arr", "ar2": "run_2stage_arr", "arw": "run_2stage_write_mode"}
_MOST_BYTES = 32 << 20


@cache
def memory() -> dict[str, torch.Tensor]:
    """The memory of all cases: zeros, and signals as of ranks that have come everywhere."""
    sizes = {"input": _MOST_BYTES, "output": _MOST_BYTES, "tmp": 2 * _MOST_BYTES}
    made = {name: torch.zeros(size, dtype=torch.uint8) for name, size in sizes.items()}
    signals = torch.full((kernel.SIGNAL_BYTES // 4,), 1 << 30, dtype=torch.int32)
    signals[kernel.FLAG // 4 :] = 0
    made["signals"] = signals
    return made | {f"{name}s": torch.tensor([made[name].data_ptr()] * kernel.MOST_RANKS) for name in made}


def all_reduce(form: str, dtype: str, world: int, elements: int) -> tuple[Any, tuple[Any, ...]]:
    launch = kernel.make_allreduce_kernels(N=elements, dtype_str=dtype, world_size=world)[_LAUNCHERS[form]]
    plan = kernel.Plan(elements=elements, dtype=dtype, world=world)
    names = {"ar1": "inputs output", "ar2": "inputs tmps output", "arw": "input outputs tmps"}[form].split()
    pointers = [memory()[name].data_ptr() for name in ("signals", "signalss", *names)]
    blocks = plan.blocks(plan.packs if form == "ar1" else plan.part)
    return launch, (0, blocks, *pointers)


def case(form: str, dtype: str, world: int, elements: int, archs: tuple[str, ...] = ARCHS[:1]) -> dict[str, Case]:
    make = partial(all_reduce, form, dtype, world, elements)
    name = f"{form}_{dtype}_ws{world}_n{elements}"
    return {name: Case("custom_all_reduce_kernel", dtype, make, archs, test="test_custom_all_reduce.py")}


CASES: dict[str, Case] = (
    case("ar1", "f16", 8, 14336, ARCHS)
    | case("ar1", "bf16", 8, 14336)
    | case("ar1", "f32", 8, 14336)
    | case("ar1", "f16", 2, 14336)
    | case("ar1", "f16", 4, 14336)
    | case("ar2", "f16", 8, 1048576, ARCHS)
    | case("ar2", "bf16", 8, 1048576)
    | case("ar2", "f32", 8, 1048576)
    | case("ar2", "f16", 8, 262144)
    | case("ar2", "f16", 4, 1048576)
    | case("arw", "f16", 8, 8388608)
    | case("arw", "bf16", 8, 8388608)
    | case("arw", "f32", 8, 8388608)
)
MISSES: dict[tuple[str, str], str] = {
    ("ar1_f16_ws4_n14336", "gfx942"): "four VGPRs more, at the same occupancy: all ranks add in one order",
}
