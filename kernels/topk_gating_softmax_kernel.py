"""The top k of softmax(gating) for each token: what routes tokens to experts.

    build_topk_gating_softmax_module(128, 8, "bf16")(gating, weights, indices, token_expert_idx, tokens)

gating: (T, E), E a power of two up to 1024; weights: (T, k) in f32, the probabilities, with renormalize divided by
their sum; indices: (T, k) in i32, the experts, the most probable first and of equals the lowest number first;
token_expert_idx[t, j] = j T + t in i32.

A thread has up to 16 neighbouring experts of a token, E / 16 lanes a token, and a wave several tokens. Each of the k
rounds finds the largest number of a lane by v_max3 and of the token's lanes by DPP; the lowest expert that has it is
found in the same way, and leaves the search. There is neither shared memory nor a barrier; a token's first lane writes
the results, four at a time. A row with a NaN has no order of experts; each index is a valid one all the same.
E = 128, k = 8: about 1,180 instructions, 56 VGPRs, eight waves per SIMD; k rounds of the search are most of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.expr import range_constexpr
from flydsl.expr.buffer_ops import buffer_load, buffer_store, create_buffer_resource
from flydsl.expr.coop import warp_size
from kernels.kernels_common import LOG2_E, element_type, refusal, require
from kernels.launches import chosen, launch_some, launcher
from kernels.reduce import vector_reduce
from kernels.sizes import require_rows

DTYPES = ("f32", "f16", "bf16")
WAVES = (1, 2, 4, 8)
SMALLEST_SUM = 1e-20
TENSORS = "gating weights indices token_expert_idx"
# (T, E, k): several tokens in a wave, one lane for a token, a whole wave for one, an odd number of tokens.
SHAPES = ((33, 128, 6), (9, 8, 2), (3, 1024, 4), (70, 64, 1), (1, 2, 2), (5, 16, 3))


@dataclass(frozen=True)
class Gating:
    """The values known at compile time. waves: of a block."""

    experts: int
    topk: int
    renormalize: bool
    waves: int = 4

    @property
    def each(self) -> int:
        """Experts of a lane: as many as leave a power of two of lanes to a token. Raises ArgumentError if none does."""
        most = 1024 // warp_size()
        for each in (16, 8, 4, 2, 1, most):
            lanes, rest = divmod(self.experts, each)
            if not rest and 0 < lanes <= warp_size() and lanes & (lanes - 1) == 0:
                return each
        raise refusal(f"gating of {self.experts} experts", hint="pass a power of two up to 1024")

    @property
    def lanes(self) -> int:
        """Lanes of a token."""
        return self.experts // self.each

    @property
    def tokens(self) -> int:
        """Tokens of a block."""
        return self.waves * (warp_size() // self.lanes)


@flyc.kernel
def topk_gating_softmax_kernel(tensors: Any, tokens: fx.Int32, spec: fx.Constexpr[Gating]) -> None:
    """The tokens of a block. tensors: by the names of TENSORS."""
    thread = fx.thread_idx.x
    token, lane = fx.block_idx.x * spec.tokens + thread // spec.lanes, thread % spec.lanes
    exists = token < tokens
    probabilities, experts = route(tensors["gating"], token, lane, exists, spec)
    results = {
        "weights": probabilities,
        "indices": experts,
        "token_expert_idx": [tokens * round_ + token for round_ in range_constexpr(spec.topk)],
    }
    for name, values in results.items():
        memory, place = create_buffer_resource(tensors[name]), token * spec.topk
        buffer_store(fx.Vector.from_elements(values), memory, place, mask=exists & (lane == 0))


def route(gating: fx.Tensor, token: Any, lane: Any, exists: Any, spec: Gating) -> tuple[list[Any], list[Any]]:
    """(probabilities, experts) of a token, k of each in each of its lanes."""
    numbers = experts_of(gating, token, lane, exists, spec)
    largest = group(vector_reduce(numbers, "max"), "max", spec)
    powers = fx.exp2((numbers - largest) * LOG2_E, fastmath="afn")
    factor = fx.rocdl.rcp(group(vector_reduce(powers, "add"), "add", spec))
    first = lane * spec.each
    # A NaN counts as 0, so that each round finds an expert.
    left = [(power == power).select(power, 0.0) for power in powers]
    chosen, experts = [], []
    for _ in range(spec.topk):
        best = group(vector_reduce(fx.Vector.from_elements(left), "max"), "max", spec)
        expert = fx.Int32(spec.experts)
        for number in reversed(range(spec.each)):
            expert = (left[number] == best).select(first + number, expert)
        expert = group(expert, "min", spec)
        left = [(expert == first + number).select(-1.0, power) for number, power in enumerate(left)]
        chosen.append(best)
        experts.append(expert)
    if spec.renormalize:
        factor = fx.rocdl.rcp(fx.arith.maxnumf(sum(chosen[1:], chosen[0]) * factor, SMALLEST_SUM)) * factor
    return [power * factor for power in chosen], experts


def group(value: Any, op: str, spec: Gating) -> Any:
    """A reduction by the lanes of a token."""
    return fx.coop.warp_reduce(value, op, width=spec.lanes)


def experts_of(gating: fx.Tensor, token: Any, lane: Any, exists: Any, spec: Gating) -> Any:
    """A lane's gating numbers in f32."""
    place = token * fx.Int32(fx.get_scalar(gating.stride[0])) + lane * spec.each
    loaded = buffer_load(create_buffer_resource(gating), place, spec.each, gating.dtype, mask=exists)
    return (loaded if spec.each > 1 else fx.Vector.from_elements([loaded])).to(fx.Float32)


