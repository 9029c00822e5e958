"""Common parts of the mixture-of-experts products for gfx1250: rows that the tensor data mover gathers, and results.

A workgroup has a block of sorted rows (`moe_routes`) and tile_n columns of the result; in stage 1 these of the gate and
the same ones of up, which share the fragments of A. Each wave asks the tensor data mover for its part of the rows of A,
by their numbers, and of the weights; the order of tiles is that of `gemm_common_gfx1250`, the fragments are those of
`gemm_fp8fp4_gfx1250`. Scales of 32 elements come in rows, as they are in memory.

| operand | in memory |
|---|---|
| activations, their scales | rows as they are: (rows, K), (rows, K / 32) |
| weights for activations of fp8 | shuffled (`shuffles.shuffle_weight`), in stage 1 after `paired_rows` |
| other weights | rows as they are: (E 2I, D), of each expert first the gate's, and (E D, I) |
| scales of weights | rows in the order of the weights': (E 2I, D / 32), (E D, I / 32) |

B is the first operand of the instruction, so that a lane has eight neighbours of one row: it knows its token, and
stores 16 bytes, or adds four pairs, from its registers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.expr.buffer_ops import buffer_store
from flydsl.expr.rocdl import tdm_ops
from kernels import gemm_fp8fp4_gfx1250 as gemm
from kernels.gemm_common_gfx1250 import (
    LANES,
    SIZE,
    ClusterShape,
    Loads,
    TileStream,
    check_smem_capacity,
    require_gfx1250,
    run_pipeline,
)
from kernels.kernels_common import bytes_of, require, require_tensors, rounded
from kernels.launches import for_waves
from kernels.moe_routes import OUT_OF_RANGE, Routes, StagePlan, add_pair, gated
from kernels.tensor_shim import GTensor, STensor
from kernels.wmma_gemm_gfx1250 import pieces, place_of_wave

OUT_TYPES = {"f16": fx.Float16, "bf16": fx.BFloat16, "f32": fx.Float32}
HALVES = {"fp16": fx.Float16, "bf16": fx.BFloat16}  # types of 16 bits
FORMATS = gemm.FORMATS | dict.fromkeys(HALVES, (16, 16))
AT_ONCE = 8  # rows of a gather
ALONE = ClusterShape(1, 1)


def paired_rows(rows: Any, experts: int, tile_n: int) -> Any:
    """Rows (E 2I, ...), of each expert first the gate's, as tiles of the gate and of up in turn."""
    in_tiles = rows.view(experts, 2, -1, tile_n, *rows.shape[1:])
    return in_tiles.transpose(1, 2).reshape(rows.shape)


@dataclass(frozen=True, kw_only=True)
class Plan(StagePlan, gemm.Plan):
    """The compile-time parameters of a kernel: a product with n columns.

    gated: stage 1. weighted: multiply by the routing weight. accumulate: rows of a token are added to one. biased: each
    column of an expert has a number that is added. swiglu_limit: the activation is swiglu with this limit instead of
    silu. With split_k in stage 1 the sums of gate and up, side by side, are added to the result as they are.
    """

    experts: int
    topk: int
    gated: bool
    weighted: bool
    accumulate: bool
    biased: bool = False
    swiglu_limit: float | None = None

    smooth = False  # see `moe_routes`
    out_dtype = ""  # the result is of the tensor's type

    @property
    def tile_m(self) -> int:
        """Rows of a block."""
        return self.tile[0]

    @property
    def tile_n(self) -> int:
        """Columns of the result of a workgroup."""
        return self.tile[1]

    @property
    def bits(self) -> tuple[int, int]:
        """The width of an element of the activations and of the weights."""
        return FORMATS[self.data_format]

    @property
    def step(self) -> int:
        """Columns of K of an instruction."""
        return 32 if self.data_format in HALVES else gemm.STEP

    @property
    def row_scales(self) -> int:
        """Scales of a tile's row."""
        return self.tile[2] // gemm.BLOCK if self.has_blocks else 0

    @property
    def starts(self) -> tuple[int, int, int, int, int]:
        """The offsets in a buffer of A, B, the scales of A and of B, and the end of the last."""
        rows_b = self.tile_n * self.both
        a, b = self.tile_m * (self.row_bytes[0] + gemm.PAD), rows_b * self.pitch_b
        of_a, of_b = (rows * self.row_scales for rows in (self.tile_m, rows_b))
        return 0, a, a + b, a + b + of_a, a + b + of_a + of_b

    def with_tile(self, tile_n: int, row_bytes: int) -> Plan:
        """The plan with another tile. row_bytes: of the activations. Raises ArgumentError where it does not fit."""
        tile = self.tile_m, tile_n, row_bytes * 8 // self.bits[0]
        plan = replace(self, tile=tile, waves=waves_of(tile[:2], self.data_format, self.both))
        plan.check()
        return plan

    def check(self) -> None:
        """Raise ArgumentError where sizes do not fit."""
        _, n, k = self.tile
        require(k >= self.step and k & (k - 1) == 0, f"tile_k={k}", f"a power of two from {self.step} on")
        require(self.n > 0 and self.n % n == 0, f"{self.n} columns", f"a multiple of tile_n={n}")
        require(self.k_batch > 0, f"k_batch={self.k_batch}", "at least 1")
        parts = k * self.k_batch
        require(self.k > 0 and self.k % parts == 0, f"K={self.k}", f"a multiple of tile_k={k} times k_batch")
        require(1 <= self.topk <= self.experts, f"the top {self.topk} of {self.experts} experts",
                "topk is 1 to the number of experts")  # fmt: skip
        late = self.k_batch > 1 and (self.weighted or self.biased)
        require(not late, f"k_batch={self.k_batch} with routing weights or bias", "neither: the activation comes later")
        self.pipeline.check()
        check_smem_capacity(self.lds_bytes)


