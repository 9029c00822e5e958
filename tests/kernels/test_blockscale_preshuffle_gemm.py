from __future__ import annotations

from typing import Any

import pytest
import torch

from flydsl.errors import ArgumentError
from kernels import blockscale_preshuffle_gemm as kernel
from tests.kernels.checks import checking
from tests.kernels.gemm import factors, nans, plain


def product(m: int, n: int, k: int, tile: tuple[int, int, int], arch: str = "gfx942", **options: Any) -> None:
    """Compare C with torch's, with every check on."""
    a, b, flat_a, shuffled_b = plain("fp8", m, n, k, arch)
    scale_a, scale_b = factors(k // 128, m), factors(-(-n // 128), k // 128)
    launch = kernel.compile_blockscale_preshuffle_gemm(
        N=n, K=k, tile_m=tile[0], tile_n=tile[1], tile_k=tile[2], **options
    )
    c = nans(m, n)
    with checking():
        launch(c, flat_a, shuffled_b, scale_a.view(-1), scale_b.view(-1), m, n)
    expected = kernel.reference(a, b, scale_a, scale_b)
    torch.testing.assert_close(c.view(m, n).float(), expected, rtol=2**-8, atol=1e-2)


@pytest.mark.checked
@pytest.mark.parametrize(
    ("m", "n", "k", "tile", "options"),
    [
        (1, 64, 256, (16, 64, 256), {}),
        (33, 192, 384, (32, 64, 128), {}),
        (5, 256, 768, (16, 128, 256), {"unroll": True}),
        (70, 128, 384, (64, 128, 128), {"use_async_copy": True}),
        (70, 128, 256, (64, 128, 128), {"use_cshuffle_epilog": True, "waves_per_eu": 2}),
    ],
    ids=str,
)
@pytest.mark.diagonal(2)
def test_equals_torch(m: int, n: int, k: int, tile: tuple[int, int, int], options: dict[str, Any]) -> None:
    product(m, n, k, tile, **options)


def test_on_cdna4(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARCH", "gfx950")
    product(33, 128, 384, (32, 64, 128), "gfx950")


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"N": 200}, "N=200"),
        ({"K": 200}, "K=200"),
        ({"scale_block_k": 64}, "scale_block_k=64"),
        ({"tile_k": 64}, "tile_k=64"),
        ({"tile_n": 192, "N": 192}, "tile_n=192"),
        ({"tile_n": 256, "use_cshuffle_epilog": True}, "use_cshuffle_epilog"),
    ],
)
def test_sizes_that_do_not_fit(changed: dict[str, Any], said: str) -> None:
    sizes: dict[str, Any] = {"N": 256, "K": 256, "tile_m": 64, "tile_n": 128, "tile_k": 128}
    with pytest.raises(ArgumentError, match=said):
        kernel.compile_blockscale_preshuffle_gemm(**(sizes | changed))
