"""RMS norm, rotary embedding of the last columns, and quantisation of the heads of Q and of one K/V head.

    q_out, kv_out = flydsl_qk_norm_rope_quant(q, kv, weight, cos, sin, positions, num_q_heads=16, head_dim=512,
                                              rope_head_dim=64)

q: (T, H D), kv: (T, D) of bf16 or f16, with any row stride, D = 512; weights: (D); cos, sin: (positions, RD / 2) of the
same type; positions: (T) in i64. For each head x, with c and s of pair i of its last RD columns:

    y = x / sqrt(mean(x^2) + 1e-6) [* weight]
    (y[2i], y[2i + 1]) = (y[2i] c - y[2i + 1] s, y[2i] s + y[2i + 1] c)

quant: both results are the target's fp8, with a scale for each group of columns, by default the head. A rotation makes
a number at most sqrt(2) times as large, so the scale is sqrt(2) max |y| / largest with y as it is before it: it is
known as early as the norm is. In f32, or as a power of two in E8M0, which leaves one binary digit of room.

A wave has one head of one token, 8 columns a lane: what is summed goes by DPP, and there is no barrier. In bf16: about
260 instructions, 30 VGPRs, eight waves per SIMD; the time is that of memory, 2 T (H + 1) D elements.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache, partial
from math import sqrt
from typing import Any

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.expr.buffer_ops import buffer_load, buffer_store
from kernels.kernels_common import GFX942, ceil_div, require, require_tensor, require_waves_of_64, rounded
from kernels.launches import chosen, launch_some, launcher
from kernels.quant import e8m0, fp8_codes, group_max, scale_and_factor
from kernels.reduce import vector_reduce, warp_reduce
from kernels.rows import WAVE, row_resource
from kernels.sizes import require_elements, require_rows

HEAD_DIM = 512
WIDTH = HEAD_DIM // WAVE
EPSILON = 1e-6
E8M0_HEADROOM = 7
GROUPS = (8, 16, 32, 64, 128, 256, 512)
SCALE_TYPES = ("fp32", "e8m0")
# (T, H, RD)
SHAPES = ((3, 2, 64), (1, 4, 512), (5, 1, 8))


@dataclass(frozen=True, kw_only=True)
class Heads:
    """The values known at compile time. group: columns of a scale, None for results in the operands' type."""

    q_heads: int
    rope_dim: int
    group: int | None
    scale_dtype: str
    waves: int = 1


@flyc.kernel
def qk_norm_rope_quant_kernel(tensors: Any, heads: fx.Constexpr[Heads]) -> None:
    """One head of one token; the heads of Q come first. tensors: by name; those that are not used are left out."""
    require_waves_of_64("qk_norm_rope_quant")
    token, head, _ = fx.block_idx
    if heads.waves > 1:
        head = head * heads.waves + fx.rocdl.readfirstlane(fx.thread_idx.y)
    if head < heads.q_heads:
        finished(tensors, "q", token, head, heads)
    elif (heads.q_heads + 1) % heads.waves == 0 or head == heads.q_heads:
        finished(tensors, "kv", token, 0, heads)


