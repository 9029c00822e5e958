"""The two products of a mixture of experts, over rows that are sorted by expert: gate and up with silu, then down.

    gemm1 = compile_moe_gemm1(model_dim=D, inter_dim=I, experts=E, topk=k, tile_m=64, tile_n=128, tile_k=128,
                              doweight_stage1=False, in_dtype="bf16")
    gemm1(h, x, w1, scale_x, scale_w1, sorted_ids, expert_ids, sorted_weights, num_valid_ids, T, I, D, blocks)
    gemm2 = compile_moe_gemm2(..., tile_n=256, doweight_stage2=True, in_dtype="bf16")
    gemm2(y, h, w2, scale_h, scale_w2, sorted_ids, expert_ids, sorted_weights, num_valid_ids, T, D, I, blocks)

    h[t, s] = silu(x[t] . gate_e) * (x[t] . up_e)          for the expert e of slot s of token t
    y[t]    = sum over s of weight[t, s] * (h[t, s] . down_e)

| operand | stage 1 | stage 2 |
|---|---|---|
| activations | x (T, D) | h (T k, I), row t k + s |
| weights, shuffled | (E 2I, D), of each expert first the gate's rows | (E D, I) |
| scales, f32, unless 16 bits | of x (T,), of rows of w1 (E 2I,) | of h (T k,), of rows of w2 (E D,) |
| result | (T, k, I) | (T, D), added to; or (T k, D) |

in_dtype: fp8, int8, int4 (the weights), fp16, bf16, int4_bf16, and int8smooth: int8 whose x is (k T, D) with a scale
for each row s T + t, since it was divided by factors of the expert before it was rounded. int4_bf16 has activations in
bf16 without scales, and weights in int4, with scales of rows, or of groups of 32 along K (`GroupScales`). The routing
tables are those of `moe_sorting_kernel`, in blocks of tile_m rows: a workgroup computes a tile of a block, with the
weights of its expert, and returns at once if the block has none. It is the product of `preshuffle_gemm`, except that
each thread decodes the ids of the rows that it loads, and that a wave of stage 1 has columns of the gate and the same
columns of up, which share the fragments of A.

Stage 1 stores each number straight from its register, or through shared memory (use_cshuffle_epilog). Stage 2 gathers
the columns of a row in shared memory: pairs for packed atomics, which round to 16 bits at each addition, or 16 bytes
where each slot has a row of its own, and `moe_common` sums them up. Sums in f32 are added as they are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import cache, partial
from math import gcd
from typing import Any

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.arch import get_arch
from flydsl.autotune import Config
from flydsl.errors import ArgumentError
from flydsl.expr.buffer_ops import buffer_store
from flydsl.runtime.device import target_arch

from . import mfma_preshuffle_pipeline as pipeline
from .kernels_common import ELEMENT_TYPES, require
from .launches import for_waves, launcher, tuned
from .layout_utils import idx2crd
from .mfma_epilogues import TileC
from .mfma_preshuffle_pipeline import TileA, TileB, Tiling
from .mfma_products import BITS, CHUNK_BYTES, MICRO_SCALED, W4A16, WAVE, WAVES, Product, is_cdna4
from .moe_common import compile_moe_reduction
from .moe_routes import OPERANDS, OUT_OF_RANGE, TABLES, Routes, StagePlan, add_pair, gated
from .sizes import require_elements, require_rows
from .tensor_shim import GTensor
from .tuned import nearest_that_fits, size_of_experts

__all__ = [
    "MoeGemm2Mode", "compile_moe_gemm1", "compile_moe_gemm2", "compile_moe_gemm2_ex", "compile_moe_reduction",
    "default_tile", "moe_gemm", "reference1", "reference2",
]  # fmt: skip

SMOOTH = "int8smooth"
IN_TYPES = ("fp8", "int8", "int4", "fp16", "bf16", W4A16, SMOOTH)
SCALED = ("fp8", "int8", "int4")
# Products are as many times too large, as the unpacked weights are.
FACTORS = {"int4": 1 / 16, W4A16: 16.0}
GROUP = 32
# (T, D, I, E, k, tile_m).
SHAPES = ((1, 256, 128, 4, 2, 16), (33, 256, 128, 3, 2, 16), (40, 256, 128, 8, 3, 32))


def reference1(x: Any, w1: Any, topk_ids: Any, weights: Any = None) -> Any:
    """h (T, k, I) in f32 of numbers x (T, D) and w1 (E, 2I, D); weights (T, k) multiply it."""
    import torch

    both = torch.einsum("td,tknd->tkn", x.float(), w1.float()[topk_ids.long()])
    gate, up = both.chunk(2, -1)
    h = torch.nn.functional.silu(gate) * up
    return h if weights is None else h * weights[..., None]


def reference2(h: Any, w2: Any, topk_ids: Any, weights: Any = None) -> Any:
    """The products (T, k, D) in f32 of numbers h (T, k, I) and w2 (E, D, I), before they are summed up over k."""
    import torch

    rows = torch.einsum("tki,tkdi->tkd", h.float(), w2.float()[topk_ids.long()])
    return rows if weights is None else rows * weights[..., None]


@dataclass(frozen=True, kw_only=True)
class Plan(StagePlan):
    """The compile-time parameters of a kernel. tiling: of all of a wave's columns; n: columns of the result.

    gated: stage 1, whose tiling has the columns of gate and up. accumulate: rows of a token are added to one.
    smooth: the activations of stage 1 have a row for each slot and token. scaled: sums are multiplied by the scales of
    rows and columns. swiglu_limit: the activation is swiglu with this limit instead of silu. biased: each column of an
    expert has a number that is added. interleaved: 16 rows of gate and of up in turn in the weights. asynchronous:
    activations go past the registers. split_k: workgroups that share a tile of stage 1, along K; then the sums of gate
    and up, side by side, are added to the result as they are. group_scales: the type of the scales of groups of weights
    along K, "f32" or "bf16". padding: the last columns of the result that do not count; whole tiles of them are left
    out. blocks_of_unit: blocks of rows that have an entry of expert_ids together. xcd_swizzle: blocks of rows that the
    workgroups of a die take for each tile of columns; 0 for the order of the grid. lds_room: bytes of shared memory
    that a workgroup takes at least, so that no more of them share a compute unit than are wanted.
    """

    tiling: Tiling
    tile_n: int
    n: int
    experts: int
    topk: int
    out_dtype: str
    gated: bool
    weighted: bool
    cshuffle: bool
    accumulate: bool
    smooth: bool
    scaled: bool
    swiglu_limit: float | None = None
    biased: bool = False
    interleaved: bool = False
    asynchronous: bool = False
    split_k: int = 1
    group_scales: str | None = None
    padding: int = 0
    blocks_of_unit: int = 1
    xcd_swizzle: int = 0
    lds_room: int = 0

    def __post_init__(self) -> None:
        columns = 16 * self.tiling.waves_n
        require(self.tile_n % columns == 0, f"tile_n={self.tile_n}", f"a multiple of {columns}")

    @property
    def tile_m(self) -> int:
        """Rows of a block."""
        return self.tiling.tile_m

    @property
    def k(self) -> int:
        """Columns of the activations."""
        return self.tiling.k

    @property
    def num_acc_n(self) -> int:
        """Tiles of 16 columns of the result of each wave."""
        return self.tile_n // self.tiling.waves_n // 16

    @property
    def out_type(self) -> Any:
        """The type of the result's elements; before they are rounded to 8 bits and less, f32."""
        return ELEMENT_TYPES.get(self.out_dtype, fx.Float32)

    @property
    def lds_bytes(self) -> int:
        """Shared memory: of A's buffers, and afterwards of the tile of the result, or of waves' sums."""
        through = self.tiling.tile_m * self.tile_n * self.out_type.width // 8 if self.cshuffle else 0
        sums = (self.tiling.waves_k - 1) * self.tiling.tile_m * self.tiling.tile_n * 4
        return max(self.tiling.stages * self.tiling.a_bytes, through, sums, self.lds_room)

    @property
    def bits(self) -> tuple[int, int]:
        """The width of an element of the activations and of the weights."""
        return BITS[self.tiling.dtype]

    def with_tile(self, tile_n: int, row_bytes: int) -> Plan:
        """The plan with another tile. row_bytes: of the activations. Raises ArgumentError where it does not fit."""
        require(self.columns % tile_n == 0, f"{self.columns} columns", f"a multiple of tile_n={tile_n}")
        tile_k = row_bytes * 8 // BITS[self.tiling.dtype][0]
        return replace(self, tile_n=tile_n, tiling=replace(self.tiling, tile_n=self.both * tile_n, tile_k=tile_k))


