"""Cases of `kernels.moe_common`."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from flydsl.testing import Case
from kernels.moe_common import DTYPES, compile_moe_reduction, reference
from tests.kernels.rows import TOLERANCES, TYPES
from tests.kernels.test_moe_common import rows


def cases(tokens: int, topk: int, columns: int) -> Iterator[Case]:
    for dtype in DTYPES:
        x, y = rows((tokens, topk, columns), dtype), torch.full((tokens, columns), torch.nan, dtype=TYPES[dtype])
        launcher = compile_moe_reduction(topk=topk, model_dim=columns, dtype_str=dtype)
        given = {"x": x, "y": y, "mask": x, "tokens": tokens}
        close = TOLERANCES[dtype]
        yield Case(launcher, given, {"y": reference(x)}, name=dtype, rtol=close, atol=close)
