"""Atomic updates of global and shared memory and of buffer tensors, on the simulator."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import pytest
import torch

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl import atoms
from flydsl.errors import ArgumentError, CompileError, LayoutError
from flydsl.simulator import checking
from tests.launchers import launcher_of

pytestmark = pytest.mark.slow

SLOTS, THREADS = 8, 128


def collide(atom: Callable[[], Any], dtype: Any, data: torch.Tensor, start: torch.Tensor, kind: str) -> torch.Tensor:
    """Thread t updates slot t % SLOTS by data[t]; what the slots hold then."""

    @flyc.kernel
    def kernel(Data: fx.Tensor, Slots: fx.Tensor):
        t = fx.thread_idx.x
        register = fx.make_rmem_tensor(1, dtype)
        register[0] = Data[t].bitcast(dtype)
        slot = fx.make_layout(1, 1)
        update = fx.make_copy_atom(atom(), dtype)
        if kind == "shared":
            shared = fx.SharedAllocator().allocate(fx.Array[dtype, SLOTS, 16]).peek().ptr
            if t < SLOTS:
                (shared + t).store(Slots[t])
            fx.barrier()
            fx.copy(update, register, (shared + t % SLOTS).view(slot))
            fx.barrier()
            if t < SLOTS:
                Slots[t] = (shared + t).load()
        else:
            target = fx.rocdl.make_buffer_tensor(Slots) if kind == "buffer" else Slots
            fx.copy(update, register, fx.slice(fx.logical_divide(target, slot), (None, t % SLOTS)))

    launch = launcher_of(kernel, grid=1, block=THREADS)
    slots = start.clone()
    launch(data, slots)
    return slots


def by_slot(data: torch.Tensor) -> torch.Tensor:
    return data.reshape(-1, SLOTS)


@pytest.mark.parametrize("kind", ["global", "shared", "buffer"])
@pytest.mark.parametrize(
    "dtype",
    [torch.float32, torch.int32, *(pytest.param(d, marks=pytest.mark.slow) for d in (torch.int64, torch.float64))],
    ids=str,
)
@pytest.mark.diagonal(2)
def test_sums(kind: str, dtype: torch.dtype) -> None:
    data = torch.randint(-50, 50, (THREADS,), generator=torch.Generator().manual_seed(0)).to(dtype)
    kinds = {torch.float32: fx.Float32, torch.int32: fx.Int32, torch.int64: fx.Int64, torch.float64: fx.Float64}
    make = fx.rocdl.BufferAtomicAdd if kind == "buffer" else fx.UniversalAtomicAdd
    got = collide(lambda: make(kinds[dtype]), kinds[dtype], data, torch.ones(SLOTS, dtype=dtype), kind)
    assert torch.equal(got, 1 + by_slot(data).sum(0))


@pytest.mark.parametrize("kind", ["global", pytest.param("shared", marks=pytest.mark.slow), "buffer"])
@pytest.mark.parametrize("op", ["Max", "And", *(pytest.param(op, marks=pytest.mark.slow) for op in ("Min", "Or"))])
@pytest.mark.parametrize("signed", [True, False])
@pytest.mark.diagonal(2)
def test_integers(kind: str, op: str, signed: bool) -> None:
    data = torch.randint(-(2**31), 2**31, (THREADS,), generator=torch.Generator().manual_seed(1)).int()
    dtype = fx.Int32 if signed else fx.Uint32
    make = fx.rocdl.BufferAtomic if kind == "buffer" else fx.UniversalAtomic
    start = data[:SLOTS]
    got = collide(lambda: make(fx.AtomicOp[op], dtype), dtype, data, start, kind)
    bits = by_slot(data).long() if signed else by_slot(data).long() & 0xFFFFFFFF
    rows = list(bits)
    functions = {"Max": torch.maximum, "Min": torch.minimum, "And": torch.bitwise_and, "Or": torch.bitwise_or}
    expected = rows[0]
    for row in rows[1:]:
        expected = functions[op](expected, row)
    assert torch.equal(got, expected.int())


@pytest.mark.parametrize("dtype", [torch.float32, pytest.param(torch.float64, marks=pytest.mark.slow)], ids=str)
@pytest.mark.parametrize("op", ["Max", "Min"])
def test_extrema_of_floats(op: str, dtype: torch.dtype) -> None:
    data = torch.randn(THREADS, generator=torch.Generator().manual_seed(2), dtype=dtype)
    kind = fx.Float32 if dtype == torch.float32 else fx.Float64
    got = collide(lambda: getattr(fx, f"UniversalAtomic{op}")(kind), kind, data, data[:SLOTS], "global")
    assert torch.equal(got, by_slot(data).amax(0) if op == "Max" else by_slot(data).amin(0))


@pytest.mark.parametrize("kind", ["global", "buffer"])
def test_counting_wraps_at_the_operand(kind: str) -> None:
    make = fx.rocdl.BufferAtomic if kind == "buffer" else fx.UniversalAtomic
    limit = torch.full((THREADS,), 4, dtype=torch.int32)
    start = torch.arange(SLOTS, dtype=torch.int32)
    turns = THREADS // SLOTS
    up = collide(lambda: make(fx.AtomicOp.Inc, fx.Uint32), fx.Uint32, limit, start, kind)
    down = collide(lambda: make(fx.AtomicOp.Dec, fx.Uint32), fx.Uint32, limit, start, kind)
    expected = [start.tolist(), start.tolist()]
    for _ in range(turns):
        expected[0] = [0 if value >= 4 else value + 1 for value in expected[0]]
        expected[1] = [4 if value == 0 or value > 4 else value - 1 for value in expected[1]]
    assert [up.tolist(), down.tolist()] == expected


def test_half_precision_sums_go_through_a_loop_or_in_pairs() -> None:
    data = torch.ones(THREADS, dtype=torch.float16)
    start = torch.zeros(SLOTS, dtype=torch.float16)
    got = collide(lambda: fx.UniversalAtomicAdd(fx.Float16), fx.Float16, data, start, "global")
    assert torch.equal(got, start + THREADS // SLOTS)

    @flyc.kernel
    def kernel(A: fx.Tensor):
        pairs = fx.logical_divide(fx.rocdl.make_buffer_tensor(A), fx.make_layout(2, 1))
        register = fx.make_rmem_tensor(2, fx.Float16)
        register[0], register[1] = 1.0, 0.5
        fx.copy(
            fx.make_copy_atom(fx.rocdl.BufferAtomicPkAdd(fx.Float16), fx.Float16),
            register,
            fx.slice(pairs, (None, fx.thread_idx.x % 4)),
        )

    launch = launcher_of(kernel, grid=2, block=64)
    a = torch.zeros(8, dtype=torch.float16)
    launch(a)
    assert torch.equal(a, torch.tensor([32.0, 16.0] * 4, dtype=torch.float16))


def test_predicates_bounds_and_blocks() -> None:
    """Two workgroups add to one row; masked lanes, and those beyond the buffer's end, add nothing."""

    @flyc.kernel
    def kernel(A: fx.Tensor):
        t = fx.thread_idx.x
        one = fx.make_rmem_tensor(1, fx.Float32)
        one.fill(1)
        row = fx.logical_divide(fx.rocdl.make_buffer_tensor(A, max_size=False), fx.make_layout(1, 1))
        fx.copy(fx.make_copy_atom(fx.rocdl.BufferAtomicAdd(fx.Float32), fx.Float32), one, row[None, t], pred=t % 2 == 0)

    launch = launcher_of(kernel, grid=2, block=64)
    a = torch.zeros(40)
    launch(a)
    assert torch.equal(a, torch.tensor([2.0, 0.0] * 20))


