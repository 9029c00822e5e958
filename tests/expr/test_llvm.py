"""Loads, stores, exchanges and fences with LLVM's memory orderings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl._mlir import ir
from flydsl._mlir.dialects import llvm
from flydsl.errors import ArgumentError
from tests.launchers import launcher_of


@flyc.kernel
def handover_kernel(data: fx.Tensor, flag: fx.Tensor, out: fx.Tensor):
    """Workgroup 0 writes data and raises a flag; workgroup 1 waits for it."""
    at, raised = fx.get_iter(data), fx.get_iter(flag)
    if fx.block_idx.x == 0:
        fx.generic_store(at, fx.Float32x4([1.0, 2.0, 3.0, 4.0]), nontemporal=True)
        fx.memory_fence(syncscope=fx.rocdl.SyncScope.Agent, ordering=fx.AtomicOrdering.Release)
        fx.generic_store(raised, 1, memory_order=fx.AtomicOrdering.Monotonic, syncscope="agent")
    else:
        seen = fx.Int32(0)
        while seen == 0:
            seen = fx.generic_load(raised, memory_order=fx.AtomicOrdering.Acquire, syncscope=fx.rocdl.SyncScope.Agent)
        four = fx.generic_load(at, dtype=fx.Float32, count=4)
        for i in fx.range_constexpr(4):
            out[i] = four[i] * 2.0
        out[4] = fx.generic_load(at + 3, volatile=True)


handover = launcher_of(handover_kernel, grid=2, block=1)


def test_a_flag_hands_data_over() -> None:
    out = torch.zeros(5)
    handover(torch.zeros(4), torch.zeros(1, dtype=torch.int32), out)
    assert out.tolist() == [2.0, 4.0, 6.0, 8.0, 4.0]


@flyc.kernel
def update_kernel(numbers: fx.Tensor, floats: fx.Tensor, before: fx.Tensor):
    place = fx.get_iter(numbers)
    before[0], swapped = fx.atomic_cas(place, 10, 20)
    before[1] = swapped.select(fx.Int32(1), fx.Int32(0))
    before[2], swapped = fx.atomic_cas(place + 1, 10, 20, success_ordering=fx.AtomicOrdering.AcqRel, weak=True)
    before[3] = swapped.select(fx.Int32(1), fx.Int32(0))
    before[4] = fx.atomic_sub(place + 2, 3, syncscope=None, ordering=fx.AtomicOrdering.SeqCst)
    fx.atomic_fmax(fx.get_iter(floats), 2.5)
    fx.atomic_fmin(fx.get_iter(floats) + 1, -2.5, is_positive=False, syncscope="agent")
    fx.atomic_sub(fx.get_iter(floats) + 2, 0.5)


update = launcher_of(update_kernel, grid=1, block=1)


def test_exchanges_and_differences() -> None:
    numbers, floats = torch.tensor([10, 11, 12], dtype=torch.int32), torch.tensor([1.0, 1.0, 1.0])
    before = torch.zeros(5, dtype=torch.int32)
    update(numbers, floats, before)
    assert before.tolist() == [10, 1, 11, 0, 12]
    assert numbers.tolist() == [20, 11, 9]
    assert floats.tolist() == [2.5, -2.5, 0.5]


def test_wrong_orders_are_refused(trace: Callable[..., Any]) -> None:
    wrong: list[tuple[Callable[[Any], Any], str]] = [
        (lambda p: fx.generic_load(p, memory_order=fx.AtomicOrdering.Release), "a load with ordering"),
        (lambda p: fx.generic_store(p, 1.0, memory_order="acquire"), "a store with ordering 'acquire'"),
        (lambda p: fx.generic_load(p, syncscope="agent"), "an access that is not atomic"),
        (
            lambda p: fx.generic_load(p, count=2, memory_order="monotonic"),
            "an atomic load takes one number of 8, 16, 32 or 64 bits, not vector",
        ),
        (lambda p: fx.memory_fence(ordering=fx.AtomicOrdering.Monotonic), "memory_fence with ordering"),
        (lambda p: fx.memory_fence(syncscope="planet"), "no syncscope 'planet'"),
        (lambda p: fx.atomic_cas(p, 1.0, 2.0), "atomic_cas takes integers of 32 and 64 bits, not Float32"),
        (lambda p: fx.generic_load(3), "takes a pointer to global or shared memory"),
    ]
    for call, message in wrong:
        with pytest.raises(ArgumentError, match=message) as raised:
            trace(lambda A, Out, call=call: call(fx.get_iter(A)))
        assert raised.value.at.file == __file__


def test_vector_types_have_names() -> None:
    assert fx.Float32x4 is fx.VectorAlias(fx.Float32, 4)
    assert fx.Float32x4.__name__ == "Float32x4"
    assert str(fx.Int8x16.ir_type) == "vector<16xi8>"
    assert str(fx.VectorAlias(fx.Int32, (2, 2)).ir_type) == "vector<4xi32>"
    with pytest.raises(AttributeError):
        _ = fx.Float32x3
    with pytest.raises(ArgumentError, match="VectorAlias of 0 lanes"):
        fx.VectorAlias(fx.Float32, 0)


@flyc.kernel(known_block_size=[64, 2, 1])
def facts_kernel(words: fx.Tensor, out: fx.Tensor):
    packed = fx.ptr_load(fx.get_iter(words), fx.Uint32x4)
    doubled = fx.Uint32x4(packed + packed)
    assert isinstance(doubled, fx.Uint32x4)
    assert not isinstance(doubled, fx.Int32x4)
    out[0] = (doubled[3] >> 1).to(fx.Int64)
    x, y, z = fx.known_block_size()
    out[1] = x + y + z
    out[2] = fx.num_warp_threads()
    out[3] = fx.ceildiv(fx.Int32(fx.thread_idx.x) * 0 - 7, 2).to(fx.Int64)
    fx.rocdl.s_waitcnt(vmcnt=0, lgkmcnt=3)
    fx.rocdl.asyncmark()
    fx.rocdl.wait_asyncmark(2)


facts = launcher_of(facts_kernel, grid=1, block=(64, 2, 1))


def test_facts_of_the_target_and_waits() -> None:
    out = torch.zeros(4, dtype=torch.int64)
    facts(torch.tensor([1, 2, 3, -1], dtype=torch.int32).view(torch.uint32), out)
    assert out.tolist() == [0x7FFFFFFF, 67, 64, -3]
    isa = facts.lower(torch.zeros(4, dtype=torch.uint32), out).artifact.isa
    assert "s_waitcnt vmcnt(0) lgkmcnt(3)" in isa


def test_waits_are_checked(trace: Callable[..., Any]) -> None:
    with pytest.raises(ArgumentError, match="a bit field and counters"):
        trace(lambda A, Out: fx.rocdl.s_waitcnt(0, vmcnt=1))
    with pytest.raises(ArgumentError, match="known at compile time"):
        trace(lambda A, Out: fx.rocdl.wait_asyncmark(fx.Int32(fx.thread_idx.x)))


def test_a_pointer_as_llvms(trace: Callable[..., Any]) -> None:
    def body(a: Any, out: Any) -> None:
        pointer = fx.get_iter(a)
        assert str(pointer.llvm_ptr.type) == str(fx.to_llvm_ptr(pointer).type) == "!llvm.ptr<1>"
        with pytest.raises(ArgumentError, match="registers and buffers have none"):
            fx.get_iter(fx.make_rmem_tensor(4, fx.Float32)).llvm_ptr  # noqa: B018 - a property that refuses

    trace(body)


def test_pointers_of_llvm_itself() -> None:
    """They name no type of elements: the value's, or the one that is asked for, is what memory is taken to hold."""

    @flyc.kernel
    def kernel(address: fx.Int64, Out: fx.Tensor):
        pointer = llvm.IntToPtrOp(ir.Type.parse("!llvm.ptr<1>"), address.ir_value()).result
        assert fx.ptrtoint(pointer).dtype is fx.Int64
        Out[fx.thread_idx.x] = fx.atomic_add(pointer, 2)
        fx.barrier()
        if fx.thread_idx.x == 0:
            Out[64] = fx.generic_load(pointer, dtype=fx.Int32)
            fx.generic_store(fx.to_llvm_ptr(pointer), fx.Float32(1.5))
            found, _ = fx.atomic_cas(pointer, fx.Uint32(7), fx.Uint32(8))
            Out[65] = found.bitcast(fx.Int32)

    memory, out = torch.tensor([3], dtype=torch.int32), torch.zeros(66, dtype=torch.int32)
    launcher_of(kernel, grid=1, block=64)(memory.data_ptr(), out)
    assert sorted(out[:64].tolist()) == list(range(3, 131, 2))
    assert out[64] == 131
    assert out[65:].view(torch.float32) == memory.view(torch.float32) == 1.5