class GatheredA(TileA):
    """Rows of the activations, wherever they are. rows: how many there are."""

    def __init__(self, plan: Plan, product: Product, A: Any, rows: Any, routes: Routes) -> None:
        buffer = fx.SharedAllocator().allocate(plan.lds_bytes, 128).peek().ptr
        part = plan.tiling.wave_place()[1] * (plan.tiling.row_chunks // plan.tiling.waves_k)
        super().__init__(plan.tiling, product, A, rows, 0, buffer=buffer, first_chunk=part)
        self.memory = GTensor(A, fx.Int32, (-1, self.k_bytes // 4), num_records_bytes=fx.Int64(rows) * self.k_bytes)
        self._routes = routes
        self._copies: dict[int, Any] = {}  # first byte of a copy -> where this thread's lies in A, and in its row
        if not plan.asynchronous:
            self._sources = [(self._source(row), part) for row, part in self._places]

    def _source(self, row: Any) -> Any:
        return self._routes.source(self._routes.ids.load(self._routes.first + row))

    def load(self, k: Any) -> list[Any]:
        """This thread's part of tile k."""
        step, words, loaded = k * self.tiling.row_bytes, self.words, []
        for row, part in self._sources:
            place = self.memory.linear_offset((row, part * words))
            place = self._counting(place, step + part * (words * 4), OUT_OF_RANGE // 4)
            loaded.append(self.memory.vec_load(place, words, soffset_bytes=step))
        return loaded

    def _counting(self, place: Any, byte: Any, outside: int) -> Any:
        """A place in the rows, or if byte number `byte` of a row does not count one beyond their end, which reads 0."""
        if self.tiling.limit is None:
            return place
        return (byte < self.tiling.limit * BITS[self.tiling.dtype][0] // 8).select(place, fx.Int32(outside))

    def _copied(self, first: int, bytes_: int, k: Any) -> tuple[Any, Any]:
        step = k * self.tiling.row_bytes
        if first not in self._copies:
            chunks = self.tiling.row_chunks
            row, chunk, byte = idx2crd(self.thread * bytes_ + first, (-1, chunks, CHUNK_BYTES))
            place = self.tiling.swizzled(row, chunk) * CHUNK_BYTES + byte
            self._copies[first] = self._source(row) * self.k_bytes + place, place
        place, byte = self._copies[first]
        return self._counting(place, step + byte, OUT_OF_RANGE), step


class GateAndUp(TileB):
    """A wave's rows of the gate, and after them the same ones of up, wherever in memory they are."""

    def __init__(self, plan: Plan, product: Product, W: Any, expert: Any, block: Any) -> None:
        super().__init__(plan.tiling, product, W, 0)
        apart = plan.tile_n if plan.interleaved else plan.columns  # from rows of the gate to those of up
        first = fx.Int64(expert) * (2 * plan.columns) + block * (plan.tile_n * (2 if plan.interleaved else 1))
        self.memory = GTensor(
            W, fx.Int32, base_byte_offset=first * self.k_bytes,
            num_records_bytes=(apart + plan.tile_n) * self.k_bytes,
        )  # fmt: skip
        self.plan = plan
        self._first = self._start(plan.num_acc_n * (2 if plan.interleaved else 1))

    def _part(self, first: Any, row: int, offset: int) -> Any:
        tile = 16 * self.k_bytes
        up, ni = divmod(row // tile, self.plan.num_acc_n)
        if self.plan.interleaved:
            return super()._part(first, (2 * ni + up) * tile, offset)
        return super()._part(first, ni * tile + up * (self.plan.columns * self.k_bytes), offset)


class GroupScales:
    """The scales of int4 weights in groups of 32 along K: f32 (E, K/32, N), or bf16 (E, K/64, N, 2).

    They are multiplied with the weights in registers, as a matrix instruction adds up over more than a group. A lane
    has 16 numbers of one group: lanes from 32 on those of odd ones.
    """

    def __init__(self, plan: Plan, groups: int, scales: Any, expert: Any) -> None:
        self.plan, self.groups = plan, groups
        rows, paired = plan.rows_of_experts, plan.group_scales == "bf16"
        words = plan.tiling.k // GROUP * rows // (2 if paired else 1)  # of an expert
        first = fx.Int64(expert) * (words * 4)
        self.memory = GTensor(scales, fx.Int32, base_byte_offset=first, num_records_bytes=words * 4)
        thread = fx.Int32(fx.thread_idx.x)
        lane = thread & (WAVE - 1)
        column = fx.Int32(fx.block_idx.x) * plan.tile_n + (thread >> 6) * (plan.tile_n // WAVES) + (lane & 15)
        is_odd = lane >= 32
        self.shift = is_odd.select(fx.Int32(0), fx.Int32(16))
        self.first = column if paired else column + is_odd.select(fx.Int32(rows), fx.Int32(0))
        self.row_bytes = rows * (4 if paired else 8)  # of two groups
        self.loads = groups * plan.tiling.num_acc_n  # of a lane for a tile

    def load(self, k: Any, stage: int, before: Any) -> list[list[Any]]:
        """[group][ni]: the words of tile k."""
        plan = self.plan
        first = k * (plan.tiling.tile_k // (2 * GROUP) * self.row_bytes)
        return [
            [
                self.memory.vec_load(self.first + ni * 16, 1, soffset_bytes=first + (group * self.row_bytes + half * 4))
                for half in plan.halves
                for ni in range(plan.num_acc_n)
            ]
            for group in range(self.groups)
        ]

    def factors(self, words: list[list[Any]]) -> list[list[Any]]:
        """The same as f32. NaN becomes one that rounding to bf16 leaves NaN."""
        return [[self._factor(word) for word in row] for row in words]

    def _factor(self, word: Any) -> Any:
        if self.plan.group_scales == "bf16":
            return (word << self.shift & -(1 << 16)).bitcast(fx.Float32)
        scale = word.bitcast(fx.Float32)
        return scale if is_cdna4() else (scale == scale).select(scale, fx.Float32(math.nan))


class OutputTile(TileC):
    """The way of a workgroup's sums to the result, whose rows may be anywhere. tensors: by name."""

    def __init__(self, plan: Plan, routes: Routes, tensors: Any) -> None:
        rows, tile = routes.tokens * (1 if plan.accumulate else plan.topk), (plan.tile_m, plan.tile_n)
        place, wave_tile = (routes.block, routes.tile), (plan.tile_m, plan.num_acc_n * 16)
        wave = plan.tiling.wave_place()[0]
        super().__init__(tensors["out"], plan.out_type, rows, plan.out_columns, tile, place, wave_tile, wave)
        self.plan, self.routes, self.tensors = plan, routes, tensors
        size = fx.Int64(rows) * (plan.out_columns * plan.out_type.width // 8)
        self.memory = GTensor(tensors["out"], plan.out_type, num_records_bytes=size)

    def of_expert(self, name: str) -> list[Any]:
        """[ni]: the f32 of a lane's columns of its expert, in stage 1 those of up after those of the gate."""
        plan = self.plan
        memory = GTensor(self.tensors[name], fx.Float32, num_records_bytes=plan.experts * plan.rows_of_experts * 4)
        first = self.routes.expert * plan.rows_of_experts + self.first_column + self.column
        return [memory.load(first + half + ni * 16) for half in plan.halves for ni in range(plan.num_acc_n)]

    def numbers(self, acc: Any) -> Any:
        """((mi, ni, ii) -> the number that is stored or added, in f32; [mi]: the ids of four rows)."""
        plan, routes, dtype = self.plan, self.routes, self.plan.tiling.dtype
        ids, weights = (routes.of_lane(table, plan.tiling.m_repeat) for table in (routes.ids, routes.weights))
        of_rows, has_rows, factor = [], plan.scaled and dtype != W4A16, FACTORS.get(dtype, 1.0)
        if has_rows:
            memory = GTensor(self.tensors["scale_activations"], fx.Float32, num_records_bytes=routes.sources * 4)
            of_rows = [[memory.load(routes.source(row_id)) for row_id in four] for four in ids]
        of_columns = [scale * factor for scale in self.of_expert("scale_weights")] if plan.scaled else []
        biases = self.of_expert("bias") if plan.biased else []

        def product(mi: int, ni: int, ii: int) -> Any:
            value = acc[mi][ni][ii]
            if has_rows:
                value = value.to(fx.Float32) * of_rows[mi][ii] * of_columns[ni]
            elif dtype == W4A16:
                value = value * (of_columns[ni] if plan.scaled else factor)
            return value + biases[ni] if biases else value

        def number(mi: int, ni: int, ii: int) -> Any:
            value = product(mi, ni, ii)
            if plan.gated and plan.k_batch == 1:
                value = gated(value, product(mi, ni + plan.num_acc_n, ii), plan.swiglu_limit)
            return value * weights[mi][ii] if plan.weighted else value

        return number, ids

    def put(self, acc: Any, shared: Any) -> None:
        """Write or add the tile."""
        number, ids = self.numbers(acc)
        if not self.plan.cshuffle:
            self._put_straight(number, ids)
            return
        for up, half in enumerate(self.plan.halves[: self.plan.parts]):
            of_half = partial(lambda first, mi, ni, ii: number(mi, ni + first, ii), up * self.num_acc_n)
            self.put_through(of_half, half, shared)

    def _put_straight(self, number: Any, ids: Any) -> None:
        columns = [half + ni * 16 for half in self.plan.halves[: self.plan.parts] for ni in range(self.num_acc_n)]
        for mi, four in enumerate(ids):
            for ii, row_id in enumerate(four):
                exists, row = self.routes.target(row_id)
                first = row * self.plan.out_columns + self.first_column + self.column
                for ni, column in enumerate(columns):
                    self.write(number(mi, ni, ii).to(self.dtype), first + column, exists)

    def put_through(self, number: Any, half: int, shared: Any) -> None:
        """Write or add number(mi, ni, ii) in the columns from `half` on, from lanes that each have some of a row."""

        def put(_: Any, column: Any, values: Any, row: Any, exists: Any) -> None:
            self.write(fx.Vector(values), row * self.plan.out_columns + (column + half), exists)

        e_vec = 2 if self.plan.adds else min(8, self.plan.tile_n // 32)
        self.store_through(shared, number, e_vec=e_vec, lanes=32, put=put, target=self.target)

    def target(self, row: Any) -> tuple[Any, Any]:
        """(row of the result, whether it is one) of a row of the tile."""
        exists, target = self.routes.target(self.routes.ids.load(self.first_row + row))
        return target, exists

    def write(self, values: Any, place: Any, exists: Any) -> None:
        """Write an element of the result, or several side by side, or add them: one of f32, or a pair."""
        if not self.plan.adds:
            buffer_store(values, self.memory.rsrc, place, mask=exists)
        elif self.dtype is fx.Float32:
            offset = exists.select(place * 4, fx.Int32(OUT_OF_RANGE))
            fx.rocdl.raw_ptr_buffer_atomic_fadd(values, self.memory.rsrc, offset)
        else:
            add_pair(self.tensors["out"], self.memory.rsrc, place, values, exists)


@flyc.kernel
def moe_gemm_kernel(tensors: Any, tokens: fx.Int32, plan: fx.Constexpr[Plan], product: fx.Constexpr[Any]) -> None:
    """One tile of the result, if its block has rows. tensors: by the names of OPERANDS.

    product(plan, routes, tile of the activations, of the weights, their scales): the sums.
    """
    pipeline.require_types(plan.tiling.dtype, tensors["activations"], tensors["weights"])
    visit(plan, Routes(plan, tensors, tokens), tensors, product, OutputTile)


@flyc.jit
def visit(plan: Plan, routes: Routes, tensors: Any, product: Any, result: Any) -> None:
    """One tile of the result, if the block has rows. result: the class of what becomes of it."""
    if routes.exist:
        kind, place, weights = plan.tiling.product(), routes.tile, tensors["weights"]
        a = GatheredA(plan, kind, tensors["activations"], routes.sources, routes)
        if plan.gated:
            b: Any = GateAndUp(plan, kind, weights, routes.expert, place)
        else:
            b = TileB(plan.tiling, kind, weights, routes.expert * (plan.columns // plan.tile_n) + place)
        acc = product(plan, routes, a, b, (tensors.get("scale_activations"), tensors["scale_weights"]))
        tile = result(plan, routes, tensors)
        pipeline.put_sum_of_waves(plan.tiling, acc, a.buffer, lambda sums: tile.put(sums, a.buffer))


def product_of_tiles(plan: Plan, routes: Routes, a: GatheredA, b: TileB, scales: tuple[Any, Any]) -> Any:
    """The sums of a tile."""
    of_groups = GroupScales(plan, b.groups, scales[1], routes.expert) if plan.group_scales else None

    def multiply(acc: Any, now_b: Any, now_scales: Any, fragment: Any, stage: int) -> Any:
        of_b = of_groups.factors(now_scales) if of_groups else None
        return pipeline.multiply_groups(b, acc, now_b, fragment, of_b=of_b)

    # One fragment of A ahead of its use costs registers that decide how many waves there are.
    return pipeline.main_loop(
        a, b, b.product.tile_of_zeros(plan.tiling), multiply, ahead=(min(1, plan.tiling.m_repeat - 1), 0),
        unroll=plan.k_batch > 1, part=(fx.Int32(fx.block_idx.z), plan.k_batch),
        scales=of_groups.load if of_groups else pipeline.no_scales, extra_loads=of_groups.loads if of_groups else 0,
    )  # fmt: skip


def stage_launcher(
    plan: Any, launch: Callable[..., None], others: Sequence[str] = (), columns: int | None = None,
    name: str = "launch_moe_gemm",
) -> Any:  # fmt: skip
    """The launcher of a stage, as `compile_moe_gemm1` says: launch(plan, tensors, tokens, blocks, stream).

    tensors: by the names of OPERANDS. others: names of tensors after num_valid_ids. columns: what the launcher is
    given; by default the result's.
    """
    x, known = "x" if plan.gated else "h", (columns or plan.columns, plan.k)
    names = ("out", x, "w", f"scale_{x}", "scale_w", *TABLES, *others)

    def launch_stage(given: dict[str, Any], tokens: Any, columns: int, k: int, blocks: Any, stream: Any) -> None:
        require((columns, k) == known, f"a product with {columns} columns and K={k}", f"compiled for {known}")
        tensors = dict(zip((*OPERANDS, *others), given.values(), strict=True))
        require_sizes(plan, tokens, tensors)
        launch(plan, tensors, tokens, blocks, stream)

    return launcher(name, " ".join(names), launch_stage, tokens=fx.Int32, columns=int, k=int, blocks=fx.Int32)


def require_sizes(plan: Any, tokens: Any, tensors: dict[str, Any]) -> None:
    """Refuse a result, activations and weights of other sizes than the launch's."""
    slots = 1 if plan.gated and not plan.smooth else plan.topk
    require_rows("x" if plan.gated else "h", tensors["activations"], tokens * slots, plan.k, bits=plan.bits[0])
    require_elements("w", tensors["weights"], plan.experts * plan.rows_of_experts * plan.k, bits=plan.bits[1])
    rows = tokens * (1 if plan.accumulate else plan.topk)
    require_rows("out", tensors["out"], rows, plan.out_columns, bits={"fp4": 4, "fp8": 8}.get(plan.out_dtype, 0))


def launch_tiles(
    plan: Any, tensors: dict[str, Any], tokens: Any, blocks: Any, stream: Any, product: Any = product_of_tiles,
    waves_per_eu: int | None = None,
) -> None:  # fmt: skip
    """Launch a workgroup for each tile of the result, inside a launcher. product: see `moe_gemm_kernel`."""
    grid = (plan.columns // plan.tile_n, blocks, plan.k_batch)
    kernel = moe_gemm_kernel(tensors, tokens, plan, product, value_attrs=for_waves(waves_per_eu))
    kernel.launch(grid=grid, block=plan.tiling.threads, stream=stream)


def default_tile(
    build: Callable[..., Any], tokens: int, tile_m: int | None = None, device: str = "cpu", **options: Any
) -> dict[str, Any]:
    """The options of a tile that `build` takes for so many tokens, by the model of time.

    They are those of the nearest size that was searched, for the GPU that the tensors are on
    (`kernels.tuned.nearest_that_fits`). build: `compile_moe_gemm1` or 2, or `compile_mixed_moe_gemm1` or 2, whose
    others are options. tile_m: of the routing tables if they are there already, such as that of stage 1 for stage 2.
    device: of the tensors. Raises ArgumentError for a size that none of the tiles fits.

        first = default_tile(compile_moe_gemm1, tokens, **sizes, in_dtype="fp8", doweight_stage1=False)
        launch = compile_moe_gemm1(**sizes, in_dtype="fp8", doweight_stage1=False, **first)
    """
    family = build.__name__.removeprefix("compile_")
    widths = options["inter_dim"], options["model_dim"]
    columns, k = widths if family.endswith("1") else widths[::-1]
    is_mixed, arch = "mixed" in family, target_arch(device)
    a_bits = 16 if options.get("in_dtype") in ("bf16", "fp16", W4A16) else 4 if options.get("a_dtype") == "fp4" else 8

    def fit(row: dict[str, Any]) -> dict[str, Any]:
        waves, row_bytes = row.get("k_wave", 1), row["row_bytes"]
        # Rows of the table of mixed types have the bytes of fp4.
        tile_k = gcd(row_bytes * 8 // (4 if is_mixed else a_bits), k // waves)
        found = row | {"tile_m": tile_m or row["tile_m"], "tile_n": gcd(row["tile_n"], columns), "tile_k": tile_k}
        found = {name: value for name, value in found.items() if name != "row_bytes" and name not in options}
        a_bytes, room = 2 * found["tile_m"] * tile_k * waves * a_bits // 8, get_arch(arch).lds_bytes_per_workgroup
        try:
            require(a_bytes <= room, f"{a_bytes} bytes of LDS", f"{room} or less")
            build(**options, **found)
        except ArgumentError:
            if waves == 1 and row["tile_n"] >= 128:
                raise
            # What results need that are rounded to 8 bits and less.
            return fit(row | {"tile_n": 128} | ({"k_wave": 1} if waves > 1 else {}))
        return found

    size = size_of_experts(tokens * options["topk"], columns, k, options["experts"])
    return nearest_that_fits(family, arch, "fp4" if is_mixed else "fp8", size, fit)


def tuned_stage(
    name: str, launch: Callable[..., None], tiles: Sequence[tuple[int, int]], others: Sequence[str] = (),
    prune: Any = None, family: str = "", check: Callable[[Any], None] = lambda plan: None,
) -> Any:  # fmt: skip
    """A launcher whose tile is chosen: (out, ..., num_valid_ids, others ..., tokens, plan, stream).

    launch: as of `stage_launcher`. plan: of a stage (`plan_of`), with another tile along columns and K:
    tiles (columns, bytes of A). family: of tables that the choice is made by, as in `default_tile`, where
    FLYDSL_AUTOTUNE=1 does not ask for one by measurement. check: raises ArgumentError for a plan that does not fit.
    """

    def launch_tile(tensors: dict[str, Any], tokens: Any, plan: Any, tile: tuple[int, int], stream: Any) -> None:
        plan = plan.with_tile(*tile)
        require_sizes(plan, tokens, tensors)
        launch(plan, tensors, tokens, tensors["expert_ids"].shape[0], stream)

    def default(*given: Any, **named: Any) -> Config:
        arguments = dict(zip((*OPERANDS, *others, "m_in", "plan"), given, strict=False)) | named
        plan, arch = arguments["plan"], target_arch(str(arguments["out"].device))
        is_mixed = plan.tiling.dtype in MICRO_SCALED  # rows of the table have the bytes of fp4

        def fit(found: dict[str, Any]) -> tuple[int, int]:
            row_bytes = found["row_bytes"] * (plan.bits[0] // 4 if is_mixed else 1)
            columns = found["tile_n"] * found.get("k_wave", 1) // plan.tiling.waves_k
            tile = gcd(columns, plan.columns), gcd(row_bytes, plan.k * plan.bits[0] // 8)
            chosen, room = plan.with_tile(*tile), get_arch(arch).lds_bytes_per_workgroup
            require(chosen.lds_bytes <= room, f"{chosen.lds_bytes} bytes of LDS", f"{room} or less")
            check(chosen)
            return tile

        size = size_of_experts(arguments["m_in"] * plan.topk, plan.columns, plan.k, plan.experts)
        kind = "fp4" if is_mixed else "fp8"
        return Config(tile=nearest_that_fits(f"{family}{1 if plan.gated else 2}", arch, kind, size, fit))

    names, choices = " ".join((*OPERANDS, *others)), [{"tile": tile} for tile in tiles]
    return tuned(
        name, names, launch_tile, ["m_in", "plan"], choices, prune, default=default if family else None,
        m_in=fx.Int32, plan=object,
    )  # fmt: skip


moe_gemm = tuned_stage("moe_gemm", launch_tiles, [(n, k) for n in (64, 128, 256) for k in (128, 256)],
                       family="moe_gemm")  # fmt: skip


@cache
def compile_moe_gemm1(
    *, model_dim: int, inter_dim: int, experts: int, topk: int, tile_m: int, tile_n: int, tile_k: int,
    doweight_stage1: bool, in_dtype: str = "fp8", group_size: int = -1, out_dtype: str = "f16",
    use_cshuffle_epilog: bool | None = None, scale_is_bf16: bool = False, k_batch: int = 1,
) -> Any:  # fmt: skip
    """The launcher of stage 1: (out, x, w, scale_x, scale_w, sorted_token_ids, expert_ids, sorted_weights,
    num_valid_ids, tokens, inter_dim, model_dim, blocks, stream), every tensor flattened to one dimension.

    model_dim: a multiple of tile_k; inter_dim: of tile_n. blocks: entries of expert_ids. out_dtype: f16 or bf16.
    doweight_stage1: multiply by the routing weight. use_cshuffle_epilog: store through shared memory; by default not.
    k_batch: workgroups that share a tile, along K. With more than one, out is (T, k, 2 inter_dim) in f32, which the
    caller clears: gate and up are added to it, and their activation is left to `silu_and_mul_fq`, or the caller.
    group_size: 32 for int4_bf16 whose weights have scales of groups, f32 (E, D/32, 2I), or bf16 (E, D/64, 2I, 2) with
    scale_is_bf16; by default they have one for each row. Raises ArgumentError where sizes do not fit.
    """
    plan = plan_of(
        in_dtype, model_dim, (tile_m, tile_n, tile_k), columns=inter_dim, experts=experts, topk=topk,
        out_dtype=out_dtype, gated=True, weighted=doweight_stage1, cshuffle=use_cshuffle_epilog,
        group_scales=_group_scales(in_dtype, group_size, scale_is_bf16),
    )  # fmt: skip
    return stage_launcher(plan if k_batch == 1 else _split(plan, k_batch), launch_tiles)


@cache
def compile_moe_gemm2(
    *, model_dim: int, inter_dim: int, experts: int, topk: int, tile_m: int, tile_n: int, tile_k: int,
    doweight_stage2: bool, in_dtype: str = "fp8", group_size: int = -1, out_dtype: str = "f16",
    use_cshuffle_epilog: bool | None = None, accumulate: bool = True, scale_is_bf16: bool = False,
) -> Any:  # fmt: skip
    """The launcher of stage 2: (out, h, w, scale_h, scale_w, sorted_token_ids, expert_ids, sorted_weights,
    num_valid_ids, tokens, model_dim, inter_dim, blocks, stream), every tensor flattened to one dimension.

    inter_dim: a multiple of tile_k; model_dim: of tile_n. out_dtype: f16, bf16, f32. accumulate: add the rows of a
    token to out (T, D), which the caller clears; otherwise write each to (T k, D). use_cshuffle_epilog: through shared
    memory, which 16-bit results that are added need, and which is their default. Raises as `compile_moe_gemm1`.
    """
    plan = plan_of(
        in_dtype, inter_dim, (tile_m, tile_n, tile_k), columns=model_dim, experts=experts, topk=topk,
        out_dtype=out_dtype, gated=False, weighted=doweight_stage2, accumulate=accumulate, cshuffle=use_cshuffle_epilog,
        group_scales=_group_scales(in_dtype, group_size, scale_is_bf16),
    )  # fmt: skip
    return stage_launcher(plan, launch_tiles)


def _split(plan: Plan, k_batch: int) -> Plan:
    """The plan of stage 1 with K in k_batch parts."""
    tiles, rest = divmod(plan.tiling.tiles_k, max(1, k_batch))
    even = k_batch > 1 and not rest and tiles % 2 == 0 and tiles >= 4
    require(even, f"k_batch={k_batch} of {plan.tiling.tiles_k} tiles", "each part has 4, 6, 8, ... tiles along K")
    require(not plan.weighted and not plan.cshuffle, f"k_batch={k_batch} with doweight_stage1 or use_cshuffle_epilog",
            "neither: the activation comes later")  # fmt: skip
    return replace(plan, split_k=k_batch, out_dtype="f32")


def plan_of(
    in_dtype: str, k: int, tile: tuple[int, int, int], *, columns: int, k_batch: int = 1, gated: bool, out_dtype: str,
    cshuffle: bool | None = None, accumulate: bool = False, scaled: bool = True,
    out_types: Sequence[str] = ("f16", "bf16"), paddings: tuple[int, int] = (0, 0), waves_k: int = 1,
    b_policy: int = 0, **known: Any,
) -> Plan:  # fmt: skip
    """The plan of a stage. tile: tile_m, tile_n, tile_k. scaled: whether rows and columns have scales, if numbers do.

    cshuffle: as the caller said, or None for stage 2's results of 16 bits. out_types: of stage 1. paddings: how many of
    the last columns of the activations do not count, and of the result's. waves_k: along K, each with a tile_k
    at a time. b_policy: of the caches, for loads of weights. Raises ArgumentError where sizes do not fit.
    """
    (tile_m, tile_n, tile_k), narrow = tile, out_dtype != "f32"
    if gated:
        require(out_dtype in out_types, f"out_dtype={out_dtype!r} of stage 1", " or ".join(out_types))
    require(gated or out_dtype in ELEMENT_TYPES, f"out_dtype={out_dtype!r}", f"one of {', '.join(ELEMENT_TYPES)}")
    cshuffle = narrow and not gated if cshuffle is None else cshuffle
    require(cshuffle or not (narrow and accumulate), f"{out_dtype} added without use_cshuffle_epilog", "a pair each")
    require(narrow or gated or not cshuffle, "use_cshuffle_epilog of f32", "f16 or bf16")
    require(columns % tile_n == 0, f"{columns} columns", f"a multiple of tile_n={tile_n}")
    require(not cshuffle or tile_m % 8 == tile_n % 64 == 0, f"tile_n={tile_n}", "a multiple of 64")
    topk, experts = known["topk"], known["experts"]
    require(1 <= topk <= experts, f"the top {topk} of {experts} experts", "topk is 1 to the number of experts")
    dtype, rows = "int8" if in_dtype == SMOOTH else in_dtype, tile_n * (2 if gated else 1)
    require(waves_k in (1, 2, 4), f"k_wave={waves_k}", "1, 2 or 4")
    along_k: dict[str, Any] = {"k": k, "tile_k": tile_k * waves_k, "padding": paddings[0], "waves_k": waves_k}
    tiling = Tiling(dtype=dtype, tile_m=tile_m, tile_n=rows, waves_n=WAVES // waves_k, b_policy=b_policy, **along_k)
    for padding, of in zip(paddings, (k, columns), strict=True):
        fits = 0 <= padding < of and padding % GROUP == 0
        require(fits, f"padding of {padding} in {of} columns", f"a multiple of {GROUP}, and less than there are")
    in_groups = known.get("group_scales") is not None
    scaled = scaled and (tiling.dtype in SCALED or (tiling.dtype == W4A16 and not in_groups))
    return Plan(
        tiling=tiling,
        tile_n=tile_n,
        n=columns,
        split_k=k_batch,
        smooth=in_dtype == SMOOTH and gated,
        scaled=scaled,
        gated=gated,
        out_dtype=out_dtype,
        cshuffle=cshuffle,
        accumulate=accumulate,
        padding=paddings[1],
        **known,
    )


class MoeGemm2Mode(Enum):
    """The order in which `compile_moe_gemm2_ex` sums the rows of a token: as they come, or its own first."""

    ATOMIC = "atomic"
    REDUCE = "reduce"


def compile_moe_gemm2_ex(**options: Any) -> Any:
    """Stage 2 with either way to sum: `sum_by` of `compile_moe_gemm2`, whose options these are as well."""
    return sum_by(compile_moe_gemm2, **options)


def sum_by(
    build: Callable[..., Any],
    *,
    mode: MoeGemm2Mode = MoeGemm2Mode.ATOMIC,
    valid_mask: Any = None,
    zero_intermediate: bool = True,
    **sizes: Any,
) -> Any:
    """A stage 2 with either way to sum: called as the launcher that `build` gives, whose arguments sizes are.

    REDUCE writes each row to memory of its own, (T k, D), and sums them in the order of the slots: the result has the
    same bits every time, and out need not be cleared. valid_mask (T, k), u8: rows where it is 0 do not count.
    zero_intermediate: clear that memory first, for rows that no expert writes.
    """
    if mode is MoeGemm2Mode.ATOMIC:
        return build(accumulate=True, **sizes)
    gemm = build(accumulate=False, **sizes)
    topk, columns, dtype = sizes["topk"], sizes["model_dim"], sizes.get("out_dtype", "f16")
    reduction = compile_moe_reduction(topk=topk, model_dim=columns, dtype_str=dtype, use_mask=valid_mask is not None)

    def launch(out: Any, *operands_and_sizes: Any, stream: Any = None) -> None:
        *operands, tokens, n, k, blocks = operands_and_sizes
        rows = out.new_zeros if zero_intermediate else out.new_empty
        of_slots = rows(tokens, topk, columns)
        gemm(of_slots.view(-1), *operands, tokens, n, k, blocks, stream=fx.Stream(stream))
        mask = out if valid_mask is None else valid_mask
        reduction(of_slots, out.view(tokens, columns), mask, tokens, stream=fx.Stream(stream))

    return launch


def _group_scales(in_dtype: str, group_size: int, scale_is_bf16: bool) -> str | None:
    """The type of the scales of groups of weights, if there are any."""
    require(in_dtype in IN_TYPES, f"in_dtype={in_dtype!r}", f"one of {', '.join(IN_TYPES)}")
    if group_size == -1 and not scale_is_bf16:
        return None
    fits = in_dtype == W4A16 and group_size == GROUP
    require(fits, f"group_size={group_size}, scale_is_bf16={scale_is_bf16} of {in_dtype}", f"{GROUP}, of {W4A16}")
    return "bf16" if scale_is_bf16 else "f32"
