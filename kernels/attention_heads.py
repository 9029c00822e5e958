"""The queries, keys and values of a head that flash attention reads, and which of them a workgroup sees."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import flydsl.expr as fx
from kernels import attention_common as common
from kernels.attention_common import CHUNK, GROUP, KEYS, ROWS, WAVE, HeadRows
from kernels.kernels_common import element_type, require, require_tensor, rounded
from kernels.sizes import require_elements, require_rows
from kernels.tensor_shim import GTensor

BLOCKS = (128, 256)
LDS_BYTES = 65536
CU_SEQLENS = {"cu_seqlens_q": (Any, ()), "cu_seqlens_kv": (Any, ())}
DTYPES = ("f16", "bf16")


def reference(
    Q: Any, K: Any, V: Any, *, causal: bool = True, sliding_window: int | None = None, sm_scale: float | None = None
) -> Any:
    """The result of torch in f32. Q (B, S, H, D), K and V (B, Skv, Hkv, D), V with a width of its own.

    sliding_window: keys that a query sees before its own, which may be none; None for all.
    """
    import torch

    q, k, v = (x.float().transpose(1, 2) for x in (Q, K, V))
    k, v = (x.repeat_interleave(q.shape[1] // x.shape[1], 1) for x in (k, v))
    scores = q @ k.transpose(-1, -2) * (q.shape[-1] ** -0.5 if sm_scale is None else sm_scale)
    place = torch.arange(q.shape[2])[:, None] + k.shape[2] - q.shape[2]
    after = torch.arange(k.shape[2])[None] - place
    hidden = (after > 0) & causal
    if sliding_window is not None:
        hidden |= (after < -sliding_window) | (after > sliding_window)
    p = scores.masked_fill(hidden, -torch.inf).softmax(-1)
    p = p.masked_fill(hidden.all(-1)[:, None], 0)
    return (p @ v).transpose(1, 2)


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The compile-time parameters of a kernel. See `build_flash_attn_func_module`; width: columns of V and O."""

    heads: int
    kv_heads: int
    head_dim: int
    width: int
    dtype: str
    causal: bool
    window: int
    scale: float
    block_m: int

    def __post_init__(self) -> None:
        require(self.dtype in DTYPES, f"dtype_str={self.dtype!r}", f"one of {', '.join(DTYPES)}")
        heads = f"num_heads={self.heads} with num_kv_heads={self.kv_heads}"
        require(self.kv_heads > 0 and self.heads > 0 and self.heads % self.kv_heads == 0, heads, "a multiple")
        require(self.block_m in BLOCKS, f"block_m={self.block_m}", f"one of {', '.join(map(str, BLOCKS))}")
        part = self.block_m // 4
        for name, value in (("head_dim", self.head_dim), ("v_head_dim", self.width)):
            wanted = f"a multiple of {part} from 64 on with block_m={self.block_m}"
            require(value >= 64 and value % part == 0, f"{name}={value}", wanted)
        require(self.lds_bytes <= LDS_BYTES, f"head_dim={self.head_dim} with v_head_dim={self.width}",
                      f"a sum of at most {LDS_BYTES // KEYS // 2}")  # fmt: skip
        require(0 < self.scale < float("inf"), f"sm_scale={self.scale}", "a positive number")
        require(self.window >= 0, f"sliding_window={self.window}", "keys before a query; 0 for all")

    @property
    def threads(self) -> int:
        """Threads of a workgroup."""
        return self.block_m // ROWS * WAVE

    @property
    def lds_bytes(self) -> int:
        """Shared memory: a tile of keys, and one of values."""
        return KEYS * (self.head_dim + self.width) * 2


@dataclass(frozen=True)
class Sequence:
    """The first query and key of a batch in their tensors, and their numbers."""

    first: Any
    count: Any
    kv_first: Any
    kv_count: Any

    @classmethod
    def of(cls, batch: Any, seq_len: Any, kv_len: Any, cu_seqlens: Any) -> Sequence:
        """The sequence number `batch`: all of one length, or between two entries of (cu_seqlens_q, cu_seqlens_kv)."""
        if not cu_seqlens:
            return cls(fx.Int64(batch) * seq_len, seq_len, fx.Int64(batch) * kv_len, kv_len)
        bounds = [fx.Int32(fx.rocdl.readfirstlane(fx.Int32(cu[batch + i]))) for cu in cu_seqlens for i in (0, 1)]
        return cls(bounds[0], bounds[1] - bounds[0], bounds[2], bounds[3] - bounds[2])


