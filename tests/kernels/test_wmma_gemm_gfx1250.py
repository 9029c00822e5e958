"""Products of f16 and bf16 with the tensor data mover of gfx1250."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from flydsl.errors import ArgumentError
from kernels import wmma_gemm_gfx1250 as kernel
from kernels.wmma_gemm_gfx1250 import compile_wmma_gemm_tdm
from tests.kernels.archs import executed_on
from tests.kernels.checks import checking
from tests.kernels.gemm import TYPES, nans, whole_numbers

SMALL: dict[str, Any] = {"tile_m": 32, "tile_n": 64, "tile_k": 32, "m_warp": 1, "n_warp": 2}
WHOLE_TILES: dict[str, Any] = {"dtype": "fp16", "tile_m": 64, "tile_n": 128, "tile_k": 32, "m_warp": 2, "n_warp": 4}


def product(m: int, n: int, k: int, dtype: str = "bf16", **options: Any) -> None:
    """Compare C with torch's, with every check on, and what lies after it."""
    out = torch.float32 if options.get("out_dtype") == "f32" else TYPES[dtype]
    a, b = whole_numbers(m, k).to(TYPES[dtype]), whole_numbers(k, n, seed=1).to(TYPES[dtype])
    memory = nans(m + 1, n).to(out)
    with checking():
        compile_wmma_gemm_tdm(N=n, K=k, in_dtype=dtype, **(SMALL | options))(memory[: m * n].view(m, n), a, b, m, n)
    assert torch.equal(memory[: m * n].view(m, n), kernel.reference(a, b).to(out))
    assert memory[m * n :].isnan().all()


@pytest.mark.checked
@executed_on("gfx1250", "tensor_load_to_lds")
@pytest.mark.slow
@pytest.mark.parametrize("store", [True, False])
@pytest.mark.parametrize("buffers", [2, 3, 4])
@pytest.mark.diagonal(2)
def test_product(buffers: int, store: bool) -> None:
    product(40, 72, 160, num_buffers=buffers, use_tdm_store=store)


@executed_on("gfx1250", "tensor_load_to_lds")
@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        {"dtype": "fp16", "out_dtype": "f32"},
        {"wave_specialized_tdm": True},
        {"l2_prefetch_distance": 0},
        {"tile_k": 64},
    ],
    ids=str,
)
@pytest.mark.diagonal(2)
def test_choices(options: dict[str, Any]) -> None:
    product(33, 64, 256, **options)


@pytest.mark.checked
@executed_on("gfx1250", "tensor_load_to_lds")
def test_workgroups_of_a_cluster_share_tiles() -> None:
    product(64, 128, 96, cluster_m=2, cluster_n=2)


@executed_on("gfx1250", "tensor_load_to_lds")
@pytest.mark.slow
def test_whole_tiles() -> None:
    """And parts of some; longer ones in sweep_gemm."""
    product(100, 200, 128, **WHOLE_TILES)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"K": 100}, "K=100"),
        ({"K": 32}, "1 tiles along K"),
        ({"K": 96, "num_buffers": 4}, "3 tiles along K"),
        ({"N": 0}, "N=0"),
        ({"N": 100}, "N=100"),
        ({"num_buffers": 5}, "num_buffers=5"),
        ({"tile_k": 48}, "tile_k=48"),
        ({"tile_m": 24}, "tile_m=24"),
        ({"tile_n": 96}, "tile_n=96"),
        ({"tile_m": 0}, "a tile of"),
        ({"in_dtype": "fp8"}, "in_dtype='fp8'"),
        ({"out_dtype": "i8"}, "out_dtype='i8'"),
        ({"cluster_m": 5, "cluster_n": 4}, "clusters of 5 x 4"),
        ({"n_warp": 1, "wave_specialized_tdm": True}, "one wave"),
        ({"K": 1024, "tile_m": 512, "tile_n": 256, "tile_k": 128, "num_buffers": 4}, "bytes of shared memory"),
    ],
)
def test_sizes_that_do_not_fit(changed: dict[str, Any], said: str) -> None:
    with pytest.raises(ArgumentError, match=said):
        compile_wmma_gemm_tdm(**({"N": 64, "K": 64} | SMALL | changed))


@pytest.mark.parametrize(
    ("arch", "position", "dtype", "said"),
    [
        ("gfx1201", 0, torch.float16, "wmma_gemm_gfx1250 on gfx1201"),
        ("gfx1250", 0, torch.float32, "C of Float32"),
        ("gfx1250", 1, torch.bfloat16, "A of BFloat16"),
        ("gfx1250", 2, torch.bfloat16, "B of BFloat16"),
    ],
)
def test_other_targets_and_operands(arch: str, position: int, dtype: torch.dtype, said: str) -> None:
    tensors = [torch.zeros(shape, dtype=torch.float16) for shape in ((32, 64), (32, 64), (64, 64))]
    tensors[position] = tensors[position].to(dtype)
    with pytest.raises(ArgumentError, match=said):
        compile_wmma_gemm_tdm(N=64, K=64, **SMALL).lower(*tensors, 32, 64, arch=arch).run()
