from __future__ import annotations

from typing import Any

import pytest
import torch

from flydsl.errors import ArgumentError
from kernels import pa_decode_swa as kernel
from kernels.launches import launch_flat
from kernels.paged_attention import SCALES
from tests.kernels.checks import checking
from tests.kernels.paged import FP8, assert_close, requests


@pytest.mark.checked
@pytest.mark.slow
@pytest.mark.parametrize(("number", "shape"), [*enumerate(kernel.SHAPES)], ids=str)
@pytest.mark.diagonal(2)
def test_equals_torch(number: int, shape: tuple[Any, ...]) -> None:
    *sizes, window = shape
    dtype = torch.bfloat16 if number == 1 else FP8
    given = requests(*sizes, scales=SCALES[number % 3], packed=number % 2 == 0, dtype=dtype)
    with checking():
        found = given.result(sliding_window=window)
    assert_close(found, given.expected(window), exact=number == 1)


@pytest.mark.parametrize("scale", [0.0, torch.nan, torch.inf])
def test_scales_of_nothing_infinity_and_nan(scale: float) -> None:
    """The scale of one token's value, which is in the windows of both requests; 127 and 129 keys."""
    given = requests((127, 129), 1, 8, 1, 64, 128, scales="token")
    for request in range(2):
        given.value_scale[given.pages[given.starts[request]], 0, 120] = scale
    found, expected = given.result(sliding_window=60), given.expected(60)
    if scale == 0.0:
        assert_close(found, expected)
    else:
        assert not found.isfinite().all(-1).any()


def test_one_workgroup_has_all_partitions() -> None:
    given = requests((700, 0, 3), 1, 8, 2, 64, 64)
    window = 300
    launch = kernel.compile_pa_decode_sw(
        window, given.scale, True, 8, query_length=2, fuse_partitions=True, head_dim=64, block_size=64
    )["launch"]
    output = torch.full(given.query.shape, torch.nan, dtype=torch.bfloat16)
    tensors = (
        given.query,
        *given.caches,
        given.contexts,
        given.pages,
        given.starts,
        given.key_scale,
        given.value_scale,
    )
    with checking():
        launch_flat(launch, output, *tensors, 3, 1, None)
    assert_close(output.float(), given.expected(window))


@pytest.mark.parametrize("fuse", [False, True])
@pytest.mark.diagonal(2)
def test_a_window_of_nothing_shows_the_last_key(fuse: bool) -> None:
    """It is one partition, which is no reason to leave out the partials of a launcher that has them."""
    given = requests((300, 1), 1, 8, 1, 64, 64)
    output = torch.full(given.query.shape, torch.nan, dtype=torch.bfloat16)
    tensors = (given.query, *given.caches, given.contexts, given.pages, given.starts)
    kernel.pa_decode_swa.fn(output, *tensors, given.scale, given.key_scale, given.value_scale, 0, fuse)
    assert_close(output.float(), given.expected(0))


@pytest.mark.slow
def test_partitions_are_fused_if_that_is_faster() -> None:
    given, window = requests((700, 0, 3), 1, 8, 1, 64, 64), 300
    output = torch.full(given.query.shape, torch.nan, dtype=torch.bfloat16)
    tensors = (given.query, *given.caches, given.contexts, given.pages, given.starts)
    kernel.pa_decode_swa(output, *tensors, given.scale, given.key_scale, given.value_scale, window)
    assert_close(output.float(), given.expected(window))
    assert not any(kernel.pa_decode_swa.failures.values())


def test_wrong_window() -> None:
    with pytest.raises(ArgumentError, match="sliding_window=-1"):
        requests((3,), 1, 8, 1, 64, 16).result(sliding_window=-1)
