"""Products of longer sizes and of every tile: `make sweep`."""

from __future__ import annotations

import pytest
import torch

from kernels import blockscale_preshuffle_gemm, hgemm_splitk, preshuffle_gemm, wmma_gemm_gfx1250
from tests.kernels import test_wmma_gemm_gfx1250
from tests.kernels.gemm import factors, nans, plain, whole_numbers

NONE = torch.zeros(1)
TILES = ((16, 64, 512), (32, 64, 512), (64, 64, 256), (64, 128, 128), (64, 256, 128), (128, 128, 128), (128, 256, 128))


@pytest.mark.parametrize("dtype", ["fp8", "int8", "int4", "fp16", "bf16"])
@pytest.mark.parametrize("tile", TILES, ids=str)
@pytest.mark.parametrize("m", [1, 33, 150])
def test_preshuffle_gemm(m: int, tile: tuple[int, int, int], dtype: str) -> None:
    n, k = 512, 1536
    size = 2 if dtype in ("fp16", "bf16") else 1
    a, b, flat_a, shuffled_b = plain(dtype, m, n, k, "gfx942")
    scales = (factors(m), factors(n)) if size == 1 else (NONE, NONE)
    c = nans(m, n)
    launch = preshuffle_gemm.compile_preshuffle_gemm_a8(
        K=k, tile_m=tile[0], tile_n=tile[1], tile_k=tile[2] // size, in_dtype=dtype, out_dtype="bf16"
    )
    launch(c, flat_a, shuffled_b, *scales, NONE.to(torch.bfloat16), m, n)
    expected = preshuffle_gemm.reference(a, b, *(scales if size == 1 else ()))
    torch.testing.assert_close(c.view(m, n).float(), expected, rtol=2**-8, atol=1e-2)


@pytest.mark.parametrize(("n", "k"), [(2112, 7168), (3072, 1536), (7168, 2304)])
@pytest.mark.parametrize("m", [1, 7, 16, 33])
def test_blockscale(m: int, n: int, k: int) -> None:
    a, b, flat_a, shuffled_b = plain("fp8", m, n, k)
    scale_a, scale_b = factors(k // 128, m), factors(-(-n // 128), k // 128)
    launch = blockscale_preshuffle_gemm.compile_blockscale_preshuffle_gemm(
        N=n, K=k, tile_m=16 if m <= 16 else 32, tile_n=64, tile_k=256
    )
    c = nans(m, n)
    launch(c, flat_a, shuffled_b, scale_a.view(-1), scale_b.view(-1), m, n)
    expected = blockscale_preshuffle_gemm.reference(a, b, scale_a, scale_b)
    torch.testing.assert_close(c.view(m, n).float(), expected, rtol=1e-2, atol=1e-1)


@pytest.mark.parametrize(("n", "k"), [(384, 7168), (7168, 2048), (512, 512)])
@pytest.mark.parametrize("m", [1, 8, 32, 200])
def test_hgemm(m: int, n: int, k: int) -> None:
    a, b = whole_numbers(m, k).half(), whole_numbers(n, k).half()
    c = hgemm_splitk.hgemm_splitk_(torch.full((m, n), torch.nan, dtype=torch.float16), a, b)
    torch.testing.assert_close(c.float(), hgemm_splitk.reference(a, b), rtol=1e-2, atol=2)


@pytest.mark.parametrize("shape", wmma_gemm_gfx1250.SHAPES, ids=str)
def test_wmma_gemm(shape: tuple[int, int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARCH", "gfx1250")
    test_wmma_gemm_gfx1250.product(*shape, **test_wmma_gemm_gfx1250.WHOLE_TILES)
