"""Row- and column-scaled products of fp8 on Radeon."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from flydsl.errors import ArgumentError
from kernels import rdna_fp8_preshuffle_gemm as kernel
from kernels.rdna_fp8_preshuffle_gemm import compile_fp8_gemm, preshuffle_b_fp8, quantize
from tests.kernels.archs import executed_on
from tests.kernels.checks import checking
from tests.kernels.gemm import factors, nans, whole_numbers

FP8 = torch.float8_e4m3fn


def product(m: int, n: int, k: int, **options: int) -> None:
    """Compare C with torch's, with every check on, and what lies after it."""
    a, b = whole_numbers(m, k).to(FP8), whole_numbers(k, n, seed=1).to(FP8)
    scale_a, scale_b = factors(m), factors(n)
    memory = nans(m + 1, n)
    with checking():
        compile_fp8_gemm(M=m, N=n, K=k, **options)(
            memory[: m * n].view(m, n), a.view(torch.float32), preshuffle_b_fp8(b).view(torch.float32), scale_a, scale_b
        )
    expected = kernel.reference(a, b, scale_a, scale_b)
    torch.testing.assert_close(memory[: m * n].view(m, n).float(), expected, rtol=2**-8, atol=1e-2)
    assert memory[m * n :].isnan().all()


@pytest.mark.checked
@executed_on("gfx1201")
@pytest.mark.parametrize(
    ("size", "options"),
    [
        ((16, 32, 128), {"tile_m": 16, "tile_n": 32, "k_unroll": 1}),
        ((64, 128, 128), {"tile_m": 64, "k_unroll": 2}),
        ((96, 64, 192), {"tile_m": 32, "tile_n": 32, "tile_k": 64, "k_unroll": 1, "group_m": 2}),
    ],
    ids=str,
)
def test_product(size: tuple[int, int, int], options: dict[str, int]) -> None:
    product(*size, **options)


@executed_on("gfx1201")
@pytest.mark.slow
@pytest.mark.parametrize("shape", kernel.SHAPES, ids=str)
@pytest.mark.diagonal(2)
def test_product_of_whole_tiles(shape: tuple[int, int, int]) -> None:
    product(*shape)


def test_shuffled_b() -> None:
    """Byte (k, n) is where the definition says."""
    k, n = 64, 48
    b = torch.arange(k * n).remainder(251).to(torch.uint8).view(k, n)
    shuffled = preshuffle_b_fp8(b)
    for row in range(k):
        for column in range(n):
            place = column // 16 * 16 * k + row // 16 * 256 + row % 16 // 8 * 128 + column % 16 * 8 + row % 8
            assert shuffled[place] == b[row, column]
    with pytest.raises(ArgumentError, match="multiples of 16"):
        preshuffle_b_fp8(b[:40])


def test_quantize() -> None:
    """The largest number of a row or column becomes 448, and a row of zeros stays one."""
    x = torch.randn(8, 32, generator=torch.Generator().manual_seed(1))
    x[3] = 0
    for dim in (0, 1):
        codes, scales = quantize(x, dim)
        largest = codes.float().abs().amax(dim)
        assert torch.equal(largest[scales > 1e-10], torch.full_like(largest, 448)[scales > 1e-10])
        shape = (-1, 1) if dim else (1, -1)
        torch.testing.assert_close(codes.float() * scales.view(shape), x, rtol=2**-4, atol=0.01)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"M": 40}, "M=40"),
        ({"N": 100}, "N=100"),
        ({"K": 64}, "K=64"),
        ({"K": 0}, "K=0"),
        ({"tile_m": 24, "M": 48}, "tile_m=24"),
        ({"tile_k": 16, "k_unroll": 1}, "tile_k=16"),
        ({"group_m": 0}, "group_m=0"),
        ({"tile_m": -32}, "a tile of"),
    ],
)
def test_sizes_that_do_not_fit(changed: dict[str, Any], said: str) -> None:
    with pytest.raises(ArgumentError, match=said):
        compile_fp8_gemm(**({"M": 32, "N": 128, "K": 128} | changed))


def operands(**changed: Any) -> list[torch.Tensor]:
    given = {"C": torch.zeros(32, 128).bfloat16(), "A": torch.zeros(32, 32), "B": torch.zeros(128 * 32)}
    return list((given | {"scale_a": torch.ones(32), "scale_b": torch.ones(128)} | changed).values())


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"C": torch.zeros(32, 128)}, "C of Float32"),
        ({"A": torch.zeros(32, 128).half()}, "A of Float16"),
        ({"B": torch.zeros(128, 128).to(torch.float8_e4m3fnuz)}, "B of Float8E4M3FNUZ"),
        ({"scale_a": torch.ones(32).half()}, "scale_a of Float16"),
        ({"scale_b": torch.ones(128, 2).T}, "scale_b of !fly"),
    ],
)
def test_operands_of_another_type(changed: dict[str, Any], said: str) -> None:
    with pytest.raises(ArgumentError, match=said):
        compile_fp8_gemm(M=32, N=128, K=128).lower(*operands(**changed), arch="gfx1201").run()


def test_it_is_for_rdna4() -> None:
    with pytest.raises(ArgumentError, match="a kernel of RDNA 4 on gfx1100"):
        compile_fp8_gemm(M=32, N=128, K=128).lower(*operands(), arch="gfx1100").run()
