"""Loads, stores and atomics through a buffer resource, on the simulator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.errors import ArgumentError
from flydsl.expr import rocdl
from flydsl.expr.typing import T
from tests.launchers import launcher_of
from tests.messages import raises_saying

LANES = 64
FLAGS = 0x27000
Run = Callable[..., torch.Tensor]


def test_loads_of_every_width(wave: Run) -> None:
    a = torch.arange(256, dtype=torch.int32)

    def body(lane: Any, A: Any) -> list[Any]:
        rsrc = rocdl.make_buffer_rsrc(A, 0, 4 * 256, FLAGS)
        wide = rocdl.raw_ptr_buffer_load(fx.Vector.filled([4], 0, fx.Int32).value.type, rsrc, lane * 16, 0, 0)
        pair = rocdl.raw_ptr_buffer_load(T.i64, rsrc, lane * 8)
        return [
            *(wide[i] for i in range(4)),
            pair.to(fx.Int32),
            (pair >> 32).to(fx.Int32),
            rocdl.raw_ptr_buffer_load(rsrc, lane * 4, 16, 0),
            rocdl.raw_ptr_buffer_load(T.i16, rsrc, lane * 4).to(fx.Int32),
            rocdl.raw_ptr_buffer_load(T.i8, rsrc, lane * 4).to(fx.Int32),
            rocdl.raw_ptr_buffer_load(T.i32, rsrc, lane * 4 + 900),
        ]

    got = wave(body, a, dtype=torch.int32)
    assert torch.equal(got[:4], a.reshape(64, 4).T)
    assert torch.equal(got[4:6], a[:128].reshape(64, 2).T)
    assert torch.equal(got[6], a[4:68])
    assert torch.equal(got[7], a[:64])
    assert torch.equal(got[8], a[:64].to(torch.int8).int())
    assert torch.equal(got[9], torch.cat([a[225:], torch.zeros(33, dtype=torch.int32)]))


def atomics(dtype: torch.dtype, body: Callable[[Any, Any, Any], None]) -> torch.Tensor:
    """Run `body(resource, lane, A)` on 8 zeros, of which 4 lie in the resource; the numbers after it."""
    a = torch.zeros(8, dtype=dtype)

    @flyc.kernel
    def kernel(A: fx.Tensor):
        body(rocdl.make_buffer_rsrc(A, 0, 4 * a.element_size(), FLAGS), fx.thread_idx.x, A)

    launch = launcher_of(kernel, grid=2, block=LANES)
    launch(a)
    return a


@pytest.mark.slow
def test_atomics() -> None:
    def add(rsrc: Any, lane: Any, A: Any) -> None:
        rocdl.raw_ptr_buffer_atomic_fadd(1.5, rsrc, lane % 8 * 4, 0, 0)

    def add_pair(rsrc: Any, lane: Any, A: Any) -> None:
        ones = fx.Vector.from_elements([1.0, 2.0], fx.Float16)
        rocdl.raw_ptr_buffer_atomic_fadd(ones, rsrc, lane % 4 * 4, 0, 0)

    def larger(rsrc: Any, lane: Any, A: Any) -> None:
        rocdl.raw_ptr_buffer_atomic_smax(lane, rsrc, lane % 8 * 4)

    def smaller(rsrc: Any, lane: Any, A: Any) -> None:
        rocdl.raw_ptr_buffer_atomic_umin(lane + 100 - lane, rsrc, 0)

    def swap(rsrc: Any, lane: Any, A: Any) -> None:
        rocdl.raw_ptr_buffer_atomic_cmpswap(fx.Int32(7), fx.Int32(0), rsrc, 4)

    def larger_float(rsrc: Any, lane: Any, A: Any) -> None:
        rocdl.raw_ptr_buffer_atomic_fmax(lane.to(fx.Float64), rsrc, lane % 2 * 8)

    assert atomics(torch.float32, add).tolist() == [24.0] * 4 + [0.0] * 4
    assert atomics(torch.float16, add_pair).tolist() == [32.0, 64.0] * 2 + [0.0] * 4
    assert atomics(torch.int32, larger).tolist() == [56, 57, 58, 59, 0, 0, 0, 0]
    assert atomics(torch.int32, smaller).tolist() == [0] * 8
    assert atomics(torch.int32, swap).tolist() == [0, 7, 0, 0, 0, 0, 0, 0]
    assert atomics(torch.float64, larger_float).tolist() == [62.0, 63.0] + [0.0] * 6


def test_load_into_lds(compiled: Callable[..., str]) -> None:
    from mlir import ir

    from flydsl.compiler.kernel_function import CompilationContext
    from flydsl.utils.smem_allocator import SmemAllocator

    allocator = SmemAllocator(None, global_sym_name="direct")
    part = allocator.allocate_array(fx.Float32, LANES)
    a, out = torch.randn(LANES, generator=torch.Generator().manual_seed(0)), torch.zeros(LANES)

    @flyc.kernel
    def kernel(A: fx.Tensor, Out: fx.Tensor):
        lane, lds = fx.thread_idx.x, part(allocator.get_base())
        rsrc = rocdl.make_buffer_rsrc(A, 0, 4 * LANES, FLAGS)
        rocdl.raw_ptr_buffer_load_lds(rsrc, lds, 4, lane * 4)
        rocdl.s_waitcnt(0)
        fx.barrier()
        Out[lane] = lds.load([63 - lane])

    @flyc.jit
    def launch(A: fx.Tensor, Out: fx.Tensor):
        with ir.InsertionPoint(CompilationContext.get_current().gpu_module_body):
            allocator.finalize()
        kernel(A, Out).launch(grid=1, block=LANES)

    launch(a, out)
    assert torch.equal(out, a.flip(0))


def resource(A: Any) -> Any:
    return rocdl.make_buffer_rsrc(A, 0, 256, FLAGS)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda A: rocdl.raw_ptr_buffer_load(T.f32, A, 0, 0, 0), "it takes a buffer resource, not !"),
        (lambda A: rocdl.raw_ptr_buffer_load(T.f32, resource(A), A[0], 0, 0), "the offset of .* i32, not f32"),
        (lambda A: rocdl.raw_ptr_buffer_load(T.f32, resource(A), 0, 0, fx.thread_idx.x), "known at compile time"),
        (lambda A: rocdl.raw_ptr_buffer_load(T.i128, resource(A), 0, 0, 32), "aux .*: 32 is outside of 0 to 31"),
        (
            lambda A: rocdl.raw_ptr_buffer_store(fx.Vector.filled([5], 0, fx.Int32), resource(A), 0),
            "160 bits; an instruction moves 8, 16, 32, 64, 96, 128",
        ),
        (lambda A: rocdl.raw_ptr_buffer_atomic_fadd(3, resource(A), 0), "takes f32, .*, not i32"),
        (lambda A: rocdl.make_buffer_rsrc(3, 0, 256, FLAGS), "in global memory, not 3"),
        (lambda A: rocdl.make_buffer_rsrc(A, 0, 1.5, FLAGS), "num_records .* i64, not f32"),
    ],
)
def test_wrong_calls_are_refused_at_the_users_line(
    call: Callable[[Any], Any], says: str, compiled: Callable[..., str]
) -> None:
    with raises_saying(ArgumentError, says) as info:
        compiled(call)
    assert info.value.at.file == __file__


@pytest.mark.parametrize(
    ("arch", "word"),
    [("gfx90a", 0x27000), ("gfx942", 0x27000), ("gfx950", 0x27000), ("gfx1201", 0x31027000), ("gfx1250", 0x31027000)],
)
def test_a_resource_has_the_flags_of_its_architecture(arch: str, word: int) -> None:
    """On RDNA a format and the kind of bounds check are in the word that CDNA leaves at zero there."""

    @flyc.kernel
    def kernel(A: fx.Tensor, C: fx.Tensor):
        rsrc = fx.buffer_ops.create_buffer_resource(A, max_size=False)
        C[fx.thread_idx.x] = fx.buffer_ops.buffer_load(rsrc, fx.thread_idx.x, vec_width=1, dtype=fx.Float32)

    launch = launcher_of(kernel, grid=1, block=64)
    text = launch.lower(torch.zeros(64), torch.zeros(64), arch=arch).origin
    assert f"{word} : i32" in text
