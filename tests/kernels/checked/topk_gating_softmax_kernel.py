"""Cases of `kernels.topk_gating_softmax_kernel`."""

from __future__ import annotations

from collections.abc import Iterator

from flydsl.testing import Case
from kernels.topk_gating_softmax_kernel import build_topk_gating_softmax_module, reference
from tests.kernels.test_topk_gating_softmax_kernel import different, results


def cases(tokens: int, experts: int, topk: int) -> Iterator[Case]:
    gating = different(tokens, experts, "f32")
    weights, chosen, ids = results(tokens, topk)
    given = {"gating": gating, "weights": weights, "experts": chosen, "ids": ids, "tokens": tokens}
    of_weights, of_experts = reference(gating, topk)
    launcher = build_topk_gating_softmax_module(experts, topk, "f32")
    yield Case(launcher, given, {"weights": of_weights, "experts": of_experts.int()}, rtol=1e-5, atol=1e-6)
