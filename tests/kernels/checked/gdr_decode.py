"""Cases of `kernels.gdr_decode`."""

from __future__ import annotations

from collections.abc import Iterator

from flydsl.testing import Case
from kernels.gdr_decode import gdr_decode, reference
from tests.kernels.test_gdr_decode import STATES, operands


def cases(*shape: int) -> Iterator[Case]:
    for dtype in STATES:
        given = operands(shape, dtype)
        out, state = reference(*[tensor for name, tensor in given.items() if name != "out"])
        expected = {"out": out.to(given["out"].dtype), "state": state.to(dtype)}
        yield Case(gdr_decode, given, expected, name=str(dtype), gpus=("gfx942", "gfx950"), rtol=2e-2, atol=2e-2)
