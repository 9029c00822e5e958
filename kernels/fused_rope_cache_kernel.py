"""Rotary embedding of Q and K, and K and V written to a paged cache, in one launch.

    launch = build_fused_rope_cache_module(head_dim=128, num_q_heads=8, num_kv_heads=1)
    launch(Q, K, V, Positions, Cos, Sin, SlotMapping, KeyCache, ValueCache, Q_out, K_out, tokens, KScale, VScale)

Q: (T, QH, D), K, V: (T, KH, D), Cos, Sin: (positions, D/2), or (positions, D) without reuse_freqs_front_part. With
c and s of the token's position and of column d or, in the first case, d mod D/2:

    out[d] = x[d] c[d] - x[d + D/2] s[d]
    out[d + D/2] = x[d + D/2] c[d + D/2] + x[d] s[d + D/2]

Products and their sum are rounded to the tensors' type, as torch's are. Slot s of a token is place s mod block_size of
block s / block_size; a negative one writes no cache. Caches, flash_layout: (blocks, block_size, KH, D) both; else keys
(blocks, KH, D/16, block_size, 16) and values (blocks, KH, D, block_size). apply_scale: caches are the target's fp8,
x / KScale[0] and x / VScale[0].

A wave has one head of one token, D/64 columns a lane; the other half of the head is 32 lanes away. Heads below KH have
K and V in addition. D = 128 in bf16: about 165 instructions, 15 VGPRs, eight waves per SIMD. The launch is as large as
Q and K: its time is that of memory.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.expr.buffer_ops import buffer_load, buffer_store, create_buffer_resource
from flydsl.expr.coop import warp_size
from kernels.kernels_common import bf16, bytes_of, ceil_div, element_type, fp8_type, require
from kernels.launches import chosen, launch_some, launcher
from kernels.quant import fp8_codes
from kernels.sizes import require_elements, require_rows

DTYPES = ("bf16", "f16")
KEY_PACK = 16
TENSORS = "Q K V Positions Cos Sin SlotMapping KeyCache ValueCache Q_out K_out"
POSITIONS = {"i32": fx.Int32, "i64": fx.Int64}
# (T, QH, KH, D)
SHAPES = ((5, 4, 2, 64), (1, 8, 1, 128), (3, 2, 2, 256))


@dataclass(frozen=True, kw_only=True)
class Rope:
    """The values known at compile time: the builder's parameters."""

    dim: int
    q_heads: int
    kv_heads: int
    block_size: int
    flash: bool
    dtype: str
    scaled: bool
    half_freqs: bool
    waves: int = 1

    @property
    def heads(self) -> int:
        """The larger number of heads."""
        return max(self.q_heads, self.kv_heads)

    def has(self, head: Any, heads: int) -> Any:
        """True if there are more than `head` heads; known at compile time where all waves have one."""
        return (heads == self.heads and heads % self.waves == 0) or head < heads

    @property
    def width(self) -> int:
        """Columns of a lane."""
        return self.dim // warp_size()

    def key_offset(self, place: Any, head: Any, column: Any) -> Any:
        """The offset in the cache of column `column` of a head's key."""
        if self.flash:
            return (place * self.kv_heads + head) * self.dim + column
        block, within = place // self.block_size, place % self.block_size
        packs = (block * self.kv_heads + head) * (self.dim // KEY_PACK) + column // KEY_PACK
        return (packs * self.block_size + within) * KEY_PACK + column % KEY_PACK

    def value_offset(self, place: Any, head: Any, column: Any) -> Any:
        """The offset in the cache of column `column` of a head's value."""
        if self.flash:
            return self.key_offset(place, head, column)
        block, within = place // self.block_size, place % self.block_size
        return ((block * self.kv_heads + head) * self.dim + column) * self.block_size + within


@flyc.kernel
def fused_rope_cache_kernel(tensors: Any, rope: fx.Constexpr[Rope]) -> None:
    """One head of one token. tensors: by the names of the launcher's parameters."""
    head, token, _ = fx.block_idx
    if rope.waves > 1:
        head = head * rope.waves + fx.rocdl.readfirstlane(fx.thread_idx.y)
    width = rope.width
    column = fx.thread_idx.x * width
    position = fx.rocdl.readfirstlane(fx.Int32(tensors["Positions"][token]))
    slot = fx.rocdl.readfirstlane(fx.Int32(tensors["SlotMapping"][token]))
    dtype = element_type(rope.dtype)
    angle = column % (rope.dim // 2) if rope.half_freqs else column
    place = position * (rope.dim // 2 if rope.half_freqs else rope.dim) + angle
    cos, sin = (read(tensors[name], place, width, dtype) for name in ("Cos", "Sin"))

    def rotated(name: str, heads: int) -> Any:
        at = (token * heads + head) * rope.dim + column
        result = rotate(read(tensors[name], at, width, dtype), cos, sin)
        buffer_store(result, create_buffer_resource(tensors[f"{name}_out"]), at)
        return result

    if rope.has(head, rope.q_heads):
        rotated("Q", rope.q_heads)
    if rope.has(head, rope.kv_heads):
        key = rotated("K", rope.kv_heads)
        if slot >= 0:
            value = read(tensors["V"], (token * rope.kv_heads + head) * rope.dim + column, width, dtype)
            cached(tensors, "Key", key, rope.key_offset(slot, head, column), 1, rope)
            step = 1 if rope.flash else rope.block_size
            cached(tensors, "Value", value, rope.value_offset(slot, head, column), step, rope)


def read(tensor: fx.Tensor, place: Any, width: int, dtype: Any) -> Any:
    """A lane's columns, a vector."""
    loaded = buffer_load(create_buffer_resource(tensor), place, width, dtype)
    return loaded if width > 1 else fx.Vector.from_elements([loaded], dtype)


def rotate(x: Any, cos: Any, sin: Any) -> Any:
    """A lane's columns after the rotation; products and sum are rounded to their type."""
    lanes = warp_size()
    other = fx.gpu.shuffle_xor(x, lanes // 2, lanes)
    upper = fx.thread_idx.x >= lanes // 2
    if x.dtype is fx.Float16:
        turned = other * sin
        return x * cos + upper.select(turned, -turned)
    x, other, cos, sin = (v.to(fx.Float32) for v in (x, other, cos, sin))
    turned = bf16(other * sin).to(fx.Float32)
    return bf16(bf16(x * cos).to(fx.Float32) + upper.select(turned, -turned))


def cached(tensors: Any, which: str, values: Any, place: Any, step: int, rope: Rope) -> None:
    """Write columns to a cache; neighbours lie `step` elements apart."""
    memory = create_buffer_resource(tensors[f"{which}Cache"])
    if rope.scaled:
        scale = fx.rocdl.readfirstlane(tensors[f"{which[0]}Scale"][0])
        values = fp8_codes(values.to(fx.Float32) * fx.rocdl.rcp(scale))
    if step == 1:
        buffer_store(values, memory, place)
        return
    for number, value in enumerate(values):
        buffer_store(value, memory, place + number * step)


@cache
def build_fused_rope_cache_module(
    head_dim: int = 64, rotary_dim: int = -1, num_q_heads: int = 8, num_kv_heads: int = 1, block_size: int = 16,
    is_neox: bool = True, flash_layout: bool = True, dtype_str: str = "bf16", apply_scale: bool = False,
    reuse_freqs_front_part: bool = True, pos_dtype: str = "i32",
) -> Any:  # fmt: skip
    """The launcher (Q, K, V, Positions, Cos, Sin, SlotMapping, KeyCache, ValueCache, Q_out, K_out, num_tokens, KScale,
    VScale, stream).

    head_dim: 64, 128, 256 or 512, all of which is rotated. Positions and SlotMapping are of pos_dtype, i32 or i64.
    Raises ArgumentError for rotary_dim below head_dim and is_neox=False, which are unsupported.
    """
    fits = head_dim in (64, 128, 256, 512) and rotary_dim in (-1, head_dim) and is_neox
    require(fits, f"head_dim {head_dim}, rotary_dim {rotary_dim}, is_neox {is_neox}",
            "supported: head_dim 64, 128, 256 or 512, rotated as a whole, in halves (is_neox)")  # fmt: skip
    fits = dtype_str in DTYPES and pos_dtype in POSITIONS
    require(fits, f"tensors of {dtype_str!r}, positions of {pos_dtype!r}", "bf16 or f16; i32 or i64")
    rope = Rope(
        dim=head_dim,
        q_heads=num_q_heads,
        kv_heads=num_kv_heads,
        block_size=block_size,
        flash=flash_layout,
        dtype=dtype_str,
        scaled=apply_scale,
        half_freqs=reuse_freqs_front_part,
    )

    def launch(tensors: dict[str, Any], tokens: Any, k_scale: Any, v_scale: Any, stream: Any) -> None:
        launch_heads({**tensors, "KScale": k_scale, "VScale": v_scale}, tokens, rope, stream)

    return launcher("launch_fused_rope_cache", TENSORS, launch, num_tokens=fx.Int32, KScale=fx.Tensor, VScale=fx.Tensor)


def launch_heads(tensors: dict[str, Any], tokens: Any, rope: Rope, stream: Any) -> None:
    """Launch a wave for each head of each token, inside a launcher."""
    dtype, of_kv = element_type(rope.dtype), rope.dim * rope.kv_heads
    for name in ("Q", "K", "V", "Q_out", "K_out"):
        require_rows(name, tensors[name], tokens, rope.dim * rope.q_heads if "Q" in name else of_kv, dtype)
    for name in ("Positions", "SlotMapping"):
        require_elements(name, tensors[name], tokens, *POSITIONS.values(), or_more=True)
    for name in ("Cos", "Sin"):
        require_rows(name, tensors[name], 1, rope.dim // 2 if rope.half_freqs else rope.dim, dtype)
    for name in ("KeyCache", "ValueCache"):
        kinds = bytes_of(fp8_type()) if rope.scaled else (dtype,)
        require_rows(name, tensors[name], 0, rope.block_size * of_kv, *kinds)  # whole blocks, if there are any
    if rope.scaled:
        for name in ("KScale", "VScale"):
            require_elements(name, tensors[name], 1, fx.Float32, or_more=True)
    grid = (ceil_div(rope.heads, rope.waves), tokens)
    launch_some(fused_rope_cache_kernel(tensors, rope), tokens, grid, (warp_size(), rope.waves), stream)


@chosen(f"{TENSORS} KScale VScale", "rope", (1, 2, 4, 8))
def fused_rope_cache(tensors: dict[str, Any], m_in: fx.Int32, rope: Rope, waves: int, stream: Any) -> None:
    """The kernel for m_in tokens, with the number of waves of a block chosen by measurement."""
    launch_heads(tensors, m_in, replace(rope, waves=waves), stream)


def reference(x: Any, cos: Any, sin: Any) -> Any:
    """x (T, heads, D) rotated by cos and sin (T, D/2) or (T, D), in x's type."""
    if cos.shape[-1] < x.shape[-1]:
        cos, sin = (half.repeat(1, 2) for half in (cos, sin))
    low, high = x.chunk(2, -1)
    import torch

    return x * cos[:, None] + torch.cat([-high, low], -1) * sin[:, None]
