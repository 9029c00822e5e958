"""Cases of `kernels.mqa_logits`."""

from __future__ import annotations

from collections.abc import Iterator

from flydsl.testing import Case
from kernels.mqa_logits import mqa_logits, reference
from tests.kernels.test_mqa_logits import FN, FNUZ, operands


def cases(*shape: int) -> Iterator[Case]:
    for gpu, dtype in (("gfx942", FNUZ), ("gfx950", FN)):
        given = operands(shape, dtype)
        expected = reference(*[tensor for name, tensor in given.items() if name != "out"])
        yield Case(mqa_logits, given, {"out": expected}, gpus=(gpu,), rtol=1e-4, atol=1e-3)