def test_tickets_are_each_drawn_once() -> None:
    @flyc.kernel
    def kernel(Counter: fx.Pointer, Out: fx.Tensor):
        shared = fx.SharedAllocator().allocate(fx.Array[fx.Int32, 1, 16]).peek().ptr
        i = fx.block_idx.x * 64 + fx.thread_idx.x
        if fx.thread_idx.x == 0:
            shared.store(0)
        fx.barrier()
        Out[0, i] = fx.atomic_add(Counter, 2, syncscope="system")
        Out[1, i] = fx.atomic_add(shared, 1, syncscope="workgroup")

    launch = launcher_of(kernel, grid=4, block=64)
    counter, out = torch.zeros(1, dtype=torch.int32), torch.zeros(2, 256, dtype=torch.int32)
    launch(counter, out)
    assert counter.item() == 512
    assert torch.equal(out[0].sort().values, 2 * torch.arange(256, dtype=torch.int32))
    assert torch.equal(out[1].reshape(4, 64).sort().values, torch.arange(64, dtype=torch.int32).repeat(4, 1))


@pytest.mark.parametrize(
    ("scope", "flag"),
    [(fx.SyncScope.System, "system"), (fx.rocdl.SyncScope.Agent, ""), (fx.rocdl.SyncScope.Workgroup, "workgroup")],
)
def test_the_scope_of_an_atomic_copy(scope: str, flag: str) -> None:
    made = fx.UniversalAtomic(fx.AtomicOp.Add, fx.Int32, syncscope=scope)
    assert fx.UniversalAtomicAdd(fx.Int32, scope) == fx.UniversalAtomicAdd(fx.Int32, syncscope=scope) == made
    assert flag in str(made)
    assert str(made).count(",") == (3 if flag else 2)
    assert atoms.parse_copy_op(str(made)) == made
    data = torch.arange(THREADS, dtype=torch.int32)
    slots = collide(lambda: made, fx.Int32, data, torch.zeros(SLOTS, dtype=torch.int32), "global")
    assert torch.equal(slots, by_slot(data).sum(0, dtype=torch.int32))
    with pytest.raises(ArgumentError, match="no syncscope 'everybody'"):
        fx.UniversalAtomic(fx.AtomicOp.Add, fx.Int32, syncscope="everybody")


