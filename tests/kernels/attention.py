"""Operands of attention, and how results are compared."""

from __future__ import annotations

import torch

TYPES = {"f16": torch.float16, "bf16": torch.bfloat16}


def operands(dtype: str, *shapes: tuple[int, ...]) -> list[torch.Tensor]:
    """Numbers from -1 to 1."""
    generator = torch.Generator().manual_seed(sum(shapes[0]))
    return [(torch.rand(*shape, generator=generator) * 2 - 1).to(TYPES[dtype]) for shape in shapes]


def check(o: torch.Tensor, expected: torch.Tensor) -> None:
    """The tolerance of the documents' tests: 1e-2, and rows in the same direction; NaN where torch has it."""
    torch.testing.assert_close(o.float(), expected, rtol=0, atol=1e-2, equal_nan=True)
    found, wanted = (x.nan_to_num().flatten(0, -2) for x in (o.float(), expected))
    alike = torch.cosine_similarity(found, wanted, -1)
    assert (alike[wanted.norm(dim=-1) > 0] > 0.99).all()
