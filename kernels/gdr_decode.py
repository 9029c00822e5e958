"""A decode step of the gated delta rule: each head of a sequence has a state, a matrix that decays, learns and is read.

    gdr_decode(query, key, value, a, b, dt_bias, A_log, indices, state, out)

query, key: (B, L, HK, K), value, out: (B, L, HV, V), a, b: (B, L, HV), dt_bias: (HV), of bf16 or f16; A_log: (HV) of
that or f32. L new tokens, one after the other; HV is a multiple of HK, whose heads are shared. state: (pool, HV, V, K)
of f32 or of the operands' type, changed in place. Sequence i has row indices[i] (i32) of the pool, no two the same one;
where that is below 0, nothing happens. For each token and head, with S of V x K:

    g = exp(-exp(A_log) softplus(a + dt_bias)),  beta = 1 / (1 + exp(-b))
    k = key / sqrt(|key|^2 + 1e-6),  q = query / sqrt(|query|^2 + 1e-6) / sqrt(K)
    S = g S;  S = S + beta (value - S k) k^T;  out = S q

A workgroup has a part of a head's rows, which stay in registers for all tokens; neighbouring lanes have 16 bytes of a
row each, and sum by DPP. S q is computed from the old S and k . q, so the two sums of a row do not wait for each other.
There is no shared memory and no barrier. K = V = 128 in f32, one token: about 250 instructions, 40 VGPRs, eight waves
per SIMD; the time is that of reading and writing the state.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache, partial
from math import log
from typing import Any

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.expr import range_constexpr
from kernels.kernels_common import LOG2_E, dtype_str, element_type, require, require_array, require_waves_of_64
from kernels.launches import launch_some, launcher, tuned
from kernels.reduce import vector_reduce, warp_reduce
from kernels.rows import WAVE
from kernels.sizes import require_elements, require_rows
from kernels.tensor_shim import GTensor
from kernels.tuned import nearest

EPSILON = 1e-6
LANE_BITS = 128
LARGE = 20.0
"""Above this, softplus(x) is x, as in torch."""
SHARINGS = ((8, 4, 16), (8, 2, 16), (8, 2, 8), (4, 4, 16), (4, 4, 8), (4, 2, 8), (8, 1, 8), (2, 1, 4))
"""Parts of a head, waves of a part and lanes of a row: each is the fastest for some batch of heads of 128 x 128 on an
MI355X, by AMD's tuning tables (August 2026)."""
TENSORS = "query key value a b dt_bias A_log indices state out"
# (B, L, HK, HV, K, V)
SHAPES = ((3, 1, 2, 4, 128, 128), (2, 3, 1, 2, 64, 32), (1, 2, 1, 1, 256, 64))


@dataclass(frozen=True, kw_only=True)
class Step:
    """The values known at compile time. parts: workgroups that share a head's rows; waves: of a workgroup; k_lanes:
    lanes that share a row. Raises ArgumentError where they do not fit."""

    dtype: str
    state_dtype: str
    a_log_dtype: str
    tokens: int
    k_heads: int
    v_heads: int
    k_dim: int
    v_dim: int
    parts: int
    waves: int
    k_lanes: int
    normalizes: bool

    @property
    def width(self) -> int:
        """Neighbouring columns of a lane."""
        return LANE_BITS // element_type(self.state_dtype).width

    @property
    def rows_at_once(self) -> int:
        """Rows that a workgroup works on side by side."""
        return self.waves * WAVE // self.k_lanes

    def __post_init__(self) -> None:
        require(self.dtype in ("bf16", "f16"), f"operands of {self.dtype}", "bf16 or f16")
        require(self.state_dtype in ("f32", self.dtype), f"a state of {self.state_dtype}", f"f32 or {self.dtype}")
        require(self.a_log_dtype in ("f32", self.dtype), f"A_log of {self.a_log_dtype}", f"f32 or {self.dtype}")
        require(self.v_heads % self.k_heads == 0, f"{self.k_heads} heads of keys, {self.v_heads} of values",
                "as many of values for each of keys")  # fmt: skip
        lanes = self.k_lanes in (1, 2, 4, 8, 16, 32, 64)
        require(lanes and self.k_dim % (self.k_lanes * self.width) == 0,
                f"{self.k_lanes} lanes for a row of {self.k_dim} in {self.state_dtype}",
                f"a power of two, with {self.width} columns each at a time")  # fmt: skip
        require(self.v_dim % (self.parts * self.rows_at_once) == 0,
                f"{self.v_dim} rows in {self.parts} parts, {self.rows_at_once} at once",
                "a multiple of their product")  # fmt: skip