def test_functions_of_every_kind() -> None:
    @flyc.kernel
    def kernel(A: fx.Pointer, B: fx.Pointer):
        one = fx.Int32(1) << (fx.thread_idx.x % 31)
        fx.atomic_or(A, one)
        fx.atomic_and(A + 1, ~one)
        fx.atomic_max(A + 2, fx.thread_idx.x)
        fx.atomic_min(A + 3, fx.Uint32(fx.thread_idx.x) - 5)
        fx.atomic_max(B, fx.thread_idx.x.to(fx.Float32))
        fx.atomic_xchg(B + 1, 7.0)

    launch = launcher_of(kernel, grid=1, block=64)
    a, b = torch.tensor([0, -1, 5, -1], dtype=torch.int32), torch.zeros(2)
    launch(a, b)
    assert a.tolist() == [2**31 - 1, -(2**31), 63, 0]
    assert b.tolist() == [63.0, 7.0]


def test_wrong_programs(trace: Callable[..., Any]) -> None:
    def add(atom: Any, dtype: Any, source: Any, target: Any) -> None:
        fx.copy(fx.make_copy_atom(atom, dtype), source, target)

    one = fx.make_layout(1, 1)

    def register(dtype: Any) -> Any:
        return fx.make_rmem_tensor(1, dtype)

    def element(A: Any) -> Any:
        return fx.get_iter(A).view(one)

    add_f32 = fx.UniversalAtomicAdd(fx.Float32)
    with pytest.raises(LayoutError, match="elements of f32, the tensors have i32"):
        trace(lambda A, Out: add(add_f32, fx.Int32, register(fx.Int32), element(Out)))
    with pytest.raises(LayoutError, match="global or shared memory by registers"):
        trace(lambda A, Out: add(add_f32, fx.Float32, element(A), register(fx.Float32)))
    with pytest.raises(LayoutError, match="a buffer tensor by registers"):
        trace(lambda A, Out: add(fx.rocdl.BufferAtomicAdd(fx.Float32), fx.Float32, register(fx.Float32), element(A)))
    with pytest.raises(ArgumentError, match="UniversalAtomic takes types of 16, 32 or 64 bits, not Int8"):
        fx.UniversalAtomicAdd(fx.Int8)
    with pytest.raises(ArgumentError, match="is not an atomic operation"):
        fx.UniversalAtomic("add", fx.Int32)
    with pytest.raises(ArgumentError, match="no atomic_or of Float32"):
        trace(lambda A, Out: fx.atomic_or(fx.get_iter(A), 1.0))
    with pytest.raises(ArgumentError, match="atomic_add of Float32 to memory of Int32"):
        trace(lambda A, Out: fx.atomic_add(fx.get_iter(Out), A[0, 0]))
    with pytest.raises(ArgumentError, match="takes a pointer to global or shared memory"):
        trace(lambda A, Out: fx.atomic_add(A, 1.0))
    with pytest.raises(ArgumentError, match="no syncscope 'cluster'"):
        trace(lambda A, Out: fx.atomic_add(fx.get_iter(A), 1.0, syncscope="cluster"))


