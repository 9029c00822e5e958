"""The gated delta rule over whole prompts, 64 tokens at a time: what `gdr_decode` does one token after the other.

    gdr_prefill(query, key, value, a, b, dt_bias, A_log, starts, indices, state, out)

query, key: (T, HK, K), value, out: (T, HV, V), a, b: (T, HV), dt_bias: (HV), of bf16 or f16, of all sequences one after
the other: sequence i has tokens starts[i] to starts[i + 1] - 1. Other operands, and the formulas, are those of
`gdr_decode`. With k and q as they are there, G the sum of the logarithms of g since the chunk began, and for tokens i
and j of a chunk

    A = beta_i (k_i . k_j) e^(G_i - G_j) where j < i, else 0;     T = (1 + A)^-1
    P = (q_i . k_j) e^(G_i - G_j) where j <= i, else 0

a chunk's tokens, rows of matrices, change a state S of V x K, G here of the last token, to

    N = T (beta value) - T (beta e^G_i k) S^T
    out = e^G_i q S^T + P N;      S = e^G S + N^T (e^(G - G_i) k)

The first kernel (`gdr_chunks`) computes what does not need S, for all chunks at once. The second walks the chunks, a
wave for 16 rows of S, which stay in its registers: S and N are operands of the next product in the order in which
matrix instructions leave them, so there is no shared memory and no barrier. A chunk's matrices are loaded while the one
before is computed. Products are of 16 bits; their sums, S and T stay in f32. A NaN or an infinity of value also makes
NaNs of its neighbours, the 32 columns that it shares a product with, which `gdr_decode` does not do. K = V = 128: the
walk takes 379 registers, one wave per SIMD, and 54 groups of matrix instructions for a chunk.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache, partial
from itertools import pairwise
from typing import Any

import flydsl.compiler as flyc
import flydsl.expr as fx
from kernels import gdr_decode
from kernels.gdr_chunks import (
    BLOCKS,
    CHUNK,
    GROUP,
    ROWS,
    SPANS,
    Arithmetic,
    Chunk,
    Lane,
    Prompt,
    Sequence,
    gdr_chunks_kernel,
    operands,
)  # fmt: skip
from kernels.kernels_common import dtype_str, element_type, require, require_array, require_waves_of_64
from kernels.launches import flat, launch_some, launcher, tuned
from kernels.mfma_products import WAVE
from kernels.sizes import require_elements, require_least, require_rows
from kernels.tensor_shim import GTensor

TENSORS = "query key value a b dt_bias A_log starts indices state out"
SCRATCH = "w u keys p gains decays"
WAVES = (1, 2, 4)
# (lengths, HK, HV, K, V)
SHAPES: tuple[tuple[tuple[int, ...], int, int, int, int], ...] = (
    ((70, 1), 1, 2, 64, 32), ((130,), 1, 1, 128, 64), ((3, 0, 64), 2, 2, 32, 32),
)  # fmt: skip


@flyc.kernel
def gdr_walk_kernel(tensors: Any, spec: fx.Constexpr[Prompt]) -> None:
    """Rows of a head's state. The grid: parts of the rows, heads, sequences; a wave has 16 rows."""
    require_waves_of_64("gdr_prefill")
    part, head, number = (fx.Int32(i) for i in fx.block_idx)
    sequence, place = Sequence(tensors, number), fx.rocdl.readfirstlane(tensors["indices"][number])
    if (place >= 0) & (sequence.chunks > 0):
        wave = fx.Int32(fx.rocdl.readfirstlane(fx.thread_idx.x // WAVE))
        Walk(tensors, sequence, head, (part * spec.waves + wave) * ROWS, spec).run(place)


class Walk:
    """A wave's walk through the chunks of a sequence. first: of its rows of the state, columns of value."""

    def __init__(self, tensors: Any, sequence: Sequence, head: Any, first: Any, spec: Prompt) -> None:
        self.tensors, self.sequence, self.head, self.spec = tensors, sequence, head, spec
        self.lane, self.unit = Lane(), Arithmetic(spec.dtype)
        self.column = first + self.lane.member
        self.tokens = [self.lane.row(block) for block in range(BLOCKS)]

    def chunk(self, number: Any) -> Chunk:
        """A chunk, or the last one after it."""
        number = fx.min(number, self.sequence.chunks - 1)
        return Chunk(self.tensors, (self.sequence.first_chunk + number) * self.spec.v_heads + self.head, self.spec)

    def load_new(self, chunk: Chunk) -> Any:
        """(operands of w, words of u) for the new values."""
        u = [fx.Vector(chunk.u.vec_load((self.column, self.lane.word(span)), 4)) for span in range(SPANS)]
        return operands(chunk.w, self.tokens, self.lane, range(self.spec.k_dim // GROUP)), u

    def load_queries(self, number: Any) -> list[list[Any]]:
        """Operands of a chunk's queries."""
        spec, number = self.spec, fx.min(number, self.sequence.chunks - 1)
        head = self.head // (spec.v_heads // spec.k_heads)
        rows = self.sequence.rows(self.tensors["query"], number, spec.k_heads, head, spec.k_dim)
        return operands(rows, self.tokens, self.lane, range(spec.k_dim // GROUP))

    def load_weights(self, chunk: Chunk) -> Any:
        """(operands of P, factors of the results of queries)."""
        p = [operands(chunk.p, [row], self.lane, range(block // 2 + 1))[0] for block, row in enumerate(self.tokens)]
        return p, [fx.Vector(chunk.gains.vec_load(self.lane.first(block), 4)) for block in range(BLOCKS)]

    def load_keys(self, chunk: Chunk) -> Any:
        """(operands of keys, the decay of the state)."""
        rows = [self.lane.row(block) for block in range(self.spec.k_dim // ROWS)]
        return operands(chunk.keys, rows, self.lane, range(SPANS)), fx.Float32(chunk.decays.load(chunk.number))

    @flyc.jit
    def run(self, place: Any) -> None:
        """Take all tokens. place: of the state in the pool."""
        spec, unit = self.spec, self.unit
        memory = self.state(place)
        state = [
            fx.Vector(memory.vec_load((self.column, self.lane.first(block)), 4)).to(fx.Float32)
            for block in range(spec.k_dim // ROWS)
        ]
        chunk = self.chunk(fx.Int32(0))
        new, queries = self.load_new(chunk), self.load_queries(fx.Int32(0))
        weights, keys = self.load_weights(chunk), self.load_keys(chunk)
        for number in range(self.sequence.chunks):
            following = self.chunk(number + 1)
            before = [unit.operand(state[i : i + 2]) for i in range(0, len(state), 2)]
            values = self.new_values(new, before)
            new = self.load_new(following)
            results = [unit.add(rows, before) for rows in queries]
            queries = self.load_queries(number + 1)
            self.store(number, self.with_values(results, weights, values))
            weights = self.load_weights(following)
            (rows, decay) = keys
            state = [unit.add(row, values, part * decay) for row, part in zip(rows, state, strict=True)]
            keys = self.load_keys(following)
        for block, part in enumerate(state):
            memory.vec_store((self.column, self.lane.first(block)), part.to(memory.dtype))

    def state(self, place: Any) -> GTensor:
        """The state of the head."""
        spec, element = self.spec, element_type(self.spec.state_dtype)
        size = spec.v_dim * spec.k_dim * (element.width // 8)
        begin = (fx.Int64(place) * spec.v_heads + fx.Int64(self.head)) * size
        return GTensor(
            self.tensors["state"], element, (-1, spec.k_dim), base_byte_offset=begin, num_records_bytes=size
        )  # fmt: skip

    def new_values(self, loaded: Any, state: list[Any]) -> list[Any]:
        """[span]: N as operands."""
        w, u = loaded
        found = []
        for span in range(SPANS):
            begin = self.unit.numbers(u[span])
            pair = [self.unit.add(w[2 * span + half], state, begin[half * 4 : half * 4 + 4]) for half in range(2)]
            found.append(self.unit.operand(pair))
        return found

    def with_values(self, results: list[Any], weights: Any, values: list[Any]) -> list[Any]:
        """The results of queries, in which there is the old state, with the new values."""
        p, gains = weights
        return [
            self.unit.add(row, values[: len(row)], sums * gain)
            for row, sums, gain in zip(p, results, gains, strict=True)
        ]

    def store(self, number: Any, results: list[Any]) -> None:
        """Write a chunk's results, of tokens that there are."""
        spec = self.spec
        rows = self.sequence.rows(self.tensors["out"], number, spec.v_heads, self.head, spec.v_dim)
        for block, values in enumerate(results):
            for i, value in enumerate(values):
                place = (self.lane.first(block) + i) * (spec.v_heads * spec.v_dim) + self.column
                fx.buffer_ops.buffer_store(value.to(self.unit.kind), rows.rsrc, place)


@cache
def build_gdr_prefill_module(
    k_heads: int, v_heads: int, k_dim: int = 128, v_dim: int = 128, *, dtype: str = "bf16", state_dtype: str = "f32",
    a_log_dtype: str = "f32", waves: int = 1, use_qk_l2norm: bool = True,
) -> Any:  # fmt: skip
    """The launcher (query, key, value, a, b, dt_bias, A_log, starts, indices, state, out, w, u, keys, p, gains, decays,
    batch, tokens, stream), of one dimension; from w on they are what `room_for_chunks` gives.

    tokens: of all sequences. waves: of a workgroup of the walk, each with 16 rows of a head's state. use_qk_l2norm:
    whether keys and queries are divided by their norms. Raises ArgumentError where sizes do not fit.
    """
    spec = Prompt(
        dtype=dtype, state_dtype=state_dtype, a_log_dtype=a_log_dtype, k_heads=k_heads, v_heads=v_heads, k_dim=k_dim,
        v_dim=v_dim, waves=waves, normalizes=use_qk_l2norm,
    )  # fmt: skip
    names = f"{TENSORS} {SCRATCH}"
    return launcher("launch_gdr_prefill", names, partial(launch_both, spec), batch=fx.Int32, tokens=fx.Int32)


def launch_both(spec: Prompt, tensors: dict[str, Any], batch: Any, tokens: Any, stream: Any) -> None:
    """Launch both kernels, inside a launcher."""
    element = element_type(spec.dtype)
    columns = {"query": spec.k_heads * spec.k_dim, "key": spec.k_heads * spec.k_dim, "a": spec.v_heads}
    columns |= {"b": spec.v_heads, "value": spec.v_heads * spec.v_dim, "out": spec.v_heads * spec.v_dim}
    for name, count in columns.items():
        require_rows(name, tensors[name], tokens, count, element)
    require_elements("dt_bias", tensors["dt_bias"], spec.v_heads, element)
    require_elements("A_log", tensors["A_log"], spec.v_heads, element_type(spec.a_log_dtype))
    require_elements("starts", tensors["starts"], batch + 1, fx.Int32)
    require_elements("indices", tensors["indices"], batch, fx.Int32)
    require_rows("state", tensors["state"], 1, spec.v_heads * spec.v_dim * spec.k_dim, element_type(spec.state_dtype))
    items = (tokens // CHUNK + batch) * spec.v_heads
    sizes = {name: (element, items * count) for name, count in scratch_sizes(spec.k_dim, spec.v_dim).items()}
    require_least(tensors, **sizes, gains=(fx.Float32, items * CHUNK), decays=(fx.Float32, items))
    kernel = gdr_chunks_kernel(tensors, batch, spec)
    launch_some(kernel, batch, (tokens // CHUNK + batch, spec.v_heads), WAVE, stream)
    grid = (spec.v_dim // (ROWS * spec.waves), spec.v_heads, batch)
    launch_some(gdr_walk_kernel(tensors, spec), batch, grid, spec.waves * WAVE, stream)


def scratch_sizes(k_dim: int, v_dim: int) -> dict[str, int]:
    """The 16-bit numbers of a chunk and head, by name."""
    return {"w": CHUNK * k_dim, "u": CHUNK * v_dim, "keys": CHUNK * k_dim, "p": CHUNK * CHUNK}


def room_for_chunks(query: Any, value: Any, batch: int) -> tuple[Any, ...]:
    """Tensors for what the first kernel computes: w, u, keys, p, gains, decays."""
    import torch

    (tokens, v_heads, v_dim), k_dim = value.shape, query.shape[2]
    items, device = (tokens // CHUNK + batch) * v_heads, value.device
    sizes = scratch_sizes(k_dim, v_dim).values()
    matrices = (torch.empty(items * size, dtype=value.dtype, device=device) for size in sizes)
    return (*matrices, torch.empty(items * CHUNK, device=device), torch.empty(items, device=device))


def launch_shared(tensors: dict[str, Any], batch: Any, tokens: Any, spec: Prompt, waves: int, stream: Any) -> None:
    """Launch with as many waves of a workgroup as are found to be the fastest."""
    launch_both(replace(spec, waves=waves), tensors, batch, tokens, stream)


tuned_gdr_prefill = tuned(
    "tuned_gdr_prefill", f"{TENSORS} {SCRATCH}", launch_shared, ["spec", "batch", "tokens"],
    [{"waves": waves} for waves in WAVES], restore=["state"], batch=fx.Int32, tokens=fx.Int32, spec=object,
)  # fmt: skip


def gdr_prefill(
    query: Any, key: Any, value: Any, a: Any, b: Any, dt_bias: Any, A_log: Any, starts: Any, indices: Any, state: Any,
    out: Any, *, stream: Any = None, **options: Any,
) -> Any:  # fmt: skip
    """Update each sequence's state with its tokens, and return out. options: of `build_gdr_prefill_module`.

    Raises ArgumentError for operands that do not fit.
    """
    require(query.ndim == value.ndim == 3, f"query {tuple(query.shape)}, value {tuple(value.shape)}",
            "three dimensions each")  # fmt: skip
    (tokens, k_heads, k_dim), (v_heads, v_dim) = query.shape, value.shape[1:]
    given = {"key": (key, query.shape), "value": (value, (tokens, v_heads, v_dim)), "a": (a, value.shape[:2])}
    given |= {"b": (b, value.shape[:2]), "out": (out, value.shape), "dt_bias": (dt_bias, (v_heads,))}
    for name, (tensor, shape) in given.items():
        require_array(name, tensor, query.dtype, tuple(shape))
    require_array("state", state, state.dtype, (state.shape[0], v_heads, v_dim, k_dim))
    if out.numel() == 0:
        return out
    launch = build_gdr_prefill_module(
        k_heads, v_heads, k_dim, v_dim, dtype=dtype_str(query), state_dtype=dtype_str(state),
        a_log_dtype=dtype_str(A_log), **options,
    )  # fmt: skip
    batch = indices.numel()
    tensors = (query, key, value, a, b, dt_bias, A_log, starts, indices, state, out)
    scratch = room_for_chunks(query, value, batch)
    launch(*map(flat, (*tensors, *scratch)), batch, tokens, *([] if stream is None else [stream]))
    return out


def reference(
    query: Any, key: Any, value: Any, a: Any, b: Any, dt_bias: Any, A_log: Any, starts: Any, indices: Any, state: Any
) -> tuple[Any, Any]:
    """(out, state), in torch and f32, token after token; rows of out of a sequence without a state are 0."""
    import torch

    out, changed = torch.zeros(value.shape), state.float()
    for i, (first, last) in enumerate(pairwise(starts.tolist())):
        q, k, v, forget, learn = (tensor[None, first:last] for tensor in (query, key, value, a, b))
        result, changed = gdr_decode.reference(
            q, k, v, forget, learn, dt_bias, A_log, indices[i : i + 1], changed
        )  # fmt: skip
        out[first:last] = result[0]
    return out, changed
