from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
import torch

from flydsl.errors import ArgumentError
from kernels import mla_fwd_decode as kernel
from kernels.mla_fwd_decode_m16x8_fp8_fp8 import HEADS, KEY_BYTES, VALUE_BYTES
from kernels.pa_metadata import get_pa_metadata
from tests.kernels.checks import checking

FP8 = torch.float8_e4m3fnuz
SCALE = KEY_BYTES**-0.5


@dataclass
class Requests:
    """Random queries and tokens; pages in random order, and some that belong to nobody, of NaNs."""

    query: torch.Tensor
    kv: torch.Tensor
    pages: torch.Tensor
    contexts: torch.Tensor

    @classmethod
    def of(cls, contexts: tuple[int, ...]) -> Requests:
        random, count = torch.Generator().manual_seed(sum(contexts)), sum(contexts)
        kv = torch.randn(count + 3, KEY_BYTES, generator=random)
        pages = torch.randperm(count + 3, generator=random).int()
        kv[pages[count:].long()] = torch.nan
        query = torch.randn(len(contexts), HEADS, KEY_BYTES, generator=random)
        return cls(query.to(FP8), kv.to(FP8), pages[: max(1, count)], torch.tensor(contexts, dtype=torch.int32))

    def result(self, num_cu: int) -> torch.Tensor:
        output = torch.full((len(self.contexts), HEADS, VALUE_BYTES), torch.nan, dtype=torch.bfloat16)
        kernel.mla_fwd_decode(
            output, self.query, self.kv.view(-1, 1, 1, KEY_BYTES), self.pages, self.contexts, SCALE, num_cu=num_cu
        )
        return output.float()

    def expected(self) -> torch.Tensor:
        return kernel.reference(self.query, self.kv, self.pages, self.contexts, SCALE)


def assert_close(found: torch.Tensor, expected: torch.Tensor) -> None:
    torch.testing.assert_close(found, expected, rtol=5e-2, atol=5e-2, equal_nan=True)
    distance = 1 - torch.cosine_similarity(found.nan_to_num().view(-1), expected.nan_to_num().view(-1), 0)
    assert distance < 1e-3 or not expected.any()


@pytest.mark.slow
@pytest.mark.parametrize(
    "shape",
    [pytest.param(shape, marks=pytest.mark.sweep if len(shape[0]) == 1 else ()) for shape in kernel.SHAPES],
    ids=str,
)
@pytest.mark.diagonal(2)
def test_equals_torch(shape: tuple[tuple[int, ...], int]) -> None:
    contexts, num_cu = shape
    given = Requests.of(contexts)
    assert_close(given.result(num_cu), given.expected())


@pytest.mark.checked
def test_with_checks() -> None:
    """A request that is divided, one without keys, and one that is whole."""
    given = Requests.of((45, 0, 20))
    with checking():
        found = given.result(2)
    assert not found[1].any()
    assert_close(found, given.expected())


@pytest.mark.slow
def test_numbers_that_are_none() -> None:
    """A key of NaNs is its request's; a query of zeros weighs all keys alike."""
    given = Requests.of((33, 40))
    given.query[1, 7] = 0
    given.kv.view(torch.uint8)[given.pages[5].item()] = 0x80
    found = given.result(3)
    assert found[0].isnan().all()
    assert_close(found, given.expected())


@pytest.mark.slow
def test_shares_of_divided_requests() -> None:
    """What the kernel leaves for the reduction: every share as it would be alone, and the logarithm of its sum."""
    given = Requests.of((70,))
    tables = get_pa_metadata(given.contexts, HEADS, 1, num_cu=2, kv_granularity=1)
    shares, lse = torch.full((2, 1, HEADS, VALUE_BYTES), torch.nan), torch.full((2, 1, HEADS, 1), torch.nan)
    out = torch.full((1, HEADS, VALUE_BYTES), torch.nan, dtype=torch.bfloat16)
    kernel.flydsl_mla_fwd_decode(
        given.query, given.kv, given.pages, tables["work_indptr"], tables["work_info"], out, shares, lse, SCALE
    )
    assert out.isnan().all()
    logits = given.query[0].float() @ given.kv[given.pages.long()].float().T * SCALE
    for number, share in enumerate((logits[:, :35], logits[:, 35:])):
        torch.testing.assert_close(lse[number, 0, :, 0], share.logsumexp(-1), rtol=1e-3, atol=1e-3)
        values = given.kv[given.pages.long()][number * 35 :][:35, :VALUE_BYTES].float()
        assert_close(shares[number, 0], share.softmax(-1) @ values)


def test_the_reference_itself() -> None:
    """The second request's only token is its value."""
    query, kv = torch.ones(2, HEADS, KEY_BYTES), torch.arange(2.0 * KEY_BYTES).view(2, KEY_BYTES)
    out = kernel.reference(query, kv, torch.tensor([0, 1]), torch.tensor([1, 1]), 1.0)
    assert torch.equal(out[1, 5], kv[1, :VALUE_BYTES])


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [("query", torch.zeros(1, HEADS, 512).to(FP8), "query of"), ("query", torch.zeros(1, HEADS, KEY_BYTES), "query of"),
     ("query", torch.zeros(2, HEADS, KEY_BYTES).to(FP8), "for 1 requests"), ("kv", torch.zeros(9, 576), "kv_buffer of"),
     ("pages", torch.zeros(9), "kv_page_indices of"), ("contexts", torch.tensor([3]), "context_lengths of")],
)  # fmt: skip
def test_wrong_arguments(name: str, value: Any, said: str) -> None:
    given = Requests.of((3,))
    setattr(given, name, value)
    with pytest.raises(ArgumentError, match=said):
        given.result(1)
