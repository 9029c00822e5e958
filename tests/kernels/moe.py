"""Layers of a mixture of experts: their sizes, their routing, and the tables of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from kernels import moe_sorting_kernel as sorting
from tests.kernels.gemm import factors

OUT = {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32}
TOLERANCES = {torch.bfloat16: 2e-2, torch.float16: 2e-3, torch.float32: 1e-4}


@dataclass
class Layer:
    """Sizes and routing. topk_ids (T, k)."""

    tokens: int
    d: int
    i: int
    experts: int
    topk: int
    tile_m: int
    topk_ids: torch.Tensor

    @classmethod
    def of(cls, shape: tuple[int, ...], topk_ids: Any = None) -> Layer:
        if topk_ids is None:
            random = torch.Generator().manual_seed(sum(shape))
            topk_ids = torch.rand(shape[0], shape[3], generator=random).topk(shape[4]).indices.int()
        return cls(*shape, topk_ids)

    @property
    def rows(self) -> int:
        return self.tokens * self.topk

    @property
    def weights(self) -> torch.Tensor:
        return factors(self.tokens, self.topk)

    def tables(self, mask: Any = None) -> tuple[Any, ...]:
        ids, weights, experts, valid = sorting.reference(self.topk_ids, self.weights, self.experts, self.tile_m, mask)
        return ids, experts, weights, valid

    def sizes(self, tile_n: int, tile_k: int) -> dict[str, int]:
        return {
            "model_dim": self.d, "inter_dim": self.i, "experts": self.experts, "topk": self.topk,
            "tile_m": self.tile_m, "tile_n": tile_n, "tile_k": tile_k,
        }  # fmt: skip

    def result(self, columns: int, dtype: torch.dtype, accumulate: bool = False) -> torch.Tensor:
        """What a stage writes to, flat: zeros that are added to, or NaN of which every element must be written."""
        rows = self.tokens if accumulate else self.rows
        return torch.full((rows * columns,), 0.0 if accumulate else torch.nan, dtype=dtype)
