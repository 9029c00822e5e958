from __future__ import annotations

from typing import Any

import pytest
import torch

from flydsl.errors import ArgumentError
from kernels import mqa_logits as kernel
from tests.kernels.checks import checking

FNUZ, FN = torch.float8_e4m3fnuz, torch.float8_e4m3fn


def operands(shape: tuple[int, int, int, int], dtype: torch.dtype = FNUZ) -> dict[str, torch.Tensor]:
    """Random operands: the last query sees every key, the first one of several none."""
    queries, keys, heads, width = shape
    random = torch.Generator().manual_seed(sum(shape))

    def numbers(*size: int) -> torch.Tensor:
        return torch.randn(size, generator=random)

    given = {"q": numbers(queries, heads, width).to(dtype), "k": numbers(keys, width).to(dtype)}
    given |= {"k_scale": numbers(keys).abs() + 0.5, "weights": numbers(queries, heads)}
    given["starts"] = torch.randint(-3, keys, (queries,), generator=random).int()
    given["ends"] = torch.randint(0, keys + 9, (queries,), generator=random).int()
    given["starts"][-1], given["ends"][-1] = -1, keys + 1
    given["ends"][:-1][:1] = given["starts"][:-1][:1]
    return given | {"out": torch.full((queries, keys), torch.nan)}


def check(given: dict[str, torch.Tensor], **options: Any) -> None:
    expected = kernel.reference(*[tensor for name, tensor in given.items() if name != "out"])
    with checking():
        assert kernel.mqa_logits(**given, **options) is given["out"]
    torch.testing.assert_close(given["out"], expected, rtol=1e-4, atol=1e-3, equal_nan=True)


@pytest.mark.checked("all")
@pytest.mark.parametrize("shape", kernel.SHAPES, ids=str)
def test_equals_torch(shape: tuple[int, int, int, int]) -> None:
    check(operands(shape))


@pytest.mark.checked
@pytest.mark.parametrize("shape", kernel.SHAPES[:2], ids=str)
def test_equals_torch_on_cdna4(shape: tuple[int, int, int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    """Heads of 128 by the scaled instruction, heads of 64 by the one of CDNA 3."""
    monkeypatch.setenv("ARCH", "gfx950")
    check(operands(shape, FN))


@pytest.mark.parametrize(("queries", "waves", "parts"), [(1, 1, 1), (1, 4, 2), (3, 2, 7), (4, 3, 1)])
def test_sharing(queries: int, waves: int, parts: int) -> None:
    """As many queries and waves of a workgroup, and workgroups of the keys."""
    check(operands((5, 330, 16, 64)), queries=queries, waves=waves, parts=parts)


def test_a_nan_is_kept() -> None:
    given = operands((2, 70, 16, 64))
    given["k"][5, 0] = torch.nan
    check(given)
    assert given["out"][-1].isnan().nonzero().tolist() == [[5]]


def test_what_no_query_sees_stays_unless_it_is_cleaned() -> None:
    given = operands((2, 70, 16, 64))
    given["starts"], given["ends"] = torch.tensor([60, 3]).int(), torch.tensor([90, 7]).int()
    kernel.mqa_logits(**given, clean=False)
    assert given["out"].isfinite().sum(1).tolist() == [10, 4]
    assert given["out"].isnan().sum(1).tolist() == [60, 66]


@pytest.mark.parametrize("shape", [(0, 70, 16, 64), (2, 0, 16, 64)], ids=str)
def test_no_queries_or_no_keys(shape: tuple[int, int, int, int]) -> None:
    queries, keys, heads, width = shape
    given = operands((max(queries, 1), max(keys, 1), heads, width))
    few = {name: tensor[: keys if name.startswith("k") else queries] for name, tensor in given.items()}
    few["out"] = torch.full((queries, keys), torch.nan)
    assert kernel.mqa_logits(**few).numel() == 0


@pytest.mark.sweep
def test_shared_by_measurement() -> None:
    given = operands((4, 300, 16, 64))
    expected = kernel.reference(*[tensor for name, tensor in given.items() if name != "out"])
    given["out"].fill_(-torch.inf)
    spec = kernel.Indexer(heads=16, width=64, queries=2, waves=4)
    kernel.tuned_mqa_logits(*(kernel.flat(tensor) for tensor in given.values()), 4, 300, 1, spec)
    torch.testing.assert_close(given["out"], expected, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize(
    ("shape", "options", "said"),
    [((1, 70, 24, 64), {}, "24 heads"), ((1, 70, 16, 96), {}, "heads of 96"),
     ((1, 70, 16, 64), {"waves": 17}, "17 waves"), ((1, 70, 16, 64), {"queries": 0}, "0 queries")],
)  # fmt: skip
def test_wrong_options(shape: tuple[int, int, int, int], options: dict[str, int], said: str) -> None:
    with pytest.raises(ArgumentError, match=said):
        kernel.mqa_logits(**operands(shape), **options)


@pytest.mark.parametrize(
    ("name", "wrong"),
    [("k", torch.zeros(70, 128).to(FNUZ)), ("k", torch.zeros(70, 64).to(FN)), ("weights", torch.zeros(1, 32)),
     ("starts", torch.zeros(1, dtype=torch.int64)), ("out", torch.zeros(1, 71)), ("k_scale", torch.zeros(71))],
)  # fmt: skip
def test_wrong_operands(name: str, wrong: torch.Tensor) -> None:
    with pytest.raises(ArgumentError, match=name):
        kernel.mqa_logits(**operands((1, 70, 16, 64)) | {name: wrong})
