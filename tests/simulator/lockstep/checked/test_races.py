"""Programs that are right, of which no check complains, and programs that are not, of which each is found.

A wrong one marks its lines: "one" and "two" are the accesses that race, "both" a line that races with itself, "here"
what is wrong for another reason.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest
import torch

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.errors import SimulatorError
from flydsl.simulator import GlobalRace, LdsRace, MemoryFault, Race, UninitializedLds, checking
from tests.launchers import launcher_of

pytestmark = pytest.mark.slow

N = 512
Body = Callable[[Any, Any, Any], None]
WRONG: dict[str, tuple[Body, type[SimulatorError], int, int]] = {}
RIGHT: dict[str, tuple[Body, int, int]] = {}


def wrong(kind: type[SimulatorError], block: int = 64, grid: int = 1) -> Callable[[Body], Body]:
    def register(body: Body) -> Body:
        assert WRONG.setdefault(body.__name__, (body, kind, block, grid))[0] is body
        return body

    return register


def right(block: int = 64, grid: int = 1) -> Callable[[Body], Body]:
    def register(body: Body) -> Body:
        assert RIGHT.setdefault(body.__name__, (body, block, grid))[0] is body
        return body

    return register


def launch_of(body: Body, block: int, grid: int) -> Callable[[], tuple[torch.Tensor, torch.Tensor]]:
    """A holds 1, 2, ..., C and K (whole numbers) zeros; each has 512 elements. There are 4 KiB of shared memory."""

    traced = flyc.jit(body)  # its branches and loops are of the kernel

    @flyc.kernel
    def kernel(A: fx.Tensor, C: fx.Tensor, K: fx.Tensor):
        traced(A, C, K)

    run = launcher_of(kernel, grid=grid, block=block, smem=4096)

    def launch() -> tuple[torch.Tensor, torch.Tensor]:
        a, c, i = torch.arange(1.0, N + 1), torch.zeros(N), torch.zeros(N, dtype=torch.int32)
        run(a, c, i)
        return c, i

    return launch


def shared(length: int = N, dtype: Any = fx.Float32) -> Any:
    return fx.make_view(fx.get_dyn_shared(dtype), fx.make_layout(length, 1))


def at(tensor: Any, index: Any) -> Any:
    return fx.get_iter(tensor) + index


def thread() -> Any:
    return fx.block_idx.x * fx.block_dim.x + fx.thread_idx.x


# --- wrong: lanes of one wave


@wrong(LdsRace)
def histogram_without_atomics(A, C, K):
    S, t = shared(), fx.thread_idx.x
    S[t] = 0.0
    k = t % 4
    S[k] = S[k] + 1.0  # both
    C[t] = S[t]


@wrong(GlobalRace)
def histogram_in_global_memory(A, C, K):
    k = fx.thread_idx.x % 4
    C[k] = C[k] + 1.0  # both


@wrong(LdsRace)
def bins_of_data(A, C, K):
    S, t = shared(), fx.thread_idx.x
    S[t] = 0.0
    k = K[t]
    x = S[k]  # one
    S[k] = x + 2.0  # two
    C[t] = S[t]


@wrong(LdsRace)
def half_as_many_places(A, C, K):
    S, t = shared(), fx.thread_idx.x
    S[t // 2] = A[t]  # both
    C[t] = S[t // 2]


@wrong(GlobalRace)
def stride_that_wraps_around(A, C, K):
    t = fx.thread_idx.x
    C[t * 2 % 64] = A[t]  # both


# --- wrong: waves of one workgroup


@wrong(LdsRace, block=128)
def second_tile_overwrites_the_first(A, C, K):
    S, t = shared(), fx.thread_idx.x
    total = fx.Float32(0.0)
    for i in range(fx.Int32(2)):
        S[t] = A[i * 128 + t]  # one
        fx.barrier()
        total = total + S[127 - t]  # two
    C[t] = total


@wrong(LdsRace, block=256)
def reduction_that_forgets_a_barrier(A, C, K):
    S, t = shared(), fx.thread_idx.x
    S[t] = A[t]
    fx.barrier()
    if t < 128:
        S[t] = S[t] + S[t + 128]  # one
    if t < 64:
        S[t] = S[t] + S[t + 64]  # two
    C[t] = 1.0


@wrong(LdsRace, block=128)
def both_waves_write_their_sum_to_one_place(A, C, K):
    S, t = shared(), fx.thread_idx.x
    if t % 64 == 0:
        S[0] = A[t]  # both
    fx.barrier()
    C[t] = S[0]


@wrong(LdsRace, block=128)
def atomic_read_back_too_early(A, C, K):
    S, t = shared(N, fx.Int32), fx.thread_idx.x
    if t == 0:
        S[0] = fx.Int32(0)
    fx.barrier()
    fx.atomic_add(at(S, 0), 1)  # one
    K[t] = S[0]  # two


@wrong(LdsRace, block=128)
def counter_reset_too_late(A, C, K):
    S, t = shared(N, fx.Int32), fx.thread_idx.x
    if t == 64:
        S[0] = fx.Int32(0)  # one
    K[t] = fx.atomic_add(at(S, 0), 1)  # two


@wrong(GlobalRace, block=128)
def exchange_through_global_memory(A, C, K):
    t = fx.thread_idx.x
    C[t] = A[t]  # one
    C[t + 128] = C[127 - t]  # two


@wrong(GlobalRace, block=128)
def in_place_shift(A, C, K):
    t = fx.thread_idx.x
    A[t + 1] = A[t] * 2.0  # both


@wrong(LdsRace, block=128)
def one_of_two_buffers(A, C, K):
    """Two buffers, and one barrier too few for two."""
    S, t = shared(), fx.thread_idx.x
    total = fx.Float32(0.0)
    S[t] = A[t]  # one
    for i in range(fx.Int32(3)):
        total = total + S[i % 2 * 128 + 127 - t]  # two
        fx.barrier()
        S[(i + 1) % 2 * 128 + t] = A[t]  # one
    C[t] = total


# --- wrong: workgroups


@wrong(GlobalRace, grid=4)
def workgroups_add_without_an_atomic(A, C, K):
    t = fx.thread_idx.x
    C[t] = C[t] + A[fx.block_idx.x]  # both


@wrong(GlobalRace, grid=4)
def stencil_in_place(A, C, K):
    t = thread()
    if t > 0:
        A[t] = A[t - 1] + 1.0  # both


@wrong(GlobalRace, grid=4)
def reads_what_another_workgroup_writes(A, C, K):
    t = thread()
    C[t] = A[t]  # one
    A[t] = C[255 - t]  # two


@wrong(GlobalRace, grid=4)
def split_k_without_a_semaphore(A, C, K):
    t = fx.thread_idx.x
    C[thread()] = A[thread()]  # one
    if fx.block_idx.x == 3:
        A[t] = C[t] + C[t + 64] + C[t + 128]  # two


@wrong(GlobalRace, grid=4, block=128)
def last_workgroup_without_a_barrier(A, C, K):
    """Wave 0 tells that the workgroup is done, of which wave 1 may know nothing yet."""
    S, t = shared(N, fx.Int32), fx.thread_idx.x
    C[thread() % 512] = A[thread()]  # one
    if t == 0:
        S[0] = fx.atomic_add(at(K, 0), 1)
    fx.barrier()
    if S[0] == 3:
        A[t] = C[t] + C[t + 256]  # two


@wrong(GlobalRace, grid=4)
def another_counter_for_each(A, C, K):
    t = fx.thread_idx.x
    C[thread()] = A[thread()]  # one
    if t == 0:
        old = fx.atomic_add(at(K, fx.block_idx.x), 1)
        if old == 0:
            A[0] = C[64] + C[0]  # two


@wrong(GlobalRace, grid=4)
def plain_read_of_a_counter(A, C, K):
    fx.atomic_add(at(K, 0), 1)  # one
    K[1 + thread()] = K[0]  # two


@wrong(GlobalRace, grid=2)
def reset_by_the_first_workgroup(A, C, K):
    if thread() == 0:
        K[0] = fx.Int32(5)  # one
    K[1 + thread()] = fx.atomic_add(at(K, 0), 1)  # two


@wrong(GlobalRace, grid=600)
def last_of_many_batches(A, C, K):
    """Batches of workgroups run one after the other here, and race all the same."""
    if fx.block_idx.x % 599 == 0 and fx.thread_idx.x == 0:
        C[0] = A[fx.block_idx.x // 2]  # both


# --- wrong: for other reasons


@wrong(UninitializedLds)
def accumulates_into_what_nothing_wrote(A, C, K):
    S, t = shared(), fx.thread_idx.x
    S[t] = S[t] + A[t]  # here
    C[t] = S[t]


@wrong(UninitializedLds)
def atomic_on_what_nothing_wrote(A, C, K):
    S, t = shared(N, fx.Int32), fx.thread_idx.x
    fx.atomic_add(at(S, t), 1)  # here


@wrong(MemoryFault)
def past_shared_memory(A, C, K):
    S, t = shared(2048), fx.thread_idx.x
    S[t + 1000] = A[t]  # here
    C[t] = S[t + 1000]


def marked(body: Body) -> dict[str, list[int]]:
    """The lines of a body by the word that each is marked with."""
    lines, start = inspect.getsourcelines(body)
    found: dict[str, list[int]] = {}
    for number, line in enumerate(lines, start):
        for mark in ("one", "two", "both", "here"):
            if line.rstrip().endswith(f"# {mark}"):
                found.setdefault(mark, []).append(number)
    return found


@pytest.mark.parametrize("name", WRONG)
def test_wrong(name: str) -> None:
    body, kind, block, grid = WRONG[name]
    launch = launch_of(body, block, grid)
    with checking(), pytest.raises(kind) as caught:
        launch()
    error, marks = caught.value, marked(body)
    assert error.at is not None
    if "here" in marks:
        assert error.at.line in marks["here"]
        return
    assert isinstance(error, Race)
    assert error.other.at is not None
    lines = error.at.line, error.other.at.line
    either = [(one, two) for one in marks.get("one", ()) for two in marks.get("two", ())]
    either += [(line, line) for line in marks.get("both", ())]
    assert lines in either or lines[::-1] in either, error
    for part in (error.other.instruction, f"ISA line {error.other.isa_line}", f"lane {error.other.lane}", "value"):
        assert part in str(error)


# --- right: within a wave


@right()
def histogram_with_atomics(A, C, K):
    S, t = shared(N, fx.Int32), fx.thread_idx.x
    S[t] = fx.Int32(0)
    fx.barrier()
    fx.atomic_add(at(S, t % 4), 1)
    fx.barrier()
    K[t] = S[t]


@right()
def warp_synchronous_reverse(A, C, K):
    """The lanes of a wave go together: they need no barrier."""
    S, t = shared(), fx.thread_idx.x
    S[t] = A[t]
    C[t] = S[63 - t]


@right()
def warp_synchronous_tree(A, C, K):
    S, t = shared(), fx.thread_idx.x
    S[t] = A[t]
    for width in fx.range_constexpr(1, 7):
        if t < 64 >> width:
            S[t] = S[t] + S[t + (64 >> width)]
    C[t] = S[0]


@right()
def all_lanes_write_the_sum(A, C, K):
    x = A[fx.thread_idx.x]
    for step in fx.range_constexpr(6):
        x = x + fx.gpu.shuffle_xor(x, 1 << step, 64)
    C[0] = x


@right()
def redundant_lanes_in_shared_memory(A, C, K):
    S, k = shared(), fx.thread_idx.x % 16
    S[k] = A[k]
    C[k] = S[15 - k]


@right()
def only_one_lane_updates(A, C, K):
    S, t = shared(), fx.thread_idx.x
    S[t] = 0.0
    if t == 5:
        S[0] = S[0] + 1.0
    C[t] = S[t]


@right()
def flags_of_one_value(A, C, K):
    if A[fx.thread_idx.x] > 3.0:
        K[0] = fx.Int32(1)


# --- right: within a workgroup


@right(block=256, grid=2)
def block_reduction(A, C, K):
    S, t = shared(), fx.thread_idx.x
    S[t] = A[thread()]
    fx.barrier()
    for width in fx.range_constexpr(1, 9):
        if t < 256 >> width:
            S[t] = S[t] + S[t + (256 >> width)]
        fx.barrier()
    if t == 0:
        C[fx.block_idx.x] = S[0]


@right(block=256)
def block_scan(A, C, K):
    S, t = shared(), fx.thread_idx.x
    S[t] = A[t]
    fx.barrier()
    for step in fx.range_constexpr(8):
        x = S[t]
        if t >= 1 << step:
            x = x + S[t - (1 << step)]
        fx.barrier()
        S[t] = x
        fx.barrier()
    C[t] = S[t]


@right(block=128)
def double_buffer(A, C, K):
    S, t = shared(), fx.thread_idx.x
    total = fx.Float32(0.0)
    S[t] = A[t]
    for i in range(fx.Int32(3)):
        fx.barrier()
        total = total + S[i % 2 * 128 + 127 - t]
        S[(i + 1) % 2 * 128 + t] = A[(i + 1) * 128 + t]
    C[t] = total


@right(block=128)
def single_buffer_with_two_barriers(A, C, K):
    S, t = shared(), fx.thread_idx.x
    total = fx.Float32(0.0)
    for i in range(fx.Int32(4)):
        S[t] = A[i * 128 + t]
        fx.barrier()
        total = total + S[127 - t]
        fx.barrier()
    C[t] = total


@right(block=256)
def redundant_waves(A, C, K):
    """Every wave stores the same."""
    k = fx.thread_idx.x % 64
    C[k] = A[k] + 1.0


@right(block=256)
def redundant_waves_read_back(A, C, K):
    """Each wave reads what it has written itself, which the others write, too."""
    S, k = shared(), fx.thread_idx.x % 64
    S[k] = A[k]
    C[fx.thread_idx.x] = S[63 - k]


@right(block=256)
def stream_compaction(A, C, K):
    S, t = shared(N, fx.Int32), fx.thread_idx.x
    if t == 0:
        S[0] = fx.Int32(0)
    fx.barrier()
    if A[t] > 100.0:
        C[fx.atomic_add(at(S, 0), 1)] = A[t]
    fx.barrier()
    if t == 0:
        K[0] = S[0]


@right(block=128)
def exchange_through_global_memory_with_a_barrier(A, C, K):
    t = fx.thread_idx.x
    C[t] = A[t]
    fx.barrier()
    C[t + 128] = C[127 - t]


@right(block=128)
def each_wave_its_own_part(A, C, K):
    S, t = shared(), fx.thread_idx.x
    wave = t // 64
    S[t] = A[t]
    C[t] = S[wave * 64 + 63 - t % 64]


# --- right: workgroups


@right(block=128, grid=4)
def last_workgroup_sums_up(A, C, K):
    S, t = shared(N, fx.Int32), fx.thread_idx.x
    C[thread()] = A[thread()]
    fx.barrier()
    if t == 0:
        S[0] = fx.atomic_add(at(K, 0), 1)
    fx.barrier()
    if S[0] == 3:
        A[t] = C[t] + C[t + 128] + C[t + 256] + C[t + 384]


@right(block=64, grid=4)
def split_k_with_a_semaphore(A, C, K):
    """Two parts for each of two tiles; who comes last adds them and resets the semaphore."""
    t, tile = fx.thread_idx.x, fx.block_idx.x // 2
    C[thread()] = A[thread()]
    old = fx.atomic_add(at(K, tile), fx.Int32(0) + 1)
    if fx.gpu.shuffle_idx(old, 63, 64) == 127:
        C[256 + tile * 64 + t] = C[tile * 128 + t] + C[tile * 128 + 64 + t]
        K[tile] = fx.Int32(0)


@right(block=64, grid=4)
def message_that_may_have_come(A, C, K):
    """A reader that looks at the flag once, and goes on without the message where it has not come."""
    t = fx.thread_idx.x
    if fx.block_idx.x == 0:
        C[t] = A[t]
        fx.atomic_xchg(at(K, t), 1)
    seen = fx.atomic_add(at(K, t), 0)
    if fx.block_idx.x > 0 and seen == 1:
        C[thread()] = C[t] * 2.0


@right(block=64, grid=700)
def message_over_batches(A, C, K):
    """The last workgroups of many read what the first one wrote."""
    t = fx.thread_idx.x
    if fx.block_idx.x == 0:
        C[t] = A[t]
        fx.atomic_xchg(at(K, t), 1)
    seen = fx.atomic_add(at(K, t), 0)
    if fx.block_idx.x == 699 and seen == 1:
        C[t + 64] = C[t] * 2.0


@right(block=64, grid=4)
def tickets(A, C, K):
    C[fx.atomic_add(at(K, 0), 1)] = A[thread()]


@right(block=64, grid=4)
def workgroups_that_write_the_same(A, C, K):
    K[0] = fx.Int32(1)
    C[fx.thread_idx.x] = A[fx.thread_idx.x]


@right(block=64, grid=4)
def shared_operands(A, C, K):
    C[thread()] = A[thread()] + A[0] + A[fx.thread_idx.x]


@pytest.mark.parametrize("name", RIGHT)
def test_right(name: str) -> None:
    launch = launch_of(*RIGHT[name])
    with checking() as found:
        checked = launch()
    assert str(found) == ""
    if name not in ("stream_compaction", "tickets"):  # whose order is any
        for one, other in zip(checked, launch(), strict=True):
            assert torch.equal(one, other)