def test_an_atomic_that_the_target_lacks() -> None:
    @flyc.kernel
    def kernel(A: fx.Tensor):
        register = fx.make_rmem_tensor(2, fx.BFloat16)
        register.fill(fx.BFloat16(1))
        pairs = fx.logical_divide(fx.rocdl.make_buffer_tensor(A), fx.make_layout(2, 1))
        fx.copy(fx.make_copy_atom(fx.rocdl.BufferAtomicPkAdd(fx.BFloat16), fx.BFloat16), register, pairs[None, 0])

    launch = launcher_of(kernel, grid=1, block=1)
    a = torch.zeros(8, dtype=torch.bfloat16)
    with pytest.raises(CompileError, match=r"gfx942 has no .*bf16.*it is on gfx950"):
        launch(a)
    assert "buffer_atomic_pk_add_bf16" in launch.lower(a, arch="gfx950").artifact.isa


@pytest.mark.parametrize(("kind", "torch_kind"), [(fx.Float16, torch.float16), (fx.BFloat16, torch.bfloat16)])
def test_pairs_of_16_bits_at_a_pointer(kind: Any, torch_kind: torch.dtype) -> None:
    @flyc.kernel
    def kernel(Data: fx.Tensor, Slots: fx.Tensor):
        t = fx.thread_idx.x
        pair = fx.Vector.from_elements([Data[2 * t], Data[2 * t + 1]])
        fx.atomic_add(fx.get_iter(Slots) + t % SLOTS * 2, pair)

    launch = launcher_of(kernel, grid=1, block=THREADS)
    data = torch.arange(2 * THREADS).remainder(7).to(torch_kind)
    slots = torch.ones(2 * SLOTS, dtype=torch_kind)
    launch(data, slots)
    assert torch.equal(slots, 1 + data.view(-1, 2 * SLOTS).float().sum(0).to(torch_kind))
    assert "global_atomic_pk_add" in launch.lower(data, slots).artifact.isa


def test_pairs_that_no_instruction_takes() -> None:
    @flyc.kernel
    def kernel(Slots: fx.Tensor, name: fx.Constexpr[str], count: fx.Constexpr[int]):
        getattr(fx, name)(fx.get_iter(Slots), fx.Vector.filled(count, 1, fx.Float16))

    launch = launcher_of(kernel, grid=1, block=64)
    for name, count, kind in (("atomic_max", 2, torch.float16), ("atomic_add", 4, torch.float16),
                              ("atomic_add", 2, torch.bfloat16)):  # fmt: skip
        with pytest.raises(ArgumentError, match=f"there is no {name} of"):
            launch(torch.zeros(8, dtype=kind), name, count)


@pytest.mark.parametrize("backend", ["native", "lockstep", "checking"])
def test_the_last_of_an_odd_number_of_halves_in_shared_memory(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The update is a compare-and-swap of the dword, whose other half lies beyond what the workgroup has."""

    @flyc.kernel
    def kernel(Out: fx.Tensor):
        t, shared = fx.thread_idx.x, fx.SharedAllocator().allocate(fx.Array[fx.Float16, 3, 16]).peek().ptr
        if t < 3:
            shared[t] = fx.Float16(t)
        fx.barrier()
        fx.atomic_max(shared + 2, fx.Float16(t))
        fx.barrier()
        if t < 3:
            Out[t] = shared[t]

    if backend != "checking":
        monkeypatch.setenv("FLYDSL_SIMULATOR_BACKEND", backend)
    out = torch.zeros(3, dtype=torch.float16)
    with checking() if backend == "checking" else nullcontext():
        launcher_of(kernel, grid=1, block=70)(out)
    assert out.tolist() == [0, 1, 69]