def plan_of(
    data_format: str,
    k: int,
    tile: tuple[int, int, int],
    out_dtype: str,
    buffers: int,
    *,
    columns: int,
    k_batch: int = 1,
    **known: Any,
) -> Plan:
    """The plan of a stage. known: what else it has. Raises ArgumentError where sizes do not fit."""
    require(out_dtype in OUT_TYPES, f"out_dtype={out_dtype!r}", f"one of {', '.join(OUT_TYPES)}")
    waves = waves_of(tile[:2], data_format, 2 if known["gated"] else 1)
    plan = Plan(
        data_format=data_format, shuffled=data_format in ("fp8", "a8w4"), has_blocks=data_format not in HALVES,
        n=columns, k=k, tile=tile, waves=waves, out=OUT_TYPES[out_dtype], buffers=buffers, tdm_store=False,
        cluster=ALONE, specialized=False, split_k=k_batch, **known,
    )  # fmt: skip
    plan.check()
    return plan


def waves_of(tile: tuple[int, int], data_format: str, halves: int) -> tuple[int, int]:
    """Waves along M and N: as many as fit, up to eight, and of these the ones that read the least for a product."""
    wide, (bits_a, bits_b) = 2 * SIZE if data_format == "fp4" else SIZE, FORMATS[data_format]
    fitting = [
        (m, n) for m in (1, 2, 4) for n in (1, 2, 4, 8)
        if m * n <= 8 and min(tile) > 0 and tile[0] % (SIZE * m) == 0 and tile[1] % (wide * n) == 0
    ]  # fmt: skip
    require(bool(fitting), f"a tile of {tile[0]} x {tile[1]}", f"multiples of {SIZE} and {wide}")

    def order(waves: tuple[int, int]) -> tuple[int, int]:
        m, n = waves
        return -m * n, tile[0] // m * bits_a + halves * tile[1] // n * bits_b

    return min(fitting, key=order)