@flyc.kernel
def gdr_decode_kernel(tensors: Any, step: fx.Constexpr[Step]) -> None:
    """Some rows of a head's state. The grid: parts of a head, heads, sequences."""
    require_waves_of_64("gdr_decode")
    sequence = fx.block_idx.z
    number = fx.rocdl.readfirstlane(tensors["indices"][sequence])
    if number >= 0:
        take_tokens(tensors, sequence, number, step)


def take_tokens(tensors: Any, sequence: Any, number: Any, step: Step) -> None:
    """Read the rows of a state, update them with each token, and write them. number: of the state in the pool."""
    part, head, thread = fx.block_idx.x, fx.block_idx.y, fx.thread_idx.x
    first = part * (step.v_dim // step.parts) + thread // step.k_lanes
    rows = [first + i * step.rows_at_once for i in range_constexpr(step.v_dim // step.parts // step.rows_at_once)]
    member, apart = thread % step.k_lanes, step.k_lanes * step.width
    columns = [member * step.width + start for start in range(0, step.k_dim, apart)]
    element = element_type(step.state_dtype)
    head_bytes = step.v_dim * step.k_dim * (element.width // 8)
    begin = (fx.Int64(number) * step.v_heads + fx.Int64(head)) * head_bytes
    memory = GTensor(tensors["state"], element, (-1, step.k_dim), base_byte_offset=begin, num_records_bytes=head_bytes)
    state = [[memory.vec_load((row, column), step.width).to(fx.Float32) for column in columns] for row in rows]
    for t in range_constexpr(step.tokens):
        token = sequence * step.tokens + t
        state = with_token(tensors, state, token, head, rows, columns, step)
    for row, values in zip(rows, state, strict=True):
        for column, value in zip(columns, values, strict=True):
            memory.vec_store((row, column), value.to(element))


def with_token(
    tensors: Any, state: list[list[Any]], token: Any, head: Any, rows: list[Any], columns: list[Any], step: Step
) -> list[list[Any]]:
    """The rows of a state after a token; its results are written."""
    log_decay, rate = load_gates(tensors, token, head, step)
    decay = exp(log_decay)
    k, q = (load_columns(tensors[name], token, head, columns, step) for name in ("key", "query"))
    k_scale, q_scale = (inverse_norm(x, step) if step.normalizes else fx.Float32(1.0) for x in (k, q))
    q_scale = q_scale * step.k_dim**-0.5
    k, q = [x * k_scale for x in k], [x * q_scale for x in q]
    k_q = dot(k, q, step)
    value, out = (view_heads(tensors[name], step.v_heads, step.v_dim, step) for name in ("value", "out"))
    is_first, changed = columns[0] == 0, list[list[Any]]()
    for row, old in zip(rows, state, strict=True):
        decayed = [x * decay for x in old]
        target = value.load((token, head, row)).to(fx.Float32)
        delta = (target - dot(decayed, k, step)) * rate
        result = dot(decayed, q, step) + delta * k_q
        out.store((token, head, row), result.to(out.dtype), mask=is_first)
        changed.append(
            [fx.fma(x, fx.Vector.filled(step.width, delta, fx.Float32), y) for x, y in zip(k, decayed, strict=True)]
        )
    return changed


def view_heads(tensor: Any, heads: int, columns: int, step: Any) -> GTensor:
    """An operand by (token, head, column)."""
    return GTensor(tensor, element_type(step.dtype), (-1, heads, columns))


def load_columns(tensor: Any, token: Any, head: Any, columns: list[Any], step: Step) -> list[Any]:
    """A lane's columns of the key or query of a head, in f32."""
    memory = view_heads(tensor, step.k_heads, step.k_dim, step)
    shared = head // (step.v_heads // step.k_heads)
    return [memory.vec_load((token, shared, column), step.width).to(fx.Float32) for column in columns]


def load_gates(tensors: Any, token: Any, head: Any, step: Any) -> tuple[Any, Any]:
    """(log g, beta): the logarithm of the decay of the state, and the rate at which it learns.

    step: a Step, or another plan with its dtype, a_log_dtype and v_heads.
    """
    a, b = (view_heads(tensors[name], 1, step.v_heads, step).load((token, 0, head)).to(fx.Float32) for name in "ab")
    bias = view_heads(tensors["dt_bias"], 1, 1, step).load(head).to(fx.Float32)
    a_log = GTensor(tensors["A_log"], element_type(step.a_log_dtype)).load(head).to(fx.Float32)
    x = a + bias
    softplus = (x > LARGE).select(x, fx.log2(exp(x) + 1.0) * log(2))
    return -exp(a_log) * softplus, 1.0 / (exp(-b) + 1.0)


def exp(x: Any) -> Any:
    """e to the power of x, by one instruction of the GPU."""
    return fx.rocdl.exp2(fx.T.f32, x * LOG2_E)


def dot(x: list[Any], y: list[Any], step: Step) -> Any:
    """The dot product of two rows, in each of the lanes that share them."""
    sums = x[0] * y[0]
    for one, other in zip(x[1:], y[1:], strict=True):
        sums = fx.fma(one, other, sums)
    return warp_reduce(vector_reduce(sums, "add"), "add", width=step.k_lanes)


def inverse_norm(x: list[Any], step: Step) -> Any:
    """1 / sqrt(|x|^2 + epsilon)."""
    return fx.rocdl.rsq(dot(x, x, step) + EPSILON)


@cache
def build_gdr_decode_module(
    k_heads: int, v_heads: int, k_dim: int = 128, v_dim: int = 128, *, dtype: str = "bf16", state_dtype: str = "f32",
    a_log_dtype: str = "f32", tokens: int = 1, parts: int | None = None, waves: int | None = None,
    k_lanes: int | None = None, use_qk_l2norm: bool = True,
) -> Any:  # fmt: skip
    """The launcher (query, key, value, a, b, dt_bias, A_log, indices, state, out, batch, stream).

    tokens: L, of each sequence. parts: workgroups that share a head's rows, 8 or as many as there is room for; waves:
    of a workgroup; k_lanes: that share a row. By default, 16 lanes, and up to four waves with two rows a lane: what was
    most often the fastest on an MI355X (AMD's tuning tables, August 2026). use_qk_l2norm: whether keys and queries are
    divided by their norms. Raises ArgumentError where sizes do not fit.
    """
    width = LANE_BITS // element_type(state_dtype).width
    k_lanes = k_lanes or min(16, max(1, k_dim // width))
    at_once = max(1, WAVE // k_lanes)
    parts = parts or max(1, min(8, v_dim // at_once))
    most = 4 if state_dtype == "f32" else 2
    waves = waves or max(1, min(most, v_dim // parts // at_once))
    step = Step(
        dtype=dtype, state_dtype=state_dtype, a_log_dtype=a_log_dtype, tokens=tokens, k_heads=k_heads, v_heads=v_heads,
        k_dim=k_dim, v_dim=v_dim, parts=parts, waves=waves, k_lanes=k_lanes, normalizes=use_qk_l2norm,
    )  # fmt: skip
    return launcher("launch_gdr_decode", TENSORS, partial(launch_heads, step), batch=fx.Int32)


def launch_heads(step: Step, tensors: dict[str, Any], batch: Any, stream: Any) -> None:
    """Launch a workgroup for each part of each head of each sequence, inside a launcher."""
    element, state = element_type(step.dtype), element_type(step.state_dtype)
    heads = {"query": step.k_heads * step.k_dim, "key": step.k_heads * step.k_dim, "a": step.v_heads, "b": step.v_heads}
    heads |= {"value": step.v_heads * step.v_dim, "out": step.v_heads * step.v_dim}
    for name, columns in heads.items():
        require_elements(name, tensors[name], batch * (step.tokens * columns), element)
    require_elements("dt_bias", tensors["dt_bias"], step.v_heads, element)
    require_elements("A_log", tensors["A_log"], step.v_heads, element_type(step.a_log_dtype))
    require_elements("indices", tensors["indices"], batch, fx.Int32)
    require_rows("state", tensors["state"], 1, step.v_heads * step.v_dim * step.k_dim, state)
    launch_some(gdr_decode_kernel(tensors, step), batch, (step.parts, step.v_heads, batch), step.waves * WAVE, stream)


@cache
def default_sharing(batch: int, v_heads: int, state_dtype: str) -> dict[str, int]:
    """The fastest options of `build_gdr_decode_module` for heads of 128 x 128, at the nearest size that was measured on
    an MI355X (`kernels.tuned`).

    >>> default_sharing(64, 16, "f32")
    {'parts': 8, 'waves': 4, 'k_lanes': 16}
    """
    bits = element_type(state_dtype).width
    best = next(row for row in nearest("gdr_decode", B=batch, HV=v_heads) if row["state_bits"] == bits)
    return {name: best[name] for name in ("parts", "waves", "k_lanes")}


def launch_shared(tensors: dict[str, Any], batch: Any, step: Step, sharing: tuple[int, int, int], stream: Any) -> None:
    """Launch a step. sharing: (parts, waves, k_lanes), which autotuning chooses."""
    parts, waves, k_lanes = sharing
    launch_heads(replace(step, parts=parts, waves=waves, k_lanes=k_lanes), tensors, batch, stream)


gdr_step = tuned(
    "gdr_step", TENSORS, launch_shared, ["step"], [{"sharing": sharing} for sharing in SHARINGS], restore=["state"],
    batch=fx.Int32, step=object,
)  # fmt: skip


def gdr_decode(
    query: Any, key: Any, value: Any, a: Any, b: Any, dt_bias: Any, A_log: Any, indices: Any, state: Any, out: Any,
    *, stream: Any = None, **options: Any,
) -> Any:  # fmt: skip
    """Update each sequence's state with its tokens, and return out. options: of `build_gdr_decode_module`.

    Without options, heads of 128 x 128 are shared as `default_sharing` says.
    """
    require(query.ndim == value.ndim == 4, f"query {tuple(query.shape)}, value {tuple(value.shape)}",
            "four dimensions each")  # fmt: skip
    (batch, tokens, k_heads, k_dim), (v_heads, v_dim) = query.shape, value.shape[2:]
    given = {"key": (key, query.shape), "value": (value, (batch, tokens, v_heads, v_dim)), "a": (a, value.shape[:3])}
    given |= {"b": (b, value.shape[:3]), "out": (out, value.shape), "dt_bias": (dt_bias, (v_heads,))}
    for name, (tensor, shape) in given.items():
        require_array(name, tensor, query.dtype, tuple(shape))
    require_array("state", state, state.dtype, (state.shape[0], v_heads, v_dim, k_dim))
    if k_dim == v_dim == 128 and batch and not {"parts", "waves", "k_lanes"} & options.keys():
        options |= default_sharing(batch, v_heads, dtype_str(state))
    launch = build_gdr_decode_module(
        k_heads, v_heads, k_dim, v_dim, dtype=dtype_str(query), state_dtype=dtype_str(state),
        a_log_dtype=dtype_str(A_log), tokens=tokens, **options,
    )  # fmt: skip
    tensors = (query, key, value, a, b, dt_bias, A_log, indices, state, out)
    launch(*(t.view(-1) for t in tensors), batch, stream)
    return out


def reference(
    query: Any, key: Any, value: Any, a: Any, b: Any, dt_bias: Any, A_log: Any, indices: Any, state: Any
) -> tuple[Any, Any]:
    """(out, state), in torch and f32; rows of out of a sequence without a state are 0."""
    import torch

    shared = value.shape[2] // query.shape[2]
    q, k, v, a, b = (t.float() for t in (query, key, value, a, b))
    q, k = (x * torch.rsqrt((x * x).sum(-1, keepdim=True) + EPSILON) for x in (q, k))
    q, k = (x.repeat_interleave(shared, 2) for x in (q * query.shape[-1] ** -0.5, k))
    forget = torch.exp(-torch.exp(A_log.float()) * torch.nn.functional.softplus(a + dt_bias.float()))
    new, out = state.float().clone(), torch.zeros_like(v)
    for i, number in enumerate(indices.tolist()):
        for t in range(v.shape[1] if number >= 0 else 0):
            s = new[number] * forget[i, t, :, None, None]
            news = (v[i, t] - (s @ k[i, t, :, :, None])[..., 0]) * b[i, t].sigmoid()[:, None]
            new[number] = s + news[..., None] * k[i, t, :, None]
            out[i, t] = (new[number] @ q[i, t, :, :, None])[..., 0]
    return out, new
