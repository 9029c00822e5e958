"""Cases of `kernels.pa_metadata`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import torch

from flydsl.testing import Case
from kernels.pa_metadata import get_pa_metadata, reference


def cases(contexts: tuple[int, ...], num_cu: int, heads: int, group: int, queries: int) -> Iterator[Case]:
    found: dict[str, Any] = {}

    def tables(lengths: torch.Tensor) -> None:
        found.update(get_pa_metadata(lengths, heads * group, heads, queries, num_cu=num_cu))

    def right(given: Mapping[str, Any]) -> None:
        for name, values in reference(contexts, num_cu, heads, group, queries).items():
            assert found[name][: len(values)].tolist() == values, name

    yield Case(tables, {"lengths": torch.tensor(contexts, dtype=torch.int32)}, check=right, gpus=("gfx942", "gfx950"))