class Gathered:
    """The rows of the activations that a wave asks for, of its workgroup's block."""

    def __init__(self, plan: Plan, routes: Routes) -> None:
        self.plan, self.rows = plan, routes.sources
        count = plan.tile_m // (plan.threads // LANES)
        self.first = fx.rocdl.wave_id() * count
        lane = fx.Int32(fx.thread_idx.x) & (LANES - 1)
        source = routes.source(routes.ids.load(routes.first + self.first + lane))
        self.numbers = [fx.Int32(fx.rocdl.readlane(source, i)) for i in range(count)]

    def streams(self, tensor: Any, shared: Any, width: int, start: int, pad: int, part: Any) -> list[TileStream]:
        """The tiles of a tensor with these rows. width: bytes of a tile's row; start: of the tile in a buffer.

        part: of the workgroups that share a tile, along K.
        """
        row_bytes = self.plan.k // self.plan.tile[2] * width
        return [
            TileStream(
                tdm_ops.make_tensor_gather_descriptor(
                    tensor, shared, self.numbers[i : i + AT_ONCE], width, width, self.rows, row_bytes,
                    pad_interval=width if pad else 0, pad_amount=pad,
                    lds_byte_offset=(self.first + i) * (width + pad) + start,
                    global_byte_offset=part * (row_bytes // self.plan.k_batch),
                ),
                width,
            )
            for i in range(0, len(self.numbers), AT_ONCE)
        ]  # fmt: skip


class Weights:
    """The rows of the weights that a workgroup needs; each wave asks for its part.

    part: of the workgroups that share a tile, along K.
    """

    def __init__(self, plan: Plan, expert: Any, part: Any) -> None:
        self.plan, self.expert, self.block = plan, expert, fx.Int32(fx.block_idx.x)
        self.tiles_k, self.waves = plan.k // plan.tile[2], plan.threads // LANES
        self.first_tile = part * (self.tiles_k // plan.k_batch)
        # (rows after the expert's first one, how many): gate and up lie side by side, or far apart.
        together = plan.shuffled or not plan.gated
        n = plan.tile_n
        self.tiles = [(0, n * plan.both)] if together else [(0, n), (plan.n, n)]

    def streams(
        self, tensor: Any, shared: Any, width: int, start: int, pad: int = 0, unit: int = 1, element: int = 1
    ) -> list[TileStream]:
        """The tiles of a tensor with these rows. width: bytes of a tile's row; start: of the first tile in a buffer.

        unit: rows that lie together in memory; element: bytes of what is copied.
        """
        made, plan = [], self.plan
        for number, (distance, rows) in enumerate(self.tiles):
            shape = rows // unit, unit * width // element
            first = self.block * shape[0] + distance // unit + self.expert * (plan.rows_of_experts // unit)
            descriptor = tdm_ops.make_tensor_descriptor_2d(
                tensor, shared, (first, self.first_tile * shape[1]), shape, (self.tiles_k * shape[1], 1), shape,
                elem_bytes=element, num_warps=min(self.waves, rows), pad_interval=width if pad else 0, pad_amount=pad,
                lds_byte_offset=start + number * plan.tile_n * (width + pad),
            )  # fmt: skip
            made.append(TileStream(descriptor, unit * width))
        return made


class Compute(gemm.Compute):
    """A wave's products of a tile: in stage 1 of its columns of the gate and, after them, of the same ones of up."""

    def __init__(self, plan: Plan, shared: Any) -> None:
        super().__init__(plan, shared)
        self.of_half = self.columns
        self.columns *= plan.both

    def lds_offsets_of_scales(self, row: Any, column: Any, inner: Any) -> tuple[Any, Any]:
        """A lane's first scales of A and of B, which are in rows."""
        second = self.half * SIZE if self.plan.wide > SIZE else 0
        return (row + inner) * self.plan.row_scales, (column + inner + second) * self.plan.row_scales

    def load_b(self, stage: int, step: int, ni: int, start: int = 0) -> Any:
        """A lane's part of the columns of an instruction."""
        up, ni = divmod(ni, self.of_half)
        return super().load_b(stage, step, ni, start + up * self.plan.tile_n * self.plan.pitch_b)

    def scales(self, side: int, stage: int, step: int) -> list[Any]:
        """The scales of the instructions along M (side 0) or N, a word each."""
        count, rows = ((self.rows, SIZE), (self.columns, self.plan.wide))[side]
        if not self.plan.has_blocks:
            return [None] * count
        tile = STensor(self.shared, fx.Int32, first=self.lds_offsets[2 + side][stage])
        first = [divmod(i, self.of_half) if side else (0, i) for i in range(count)]
        places = [(up * self.plan.tile_n + i * rows) * self.plan.row_scales // 4 + step for up, i in first]
        return [tile.load(place) for place in places]

    def multiply(self, b: Any, a: Any, total: Any, scale_b: Any, scale_a: Any) -> Any:
        """The sums of a tile of the result, transposed."""
        if self.plan.has_blocks:
            return super().multiply(b, a, total, scale_b, scale_a)
        kind = HALVES[self.plan.data_format]
        instruction = getattr(fx.rocdl, f"wmma_f32_16x16x32_{'bf16' if kind is fx.BFloat16 else 'f16'}")
        return fx.Vector(instruction(fx.T.vec(8, fx.T.f32), b.bitcast(kind), a.bitcast(kind), total))


class OutputTile:
    """The way of a wave's sums to the result: a lane has, of each 16 rows and columns, eight neighbours of one row."""

    def __init__(self, plan: Plan, routes: Routes, out: Any, bias: Any) -> None:
        self.plan, self.routes, self.out, self.bias = plan, routes, out, bias
        lane, (row, column) = fx.Int32(fx.thread_idx.x) & (LANES - 1), place_of_wave(plan)
        self.row = routes.first + (row + (lane & (SIZE - 1)))
        self.column = fx.Int32(fx.block_idx.x) * plan.tile_n + (column + (lane >> 4) * 8)
        rows = routes.tokens if plan.accumulate else routes.tokens * plan.topk
        size = fx.Int64(rows) * (plan.out_columns * int(plan.out.width) // 8)
        self.memory = GTensor(out, plan.out, num_records_bytes=size)

    def put(self, acc: list[list[Any]]) -> None:
        """Write or add the sums [16 rows][16 columns]."""
        plan, biases = self.plan, self._biases(len(acc[0]))
        for mi, totals in enumerate(acc):
            row = self.row + SIZE * mi
            exists, target = self.routes.target(self.routes.ids.load(row))
            weight = self.routes.weights.load(row) if plan.weighted else None
            numbers = [total + bias if plan.biased else total for total, bias in zip(totals, biases, strict=True)]
            for number, values in enumerate(self._activated(numbers)):
                up, ni = divmod(number, len(totals) // plan.both)
                values = values if weight is None else values * weight
                self._put_eight(values, target * plan.out_columns + self.column + (up * plan.n + SIZE * ni), exists)

    def _biases(self, count: int) -> list[Any]:
        plan = self.plan
        if not plan.biased:
            return [None] * count
        memory = GTensor(self.bias, fx.Float32, num_records_bytes=plan.experts * plan.rows_of_experts * 4)
        result = []
        for up, ni in (divmod(i, count // plan.both) for i in range(count)):
            place = self.routes.expert * plan.rows_of_experts + self.column + (up * plan.n + SIZE * ni)
            result.append(memory.vec_load(place, 8))
        return result

    def _activated(self, numbers: list[Any]) -> list[Any]:
        if not self.plan.gated or self.plan.k_batch > 1:
            return numbers
        gates, ups = numbers[: len(numbers) // 2], numbers[len(numbers) // 2 :]
        return [
            fx.Vector.from_elements([gated(gate[i], up[i], self.plan.swiglu_limit) for i in range(8)], fx.Float32)
            for gate, up in zip(gates, ups, strict=True)
        ]

    def _put_eight(self, values: Any, place: Any, exists: Any) -> None:
        plan, rsrc = self.plan, self.memory.rsrc
        if not plan.adds:
            for first, piece in pieces(plan, values):
                buffer_store(piece, rsrc, place + first, mask=exists)
        elif plan.out is fx.Float32:
            for i in range(8):
                offset = exists.select((place + i) * 4, fx.Int32(OUT_OF_RANGE))
                fx.rocdl.raw_ptr_buffer_atomic_fadd(values[i], rsrc, offset)
        else:
            values = rounded(values, plan.out)
            for i in range(0, 8, 2):
                add_pair(self.out, rsrc, place + i, values[i : i + 2], exists)


@flyc.kernel
def moe_gemm_gfx1250_kernel(tensors: Any, tokens: fx.Int32, turns: fx.Int32, plan: fx.Constexpr[Plan]) -> None:
    """One tile of the result, if its block has rows. tensors: by name. turns: the plan's."""
    require_gfx1250("the products of experts for gfx1250")
    own = HALVES.get(plan.data_format)
    kinds = [own or bytes_of(*((fx.Float8E4M3FN,) if bits == 8 else ())) for bits in plan.bits]
    require_tensors(tensors, out=plan.out, activations=kinds[0], weights=kinds[1])
    routes = Routes(plan, tensors, tokens)
    if routes.exist:
        compute_tile(plan, routes, tensors, turns)


def compute_tile(plan: Plan, routes: Routes, tensors: Any, turns: Any) -> None:
    """One tile of the result."""
    fx.rocdl.disable_xdl_arb_stall()
    shared = fx.SharedAllocator().allocate(plan.lds_bytes, 128).peek().ptr
    part, rows = fx.Int32(fx.block_idx.z), Gathered(plan, routes)
    own, width, (_, of_b, scales_a, scales_b, _) = Weights(plan, routes.expert, part), plan.row_bytes[1], plan.starts
    streams = rows.streams(tensors["activations"], shared, plan.row_bytes[0], 0, gemm.PAD, part)
    streams += own.streams(tensors["weights"], shared, width, of_b, plan.pitch_b - width, SIZE if plan.shuffled else 1)
    if plan.has_blocks:
        streams += rows.streams(tensors["scale_activations"], shared, plan.row_scales, scales_a, 0, part)
        streams += own.streams(tensors["scale_weights"], shared, plan.row_scales, scales_b, element=4)
    loads, compute = Loads(plan.pipeline, streams, plan.buffer_bytes), Compute(plan, shared)
    acc = run_pipeline(plan.pipeline, loads, ALONE, compute.compute_tile, compute.zeros(), turns)
    OutputTile(plan, routes, tensors["out"], tensors["bias"]).put(compute.by_columns(acc))


def launch_tiles(
    plan: Plan, tensors: dict[str, Any], tokens: Any, blocks: Any, stream: Any, waves_per_eu: int | None = None
) -> None:
    """Launch a workgroup for each tile of the result, inside a launcher. tensors: also the bias."""
    turns = plan.pipeline.turns
    kernel = moe_gemm_gfx1250_kernel(tensors, tokens, turns, plan, value_attrs=for_waves(waves_per_eu))
    kernel.launch(grid=(plan.n // plan.tile_n, blocks, plan.k_batch), block=plan.threads, stream=stream)
