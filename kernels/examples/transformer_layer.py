"""A layer of a transformer with a mixture of experts, all of it kernels of this library.

    layer = TransformerLayer(Sizes(), seed=0)
    y, caches = layer(x, positions)           # x, y (T, D) in bf16
    expected = layer.reference(x, positions)  # the same by torch, rounded to bf16 at the same places

    normed = rmsnorm(x)                      rmsnorm_kernel
    q, k, v = normed Wq, normed Wk, normed Wv    preshuffle_gemm
    q, k = rotated; k, v to the cache        fused_rope_cache_kernel
    heads = softmax(q k^T / sqrt(d)) v       flash_attn_generic
    out = heads Wo                           preshuffle_gemm
    x = x + out; normed = rmsnorm(x)         rmsnorm_kernel, fused
    weights, experts = top k of normed Wr    preshuffle_gemm, topk_gating_softmax_kernel
    y = x + sum of weights expert(normed)    moe_sorting_kernel, moe_gemm_2stage

The sizes are a toy's, so that the simulator takes seconds. Between the launches torch allocates, and adds the last sum.
`timeline` shows what the launches take by the model of time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from kernels import moe_sorting_kernel as sorting
from kernels.flash_attn_generic import build_flash_attn_func_module
from kernels.flash_attn_generic import reference as attention
from kernels.fused_rope_cache_kernel import build_fused_rope_cache_module
from kernels.fused_rope_cache_kernel import reference as rotated
from kernels.moe_gemm_2stage import compile_moe_gemm1, compile_moe_gemm2, reference1, reference2
from kernels.preshuffle_gemm import compile_preshuffle_gemm_a8
from kernels.rmsnorm_kernel import build_fused_add_rmsnorm_module, build_rmsnorm_module
from kernels.rmsnorm_kernel import reference as normed
from kernels.shuffles import shuffle_weight
from kernels.topk_gating_softmax_kernel import build_topk_gating_softmax_module
from kernels.topk_gating_softmax_kernel import reference as gated

_TYPE = torch.bfloat16
_TILE = {"tile_m": 16, "tile_n": 64, "tile_k": 128}


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """The sizes of a layer. inter: columns of an expert; page: tokens of a block of the cache."""

    model: int = 256
    heads: int = 4
    kv_heads: int = 2
    head: int = 64
    experts: int = 64
    topk: int = 2
    inter: int = 128
    page: int = 16


class TransformerLayer:
    """The layer with weights at random on a device, where its arguments are, too."""

    def __init__(self, sizes: Sizes, seed: int = 0, device: str = "cpu") -> None:
        self.sizes, s, self.device = sizes, sizes, device
        random = torch.Generator().manual_seed(seed)

        def weight(*shape: int) -> Any:
            return (torch.randn(shape, generator=random) * shape[-1] ** -0.5).to(device, _TYPE)

        self.q, self.k, self.v = (weight(n * s.head, s.model) for n in (s.heads, s.kv_heads, s.kv_heads))
        self.out, self.router = weight(s.model, s.heads * s.head), weight(s.experts, s.model) * 4
        self.gate_up, self.down = weight(s.experts, 2 * s.inter, s.model), weight(s.experts, s.model, s.inter)
        self.norms = [(torch.rand(s.model, generator=random) + 0.5).to(device, _TYPE) for _ in range(2)]

    def __call__(self, x: Any, positions: Any) -> tuple[Any, tuple[Any, Any]]:
        """(y, (cache of keys, of values)): token t is put at place t of the cache."""
        first, h, residual = (torch.empty_like(x) for _ in range(3))
        build_rmsnorm_module(x.shape[0], x.shape[1], "bf16")(x, self.norms[0], first, len(x))
        attended, caches = self.attention(first, positions)
        out = _product(attended, self.out)
        build_fused_add_rmsnorm_module(x.shape[0], x.shape[1], "bf16")(out, x, self.norms[1], h, residual, len(x))
        return residual + self.experts(h), caches

    def attention(self, h: Any, positions: Any) -> tuple[Any, tuple[Any, Any]]:
        """(heads side by side (T, heads * head), caches)."""
        s, tokens = self.sizes, len(h)
        q, k, v = (_product(h, w).view(tokens, -1, s.head) for w in (self.q, self.k, self.v))
        cos, sin = self.rotations(int(positions.max()) + 1)
        pages = -(-tokens // s.page)
        caches = tuple(h.new_zeros(pages, s.page, s.kv_heads, s.head) for _ in range(2))
        turned, slots = (torch.empty_like(q), torch.empty_like(k)), torch.arange(tokens, device=self.device).int()
        build_fused_rope_cache_module(s.head, num_q_heads=s.heads, num_kv_heads=s.kv_heads, block_size=s.page)(
            q, k, v, positions, cos, sin, slots, *caches, *turned, tokens, *self.unused
        )
        result = torch.empty_like(q)
        attend = build_flash_attn_func_module(s.heads, s.head, dtype_str="bf16", num_kv_heads=s.kv_heads)
        attend(turned[0].view(-1), turned[1].view(-1), v.reshape(-1), result.view(-1), 1, tokens)
        return result.view(tokens, -1), (caches[0], caches[1])

    def experts(self, h: Any) -> Any:
        """The weighted sum of what each token's experts make of it."""
        s, tokens, tile_m = self.sizes, len(h), _TILE["tile_m"]
        weights, chosen = self.empty(tokens, s.topk), self.empty(tokens, s.topk, dtype=torch.int32)
        gate = build_topk_gating_softmax_module(s.experts, s.topk)
        gate(_product(h, self.router), weights, chosen, torch.empty_like(chosen), tokens)
        rows = sorting.sorted_size(tokens, s.experts, s.topk, tile_m)
        ids, experts, valid = (self.empty(n, dtype=torch.int32) for n in (rows, -(-rows // tile_m), 2))
        of_rows, y = self.empty(rows), torch.empty_like(h)
        sorting.moe_sorting_flydsl(chosen, weights, ids, of_rows, experts, valid, y, s.experts, tile_m)
        layer = {"model_dim": s.model, "inter_dim": s.inter, "experts": s.experts, "topk": s.topk, **_TILE}
        types = {"in_dtype": "bf16", "out_dtype": "bf16"}
        tables, between = (ids, experts, of_rows, valid), self.empty(tokens * s.topk * s.inter, dtype=_TYPE)
        compile_moe_gemm1(**layer, doweight_stage1=False, **types)(
            between, h.view(-1), _shuffled(self.gate_up), *self.unused, *tables, tokens, s.inter, s.model, len(experts)
        )
        compile_moe_gemm2(**layer, doweight_stage2=True, **types)(
            y.view(-1), between, _shuffled(self.down), *self.unused, *tables, tokens, s.model, s.inter, len(experts)
        )
        return y

    def empty(self, *shape: int, dtype: Any = torch.float32) -> Any:
        """A tensor that a kernel fills."""
        return torch.empty(shape, dtype=dtype, device=self.device)

    @property
    def unused(self) -> tuple[Any, Any]:
        """The stand-in for scales where there are none."""
        return (self.empty(1),) * 2

    def rotations(self, positions: int) -> tuple[Any, Any]:
        """Cosines and sines (positions, head / 2)."""
        half = self.sizes.head // 2
        angles = torch.arange(positions)[:, None] * 10000.0 ** (-torch.arange(half) / half)
        return angles.cos().to(self.device, _TYPE), angles.sin().to(self.device, _TYPE)

    def reference(self, x: Any, positions: Any) -> Any:
        """The layer by torch: every kernel's result in f32, rounded to bf16."""
        s, tokens = self.sizes, len(x)
        h = normed(x, self.norms[0])
        q, k, v = ((h.float() @ w.float().T).to(_TYPE).view(tokens, -1, s.head) for w in (self.q, self.k, self.v))
        cos, sin = (table[positions.long()] for table in self.rotations(int(positions.max()) + 1))
        q, k = rotated(q, cos, sin), rotated(k, cos, sin)
        attended = attention(q[None], k[None], v[None]).reshape(tokens, -1).to(_TYPE)
        x = x + (attended.float() @ self.out.float().T).to(_TYPE)
        h = normed(x, self.norms[1])
        weights, chosen = gated((h.float() @ self.router.float().T).to(_TYPE), s.topk)
        rows = reference2(reference1(h, self.gate_up, chosen).to(_TYPE), self.down, chosen, weights)
        return x + rows.sum(1).to(_TYPE)


def _product(a: Any, weight: Any) -> Any:
    """a (M, K) times weight (N, K) transposed."""
    (m, k), n = a.shape, len(weight)
    result, none = a.new_empty(m, n), a.new_empty(1, dtype=torch.float32)
    launch = compile_preshuffle_gemm_a8(K=k, in_dtype="bf16", out_dtype="bf16", **_TILE)
    launch(result.view(-1), a.reshape(-1), shuffle_weight(weight), none, none, none, m, n)
    return result


def _shuffled(weights: Any) -> Any:
    return shuffle_weight(weights.view(-1, weights.shape[-1]))


def timeline(launches: Any, width: int = 60) -> str:
    """The launches of a `tracing` session, one after the other, as lines of text: when, how long, and a bar.

    Those of a `counting` session inside one will do, too.
    """
    times = [launch.trace.estimate for launch in launches]
    scale, start, lines = width / sum(time.time_us for time in times), 0.0, []
    for launch, time in zip(launches, times, strict=True):
        bar = " " * round(start * scale) + "#" * max(1, round(time.time_us * scale))
        lines.append(f"{start:6.2f} us {time!s:>17}  {launch.kernel:30} |{bar}")
        start += time.time_us
    return "\n".join(lines)
