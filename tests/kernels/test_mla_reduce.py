from __future__ import annotations

from typing import Any

import pytest
import torch

from flydsl.errors import ArgumentError
from kernels import mla_reduce as kernel
from tests.kernels.checks import checking


def operands(shape: tuple[tuple[int, ...], int, int, int]) -> dict[str, Any]:
    """Divided requests with a row between theirs that stays as it is, and rows of shares that belong to nobody."""
    counts, queries, heads, columns = shape
    random = torch.Generator().manual_seed(sum(counts) + columns)
    total = sum(counts)
    rows = torch.randperm(total + 2, generator=random)[:total] * queries
    shares = torch.full(((total + 2) * queries, heads, columns), torch.nan)
    lse = torch.full(((total + 2) * queries, heads), torch.nan)
    for row in rows.tolist():
        shares[row : row + queries] = torch.randn(queries, heads, columns, generator=random)
        lse[row : row + queries] = torch.randn(queries, heads, generator=random) * 3
    begins = torch.arange(len(counts)) * (queries + 1)
    return {
        "output": torch.full((len(counts) * (queries + 1), heads, columns), torch.nan, dtype=torch.bfloat16),
        "shares": shares,
        "lse": lse,
        "reduce_indptr": torch.tensor([0, *torch.tensor(counts).cumsum(0).tolist()]).int(),
        "reduce_final_map": torch.stack([begins, begins + queries], 1).int(),
        "reduce_partial_map": rows.int(),
    }


def check(given: dict[str, Any], queries: int, dtype: torch.dtype = torch.bfloat16, **options: int) -> torch.Tensor:
    """Whether output and final_lse have the reference's rows, and no others are written; returns final_lse."""
    expected = kernel.reference(*[tensor for name, tensor in given.items() if name != "output"])
    given["output"] = given["output"].to(dtype)
    final_lse = torch.full(given["output"].shape[:2], torch.nan)
    with checking():
        kernel.mla_reduce(**given, queries=queries, final_lse=final_lse, **options)
    for row, output in enumerate(given["output"]):
        mean, lse = expected.get(row, (torch.full_like(output, torch.nan), torch.full_like(final_lse[row], torch.nan)))
        torch.testing.assert_close(output.float(), mean.float(), rtol=1e-2, atol=1e-2, equal_nan=True)
        torch.testing.assert_close(final_lse[row], lse, rtol=1e-4, atol=1e-4, equal_nan=True)
    return final_lse


@pytest.mark.checked("all")
@pytest.mark.parametrize("shape", kernel.SHAPES, ids=str)
def test_equals_torch(shape: tuple[tuple[int, ...], int, int, int]) -> None:
    check(operands(shape), shape[1])


@pytest.mark.parametrize(("at_once", "dtype"), [(4, torch.float32), (16, torch.float16)], ids=str)
def test_rows_at_once(at_once: int, dtype: torch.dtype) -> None:
    check(operands(((2, 65), 1, 2, 256)), 1, dtype, at_once=at_once)


def test_shares_without_keys_count_nothing() -> None:
    """One of a request's, or all: the result is 0, and the logarithm that of 0."""
    given = operands(((3, 2), 1, 1, 64))
    rows = given["reduce_partial_map"].long()
    for share in (1, 3, 4):
        given["lse"][rows[share]], given["shares"][rows[share]] = -torch.inf, 0
    assert check(given, 1)[2].tolist() == [-torch.inf]


def test_groups_without_shares_are_left_out() -> None:
    """As the tables have fewer groups than requests."""
    given = operands(((2, 3), 1, 1, 64))
    given["reduce_indptr"] = torch.tensor([0, 2, 2, 2]).int()
    given["reduce_final_map"] = torch.cat([given["reduce_final_map"], torch.zeros(1, 2).int()])
    check(given, 1)


def test_fewer_queries_than_others() -> None:
    given = operands(((2, 3), 3, 2, 64))
    given["reduce_final_map"][1, 1] -= 2
    check(given, 3)


def test_a_nan_is_kept() -> None:
    given = operands(((2, 3), 1, 1, 64))
    given["lse"][given["reduce_partial_map"][0]] = torch.nan
    check(given, 1)


def test_without_final_lse() -> None:
    given = operands(((2,), 1, 1, 64))
    kernel.mla_reduce(**given)
    assert not given["output"][0].isnan().any()


@pytest.mark.sweep
def test_shared_by_measurement() -> None:
    given = operands(((2, 9), 1, 2, 128))
    kernel.tuned_mla_reduce(*map(kernel.flat, given.values()), 2, 2, 1, 128)
    expected = kernel.reference(*[tensor for name, tensor in given.items() if name != "output"])
    for row, (mean, _) in expected.items():
        torch.testing.assert_close(given["output"][row].float(), mean, rtol=1e-2, atol=1e-2)


@pytest.mark.parametrize(
    ("name", "wrong"),
    [("shares", torch.zeros(4, 64)), ("shares", torch.zeros(4, 1, 64).bfloat16()),
     ("output", torch.zeros(4, 2, 64).bfloat16()), ("lse", torch.zeros(3, 1)),
     ("reduce_indptr", torch.zeros(2, dtype=torch.int64)), ("final_lse", torch.zeros(3))],
)  # fmt: skip
def test_wrong_operands(name: str, wrong: torch.Tensor) -> None:
    with pytest.raises(ArgumentError, match=name):
        kernel.mla_reduce(**operands(((2,), 1, 1, 64)) | {name: wrong})


@pytest.mark.parametrize("columns", [96, 32, 8192])
def test_wrong_columns(columns: int) -> None:
    with pytest.raises(ArgumentError, match=f"rows of {columns}"):
        kernel.build_mla_reduce_module(columns)
