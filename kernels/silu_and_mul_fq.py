"""y = silu(gate) * up for the rows that a mixture of experts has sorted, in bf16 or quantised to MXFP4 or MXFP8.

    launch = build_silu_and_mul_fq_module(inter_dim, topk, "fp4")
    launch(x, out, scales, sorted_ids, num_valid_ids, topk_ids, bias, token_num, num_sorted_rows)

x: bf16 (tokens * topk, 2 * inter_dim), gate columns and then up columns, or with gui_layout 16 of each in turn. Sorted
row r belongs to id = sorted_ids[r]: token id & 0xFFFFFF, slot id >> 24, and so to row token * topk + slot of x and of
out. It counts if r < num_valid_ids[0] and token < token_num; other rows write nothing but scales of 0.

    silu:   gate / (1 + exp(-gate)) * up
    swiglu: g / (1 + exp(-1.702 g)) * (u + 1) with g = min(gate, limit), u = up within +-limit, by default 7

bias: f32 (experts, 2 * inter_dim) in x's layout, of expert topk_ids[row]. Quantised, each 32 columns share a scale in
E8M0 (`kernels.quant`; fp8 has a headroom of 7 binary digits on gfx942, whose largest number is 240, of 8 after it). Its
byte for (sorted row, group) is where `scale_offset` says: the order in which scaled matrix instructions read.

A block of 256 threads or more has a row; the threads of a group find its maximum by DPP. What a row that does not count
reads is 0, as its resources are empty: there is no branch. inter_dim = 2048 in MXFP4: about 245 instructions, 36 VGPRs,
eight waves per SIMD; the time is that of reading x.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.expr.buffer_ops import buffer_load, buffer_store, create_buffer_resource
from kernels.kernels_common import bf16, bytes_of, ceil_div, fp8_type, power_of_two, require
from kernels.launches import chosen, launch_some, launcher
from kernels.layout_utils import idx2crd
from kernels.moe_routes import SWIGLU_SLOPE, gated
from kernels.moe_sorting_kernel import SLOT_SHIFT
from kernels.quant import codes, e8m0, group_max, headroom
from kernels.sizes import require_elements, require_rows

THREADS = 256
GROUP = 32
BLOCK_COLUMNS = 16
QUANT_MODES = ("fp4", "fp8", "none")
ACTIVATIONS = ("silu", "swiglu")
SWIGLU_LIMIT = 7.0
TABLES = "sorted_ids num_valid_ids topk_ids bias"
# (tokens, topk, inter_dim)
SHAPES = ((3, 2, 256), (2, 1, 512), (5, 3, 1024), (1, 2, 1280), (1, 1, 9216))


@dataclass(frozen=True, kw_only=True)
class Activation:
    """The values known at compile time: the builder's parameters. Raises ArgumentError where they do not fit."""

    inter_dim: int
    topk: int
    quant: str
    gui: bool
    act: str
    bias: bool
    limit: float
    threads: int = THREADS

    @property
    def width(self) -> int:
        """Columns of a thread, such that threads share a group evenly."""
        return power_of_two(max(ceil_div(self.inter_dim, self.threads), 2))

    def __post_init__(self) -> None:
        require(self.quant in QUANT_MODES and self.act in ACTIVATIONS, f"quant_mode {self.quant!r}, act {self.act!r}",
                f"{', '.join(QUANT_MODES)}; {', '.join(ACTIVATIONS)}")  # fmt: skip
        require(self.inter_dim >= GROUP and self.inter_dim % GROUP == 0 and self.width <= GROUP,
                f"inter_dim {self.inter_dim} with {self.threads} threads",
                f"a multiple of {GROUP}, at most {GROUP * self.threads}")  # fmt: skip

    @property
    def row_bytes(self) -> int:
        """The bytes of a row of the result."""
        return {"fp4": self.inter_dim // 2, "fp8": self.inter_dim, "none": 2 * self.inter_dim}[self.quant]

    @property
    def groups(self) -> int:
        """Groups of a row, filled up to a multiple of 8."""
        return ceil_div(self.inter_dim // GROUP, 8) * 8

    def column(self, column: Any, up: bool) -> Any:
        """The place in a row of x of a column of gate or up."""
        if not self.gui:
            return column + up * self.inter_dim
        return column // BLOCK_COLUMNS * (2 * BLOCK_COLUMNS) + column % BLOCK_COLUMNS + up * BLOCK_COLUMNS


def scale_offset(row: Any, group: Any, groups: int) -> Any:
    """The place of the scale of (row, group), in bytes. groups: of a row, a multiple of 8."""
    in_pair = (group // 4 % 2) * 2 + row // 16 % 2
    return row // 32 * (32 * groups) + group // 8 * 256 + group % 4 * 64 + row % 16 * 4 + in_pair


@flyc.kernel
def silu_and_mul_fq_kernel(tensors: Any, token_num: fx.Int32, spec: fx.Constexpr[Activation]) -> None:
    """One sorted row. tensors: in the launcher's order."""
    x, out, scales, sorted_ids, num_valid_ids, topk_ids, bias = tensors.values()
    row, thread = fx.block_idx.x, fx.thread_idx.x
    width, inter = spec.width, spec.inter_dim
    number = fx.rocdl.readfirstlane(sorted_ids[row])
    token, slot = number & ((1 << SLOT_SHIFT) - 1), fx.arith.shrui(number, fx.Int32(SLOT_SHIFT))
    counts = (row < fx.rocdl.readfirstlane(num_valid_ids[0])) & (token < token_num)
    source = token * spec.topk + slot
    column = thread * width
    inside = None if width * spec.threads == inter else column < inter

    def resource(tensor: fx.Tensor, index: Any, row_bytes: int) -> Any:
        size = counts.select(fx.Int64(row_bytes), fx.Int64(0))
        return create_buffer_resource(tensor, num_records_bytes=size, base_byte_offset=fx.Int64(index) * row_bytes)

    def half(memory: Any, dtype: Any, up: bool) -> Any:
        step = min(width, 128 // dtype.width) if spec.gui else width
        starts = range(0, width, step)
        parts = [buffer_load(memory, spec.column(column + start, up), step, dtype, mask=inside) for start in starts]
        return fx.Vector.from_elements([n for part in parts for n in part], dtype).to(fx.Float32)

    memory = resource(x, source, 4 * inter)
    gate, up = half(memory, fx.BFloat16, False), half(memory, fx.BFloat16, True)
    if spec.bias:
        expert = fx.rocdl.readfirstlane(buffer_load(create_buffer_resource(topk_ids), source, 1, fx.Int32, mask=counts))
        biases = resource(bias, expert, 8 * inter)
        gate, up = gate + half(biases, fx.Float32, False), up + half(biases, fx.Float32, True)
    y = gated(gate, up, None if spec.act == "silu" else spec.limit)
    results = resource(out, source, spec.row_bytes)
    if spec.quant == "none":
        buffer_store(bf16(y), results, column, mask=inside)
    else:
        scale, factor = e8m0(group_max(y, GROUP // width), headroom(f"mx{spec.quant}"))
        buffer_store(codes(y, factor, f"mx{spec.quant}"), results, column * spec.row_bytes // inter, mask=inside)
        group, member = idx2crd(thread, (-1, GROUP // width))
        first = member == 0 if inside is None else (member == 0) & inside
        place = scale_offset(row, group, spec.groups)
        buffer_store(scale.to(fx.Uint8), create_buffer_resource(scales), place, mask=first)


@cache
def build_silu_and_mul_fq_module(
    inter_dim: int, topk: int, quant_mode: str = "fp4", gui_layout: bool = False, act: str = "silu",
    enable_bias: bool = False, swiglu_limit: float = 0.0,
) -> Any:  # fmt: skip
    """The launcher (x, out_buf, out_scale_sorted, sorted_ids, num_valid_ids, topk_ids, bias, token_num, rows, stream).

    inter_dim: a multiple of 32, up to 32768. swiglu_limit: 0 for 7.
    """
    limit, threads = swiglu_limit or SWIGLU_LIMIT, min(max(power_of_two(ceil_div(inter_dim, GROUP)), THREADS), 1024)
    spec = Activation(
        inter_dim=inter_dim,
        topk=topk,
        quant=quant_mode,
        gui=gui_layout,
        act=act,
        bias=enable_bias,
        limit=limit,
        threads=threads,
    )
    launch, names = partial(launch_rows, spec), f"x out_buf out_scale_sorted {TABLES}"
    return launcher("launch_silu_and_mul_fq", names, launch, token_num=fx.Int32, num_sorted_rows=fx.Int32)


def launch_rows(spec: Activation, tensors: dict[str, Any], tokens: Any, rows: Any, stream: Any) -> None:
    """Launch a block for each sorted row, inside a launcher."""
    x, out, scales, sorted_ids, num_valid_ids, topk_ids, bias = tensors.values()
    kinds = {"none": (fx.BFloat16,), "fp8": bytes_of(fp8_type())}.get(spec.quant, bytes_of())
    require_rows("x", x, tokens * spec.topk, 2 * spec.inter_dim, fx.BFloat16)
    require_rows("out", out, tokens * spec.topk, spec.row_bytes, *kinds, bits=8)
    if spec.quant != "none":
        e8m0s = (rows + 31) // 32 * (32 * spec.groups)
        require_elements("the scales", scales, e8m0s, *bytes_of(fx.Float8E8M0FNU), or_more=True)
    require_elements("sorted_ids", sorted_ids, rows, fx.Int32, or_more=True)
    require_elements("num_valid_ids", num_valid_ids, 1, fx.Int32, or_more=True)
    if spec.bias:
        require_elements("topk_ids", topk_ids, tokens * spec.topk, fx.Int32, or_more=True)
        require_rows("bias", bias, 1, 2 * spec.inter_dim, fx.Float32)
    launch_some(silu_and_mul_fq_kernel(tensors, tokens, spec), rows, rows, spec.threads, stream)


@chosen(f"x out scales {TABLES}", "spec", (64, 128, 256, 512))
def silu_and_mul_fq(tensors: dict[str, Any], m_in: fx.Int32, spec: Activation, threads: int, stream: Any) -> None:
    """The kernel for m_in tokens, and as many rows as sorted_ids has."""
    launch_rows(replace(spec, threads=threads), tensors, m_in, fx.get_scalar(tensors["sorted_ids"].shape[0]), stream)


def reference(x: Any, bias: Any = None, act: str = "silu", gui: bool = False, limit: float = SWIGLU_LIMIT) -> Any:
    """The result in f32 before it is rounded. x: (rows, 2 * inter_dim); bias: of each row, in the same layout."""
    v = x.float() if bias is None else x.float() + bias
    rows, columns = v.shape
    if gui:
        v = v.view(rows, -1, 2, BLOCK_COLUMNS).transpose(1, 2).reshape(rows, columns)
    gate, up = v.chunk(2, -1)
    if act == "silu":
        return gate * gate.sigmoid() * up
    gate, up = gate.clamp(max=limit), up.clamp(-limit, limit)
    return gate * (SWIGLU_SLOPE * gate).sigmoid() * (up + 1)