def finished(tensors: Any, name: str, token: Any, head: Any, heads: Heads) -> None:
    """Everything that is done to a head."""
    column = fx.thread_idx.x * WIDTH
    place = head * HEAD_DIM + column
    source = tensors[name]
    x = buffer_load(row_resource(source, token), place, WIDTH, source.dtype).to(fx.Float32)
    factor = fx.rocdl.rsq(warp_reduce(vector_reduce(x * x, "add"), "add") * (1 / HEAD_DIM) + EPSILON)
    if f"{name}_weight" in tensors:
        weight = tensors[f"{name}_weight"]
        x = x * buffer_load(row_resource(weight, None), column, WIDTH, weight.dtype).to(fx.Float32)
    y = turned(x * factor, tensors, token, column, heads)
    target = row_resource(tensors[f"{name}_out"], token)
    if heads.group is None:
        buffer_store(rounded(y, source.dtype), target, place)
        return
    lanes = heads.group // WIDTH
    largest = group_max(x, lanes) * factor * sqrt(2)
    if heads.scale_dtype == "e8m0":
        scale, factor = e8m0(largest, E8M0_HEADROOM)
        scale = scale.to(fx.Uint8)
    else:
        scale, factor = scale_and_factor(largest, "fp8")
    buffer_store(fp8_codes(y * factor), target, place)
    scales = row_resource(tensors[f"{name}_scale"], token)
    buffer_store(scale, scales, place // heads.group, mask=fx.thread_idx.x % lanes == 0)


def turned(y: Any, tensors: Any, token: Any, column: Any, heads: Heads) -> Any:
    """A lane's columns, rotated if they are of the last ones."""
    position = fx.rocdl.readfirstlane(fx.Int32(tensors["positions"][token]))
    first = HEAD_DIM - heads.rope_dim
    inside = column >= first
    cos, sin = (
        buffer_load(row_resource(t, position), (column - first) // 2, WIDTH // 2, t.dtype, mask=inside).to(fx.Float32)
        for t in (tensors["cos"], tensors["sin"])
    )
    even, odd = y[0::2], y[1::2]
    pairs = zip(even * cos - odd * sin, even * sin + odd * cos, strict=True)
    return inside.select(fx.Vector.from_elements([n for pair in pairs for n in pair]), y)


@cache
def build(names: tuple[str, ...], heads: Heads) -> Any:
    """The launcher of a variant: its tensors, the number of tokens, stream."""
    launch = partial(launch_heads, heads)
    return launcher("launch_qk_norm_rope_quant", " ".join(names), launch, tokens=fx.Int32)


def launch_heads(heads: Heads, tensors: dict[str, Any], tokens: Any, stream: Any) -> None:
    """Launch a wave for each head of each token, inside a launcher."""
    half, dtype = heads.rope_dim // 2, tensors["q"].dtype
    require_tensor("q", tensors["q"], fx.BFloat16, fx.Float16)
    columns = {"q": heads.q_heads * HEAD_DIM, "kv": HEAD_DIM, "cos": half, "sin": half}
    for name, count in columns.items():
        require_tensor(name, tensors[name], dtype, rows=True)
        require_rows(name, tensors[name], tokens if name in ("q", "kv") else 1, count, apart=True)
    for name in tensors.keys() & {"q_weight", "kv_weight"}:
        require_elements(name, tensors[name], HEAD_DIM, dtype)
    require_elements("positions", tensors["positions"], tokens, fx.Int64, fx.Int32)
    grid = (tokens, ceil_div(heads.q_heads + 1, heads.waves))
    launch_some(qk_norm_rope_quant_kernel(tensors, heads), tokens, grid, (WAVE, heads.waves), stream)


@chosen("q kv kv_weight cos sin positions q_out kv_out", "heads", (1, 2, 4, 8))
def qk_norm_rope(tensors: dict[str, Any], m_in: fx.Int32, heads: Heads, waves: int, stream: Any) -> None:
    """The form without quantisation for m_in tokens, with the waves of a block chosen by measurement."""
    launch_heads(replace(heads, waves=waves), tensors, m_in, stream)


def flydsl_qk_norm_rope_quant(
    q: Any, kv: Any, kv_weight: Any, cos: Any, sin: Any, positions: Any, *, num_q_heads: int, head_dim: int,
    rope_head_dim: int, q_weight: Any = None, quant: bool = False, quant_group_size: int | None = None,
    scale_dtype: str = "fp32", stream: Any = None,
) -> tuple[Any, ...]:  # fmt: skip
    """(q_out, kv_out), and if quant (q_out, kv_out, q_scale, kv_scale), in new tensors.

    Outputs are (T, H D) and (T, D), scales (T, H D / group) and (T, D / group). quant_group_size: 8 to 512, a power of
    two, by default 512. Raises ArgumentError where head_dim is not 512 or the operands do not fit.
    """
    group = (quant_group_size or HEAD_DIM) if quant else None
    fits = head_dim == HEAD_DIM and rope_head_dim % WIDTH == 0 and 0 < rope_head_dim <= HEAD_DIM
    require(fits, f"heads of {head_dim} with {rope_head_dim} rotated columns", "512; a multiple of 8")
    fits = group is None or (group in GROUPS and scale_dtype in SCALE_TYPES)
    require(fits, f"groups of {group}, scales of {scale_dtype!r}", "8 to 512; fp32 or e8m0")
    rows = q.ndim == kv.ndim == positions.ndim + 1 == 2 and len(q) == len(kv) == len(positions)
    require(rows, f"q {tuple(q.shape)}, kv {tuple(kv.shape)}, positions {tuple(positions.shape)}", "T of each")
    heads = Heads(q_heads=num_q_heads, rope_dim=rope_head_dim, group=group, scale_dtype=scale_dtype)
    tensors = {"q": q, "kv": kv, "kv_weight": kv_weight, "cos": cos, "sin": sin, "positions": positions}
    if q_weight is not None:
        tensors["q_weight"] = q_weight
    made = results(q, kv, heads)
    given = {**tensors, **made}
    build(tuple(given), heads)(*given.values(), len(q), fx.Stream(stream))
    return tuple(made.values())


def results(q: Any, kv: Any, heads: Heads) -> dict[str, Any]:
    """New tensors for the results, by name."""
    import torch

    from flydsl.runtime.device import target_arch

    fp8 = torch.float8_e4m3fnuz if target_arch(str(q.device)) == GFX942 else torch.float8_e4m3fn
    code, scale = fp8 if heads.group else q.dtype, torch.uint8 if heads.scale_dtype == "e8m0" else torch.float32
    made = {f"{n}_out": torch.empty(t.shape, dtype=code, device=t.device) for n, t in (("q", q), ("kv", kv))}
    for name, t in (("q", q), ("kv", kv)) if heads.group else ():
        made[f"{name}_scale"] = torch.empty(len(t), t.shape[1] // heads.group, dtype=scale, device=t.device)
    return made


def reference(x: Any, weight: Any, cos: Any, sin: Any) -> tuple[Any, Any]:
    """(y, y before the rotation) in f32, of heads (T, H, D); cos, sin: of each token."""
    import torch

    v = x.float()
    y = v * (v.square().mean(-1, keepdim=True) + EPSILON).rsqrt() * (1 if weight is None else weight.float())
    tail = y[..., HEAD_DIM - 2 * cos.shape[-1] :]
    even, odd, c, s = tail[..., 0::2], tail[..., 1::2], cos.float()[:, None], sin.float()[:, None]
    rotated = torch.stack([even * c - odd * s, even * s + odd * c], -1).flatten(-2)
    return torch.cat([y[..., : HEAD_DIM - tail.shape[-1]], rotated], -1), y