def test_a_pointer_of_llvm_without_a_type() -> None:
    @flyc.kernel
    def kernel(address: fx.Int64):
        fx.generic_load(llvm.IntToPtrOp(ir.Type.parse("!llvm.ptr<1>"), address.ir_value()).result)

    with pytest.raises(ArgumentError, match=r"generic_load of !llvm\.ptr<1>, which names no type"):
        launcher_of(kernel, grid=1, block=64)(0)


@flyc.kernel
def global_loads_kernel(numbers: fx.Tensor, scalars: fx.Tensor, vectors: fx.Tensor, masked: fx.Tensor, n: fx.Int32):
    t = fx.thread_idx.x
    scalars[t] = fx.global_load(fx.Int32, numbers, elem_offset=t * 3 + 1, alignment=4)
    four = fx.global_load(fx.Int32x4, numbers, byte_offset=t * 16, alignment=16)
    place = t if t < n else t + 1000000  # far behind the tensor: the threads that are masked must not read
    masked[t, 0] = fx.global_load(fx.Int32, numbers, elem_offset=place, mask=t < n, other=-77)
    two = fx.global_load(fx.Int16x2, fx.get_iter(numbers), byte_offset=place * 4, mask=t < n)
    masked[t, 1] = fx.Int32(two[0]) + two[1]
    for i in fx.range_constexpr(4):
        vectors[t * 4 + i] = four[i]


