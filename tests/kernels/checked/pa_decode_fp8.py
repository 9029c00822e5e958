"""Cases of `kernels.pa_decode_fp8`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import torch

from flydsl.testing import Case
from tests.kernels.paged import assert_close, requests


def cases(contexts: tuple[int, ...], heads: int, group: int, queries: int, dim: int, block: int) -> Iterator[Case]:
    given = requests(contexts, heads, group, queries, dim, block, dtype=torch.bfloat16)
    found: list[torch.Tensor] = []

    def decode() -> None:
        found.append(given.result(max_context_partition_num=2))

    def right(_: Mapping[str, Any]) -> None:
        assert_close(found[-1], given.expected(), exact=True)

    yield Case(decode, {}, check=right, gpus=("gfx942", "gfx950"))
