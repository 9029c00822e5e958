"""Small kernels that use memory well and badly. Tests find their lines by the comments."""

from __future__ import annotations

from typing import Any

import torch

import flydsl.compiler as flyc
import flydsl.expr as fx

THREADS = 128
WAVES = THREADS // 64


def shared(length: int) -> Any:
    return fx.make_view(fx.get_dyn_shared(fx.Float32), fx.make_layout(length, 1))


@flyc.kernel
def reverse_kernel(A: fx.Tensor, Out: fx.Tensor, with_barrier: fx.Constexpr[bool]):
    """Every block reverses its part of A."""
    tile, t, first = shared(THREADS), fx.thread_idx.x, fx.block_idx.x * THREADS
    tile[t] = A[first + t]  # writes
    if fx.const_expr(with_barrier):
        fx.gpu.barrier()
    Out[first + t] = tile[THREADS - 1 - t]  # reads what the other wave writes


@flyc.jit
def reverse(A: fx.Tensor, Out: fx.Tensor, with_barrier: fx.Constexpr[bool] = True):
    reverse_kernel(A, Out, with_barrier).launch(grid=A.shape[0] // THREADS, block=THREADS, smem=4 * THREADS)


@flyc.kernel
def neighbour_kernel(A: fx.Tensor, Out: fx.Tensor):
    """One element more of the shared memory is read than is written."""
    tile, t = shared(THREADS + 1), fx.thread_idx.x
    tile[t] = A[t]
    fx.gpu.barrier()
    Out[t] = tile[t + 1]  # reads what nothing wrote


@flyc.jit
def neighbour(A: fx.Tensor, Out: fx.Tensor):
    neighbour_kernel(A, Out).launch(grid=1, block=THREADS, smem=4 * THREADS + 4)


@flyc.kernel
def past_the_end_kernel(A: fx.Tensor, Out: fx.Tensor):
    t = fx.thread_idx.x
    Out[t] = A[t + 1]  # reads one element past A


@flyc.jit
def past_the_end(A: fx.Tensor, Out: fx.Tensor):
    past_the_end_kernel(A, Out).launch(grid=1, block=THREADS)


@flyc.kernel
def half_a_barrier_kernel(A: fx.Tensor, Out: fx.Tensor):
    t = fx.thread_idx.x
    if t < 64:
        fx.gpu.barrier()  # only one wave comes here
    Out[t] = A[t]


@flyc.jit
def half_a_barrier(A: fx.Tensor, Out: fx.Tensor):
    half_a_barrier_kernel(A, Out).launch(grid=1, block=THREADS)


@flyc.kernel
def missed_barrier_kernel(A: fx.Tensor, Out: fx.Tensor):
    """The second wave ends without the barrier, after which the first reads what it wrote."""
    tile, t = shared(THREADS), fx.thread_idx.x
    tile[t] = A[t]
    if t < 64:
        fx.gpu.barrier()
        Out[t] = tile[t + 64]


@flyc.jit
def missed_barrier(A: fx.Tensor, Out: fx.Tensor):
    missed_barrier_kernel(A, Out).launch(grid=1, block=THREADS, smem=4 * THREADS)


@flyc.jit
def wait_until(flag: fx.Pointer, value: Any) -> None:
    """Load a flag until it has a value; acquire it."""
    seen = fx.generic_load(flag, memory_order="acquire", syncscope="agent")
    while seen != value:
        seen = fx.generic_load(flag, memory_order="acquire", syncscope="agent")


@flyc.kernel
def hand_over_kernel(Data: fx.Tensor, Flag: fx.Tensor, Out: fx.Tensor):
    """The first block fills Data and sets a flag, for which the second one waits."""
    t, flag = fx.thread_idx.x, fx.get_iter(Flag)
    if fx.block_idx.x == 0:
        Data[t] = t
        fx.barrier()
        if t == 0:
            fx.generic_store(flag, fx.Int32(1), memory_order="release", syncscope="agent")
    else:
        if t == 0:
            wait_until(flag, 1)
        fx.barrier()
        Out[t] = Data[t] + 1


@flyc.jit
def hand_over(Data: fx.Tensor, Flag: fx.Tensor, Out: fx.Tensor):
    hand_over_kernel(Data, Flag, Out).launch(grid=2, block=THREADS)


@flyc.kernel
def hand_over_too_soon_kernel(Data: fx.Tensor, Flag: fx.Tensor, Out: fx.Tensor):
    """One thread sets the flag while others may still fill Data."""
    t, flag = fx.thread_idx.x, fx.get_iter(Flag)
    if fx.block_idx.x == 0:
        Data[t] = t
        if t == THREADS - 1:
            fx.generic_store(flag, fx.Int32(1), memory_order="release", syncscope="agent")
    else:
        if t == 0:
            wait_until(flag, 1)
        fx.barrier()
        Out[t] = Data[t] + 1


@flyc.jit
def hand_over_too_soon(Data: fx.Tensor, Flag: fx.Tensor, Out: fx.Tensor):
    hand_over_too_soon_kernel(Data, Flag, Out).launch(grid=2, block=THREADS)


@flyc.kernel
def hand_over_to_a_sleeper_kernel(Data: fx.Tensor, Flag: fx.Tensor, Out: fx.Tensor):
    """The same, but what waits for the flag sleeps between two looks."""
    t, flag = fx.thread_idx.x, fx.get_iter(Flag)
    if fx.block_idx.x == 0:
        Data[t] = t
        fx.barrier()
        if t == 0:
            fx.generic_store(flag, fx.Int32(1), memory_order="release", syncscope="agent")
    else:
        if t == 0:
            seen = fx.generic_load(flag, memory_order="acquire", syncscope="agent")
            while seen != 1:
                fx.rocdl.s_sleep(1)
                seen = fx.generic_load(flag, memory_order="acquire", syncscope="agent")
        fx.barrier()
        Out[t] = Data[t] + 1


@flyc.jit
def hand_over_to_a_sleeper(Data: fx.Tensor, Flag: fx.Tensor, Out: fx.Tensor):
    hand_over_to_a_sleeper_kernel(Data, Flag, Out).launch(grid=2, block=THREADS)


@flyc.kernel
def wait_for_flag_kernel(Flag: fx.Tensor, Out: fx.Tensor):
    if fx.thread_idx.x == 0:
        wait_until(fx.get_iter(Flag), 1)
    fx.barrier()  # the others wait here
    Out[fx.thread_idx.x] = 1


@flyc.kernel
def wait_for_all_kernel(Arrived: fx.Tensor, Out: fx.Tensor, n: fx.Int32):
    """A barrier of all workgroups, at which one never arrives."""
    t, counter = fx.thread_idx.x, fx.get_iter(Arrived)
    if t == 0:
        if fx.block_idx.x != 3:
            fx.atomic_add(counter, fx.Int32(1))  # arrives
        wait_until(counter, n)
    fx.barrier()
    Out[fx.block_idx.x * THREADS + t] = 1


@flyc.jit
def wait_for_all(Arrived: fx.Tensor, Out: fx.Tensor, n: fx.Int32):
    wait_for_all_kernel(Arrived, Out, n).launch(grid=5, block=THREADS)


@flyc.jit
def wait_for_flag(Flag: fx.Tensor, Out: fx.Tensor):
    wait_for_flag_kernel(Flag, Out).launch(grid=1, block=THREADS)


@flyc.kernel
def grid_barrier_kernel(Data: fx.Tensor, Count: fx.Tensor, Out: fx.Tensor, blocks: fx.Int32):
    """Each block adds what its neighbour stored before all of them met."""
    block, count = fx.block_idx.x, fx.get_iter(Count)
    if fx.thread_idx.x == 0:
        Data[block] = block
        fx.atomic_add(count, fx.Int32(1))
        wait_until(count, blocks)
        Out[block] = Data[(block + 1) % blocks]


@flyc.jit
def grid_barrier(Data: fx.Tensor, Count: fx.Tensor, Out: fx.Tensor, blocks: fx.Int32):
    grid_barrier_kernel(Data, Count, Out, blocks).launch(grid=blocks, block=64)


@flyc.kernel
def endless_kernel(A: fx.Tensor, Out: fx.Tensor):
    t = fx.thread_idx.x
    while A[t] > 0.0:
        Out[t] = Out[t] + A[t]  # and so on


@flyc.jit
def endless(A: fx.Tensor, Out: fx.Tensor):
    endless_kernel(A, Out).launch(grid=1, block=THREADS)


@flyc.kernel
def sum_kernel(A: fx.Tensor, Out: fx.Tensor, add: fx.Constexpr[float]):
    t = fx.thread_idx.x
    Out[t] = A[t] + add


@flyc.jit
def two_sums(A: fx.Tensor, B: fx.Tensor, Out: fx.Tensor):
    """Two launches: Out = A + 3, with the sum of the first in B."""
    sum_kernel(A, B, 1.0).launch(grid=1, block=THREADS)
    sum_kernel(B, Out, 2.0).launch(grid=1, block=THREADS)


@flyc.kernel
def unfilled_kernel(A: fx.Tensor, Out: fx.Tensor):
    """Each thread fills one element of its private array and reads another one."""
    t = fx.thread_idx.x
    private = fx.make_rmem_tensor(40, fx.Float32)
    private[t % 40] = A[t]
    Out[t] = private[(t + 1) % 40]  # stores what nothing set


@flyc.jit
def unfilled(A: fx.Tensor, Out: fx.Tensor):
    unfilled_kernel(A, Out).launch(grid=1, block=THREADS)


def operands(blocks: int = 1) -> tuple[torch.Tensor, torch.Tensor]:
    """Positive numbers, and zeros of the same length."""
    return torch.arange(1.0, 1 + blocks * THREADS), torch.zeros(blocks * THREADS)


def line_of(comment: str) -> int:
    """The line of this file that ends in a comment."""
    with open(__file__, encoding="utf-8") as source:
        return next(number for number, line in enumerate(source, 1) if line.rstrip().endswith(f"# {comment}"))
