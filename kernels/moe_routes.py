"""The two ends of the products of a mixture of experts: which rows a block has, and what becomes of the sums.

A plan says, by these names: tile_m, experts, topk; gated: stage 1, whose activations have a row for each token;
smooth: one for each slot and token; accumulate: rows of a token are added to one.
"""

from __future__ import annotations

from typing import Any

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.atoms.instruction_sets import CDNA, CDNA4
from flydsl.expr.tracing.emit import target_name

from .mfma_epilogues import activated, sigmoid
from .moe_sorting_kernel import SLOT_SHIFT
from .tensor_shim import GTensor

TABLES = ("sorted_token_ids", "expert_ids", "sorted_weights", "num_valid_ids")
# What a stage has, by the names that its kernels have for it.
OPERANDS = ("out", "activations", "weights", "scale_activations", "scale_weights", *TABLES)
SWIGLU_SLOPE = 1.702
OUT_OF_RANGE = -16  # an offset in bytes, beyond the end of every tensor


class StagePlan:
    """The result of a plan. n: its columns. split_k: workgroups that share a tile of stage 1, along K.

    gated: stage 1, whose experts have rows of the gate and of up. accumulate: rows of a token are added to one.
    """

    n: int
    split_k: int
    gated: bool
    accumulate: bool

    @property
    def columns(self) -> int:
        """Columns of the result."""
        return self.n

    @property
    def k_batch(self) -> int:
        """Workgroups that share a tile of stage 1: the name that callers have for it."""
        return self.split_k

    @property
    def adds(self) -> bool:
        """True if the result is added to what is there."""
        return self.accumulate or self.k_batch > 1

    @property
    def both(self) -> int:
        """Rows of the weights for a column: of the gate and of up, or one."""
        return 2 if self.gated else 1

    @property
    def halves(self) -> tuple[int, ...]:
        """The first columns of the gate and of up; in stage 2 of its only ones."""
        return (0, self.columns)[: self.both]

    @property
    def parts(self) -> int:
        """The columns side by side in the result: sums of gate and up if they come from parts of K, or one."""
        return self.both if self.k_batch > 1 else 1

    @property
    def out_columns(self) -> int:
        """Columns of the result in memory."""
        return self.columns * self.parts

    @property
    def rows_of_experts(self) -> int:
        """Rows of the weights of an expert."""
        return self.columns * self.both


class Routes:
    """The rows of a block, by default the workgroup's: which token and slot each is, and what it is multiplied by.

    tensors: by the names of OPERANDS. blocks_of_unit: blocks that have an entry of expert_ids together. tile: the
    number of the workgroup's tile along the columns.
    """

    def __init__(
        self, plan: Any, tensors: Any, tokens: Any, block: Any = None, blocks_of_unit: int = 1, tile: Any = None
    ) -> None:
        sorted_ids, expert_ids, sorted_weights, num_valid = (tensors[name] for name in TABLES)
        self.plan, self.tokens, self.sorted_rows = plan, tokens, sorted_ids.shape[0]
        self.block = fx.Int32(fx.block_idx.y) if block is None else block
        self.tile = fx.Int32(fx.block_idx.x) if tile is None else tile
        self.first = self.block * plan.tile_m
        self.ids = GTensor(sorted_ids, fx.Int32, num_records_bytes=sorted_ids.shape[0] * 4)
        self.weights = GTensor(sorted_weights, fx.Float32, num_records_bytes=sorted_weights.shape[0] * 4)
        valid = GTensor(num_valid, fx.Int32, num_records_bytes=4).load(0)
        self.valid = fx.Int32(fx.rocdl.readfirstlane(valid))
        experts = GTensor(expert_ids, fx.Int32, num_records_bytes=expert_ids.shape[0] * 4)
        self.expert = fx.Int32(fx.rocdl.readfirstlane(experts.load(self.block // blocks_of_unit)))

    @property
    def exist(self) -> Any:
        """True if the block has rows of an expert of the weights."""
        return (self.first < self.valid) & (self.expert >= 0) & (self.expert < self.plan.experts)

    def decoded(self, row_id: Any) -> tuple[Any, Any, Any]:
        """(is a row, token, row of token and slot) of an entry of sorted_ids."""
        token, slot = row_id & ((1 << SLOT_SHIFT) - 1), row_id >> SLOT_SHIFT
        return (token < self.tokens) & (slot < self.plan.topk), token, token * self.plan.topk + slot

    def source(self, row_id: Any) -> Any:
        """The row of the activations; 0 for one that does not exist."""
        exists, token, both = self.decoded(row_id)
        row = token if self.plan.gated else both
        if self.plan.smooth:
            row = (row_id >> SLOT_SHIFT) * self.tokens + token
        return exists.select(row, fx.Int32(0))

    def of_lane(self, table: GTensor, m_repeat: int) -> list[Any]:
        """[mi]: the four entries of a table that belong to a lane's rows of each 16."""
        first = self.first + ((fx.Int32(fx.thread_idx.x) & 63) >> 4) * 4
        return [fx.Vector(table.vec_load(first + mi * 16, 4)) for mi in range(m_repeat)]

    @property
    def sources(self) -> Any:
        """Rows of the activations."""
        return self.tokens if self.plan.gated and not self.plan.smooth else self.tokens * self.plan.topk

    def target(self, row_id: Any) -> tuple[Any, Any]:
        """(is a row, row of the result)."""
        exists, token, both = self.decoded(row_id)
        return exists, token if self.plan.accumulate else both


def gated(gate: Any, up: Any, swiglu_limit: float | None) -> Any:
    """silu(gate) up, or with a limit swiglu, of f32 or vectors of them; see `silu_and_mul_fq`."""
    if swiglu_limit is None:
        return activated(gate, "bias_silu") * up
    x, y = fx.arith.minnumf(gate, swiglu_limit), fx.clampf(up, -swiglu_limit, swiglu_limit)
    # The limits leave no NaN.
    return ((gate == gate) & (up == up)).select(x * sigmoid(x * SWIGLU_SLOPE) * (y + 1.0), gate + up)


@flyc.jit
def add_pair(out: Any, rsrc: Any, place: Any, values: Any, exists: Any) -> None:
    """Add two elements, side by side, atomically. Buffers have no such instruction for bf16 before CDNA 4."""
    if fx.const_expr(values.dtype is fx.Float16 or target_name() not in CDNA or target_name() in CDNA4):
        fx.rocdl.raw_ptr_buffer_atomic_fadd(values, rsrc, exists.select(place * 2, fx.Int32(OUT_OF_RANGE)))
    elif exists:
        fx.atomic_add(fx.get_iter(out) + fx.Int64(place), values)
