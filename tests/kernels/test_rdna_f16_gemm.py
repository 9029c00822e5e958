"""Products of f16 and bf16 on Radeon."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from flydsl.errors import ArgumentError
from kernels import rdna3_f16_gemm, rdna_f16_gemm
from tests.kernels.archs import executed_on
from tests.kernels.checks import checking
from tests.kernels.gemm import TYPES, nans, whole_numbers

DTYPES = {"fp16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32}


def product(
    size: tuple[int, int, int], dtype: str, out: str, options: dict[str, Any], kernel: Any = rdna_f16_gemm
) -> None:
    """Compare C with torch's, with every check on, and what lies after it."""
    m, n, k = size
    launch, *_ = kernel.create_wmma_gemm_module(m, n, k, dtype, out, **options)
    a, b = (whole_numbers(rows, k, seed=rows).to(TYPES[dtype]) for rows in (m, n))
    memory = nans(m + 1, n).to(DTYPES[out])
    with checking():
        launch(memory[: m * n].view(m, n), a, b)
    expected = rdna_f16_gemm.reference(a, b).to(DTYPES[out])
    assert torch.equal(memory[: m * n].view(m, n), expected)
    assert memory[m * n :].isnan().all()


SMALL = {"reg_m": 2, "reg_n": 1, "waves_n": 1}


@pytest.mark.checked
@executed_on("gfx1201")
@pytest.mark.parametrize(
    ("size", "dtype", "out", "options"),
    [
        ((64, 16, 64), "bf16", "bf16", SMALL),
        ((128, 48, 96), "fp16", "f32", SMALL | {"group_m": 3}),
        ((96, 32, 192), "fp16", "fp16", {"reg_m": 1, "reg_n": 1, "reg_k": 6, "waves_m": 3, "group_m": 2}),
        ((32, 64, 64), "bf16", "f32", {"reg_m": 1, "reg_n": 2, "a_k_pad": 0, "b_k_pad": 16}),
    ],
    ids=str,
)
@pytest.mark.diagonal(2)
def test_product(size: tuple[int, int, int], dtype: str, out: str, options: dict[str, Any]) -> None:
    product(size, dtype, out, options)


@pytest.mark.checked
@executed_on("gfx1100")
@pytest.mark.parametrize(
    ("size", "dtype", "out", "options"),
    [
        ((64, 16, 64), "bf16", "bf16", SMALL),
        ((96, 32, 192), "fp16", "f32", {"reg_m": 1, "reg_n": 1, "reg_k": 6, "waves_m": 3, "group_m": 2}),
    ],
    ids=str,
)
@pytest.mark.diagonal(2)
def test_product_of_rdna3(size: tuple[int, int, int], dtype: str, out: str, options: dict[str, Any]) -> None:
    product(size, dtype, out, options, rdna3_f16_gemm)


@executed_on("gfx1201")
@pytest.mark.slow
@pytest.mark.parametrize("shape", rdna_f16_gemm.SHAPES, ids=str)
@pytest.mark.diagonal(2)
def test_product_of_whole_tiles(shape: tuple[int, int, int]) -> None:
    product(shape, "bf16", "bf16", {})


@executed_on("gfx1201")
def test_numbers_that_are_rounded() -> None:
    launch, *_ = rdna_f16_gemm.create_wmma_gemm_module(64, 16, 128, "bf16", "bf16", **SMALL)
    generator = torch.Generator().manual_seed(1)
    a, b = (torch.randn(rows, 128, generator=generator).bfloat16() for rows in (64, 16))
    a[0, 0], a[1, 0] = float("nan"), float("inf")
    c = nans(64, 16).bfloat16().view(64, 16)
    launch(c, a, b)
    expected = rdna_f16_gemm.reference(a, b)
    torch.testing.assert_close(c.float(), expected, rtol=2**-8, atol=1e-2, equal_nan=True)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"M": 100}, "M=100"),
        ({"N": 0}, "N=0"),
        ({"K": 32}, "K=32"),
        ({"K": -64}, "K=-64"),
        ({"in_dtype": "f64"}, "in_dtype='f64'"),
        ({"in_dtype": "f32"}, "in_dtype='f32'"),
        ({"out_dtype": "i8"}, "out_dtype='i8'"),
        ({"reg_m": 0}, "tiles"),
        ({"waves_n": 33}, "N=128"),
        ({"a_k_pad": 4}, "a pad of 4"),
        ({"b_k_pad": -8}, "pads"),
        ({"group_m": 0}, "group_m=0"),
        ({"M": 512, "reg_m": 8, "waves_m": 4, "K": 128, "reg_k": 4}, "bytes of shared memory"),
    ],
)
def test_sizes_that_do_not_fit(changed: dict[str, Any], said: str) -> None:
    for kernel in (rdna_f16_gemm, rdna3_f16_gemm):
        with pytest.raises(ArgumentError, match=said):
            kernel.create_wmma_gemm_module(**({"M": 128, "N": 128, "K": 64} | changed))


def test_each_is_for_its_generation() -> None:
    tensors = [torch.zeros(shape, dtype=torch.bfloat16) for shape in ((128, 128), (128, 64), (128, 64))]
    for kernel, arch, said in (
        (rdna_f16_gemm, "gfx1100", "a kernel of RDNA 4 on gfx1100"),
        (rdna3_f16_gemm, "gfx1201", "a kernel of RDNA 3 on gfx1201"),
        (rdna_f16_gemm, "gfx942", "a kernel of RDNA 4 on gfx942"),
    ):
        launch, *_ = kernel.create_wmma_gemm_module(128, 128, 64)
        with pytest.raises(ArgumentError, match=said):
            launch.lower(*tensors, arch=arch).run()


@pytest.mark.parametrize(
    ("position", "dtype", "said"),
    [(0, torch.float32, "C of Float32"), (1, torch.float16, "A of Float16"), (2, torch.float16, "BT of Float16")],
)
def test_operands_of_another_type(position: int, dtype: torch.dtype, said: str) -> None:
    tensors = [torch.zeros(shape, dtype=torch.bfloat16) for shape in ((128, 128), (128, 64), (128, 64))]
    tensors[position] = tensors[position].to(dtype)
    launch, *_ = rdna_f16_gemm.create_wmma_gemm_module(128, 128, 64)
    with pytest.raises(ArgumentError, match=said):
        launch.lower(*tensors, arch="gfx1201").run()
