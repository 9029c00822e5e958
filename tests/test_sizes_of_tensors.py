"""`flydsl.sizes` refuses tensors that do not fit, at the line that calls the launcher."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.errors import ArgumentError
from flydsl.sizes import require_array, require_elements, require_rows

HERE = Path(__file__).name
Launch = Callable[..., None]


@flyc.jit
def rows_of_4(A: fx.Tensor, m: fx.Int32, apart: fx.Constexpr[bool] = False) -> None:
    require_rows("A", A, m, 4, apart=apart)


@flyc.jit
def two_rows(A: fx.Tensor, columns: fx.Int32) -> None:
    require_rows("A", A, 2, columns)


@flyc.jit
def eight(A: fx.Tensor, or_more: fx.Constexpr[bool] = False, bits: fx.Constexpr[int] = 0) -> None:
    require_elements("A", A, 8, or_more=or_more, bits=bits)


def of(*shape: int, dtype: Any = torch.float32) -> torch.Tensor:
    return torch.zeros(shape, dtype=dtype)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("launch", "arguments"),
    [
        (rows_of_4, (of(3, 4), 3)), (rows_of_4, (of(5, 4), 3)), (rows_of_4, (of(12), 3)),
        (rows_of_4, (of(3, 2, 2), 3)), (rows_of_4, (of(1, 3, 4), 3)), (rows_of_4, (of(0, 4), 0)),
        (rows_of_4, (of(3, 9)[:, :4], 3, True)), (rows_of_4, (of(1, 9)[:, :4], 1)),
        (two_rows, (of(8), 4)), (two_rows, (of(0), 0)), (two_rows, (of(2, 4), 4)),
        (eight, (of(8),)), (eight, (of(2, 4),)), (eight, (of(9), True)), (eight, (of(4, dtype=torch.uint8), False, 4)),
    ],
)  # fmt: skip
def test_what_fits_passes(launch: Launch, arguments: tuple[Any, ...]) -> None:
    launch(*arguments)


@pytest.mark.parametrize(
    ("launch", "arguments", "said"),
    [
        (rows_of_4, (of(3, 4), 4), r"A of \(3, 4\): 4 elements a row here, and 4 rows or more"),
        (rows_of_4, (of(3, 8), 3), r"A of \(3, 8\)"),
        (rows_of_4, (of(14), 3), r"A of \(14,\)"),
        (rows_of_4, (of(3, 9)[:, :4], 3), "contiguous"),
        (rows_of_4, (of(4, 3).T, 3), "contiguous"),
        (rows_of_4, (of(3, 8), 3, True), r"A of \(3, 8\)"),
        (rows_of_4, (of(12), 3, True), "A of one dimension"),
        (two_rows, (of(8), 3), r"A of \(8,\): 3 elements a row here, and 2 rows"),
        (eight, (of(9),), r"A of \(9,\): 8 elements here"),
        (eight, (of(7), True), "8 elements or more"),
        (eight, (of(16)[::2],), "contiguous"),
        (eight, (of(8, dtype=torch.uint8), False, 4), "4 elements here"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused(launch: Launch, arguments: tuple[Any, ...], said: str) -> None:
    with pytest.raises(ArgumentError, match=said) as raised:
        launch(*arguments)
    assert raised.value.at is not None
    assert raised.value.at.file.endswith(HERE)


@pytest.mark.parametrize(
    ("array", "shape"), [(of(4, 3).T, (3, 4)), (of(3, 4).half(), (3, 4)), (of(3, 5), (3, 4)), (of(2, 3, 4), (3, 4))]
)
def test_arrays_of_other_types_and_shapes_are_refused(array: torch.Tensor, shape: tuple[int, ...]) -> None:
    require_array("A", of(3, 4), torch.float32, shape)
    with pytest.raises(ArgumentError, match=r"A of torch\.float"):
        require_array("A", array, torch.float32, shape)
