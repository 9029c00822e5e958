"""Decode attention at the documents' contexts: `make sweep`."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from kernels import pa_decode_fp8
from kernels.pa_metadata import get_pa_metadata
from tests.kernels.paged import FP8, assert_close, requests
from tests.kernels.test_mla_fwd_decode import Requests
from tests.kernels.test_mla_fwd_decode import assert_close as assert_mla_close
from tests.kernels.test_pa_decode_fp8 import equals_torch


@pytest.mark.parametrize("dtype", [FP8, torch.bfloat16], ids=["fp8", "bf16"])
@pytest.mark.parametrize("scales", ["tensor", "block", "token"])
@pytest.mark.parametrize("block", [16, 64, 1024])
@pytest.mark.parametrize(
    ("group", "queries", "contexts"),
    [(8, 1, (8192, 1, 4000)), (16, 1, (1027,) * 3), (8, 2, (1027,) * 3), (16, 3, (1027,) * 3), (8, 4, (2048, 1, 700))],
    ids=str,
)
def test_decode(
    contexts: tuple[int, ...], group: int, queries: int, block: int, scales: str, dtype: torch.dtype
) -> None:
    """Lengths that are equal are held to the documents' tolerance."""
    given = requests(contexts, 1, group, queries, 128, block, scales=scales, dtype=dtype, packed=queries % 2 == 1)
    metadata = get_pa_metadata(given.contexts, group, 1, queries, num_cu=16)
    found, expected = given.result(metadata=metadata), given.expected()
    assert_close(found, expected, exact=dtype == torch.bfloat16)
    if contexts[0] == contexts[-1]:
        torch.testing.assert_close(found, expected, rtol=5e-3, atol=2e-2 if dtype == FP8 else 5e-3)


@pytest.mark.parametrize("dtype", [FP8, torch.bfloat16], ids=["fp8", "bf16"])
@pytest.mark.parametrize(("number", "shape"), [*enumerate(pa_decode_fp8.SHAPES)], ids=str)
def test_shapes(number: int, shape: tuple[Any, ...], dtype: torch.dtype) -> None:
    equals_torch(number, shape, dtype)


@pytest.mark.parametrize("window", [1, 255, 1023])
@pytest.mark.parametrize("block", [16, 1024])
@pytest.mark.parametrize("queries", [1, 4])
def test_window(window: int, block: int, queries: int) -> None:
    given = requests((1027, 4000, 33), 2, 8, queries, 128, block, scales="token")
    assert_close(given.result(sliding_window=window), given.expected(window))


@pytest.mark.parametrize("contexts", [(2048,) * 4, (2333, 1, 700)], ids=str)
def test_mla(contexts: tuple[int, ...]) -> None:
    given = Requests.of(contexts)
    assert_mla_close(given.result(16), given.expected())