class Keys:
    """The keys that the queries from `first` on of a workgroup see; tiles are numbered from the sequence's first key.

    Tiles first_tile to last_tile - 1 have keys that some query sees; of first_whole to last_whole - 1 every query sees
    every key.
    """

    def __init__(self, plan: Plan, sequence: Sequence, first: Any) -> None:
        self.plan, count = plan, sequence.kv_count
        # The key at which the block's first query stands.
        self.place = first + (count - sequence.count)
        last_place = self.place + (plan.block_m - 1)
        self.first_tile, self.first_whole = fx.Int32(0), fx.Int32(0)
        end, whole_end = count, count
        if plan.window:
            self.first_tile = fx.max(self.place - plan.window, 0) >> 6
            self.first_whole = (fx.max(last_place - plan.window, 0) + (KEYS - 1)) >> 6
        ahead = 0 if plan.causal else plan.window
        if plan.causal or plan.window:
            end = fx.min(count, fx.max(last_place + (ahead + 1), 0))
            whole_end = fx.min(count, fx.max(self.place + (ahead + 1), 0))
        self.end = end
        self.last_tile = (end + (KEYS - 1)) >> 6
        self.last_whole = whole_end >> 6
        self.last_key = count - 1

    def is_partial(self, tile: Any) -> Any:
        """True if some query does not see some key of a tile."""
        behind = tile >= self.last_whole
        return (tile < self.first_whole) | behind if self.plan.window else behind

    def of_query(self, query: Any) -> tuple[Any, Any]:
        """(first, last) key that a query sees, counted from the block's first one; no first without a window."""
        window, last = self.plan.window, self.last_key
        if self.plan.causal or window:
            last = fx.min(last, self.place + query + (0 if self.plan.causal else window))
        return (self.place + query - window if window else None), last


class Queries:
    """The rows of Q and O that a workgroup has, one for two lanes, which have the halves of each group of columns.

    rows: of a wave.
    """

    def __init__(self, plan: Plan, sequence: Sequence, head: Any, first: Any, rows: int = ROWS) -> None:
        self.plan, self.head, self.sequence, self.first = plan, head, sequence, first
        thread, bits = fx.Int32(fx.thread_idx.x), rows.bit_length() - 1
        self.number = (thread >> (bits + 1)) * rows + (thread & (rows - 1))
        self.half = thread >> bits & 1

    def _rows(self, tensor: Any, width: int) -> GTensor:
        rows = HeadRows(tensor, self.plan.heads, width, self.head, self.sequence.first, self.sequence.count)
        return rows.view(self.first, self.plan.block_m)

    def _chunks(self, rows: GTensor, count: int) -> Iterator[tuple[Any, dict[str, int]]]:
        """The offset of the lane's chunk of each group. The distance is a scalar, so that one register is kept."""
        first = rows.linear_offset((self.number, self.half * (CHUNK // 2)))
        return ((first, {"soffset_bytes": group * GROUP * 2}) for group in range(count))

    def load(self, Q: Any) -> list[Any]:
        """[group]: the lane's chunk of its query."""
        rows = self._rows(Q, self.plan.head_dim)
        places = self._chunks(rows, self.plan.head_dim // GROUP)
        return [fx.Vector(rows.vec_load(first, CHUNK // 2, **distance)) for first, distance in places]

    def store(self, O: Any, sums: list[Any], factor: Any) -> None:
        """Write the sums [block of columns of V] times a factor."""
        rows = self._rows(O, self.plan.width)
        results = common.chunks([rounded(values * factor, element_type(self.plan.dtype)) for values in sums])
        for values, (first, distance) in zip(results, self._chunks(rows, len(results)), strict=True):
            rows.vec_store(first, values, **distance)


def rows_of_keys(plan: Plan, sequence: Sequence, head: Any, end: Any, K: Any, V: Any) -> list[HeadRows]:
    """The keys and values of a query head, up to key `end`."""
    of_both, widths = (head // (plan.heads // plan.kv_heads), sequence.kv_first, end), (plan.head_dim, plan.width)
    return [HeadRows(x, plan.kv_heads, width, *of_both) for x, width in zip((K, V), widths, strict=True)]


def starts_of_sequences(*cu_seqlens: Any) -> tuple[Any, ...]:
    """The sequence offsets of queries and of keys, or none. Keys without offsets have those of the queries."""
    given = [cu for cu in cu_seqlens if not isinstance(cu, tuple)]
    return (given[0], given[-1]) if given else ()


def require_operands(
    plan: Plan, tensors: dict[str, Any], cu_seqlens: Any, batch: Any, seq_len: Any, kv_len: Any
) -> None:
    """Refuse Q, K, V and O of other types and sizes than the launch's. They are flat, so that strides do not count.

    Of sequences of several lengths, whose sum only the device knows, those of queries hold the longest one at least.
    """
    wanted, of_q, of_kv = element_type(plan.dtype), batch * seq_len, batch * kv_len
    if cu_seqlens:
        of_q, of_kv = (batch > 0).select(seq_len, 0), 0
    rows, heads = (of_q, of_kv, of_kv, of_q), (plan.heads, plan.kv_heads, plan.kv_heads, plan.heads)
    widths = (plan.head_dim, plan.head_dim, plan.width, plan.width)
    for (name, x), count, row in zip(tensors.items(), rows, zip(heads, widths, strict=True), strict=True):
        what = f"{name} of {x.dtype.__name__} where dtype_str is {plan.dtype}"
        require(x.dtype is wanted, what, f"it is {wanted.__name__}")
        require(fx.rank(x) == 1, f"{name} of {x.type}", "one dimension: x.contiguous().view(-1)")
        require_rows(name, x, count, row[0] * row[1])
    for name, starts in zip(("cu_seqlens_q", "cu_seqlens_kv"), cu_seqlens, strict=False):
        require_tensor(name, starts, fx.Int32, fx.Int64)
        require_elements(name, starts, batch + 1, or_more=True)
