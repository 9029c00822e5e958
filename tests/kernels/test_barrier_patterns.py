"""The textbook patterns of barriers, on the simulator against NumPy, at each opt level.

In each of them a read before a barrier is used behind it, where another wave has overwritten what was read.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch

import flydsl.compiler as flyc
import flydsl.expr as fx
from tests.launchers import launcher_of

THREADS = 128
Array = np.ndarray


def tile() -> fx.Tensor:
    return fx.SharedAllocator().allocate(fx.Array[fx.Float32, THREADS, 16]).peek().view(fx.make_layout(THREADS))


@flyc.kernel
def last_tile_to_epilogue(A: fx.Tensor, C: fx.Tensor, n: fx.Int32):
    t = fx.thread_idx.x
    S = tile()
    v = A[t]
    for _i in range(n):
        S[127 - t] = A[t]
        fx.barrier()
        v = S[(t + 64) & 127]
        fx.barrier()
    S[t] = v
    fx.barrier()
    C[t] = S[t ^ 3]


def last_tile_to_epilogue_in_numpy(a: Array, n: int) -> Array:
    t = np.arange(THREADS)
    return (a[127 - ((t + 64) & 127)] if n else a)[t ^ 3]


@flyc.kernel
def write_back_if_flag(A: fx.Tensor, C: fx.Tensor, n: fx.Int32):
    t = fx.thread_idx.x
    S = tile()
    S[127 - t] = A[t]
    fx.barrier()
    v = S[(t + 64) & 127]
    fx.barrier()
    if n > 0:
        S[t] = v
    fx.barrier()
    C[t] = S[t ^ 3]


def write_back_if_flag_in_numpy(a: Array, n: int) -> Array:
    t = np.arange(THREADS)
    return (a[127 - ((t + 64) & 127)] if n else a[::-1])[t ^ 3]


@flyc.kernel
def nested_branches(A: fx.Tensor, C: fx.Tensor, n: fx.Int32):
    t = fx.thread_idx.x
    S = tile()
    S[t] = A[t]
    fx.barrier()
    v = S[127 - t]
    w = S[(t + 64) & 127]
    fx.barrier()
    if n > 0:
        if n > 1:
            S[t] = v
        else:
            S[t] = w
    fx.barrier()
    C[t] = S[t ^ 64]


def nested_branches_in_numpy(a: Array, n: int) -> Array:
    t = np.arange(THREADS)
    return (a, np.roll(a, -64), a[::-1])[min(n, 2)][t ^ 64]


@flyc.kernel
def rotation(A: fx.Tensor, C: fx.Tensor, n: fx.Int32):
    t = fx.thread_idx.x
    S = tile()
    S[t] = A[t]
    fx.barrier()
    for _i in range(n):
        v = S[(t + 37) & 127]
        fx.barrier()
        S[t] = v
        fx.barrier()
    C[t] = S[t]


def rotation_in_numpy(a: Array, n: int) -> Array:
    return np.roll(a, -37 * n)


@flyc.kernel
def double_buffering(A: fx.Tensor, C: fx.Tensor, n: fx.Int32):
    t = fx.thread_idx.x
    S, T = tile(), tile()
    S[t] = A[t]
    fx.barrier()
    total = A[t] * 0.0
    for i in range(n):
        v = S[127 - t]
        w = T[(t + 64) & 127]
        fx.barrier()
        T[t] = v + 1.0
        if i > 0:
            S[t] = w
        fx.barrier()
        total = total + w * fx.Float32(i > 0) + v
    C[t] = total


def double_buffering_in_numpy(a: Array, n: int) -> Array:
    s, t, total = a.copy(), np.zeros_like(a), np.zeros_like(a)
    for i in range(n):
        v, w = s[::-1].copy(), np.roll(t, -64)
        t = v + 1
        s = w if i else s
        total = total + (w if i else 0) + v
    return total


@flyc.kernel
def reduction_tree(A: fx.Tensor, C: fx.Tensor, n: fx.Int32):
    t = fx.thread_idx.x
    S = tile()
    S[t] = A[t]
    fx.barrier()
    for step in fx.range_constexpr(7):
        v = S[t] + S[t ^ (64 >> step)]
        fx.barrier()
        if n > 0:
            S[t] = v
        fx.barrier()
    C[t] = S[t]


def reduction_tree_in_numpy(a: Array, n: int) -> Array:
    return np.full_like(a, a.sum()) if n else a


@flyc.kernel
def transposes(A: fx.Tensor, C: fx.Tensor, n: fx.Int32):
    t = fx.thread_idx.x
    S = tile()
    v = A[t]
    for _i in range(n):
        S[(t % 8) * 16 + t // 8] = v
        fx.barrier()
        v = S[t]
        fx.barrier()
    S[127 - t] = v
    fx.barrier()
    C[t] = S[t]


def transposes_in_numpy(a: Array, n: int) -> Array:
    for _ in range(n):
        a = a.reshape(16, 8).T.reshape(-1)
    return a[::-1]


@flyc.kernel
def through_global_memory(A: fx.Tensor, C: fx.Tensor, n: fx.Int32):
    t = fx.thread_idx.x
    C[t] = A[127 - t]
    fx.barrier()
    v = C[(t + 64) & 127]
    fx.barrier()
    if n > 0:
        C[t] = v


def through_global_memory_in_numpy(a: Array, n: int) -> Array:
    return np.roll(a[::-1], -64) if n else a[::-1]


@flyc.kernel
def with_bare_barriers(A: fx.Tensor, C: fx.Tensor, n: fx.Int32):
    t = fx.thread_idx.x
    S = tile()
    S[127 - t] = A[t]
    fx.rocdl.s_waitcnt(0)
    fx.rocdl.s_barrier()
    v = S[(t + 64) & 127]
    fx.rocdl.s_waitcnt(0)
    fx.rocdl.s_barrier()
    if n > 0:
        S[t] = v
    fx.rocdl.s_waitcnt(0)
    fx.rocdl.s_barrier()
    C[t] = S[t ^ 3]


with_bare_barriers_in_numpy = write_back_if_flag_in_numpy


@flyc.kernel
def uniform_reads(A: fx.Tensor, C: fx.Tensor, n: fx.Int32):
    """What one wave wrote to global memory, another reads at an address that is the same for all of its lanes."""
    t = fx.thread_idx.x
    C[t] = A[127 - t]
    fx.barrier()
    v = C[n]
    fx.barrier()
    C[t] = v + A[t]


def uniform_reads_in_numpy(a: Array, n: int) -> Array:
    return a[127 - n] + a


PATTERNS = [
    (last_tile_to_epilogue, last_tile_to_epilogue_in_numpy),
    (write_back_if_flag, write_back_if_flag_in_numpy),
    (nested_branches, nested_branches_in_numpy),
    (rotation, rotation_in_numpy),
    (double_buffering, double_buffering_in_numpy),
    (reduction_tree, reduction_tree_in_numpy),
    (transposes, transposes_in_numpy),
    (through_global_memory, through_global_memory_in_numpy),
    (with_bare_barriers, with_bare_barriers_in_numpy),
    (uniform_reads, uniform_reads_in_numpy),
]


@pytest.mark.checked("all")
@pytest.mark.slow
@pytest.mark.parametrize("opt_level", range(4))
@pytest.mark.parametrize(
    ("kernel", "in_numpy"), PATTERNS, ids=[reference.__name__.removesuffix("_in_numpy") for _, reference in PATTERNS]
)
@pytest.mark.diagonal(4)
def test_a_pattern_of_barriers_computes_what_numpy_does(
    kernel: flyc.kernel, in_numpy: Callable[[Array, int], Array], opt_level: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    @flyc.jit
    def launch(A: fx.Tensor, C: fx.Tensor, n: fx.Int32):
        kernel(A, C, n).launch(grid=1, block=THREADS)

    monkeypatch.setenv("FLYDSL_COMPILE_OPT_LEVEL", str(opt_level))
    a = torch.arange(THREADS, dtype=torch.float32)
    for n in (0, 1, 2, 3):
        c = torch.zeros(THREADS)
        launch(a, c, n)
        np.testing.assert_array_equal(c.numpy(), in_numpy(a.numpy(), n))


def test_waves_are_in_step_right_behind_a_barrier() -> None:
    """A sum and a product through the same words of LDS, with no barrier between reading one and writing the other.

    It is a race. The hardware gets through, because every wave reads before any of them has its number and goes on; so
    must the simulator.
    """
    waves = 4

    @flyc.kernel
    def kernel(A: fx.Tensor, C: fx.Tensor):
        lane, wave = fx.thread_idx.x % 64, fx.thread_idx.x // 64
        words = fx.SharedAllocator().allocate(fx.Array[fx.Float32, waves, 16]).peek().view(fx.make_layout(waves))
        value = A[wave]
        for _ in fx.range_constexpr(3):
            if lane == 0:
                words[wave] = value
            fx.gpu.barrier()
            value = words[0] + words[1] * words[2] + words[3]
        C[fx.thread_idx.x] = value

    launch = launcher_of(kernel, grid=1, block=64 * waves)
    a, c = torch.tensor([1.0, 2.0, 3.0, 4.0]), torch.zeros(64 * waves)
    launch(a, c)
    value = 1.0 + 2.0 * 3.0 + 4.0
    for _ in range(2):
        value = value + value * value + value
    assert torch.equal(c, torch.full_like(c, value))


@flyc.kernel
def sum_behind_a_lock_kernel(Total: fx.Tensor, Lock: fx.Tensor, A: fx.Tensor):
    """Whether a workgroup is the first one, all its threads read, and one of them changes right after."""
    t = fx.thread_idx.x
    lock = fx.get_iter(Lock)
    before = fx.Int32(1)
    while before == 1:
        if t == 0:
            before, _swapped = fx.atomic_cas(lock, 0, 1)
        before = fx.Int32(fx.rocdl.readfirstlane(before))
        if t >= 64:
            before = fx.Int32(0)
    fx.barrier()
    count = Lock[1]
    v = A[fx.block_idx.x, t]
    if count == 0:
        if t == 0:
            Lock[1] = fx.Int32(1)
    else:
        v = v + Total[t]
    Total[t] = v
    fx.barrier()
    if t == 0:
        fx.atomic_add(lock, -1)


add_behind_a_lock = launcher_of(sum_behind_a_lock_kernel, grid=6, block=THREADS)


def test_all_waves_read_what_a_lock_guards_before_one_changes_it() -> None:
    a = torch.arange(6 * THREADS, dtype=torch.float32).view(6, THREADS)
    total = torch.full((THREADS,), 1e6)  # which the first workgroup overwrites
    add_behind_a_lock(total, torch.zeros(2, dtype=torch.int32), a)
    assert total.tolist() == a.sum(0).tolist()