def launch_tokens(spec: Gating, dtype: Any, tensors: dict[str, Any], tokens: Any, stream: Any) -> None:
    """Launch as many blocks as the tokens need, inside a launcher. dtype: of gating."""
    for name, tensor in tensors.items():
        if name == "gating":
            require_rows(name, tensor, tokens, spec.experts, dtype, apart=True)
        else:
            require_rows(name, tensor, tokens, spec.topk, fx.Float32 if name == "weights" else fx.Int32)
    kernel, blocks = topk_gating_softmax_kernel(tensors, tokens, spec), (tokens + spec.tokens - 1) // spec.tokens
    launch_some(kernel, tokens, blocks, spec.waves * warp_size(), stream)


@cache
def build_topk_gating_softmax_module(
    num_experts: int, topk: int, dtype_str: str = "bf16", renormalize: bool = True
) -> Any:
    """The launcher (gating, weights, indices, token_expert_idx, num_tokens, stream).

    num_experts: a power of two up to 1024; topk: at most as many.
    """
    spec = Gating(num_experts, topk, renormalize)
    dtype = element_type(dtype_str)
    fits = 1 <= topk <= num_experts and spec.each > 0
    require(fits, f"the top {topk} of {num_experts} experts", "topk is 1 to the number of experts")
    return launcher("launch_topk_gating_softmax", TENSORS, partial(launch_tokens, spec, dtype), num_tokens=fx.Int32)


@chosen(TENSORS, "experts topk tokens", WAVES)
def topk_gating_softmax(
    tensors: dict[str, Any], tokens: fx.Int32, experts: int, topk: int, waves: int, stream: Any
) -> None:
    """The kernel with renormalized weights."""
    launch_tokens(Gating(experts, topk, True, waves), tensors["gating"].dtype, tensors, tokens, stream)


def reference(gating: Any, topk: int, renormalize: bool = True) -> tuple[Any, Any]:
    """(weights in f32, experts) by torch, which does not say which of equals comes first."""
    weights, experts = gating.float().softmax(-1).topk(topk)
    if renormalize:
        weights = weights / weights.sum(-1, keepdim=True).clamp(min=SMALLEST_SUM)
    return weights, experts.int()
