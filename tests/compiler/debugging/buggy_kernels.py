"""Kernels with the bugs that authors make. Tests find the line to which a user must be led by the comment `# bug`.

Each launcher has the name of its bug. `ARGUMENTS` makes what it is called with, and `REFERENCES` says what it is to
compute, where its result is wrong: a function of the same parameters.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

import flydsl.compiler as flyc
import flydsl.expr as fx

ARGUMENTS: dict[str, Callable[[], tuple[Any, ...]]] = {}
REFERENCES: dict[str, Callable[..., Any]] = {}
LAUNCHERS: dict[str, Any] = {}


def bug(arguments: Callable[[], tuple[Any, ...]], reference: Callable[..., Any] | None = None) -> Callable[[Any], Any]:
    """Decorate the launcher of a kernel with a bug."""

    def decorate(launcher: Any) -> Any:
        name = launcher.__name__
        LAUNCHERS[name], ARGUMENTS[name] = launcher, arguments
        if reference is not None:
            REFERENCES[name] = reference
        return launcher

    return decorate


def shared(layout: Any, dtype: Any = fx.Float32) -> Any:
    """A view of the dynamic shared memory."""
    return fx.make_view(fx.get_dyn_shared(dtype), layout)


def random(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0))


# --- wrong numbers ---------------------------------------------------------------------------------------------------


@flyc.kernel
def wrong_swizzle_kernel(a: fx.Tensor, out: fx.Tensor):
    t = fx.thread_idx.x
    plain = fx.make_layout((16, 16), (16, 1))
    written = shared(fx.make_composed_layout(fx.Swizzle(2, 0, 4), 0, plain))
    read = shared(fx.make_composed_layout(fx.Swizzle(3, 0, 4), 0, plain))
    written[t // 16, t % 16] = a[t // 16, t % 16]
    fx.gpu.barrier()
    out[t % 16, t // 16] = read[t // 16, t % 16]  # bug: rows are swizzled by two bits, and read by three


@bug(lambda: (random(16, 16), torch.zeros(16, 16)), lambda a, out: out.copy_(a.T))
@flyc.jit
def wrong_swizzle(a: fx.Tensor, out: fx.Tensor):
    wrong_swizzle_kernel(a, out).launch(grid=1, block=256, smem=4 * 256)


@flyc.kernel
def last_k_left_out_kernel(a: fx.Tensor, b: fx.Tensor, c: fx.Tensor, k: fx.Int32):
    row, column = fx.thread_idx.x // 16, fx.thread_idx.x % 16
    acc = fx.Float32(0)
    for i in range(k - 1):  # bug: the last of k is left out
        acc += a[row, i] * b[i, column]
    c[row, column] = acc


def product(a: Any, b: Any, c: Any, *_: Any) -> None:
    c.copy_(a.float() @ b.float())


@bug(lambda: (random(16, 24), random(24, 16), torch.zeros(16, 16), 24), product)
@flyc.jit
def last_k_left_out(a: fx.Tensor, b: fx.Tensor, c: fx.Tensor, k: fx.Int32):
    last_k_left_out_kernel(a, b, c, k).launch(grid=1, block=256)


@flyc.kernel
def accumulator_kept_kernel(a: fx.Tensor, sums: fx.Tensor, k: fx.Int32):
    acc = fx.Float32(0)
    for row in fx.range_constexpr(2):
        for i in range(k):  # bug: acc begins with what the row before left
            acc += a[2 * fx.thread_idx.x + row, i]
        sums[2 * fx.thread_idx.x + row] = acc


@bug(lambda: (random(16, 12), torch.zeros(16), 12), lambda a, sums, k: sums.copy_(a.sum(1)))
@flyc.jit
def accumulator_kept(a: fx.Tensor, sums: fx.Tensor, k: fx.Int32):
    accumulator_kept_kernel(a, sums, k).launch(grid=1, block=8)


@flyc.kernel
def missing_mask_kernel(a: fx.Tensor, sums: fx.Tensor, k: fx.Int32):
    acc = fx.Float32(0)
    for start in range(0, k, 8):
        for i in fx.range_constexpr(8):
            acc += a[fx.thread_idx.x, start + i]  # bug: rows of 12 end within the second step
    sums[fx.thread_idx.x] = acc


@bug(lambda: (random(16, 12), torch.zeros(8), 12), lambda a, sums, k: sums.copy_(a[:8].sum(1)))
@flyc.jit
def missing_mask(a: fx.Tensor, sums: fx.Tensor, k: fx.Int32):
    missing_mask_kernel(a, sums, k).launch(grid=1, block=8)


@flyc.kernel
def transposed_fragment_kernel(a: fx.Tensor, out: fx.Tensor):
    t = fx.thread_idx.x
    tile = fx.make_rmem_tensor((4, 4), fx.Float32)
    for i in fx.range_constexpr(4):
        for j in fx.range_constexpr(4):
            tile[i, j] = a[4 * t + i, j] * 2
    for i in fx.range_constexpr(4):
        for j in fx.range_constexpr(4):
            out[4 * t + i, j] = tile[j, i]  # bug


@bug(lambda: (random(32, 4), torch.zeros(32, 4)), lambda a, out: out.copy_(2 * a))
@flyc.jit
def transposed_fragment(a: fx.Tensor, out: fx.Tensor):
    transposed_fragment_kernel(a, out).launch(grid=1, block=8)


@flyc.kernel
def wrong_scale_kernel(a: fx.Tensor, scales: fx.Tensor, out: fx.Tensor):
    t = fx.thread_idx.x
    out[t] = a[t] * scales[t // 64]  # bug: a scale is for 32 elements


@bug(
    lambda: (random(128), random(4), torch.zeros(128)),
    lambda a, scales, out: out.copy_(a * scales.repeat_interleave(32)),
)
@flyc.jit
def wrong_scale(a: fx.Tensor, scales: fx.Tensor, out: fx.Tensor):
    wrong_scale_kernel(a, scales, out).launch(grid=1, block=128)


@flyc.kernel
def wrong_stride_kernel(a: fx.Tensor, out: fx.Tensor):
    t = fx.thread_idx.x
    tile = fx.make_view(fx.get_iter(a), fx.make_layout((8, 8), (8, 1)))
    out[t // 8, t % 8] = tile[t // 8, t % 8]  # bug: rows of a are 12 elements long


@bug(lambda: (random(8, 12), torch.zeros(8, 8)), lambda a, out: out.copy_(a[:, :8]))
@flyc.jit
def wrong_stride(a: fx.Tensor, out: fx.Tensor):
    wrong_stride_kernel(a, out).launch(grid=1, block=64)


@flyc.kernel
def short_reduction_kernel(a: fx.Tensor, out: fx.Tensor):
    lane = fx.thread_idx.x
    total = a[lane]
    for distance in (1, 2, 4, 8, 16):  # bug: the halves of 64 lanes are not added
        total = total + fx.shuffle_xor(total, distance, 64)
    if lane == 0:
        out[0] = total


@bug(lambda: (random(64), torch.zeros(1)), lambda a, out: out.copy_(a.sum(0, keepdim=True)))
@flyc.jit
def short_reduction(a: fx.Tensor, out: fx.Tensor):
    short_reduction_kernel(a, out).launch(grid=1, block=64)


@flyc.kernel
def thread_for_lane_kernel(a: fx.Tensor, out: fx.Tensor):
    t = fx.thread_idx.x
    out[t] = fx.shuffle_idx(a[t], t // 4 * 4 // 2, 64)  # bug: the first lane of four is t // 4 * 4


@bug(lambda: (random(64), torch.zeros(64)), lambda a, out: out.copy_(a[::4].repeat_interleave(4)))
@flyc.jit
def thread_for_lane(a: fx.Tensor, out: fx.Tensor):
    thread_for_lane_kernel(a, out).launch(grid=1, block=64)


@flyc.kernel
def short_grid_kernel(a: fx.Tensor, out: fx.Tensor):
    i = fx.block_idx.x * 64 + fx.thread_idx.x
    out[i] = a[i] + 1


@bug(lambda: (random(160), torch.zeros(160)), lambda a, out: out.copy_(a + 1))
@flyc.jit
def short_grid(a: fx.Tensor, out: fx.Tensor):
    short_grid_kernel(a, out).launch(grid=a.shape[0] // 64, block=64)  # bug: the rest of the division is left out


@flyc.kernel
def converted_too_early_kernel(a: fx.Tensor, out: fx.Tensor, scale: fx.Float32):
    t = fx.thread_idx.x
    out[t] = fx.Int32(a[t]) * fx.Int32(scale)  # bug: both are rounded before they are multiplied


@bug(
    lambda: (random(64) * 10, torch.zeros(64, dtype=torch.int32), 2.5),
    lambda a, out, scale: out.copy_((a * scale).int()),
)
@flyc.jit
def converted_too_early(a: fx.Tensor, out: fx.Tensor, scale: fx.Float32):
    converted_too_early_kernel(a, out, scale).launch(grid=1, block=64)


# --- numbers that their type does not hold ---------------------------------------------------------------------------


@flyc.kernel
def int8_overflow_kernel(a: fx.Tensor, b: fx.Tensor, out: fx.Tensor, k: fx.Int32):
    acc = fx.Int8(0)
    for i in range(k):
        acc += a[fx.thread_idx.x, i] * b[i]  # bug: in eight bits
    out[fx.thread_idx.x] = fx.Int32(acc)


def _bytes(*shape: int) -> torch.Tensor:
    return torch.randint(-20, 20, shape, generator=torch.Generator().manual_seed(0)).to(torch.int8)


@bug(
    lambda: (_bytes(8, 16), _bytes(16), torch.zeros(8, dtype=torch.int32), 16),
    lambda a, b, out, k: out.copy_(a.int() @ b.int()),
)
@flyc.jit
def int8_overflow(a: fx.Tensor, b: fx.Tensor, out: fx.Tensor, k: fx.Int32):
    int8_overflow_kernel(a, b, out, k).launch(grid=1, block=8)


@flyc.kernel
def f16_overflow_kernel(a: fx.Tensor, out: fx.Tensor, k: fx.Int32):
    acc = fx.Float16(0)
    for i in range(k):
        acc += a[fx.thread_idx.x, i] * a[fx.thread_idx.x, i]  # bug: sums of squares are above 65504
    out[fx.thread_idx.x] = fx.sqrt(fx.Float32(acc))


@bug(
    lambda: (torch.full((8, 32), 60.0, dtype=torch.float16), torch.zeros(8), 32),
    lambda a, out, k: out.copy_(a.float().norm(dim=1)),
)
@flyc.jit
def f16_overflow(a: fx.Tensor, out: fx.Tensor, k: fx.Int32):
    f16_overflow_kernel(a, out, k).launch(grid=1, block=8)


@flyc.kernel
def masked_row_kernel(scores: fx.Tensor, lengths: fx.Tensor, out: fx.Tensor):
    row = fx.thread_idx.x
    most = fx.Float32(float("-inf"))
    for i in fx.range_constexpr(8):
        score = (i < lengths[row]).select(scores[row, i], float("-inf"))
        most = fx.max(most, score)
    for i in fx.range_constexpr(8):
        score = (i < lengths[row]).select(scores[row, i], float("-inf"))
        out[row, i] = fx.exp(score - most)  # bug: -inf - -inf in a row without an element


@bug(lambda: (random(8, 8), torch.tensor([8, 3, 0, 5, 1, 7, 2, 4], dtype=torch.int32), torch.zeros(8, 8)))
@flyc.jit
def masked_row(scores: fx.Tensor, lengths: fx.Tensor, out: fx.Tensor):
    masked_row_kernel(scores, lengths, out).launch(grid=1, block=8)


# --- memory ----------------------------------------------------------------------------------------------------------


@flyc.kernel
def missing_barrier_kernel(a: fx.Tensor, out: fx.Tensor):
    tile, t = shared(fx.make_layout(128, 1)), fx.thread_idx.x
    tile[t] = a[t]
    out[t] = tile[127 - t]  # bug: what the other wave writes


@bug(lambda: (random(128), torch.zeros(128)))
@flyc.jit
def missing_barrier(a: fx.Tensor, out: fx.Tensor):
    missing_barrier_kernel(a, out).launch(grid=1, block=128, smem=512)


@flyc.kernel
def early_overwrite_kernel(a: fx.Tensor, out: fx.Tensor, steps: fx.Int32):
    tile, t = shared(fx.make_layout(128, 1)), fx.thread_idx.x
    acc = fx.Float32(0)
    for step in range(steps):
        tile[t] = a[step, t]  # bug: other waves may still read the step before
        fx.gpu.barrier()
        acc += tile[127 - t]
    out[t] = acc


@bug(lambda: (random(3, 128), torch.zeros(128), 3))
@flyc.jit
def early_overwrite(a: fx.Tensor, out: fx.Tensor, steps: fx.Int32):
    early_overwrite_kernel(a, out, steps).launch(grid=1, block=128, smem=512)


@flyc.kernel
def unwritten_shared_kernel(a: fx.Tensor, out: fx.Tensor):
    tile, t = shared(fx.make_layout(66, 1)), fx.thread_idx.x
    tile[t] = a[t]
    fx.gpu.barrier()
    out[t] = tile[t] + tile[t + 2]  # bug: the last two elements


@bug(lambda: (random(64), torch.zeros(64)))
@flyc.jit
def unwritten_shared(a: fx.Tensor, out: fx.Tensor):
    unwritten_shared_kernel(a, out).launch(grid=1, block=64, smem=4 * 66)


@flyc.kernel
def lost_update_kernel(values: fx.Tensor, counts: fx.Tensor):
    bin = values[fx.thread_idx.x]
    counts[bin] = counts[bin] + 1  # bug: not an atomic


@bug(lambda: (torch.arange(64, dtype=torch.int32) % 4, torch.zeros(4, dtype=torch.int32)))
@flyc.jit
def lost_update(values: fx.Tensor, counts: fx.Tensor):
    lost_update_kernel(values, counts).launch(grid=1, block=64)


@flyc.kernel
def same_tile_kernel(a: fx.Tensor, out: fx.Tensor):
    i = fx.block_idx.x * 64 + fx.thread_idx.x
    out[fx.thread_idx.x] = a[i]  # bug: every workgroup writes the first tile


@bug(lambda: (random(128), torch.zeros(128)))
@flyc.jit
def same_tile(a: fx.Tensor, out: fx.Tensor):
    same_tile_kernel(a, out).launch(grid=2, block=64)


@flyc.kernel
def past_the_end_kernel(a: fx.Tensor, out: fx.Tensor, n: fx.Int32):
    i = fx.thread_idx.x
    if i <= n:  # so that i may be n
        out[i] = a[i] * 2  # bug


@bug(lambda: (random(50), torch.zeros(50), 50))
@flyc.jit
def past_the_end(a: fx.Tensor, out: fx.Tensor, n: fx.Int32):
    past_the_end_kernel(a, out, n).launch(grid=1, block=64)


# --- waits that do not end -------------------------------------------------------------------------------------------


@flyc.kernel
def barrier_in_a_branch_kernel(a: fx.Tensor, out: fx.Tensor):
    t = fx.thread_idx.x
    tile = shared(fx.make_layout(128, 1))
    if t < 64:
        tile[t] = a[t]
        fx.gpu.barrier()  # bug: the second wave does not come
    out[t] = a[t]


@bug(lambda: (random(128), torch.zeros(128)))
@flyc.jit
def barrier_in_a_branch(a: fx.Tensor, out: fx.Tensor):
    barrier_in_a_branch_kernel(a, out).launch(grid=1, block=128, smem=512)


@flyc.kernel
def barrier_of_some_lanes_kernel(a: fx.Tensor, out: fx.Tensor):
    t = fx.thread_idx.x
    tile = shared(fx.make_layout(128, 1))
    tile[t] = a[t]
    if t % 64 < 40:
        fx.gpu.barrier()  # bug: 24 lanes of each wave do not come
        out[t] = tile[127 - t]


@bug(lambda: (random(128), torch.zeros(128)))
@flyc.jit
def barrier_of_some_lanes(a: fx.Tensor, out: fx.Tensor):
    barrier_of_some_lanes_kernel(a, out).launch(grid=1, block=128, smem=512)


@flyc.jit
def _arrived(counter: fx.Tensor) -> Any:
    return fx.generic_load(fx.get_iter(counter), dtype=fx.Int32, memory_order=fx.AtomicOrdering.Acquire)


@flyc.kernel
def one_arrival_too_few_kernel(arrived: fx.Tensor, out: fx.Tensor, blocks: fx.Int32):
    if fx.thread_idx.x == 0:
        if fx.block_idx.x > 0:  # so that the first one does not arrive
            fx.atomic_add(fx.get_iter(arrived), 1)
        while _arrived(arrived) < blocks:  # bug
            pass
    out[fx.block_idx.x] = blocks


@bug(lambda: (torch.zeros(1, dtype=torch.int32), torch.zeros(5, dtype=torch.int32), 5))
@flyc.jit
def one_arrival_too_few(arrived: fx.Tensor, out: fx.Tensor, blocks: fx.Int32):
    one_arrival_too_few_kernel(arrived, out, blocks).launch(grid=5, block=64)


@flyc.kernel
def never_counts_kernel(out: fx.Tensor, n: fx.Int32):
    i = fx.Int32(0)
    while i < n:  # bug: nothing counts i
        i = i + 0
    out[fx.thread_idx.x] = 7


@bug(lambda: (torch.zeros(64, dtype=torch.int32), 5))
@flyc.jit
def never_counts(out: fx.Tensor, n: fx.Int32):
    never_counts_kernel(out, n).launch(grid=1, block=64)
