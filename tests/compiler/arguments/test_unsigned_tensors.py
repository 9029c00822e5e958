"""Tensors of unsigned integers: elements keep their sign in global, shared and register memory."""

from __future__ import annotations

import pytest
import torch

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.errors import LayoutError
from tests.launchers import launcher_of

DTYPES = {torch.uint8: fx.Uint8, torch.uint16: fx.Uint16, torch.uint32: fx.Uint32, torch.uint64: fx.Uint64}


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_elements_are_not_negative(dtype: torch.dtype) -> None:
    """Each is above zero as a number, is halved by a logical shift, and compares without a sign."""

    @flyc.kernel
    def kernel(A: fx.Tensor, Half: fx.Tensor, Number: fx.Tensor):
        i = fx.thread_idx.x
        assert A.dtype is DTYPES[dtype]
        Half[i] = (A[i] >> 1).to(A.dtype)
        Number[i] = A[i].to(fx.Float64) + (A[i] > 1).to(fx.Float64)

    launch = launcher_of(kernel, grid=1, block=64)
    bits = DTYPES[dtype].width
    values = [(1 << bits) - 1 - i for i in range(63)] + [1]
    signed = [v - (1 << bits) if v >> (bits - 1) else v for v in values]
    a = torch.tensor(signed, dtype=getattr(torch, str(dtype).removeprefix("torch.u"))).view(dtype)
    half, number = torch.zeros(64, dtype=dtype), torch.zeros(64, dtype=torch.float64)
    launch(a, half, number)
    assert half.tolist() == [v >> 1 for v in values]
    assert number.tolist() == [float(v) + (v > 1) for v in values]


def test_copies_through_every_memory() -> None:
    """Bytes go by a buffer load to registers, by way of shared memory, and out as signed ones of the same bits."""

    @flyc.kernel
    def kernel(A: fx.Tensor, Out: fx.Tensor, Sum: fx.Tensor):
        i = fx.thread_idx.x
        tiles = [
            fx.slice(fx.logical_divide(T, fx.make_layout(4, 1)), (None, i))
            for T in (fx.rocdl.make_buffer_tensor(A), Out)
        ]
        registers = fx.make_rmem_tensor(4, fx.Uint8)
        fx.copy(fx.make_copy_atom(fx.rocdl.BufferCopy32b(), fx.Uint8), tiles[0], registers)
        shared = fx.SharedAllocator().allocate(fx.Array[fx.Uint8, 256, 16]).peek().view(fx.make_layout((4, 64)))
        move = fx.make_copy_atom(fx.UniversalCopy32b(), 8)
        fx.copy(move, registers, shared[None, i])
        fx.barrier()
        back = fx.make_fragment_like(shared[None, 0])
        fx.copy(move, shared[None, i ^ 1], back)
        fx.copy(move, back, tiles[1])
        Sum[i] = back.load().to(fx.Int32).reduce("add") + registers[0] // 2

    launch = launcher_of(kernel, grid=1, block=64)
    a = torch.randint(0, 256, (256,), generator=torch.Generator().manual_seed(0), dtype=torch.int16).to(torch.uint8)
    out, total = torch.zeros(256, dtype=torch.int8), torch.zeros(64, dtype=torch.int32)
    launch(a, out, total)
    swapped = a.reshape(32, 2, 4).flip(1)
    assert torch.equal(out, swapped.reshape(-1).view(torch.int8))
    assert torch.equal(total, swapped.reshape(64, 4).sum(1).int() + a.reshape(64, 4)[:, 0].int() // 2)


def test_the_type_says_it_and_other_widths_do_not_mix() -> None:
    @flyc.kernel
    def kernel(A: fx.Tensor):
        fx.copy(fx.make_copy_atom(fx.UniversalCopy16b(), 16), A, fx.make_rmem_tensor(1, fx.Float32))

    launch = launcher_of(kernel, grid=1, block=1)
    a = flyc.from_dlpack(torch.zeros(1, dtype=torch.uint16))
    with pytest.raises(LayoutError):
        launch(a)
    assert str(fx.MemRefType.get(fx.Uint16, fx.LayoutType.get(1, 1), "global")) == "!fly.memref<ui16, global, 1:1>"
