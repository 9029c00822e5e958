"""Cases of `kernels.causal_conv1d`."""

from __future__ import annotations

from collections.abc import Iterator

from flydsl.testing import Case
from kernels.causal_conv1d import causal_conv1d, causal_conv1d_prefill, reference, reference_prefill
from tests.kernels.test_causal_conv1d import operands, prompts


def cases(*shape: int) -> Iterator[Case]:
    given = operands(shape)
    out, state = reference(*[tensor for name, tensor in given.items() if name != "out"])
    expected = {"out": out.to(given["out"].dtype), "state": state.to(given["out"].dtype)}
    yield Case(causal_conv1d, given, expected, rtol=1e-2, atol=1e-2)
    given = prompts((shape[1] + 20,) * shape[0], *shape[2:])
    out, state = reference_prefill(*[tensor for name, tensor in given.items() if name != "out"])
    expected = {"out": out.to(given["out"].dtype), "state": state.to(given["out"].dtype)}
    yield Case(causal_conv1d_prefill, given | {"longest": shape[1] + 20}, expected, rtol=1e-2, atol=1e-2)
