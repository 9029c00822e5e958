"""Products of fp8 and fp4 on gfx1250, with scales of blocks or of rows."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest
import torch

from flydsl.errors import ArgumentError
from kernels import gemm_fp8fp4_gfx1250 as kernel
from kernels.gemm_fp8fp4_gfx1250 import compile_a8w4_gemm, compile_fp8fp4_gemm, compile_ptpc_gemm, tiled_scales
from kernels.shuffles import shuffle_weight
from tests.kernels.archs import executed_on
from tests.kernels.checks import checking
from tests.kernels.gemm import FP4, factors, nans, packed_fp4, whole_numbers

SMALL: dict[str, Any] = {"tile_m": 32, "tile_n": 64, "m_warp": 1, "n_warp": 2}


def matrix(bits: int, rows: int, k: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Numbers, and the bytes that hold them."""
    if bits == 8:
        codes = whole_numbers(rows, k, seed=seed).to(torch.float8_e4m3fn)
        return codes.float(), codes.view(torch.uint8)
    codes = torch.randint(0, 16, (rows, k), generator=torch.Generator().manual_seed(seed))
    return FP4[codes], packed_fp4(codes)


def product(m: int, n: int, k: int, data_format: str, **options: Any) -> None:
    """Compare C with torch's, with every check on, and what lies after it.

    Of several parts of K in bf16, each is rounded, and so is each sum, in the order in which the workgroups come.
    """
    options = SMALL | options
    a, a_bytes = matrix(kernel.FORMATS[data_format][0], m, k, 1)
    b, b_bytes = matrix(kernel.FORMATS[data_format][1], n, k, 2)
    if options.get("scale_mode") == "ptpc":
        scales = given = [factors(m), factors(n)]
    else:
        generator = torch.Generator().manual_seed(3)
        codes = [torch.randint(125, 130, (rows, k // 32), generator=generator) for rows in (m, n)]
        scales = [2.0 ** (x.float() - 127) for x in codes]
        waves = (options["tile_m"], options["m_warp"]), (options["tile_n"], options["n_warp"])
        given = [tiled_scales(x.to(torch.uint8), tile // w, w) for x, (tile, w) in zip(codes, waves, strict=True)]
    out = torch.bfloat16 if options.get("out_dtype") == "bf16" else torch.float32
    memory = nans(m + 1, n).to(out)
    if options.get("split_k", 1) > 1:
        memory[: m * n] = 0
    launch = compile_fp8fp4_gemm(data_format=data_format, N=n, K=k, **options)
    with checking():
        launch(memory[: m * n], a_bytes.view(-1), shuffle_weight(b_bytes), *given, m, n, k, n)
    found, parts = memory[: m * n].view(m, n), options.get("split_k", 1)
    if parts > 1 and out == torch.bfloat16:
        of_k = zip(a.chunk(parts, 1), b.chunk(parts, 1), strict=True)
        orders = permutations([kernel.reference(*ab, *scales).to(out) for ab in of_k])
        assert torch.stack([found == sum(order) for order in orders]).any(0).all()
    else:
        expected, tolerance = kernel.reference(a, b, *scales), 1e-5 if out == torch.float32 else 2**-8
        torch.testing.assert_close(found.float(), expected, rtol=tolerance, atol=1e-2)
    assert memory[m * n :].isnan().all()


@pytest.mark.checked
@executed_on("gfx1250", "tensor_load_to_lds")
@pytest.mark.parametrize("mode", ["mxscale", "ptpc"])
@pytest.mark.parametrize("data_format", ["fp8", "fp4", "a8w4"])
@pytest.mark.diagonal(2)
def test_product(data_format: str, mode: str) -> None:
    if data_format != "fp4" or mode != "ptpc":
        product(40, 128, 384, data_format, scale_mode=mode, out_dtype="bf16")


@executed_on("gfx1250", "tensor_load_to_lds")
@pytest.mark.parametrize(
    "options",
    [
        {"num_buffers": 3},
        {"use_tdm_store": False, "tile_k": 256},
        {"wave_specialized_tdm": True, "m_warp": 2},
        {"cluster_m": 2, "cluster_n": 2},
        {"split_k": 2},
    ],
    ids=str,
)
@pytest.mark.parametrize("data_format", ["fp8", "fp4"])
@pytest.mark.diagonal(5)
def test_choices(data_format: str, options: dict[str, Any]) -> None:
    product(64, 128, 768, data_format, **options)


@executed_on("gfx1250", "tensor_load_to_lds")
@pytest.mark.slow
def test_parts_of_k_are_added_in_pairs() -> None:
    """Rows that do not exist are nowhere in C; each part's scales of rows are those of all."""
    product(33, 64, 768, "fp8", scale_mode="ptpc", split_k=3, out_dtype="bf16")


def test_order_of_scales() -> None:
    """Byte (m, k) is where the definition says; rows that do not exist have a scale of 1."""
    scale = torch.arange(40 * 8).remainder(251).to(torch.uint8).view(40, 8)
    wave_rows, waves = 32, 2
    tiled, rep = tiled_scales(scale, wave_rows, waves), wave_rows // 16
    assert tiled.numel() == 64 * 8
    for m in range(64):
        for k in range(8):
            row, column = m // wave_rows * 16 + m % 16, k // 4 * 4 * rep + m % wave_rows // 16 * 4 + k % 4
            assert tiled[row * rep * 8 + column] == (scale[m, k] if m < 40 else 127)
    with pytest.raises(ArgumentError, match="waves of 24 rows"):
        tiled_scales(scale, 24)
    with pytest.raises(ArgumentError, match="a row of 6 scales"):
        tiled_scales(scale[:, :6], 16)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"data_format": "fp6"}, "data_format='fp6'"),
        ({"scale_mode": "rows"}, "scale_mode='rows'"),
        ({"data_format": "fp4", "scale_mode": "ptpc"}, "ptpc of fp4"),
        ({"N": 100}, "N=100"),
        ({"K": 200}, "K=200"),
        ({"K": 128}, "1 tiles along K"),
        ({"tile_k": 64}, "tile_k=64"),
        ({"tile_m": 24}, "tile_m=24"),
        ({"data_format": "fp4", "tile_n": 32}, "tile_n=32"),
        ({"split_k": 0}, "split_k=0"),
        ({"split_k": 3}, "times split_k=3"),
        ({"scale_load_path": "vgpr"}, "scale_load_path='vgpr'"),
        ({"wave_specialized_tdm": True}, "2 waves"),
        ({"out_dtype": "i8"}, "out_dtype='i8'"),
        ({"cluster_m": 0}, "clusters of 0 x 1"),
    ],
)
def test_sizes_that_do_not_fit(changed: dict[str, Any], said: str) -> None:
    with pytest.raises(ArgumentError, match=said):
        compile_fp8fp4_gemm(**({"data_format": "fp8", "N": 128, "K": 256} | SMALL | changed))


@pytest.mark.parametrize(
    ("arch", "position", "dtype", "said"),
    [
        ("gfx1201", 0, torch.float32, "gemm_fp8fp4_gfx1250 on gfx1201"),
        ("gfx1250", 0, torch.float16, "C of Float16"),
        ("gfx1250", 1, torch.float16, "A of Float16"),
        ("gfx1250", 2, torch.float8_e4m3fn, "B of Float8E4M3FN"),
        ("gfx1250", 3, torch.float32, "A_scale of Float32"),
    ],
)
def test_other_targets_and_operands(arch: str, position: int, dtype: torch.dtype, said: str) -> None:
    tensors = [torch.zeros(32 * 128), *(torch.zeros(128 * 256, dtype=torch.uint8) for _ in range(4))]
    tensors[position] = tensors[position].to(dtype)
    launch = compile_a8w4_gemm(N=128, K=256, **SMALL)
    with pytest.raises(ArgumentError, match=said):
        launch.lower(*tensors, 32, 128, 256, 128, arch=arch).run()


def test_scales_of_rows_are_numbers() -> None:
    tensors = [torch.zeros(32 * 128).bfloat16(), *(torch.zeros(128 * 256, dtype=torch.uint8) for _ in range(4))]
    launch = compile_ptpc_gemm(N=128, K=512, **SMALL)
    with pytest.raises(ArgumentError, match="A_scale of Uint8"):
        launch.lower(*tensors, 32, 128, 512, 128, arch="gfx1250").run()


@pytest.mark.usefixtures("on_gfx1250")
def test_tensors_that_are_too_short() -> None:
    launch = compile_a8w4_gemm(N=128, K=256, **SMALL)
    sizes = {"C": 32 * 128, "A": 32 * 256, "B": 128 * 128, "A_scale": 32 * 8, "B_scale": 128 * 8}
    tensors = {n: torch.zeros(size, dtype=torch.float32 if n == "C" else torch.uint8) for n, size in sizes.items()}
    for short in sizes:
        with pytest.raises(ArgumentError, match=f"{short} of"):
            launch(*(tensors | {short: tensors[short][:-1]}).values(), 32, 128, 256, 128)
    with pytest.raises(ArgumentError, match="A of"):
        launch(*tensors.values(), 32, 128, 300, 128)