global_loads = launcher_of(global_loads_kernel, grid=1, block=8)


def test_a_global_load_takes_offsets_and_a_mask() -> None:
    numbers = torch.arange(32, dtype=torch.int32) * 13 + 7
    scalars, vectors, masked = (torch.zeros(shape, dtype=torch.int32) for shape in (8, 32, (8, 2)))
    global_loads(numbers, scalars, vectors, masked, 5)
    assert torch.equal(scalars, numbers[1:25:3])
    assert torch.equal(vectors, numbers)
    assert masked[:, 0].tolist() == [*numbers[:5].tolist(), -77, -77, -77]
    assert masked[:, 1].tolist() == [*numbers[:5].tolist(), 0, 0, 0]


@pytest.mark.parametrize(
    ("load", "says"),
    [
        (lambda x: fx.global_load(fx.Int32, x), "takes one offset"),
        (lambda x: fx.global_load(fx.Int16, x, elem_offset=1), "elem_offset= of i16 in a tensor of i32"),
        (lambda x: fx.global_load(fx.Int32, x, elem_offset=1, other=2), "other= without mask="),
        (lambda x: fx.global_load(fx.Int32, 3, elem_offset=1), "a tensor in global memory"),
        (
            lambda x: fx.global_load(fx.Int32x2, x, elem_offset=1, mask=fx.Boolean(True), other=fx.Int32x4([0] * 4)),
            "other is vector<4xi32>",
        ),
    ],
)
def test_global_loads_that_mean_nothing_are_refused(load: Callable[[Any], Any], says: str) -> None:
    def kernel(x: fx.Tensor):
        load(x)

    with pytest.raises(ArgumentError, match=says):
        launcher_of(flyc.kernel(kernel), grid=1, block=1)(torch.zeros(4, dtype=torch.int32))
