"""Caches in pages, and what paged attention is compared with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from kernels import pa_decode_fp8
from kernels.pa_decode_fp8 import pa_decode_ps_launch

FP8 = torch.float8_e4m3fnuz
TILE = 16


@dataclass
class Requests:
    """Tensors of a call. keys, values: (pages, Hkv, block, D) of the caches' type."""

    query: torch.Tensor
    keys: torch.Tensor
    values: torch.Tensor
    contexts: torch.Tensor
    pages: torch.Tensor
    starts: torch.Tensor
    key_scale: torch.Tensor
    value_scale: torch.Tensor
    packed: bool = True
    scale: float = 0.1

    @property
    def caches(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Keys and values as they are in memory."""
        keys = self.keys.unflatten(3, (-1, TILE)).transpose(2, 3).contiguous()
        values = self.values.unflatten(2, (-1, TILE)).transpose(3, 4)
        if not self.packed:
            values = self.values.transpose(2, 3)
        return keys, values.contiguous()

    def expected(self, window: int = -1) -> torch.Tensor:
        """The reference's result; queries are rounded to fp8 where the kernel does it."""
        query, scales = self.query.float(), [numbers(s, self.keys) for s in (self.key_scale, self.value_scale)]
        if self.keys.dtype == FP8:
            largest = query.abs().amax(-1, keepdim=True).nan_to_num(1.0, 1.0) / 240
            largest[largest == 0] = 1
            query = (query / largest).to(FP8).float() * largest
        keys, values = (c.float() * s for c, s in zip((self.keys, self.values), scales, strict=True))
        return pa_decode_fp8.reference(query, keys, values, self.contexts, self.pages, self.starts, self.scale, window)

    def result(self, **options: Any) -> torch.Tensor:
        """The kernel's, of an output in which nothing is left as it was."""
        output = torch.full(self.query.shape, torch.nan, dtype=self.query.dtype)
        pa_decode_ps_launch(
            output, self.query, *self.caches, self.contexts, self.pages, self.starts, self.scale, self.key_scale,
            self.value_scale, **options,
        )  # fmt: skip
        return output.float()


def numbers(scales: torch.Tensor, cache: torch.Tensor) -> torch.Tensor:
    """Scales such that they multiply a cache."""
    return scales if scales.numel() == 1 else scales.view(*scales.shape, *[1] * (4 - scales.dim()))


def requests(
    contexts: tuple[int, ...], heads: int, group: int, queries: int, dim: int, block: int, *, scales: str = "tensor",
    dtype: torch.dtype = FP8, query_dtype: torch.dtype = torch.bfloat16, packed: bool = True, junk: bool = True,
) -> Requests:  # fmt: skip
    """Random ones. Pages are in random order; where no token is, there are NaNs."""
    random = torch.Generator().manual_seed(sum(contexts) + heads + queries + block)
    counts = [-(-context // block) for context in contexts]
    pages = torch.randperm(sum(counts) + 2, generator=random).int()
    # What the list has after the last page is none.
    pages[sum(counts) :] = 1 << 30
    starts = torch.tensor([0, *counts]).cumsum(0).int()
    keys, values = (torch.randn(sum(counts) + 2, heads, block, dim, generator=random) for _ in range(2))
    shape = {"tensor": (1,), "block": (len(keys), heads), "token": (len(keys), heads, block)}[scales]
    of_keys, of_values = (torch.rand(shape, generator=random) + 0.5 for _ in range(2))
    there = torch.zeros(len(keys), block, dtype=torch.bool)
    for request, context in enumerate(contexts):
        for number, page in enumerate(pages[starts[request] : starts[request + 1]].tolist()):
            there[page] = torch.arange(block) + number * block < context
    if junk:
        nothing = ~there[:, None].expand(-1, heads, -1)
        for cache in (keys, values):
            cache[nothing] = torch.nan
        for scale in (of_keys, of_values) if scales == "token" else ():
            scale[nothing] = torch.nan
    query = torch.randn(len(contexts) * queries, heads * group, dim, generator=random).to(query_dtype)
    lengths = torch.tensor(contexts, dtype=torch.int32)
    return Requests(
        query, keys.to(dtype), values.to(dtype), lengths, pages, starts, of_keys, of_values, packed, dim**-0.5
    )


def assert_close(found: torch.Tensor, expected: torch.Tensor, exact: bool = False) -> None:
    """Probabilities have three or eight bits behind the point; what they weigh is about 1.

    exact: the cache is bf16. Otherwise one element of a thousand may differ twice as much: where a query sees two keys
    whose values cancel, the rounding of their two probabilities does not.
    """
    tolerance = 2e-2 if exact else 6e-2
    is_close = torch.isclose(found, expected, rtol=tolerance, atol=tolerance, equal_nan=True)
    allowed = tolerance if exact or (~is_close).double().mean() > 1e-3 else 2 * tolerance
    torch.testing.assert_close(found, expected, rtol=allowed, atol=allowed, equal_nan=True)
    if not exact:
        error = (found - expected).nan_to_num().norm() / expected.nan_to_num().norm().clamp(min=1e-9)
        assert error < 3e-2, f"{error}"
