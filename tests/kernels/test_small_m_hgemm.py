from __future__ import annotations

from typing import Any

import pytest
import torch

from flydsl.errors import ArgumentError
from kernels import small_m_hgemm as kernel
from tests.kernels.checks import checking
from tests.kernels.gemm import whole_numbers

WORDS = torch.zeros(256, dtype=torch.int32)


def product(dtype: torch.dtype, m: int, n: int, k: int, **options: Any) -> None:
    """Compare C with torch's, with every check on."""
    a, b, bias = (whole_numbers(*shape).to(dtype) for shape in ((m, k), (n, k), (n,)))
    c = torch.full((m, n), torch.nan, dtype=dtype)
    name = "f16" if dtype == torch.float16 else "bf16"
    launch = kernel.compile_small_m_hgemm_kernel(name, n, k, **options)
    with checking():
        launch(c.view(-1), a.view(-1), b.view(-1), bias, m, WORDS, WORDS)
    tolerance = 0 if dtype == torch.float16 else 2**-8 * options.get("SPLIT_K", 1)
    expected = kernel.reference(a, b, bias if options.get("HAS_BIAS") else None)
    torch.testing.assert_close(c.float(), expected, rtol=tolerance, atol=128 * tolerance)


@pytest.mark.checked
@pytest.mark.parametrize(
    ("m", "n", "k", "options"),
    [
        (1, 128, 256, {}),
        (16, 256, 256, {"N_TILE_REPEAT": 2, "HAS_BIAS": True}),
        (7, 384, 256, {"PERSISTENT_N_TILES": 2, "TILE_N": 128}),
        (5, 64, 512, {"TILE_N": 64, "B_TO_LDS": True, "B_TO_LDS_UNROLL": 4}),
        (33, 128, 512, {"SPLIT_K": 2, "HAS_BIAS": True, "WAVES_PER_EU_HINT": 2}),
    ],
    ids=str,
)
@pytest.mark.diagonal(2)
def test_equals_torch(m: int, n: int, k: int, options: dict[str, Any]) -> None:
    product(torch.float16, m, n, k, **options)


def test_on_cdna4(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARCH", "gfx950")
    product(torch.bfloat16, 16, 256, 256, PERSISTENT_N_TILES=2, B_TO_LDS=True)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"N_TILE_REPEAT": 2, "B_TO_LDS": True}, "N_TILE_REPEAT=2 with B_TO_LDS"),
        ({"N_TILE_REPEAT": 0}, "0 and 1 tiles"),
        ({"B_TO_LDS_UNROLL": 8}, "B_TO_LDS_UNROLL=8"),
        ({"n": 100}, "n=100"),
        ({"k": 96}, "k=96"),
        ({"dtype": "f32"}, "dtype='f32'"),
    ],
)
def test_sizes_that_do_not_fit(changed: dict[str, Any], said: str) -> None:
    sizes: dict[str, Any] = {"dtype": "f16", "n": 128, "k": 256}
    with pytest.raises(ArgumentError, match=said):
        kernel.compile_small_m_hgemm_kernel(**(sizes | changed))
