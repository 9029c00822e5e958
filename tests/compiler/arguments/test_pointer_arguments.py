"""`fx.Pointer` parameters: the address of a tensor, without its sizes and strides."""

from __future__ import annotations

import weakref

import pytest
import torch

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.errors import ArgumentError
from flydsl.simulator.errors import MemoryFault
from tests.launchers import launcher_of


@flyc.kernel
def scale_kernel(Source: fx.Pointer, Target: fx.Pointer, n: fx.Int32):
    i = fx.block_idx.x * 64 + fx.thread_idx.x
    if i < n:
        row = (Target + i).view(fx.make_layout(1, 1))
        row[0] = (Source[i] * 2).to(row.dtype)


@flyc.jit
def scale(Source: fx.Pointer, Target: fx.Pointer, n: fx.Int32):
    scale_kernel(Source, Target, n).launch(grid=(n + 63) // 64, block=64)


@pytest.mark.parametrize("dtype", [torch.float32, torch.int16])
def test_a_pointer_parameter_takes_a_tensor(dtype: torch.dtype) -> None:
    source = torch.arange(100).to(dtype)
    target = torch.full((100,), 7, dtype=dtype)
    scale(source[10:], flyc.from_dlpack(target), 90)
    assert torch.equal(target, torch.cat([source[10:] * 2, torch.full((10,), 7, dtype=dtype)]))


def test_the_tensors_bounds_still_hold() -> None:
    with pytest.raises(Exception, match="Source"):
        scale(torch.zeros(64), torch.zeros(256), 256)


def test_tensors_and_pointers_inside_of_a_launcher() -> None:
    @flyc.jit
    def launch(A: fx.Tensor, n: fx.Int32):
        scale_kernel(fx.get_iter(A), A.iterator, n).launch(grid=1, block=64)

    a = torch.ones(64)
    launch(a, 64)
    assert torch.equal(a, torch.full((64,), 2.0))


def test_other_values_are_refused_as_pointers() -> None:
    with pytest.raises(ArgumentError, match="Source takes a tensor, whose address the kernel gets, not 5"):
        scale(5, torch.zeros(4), 4)

    @flyc.jit
    def launch(A: fx.Tensor):
        scale_kernel(A, A, 4).launch(grid=1, block=64)

    with pytest.raises(ArgumentError, match="Source takes a pointer"):
        launch(torch.zeros(4))


def test_addresses_as_integers() -> None:
    """A pointer made of an address leads to the same element, in global and in shared memory."""

    @flyc.kernel
    def kernel(A: fx.Tensor, Out: fx.Tensor):
        i = fx.thread_idx.x
        there = fx.inttoptr(fx.PointerType.get(fx.Float32, fx.AddressSpace.Global), fx.ptrtoint(fx.get_iter(A)) + i * 4)
        shared = fx.SharedAllocator().allocate(fx.Array[fx.Float32, 64, 16]).peek().ptr
        (shared + i).store(there.load())
        fx.barrier()
        kind = fx.PointerType.get(fx.T.f32, int(fx.AddressSpace.Shared), 4)
        Out[i] = fx.inttoptr(kind, fx.ptrtoint(shared) + (63 - i) * 4).load()

    launch = launcher_of(kernel, grid=1, block=64)
    a, out = torch.randn(64, generator=torch.Generator().manual_seed(0)), torch.zeros(64)
    launch(a, out)
    assert torch.equal(out, a.flip(0))


def test_register_tensors_by_their_type() -> None:
    kind = fx.MemRefType.get(fx.T.f32, fx.LayoutType.get(4, 1), fx.AddressSpace.Register)
    assert str(kind) == "!fly.memref<f32, register, 4:1>"

    @flyc.kernel
    def kernel(Out: fx.Tensor, wrong: fx.Constexpr[bool]):
        fragment = fx.memref_alloca(kind, fx.make_layout(8 if wrong else 4, 1))
        fragment.fill(3)
        Out[fx.thread_idx.x] = fragment[2]

    launch = launcher_of(kernel, grid=1, block=64)
    out = torch.zeros(64)
    launch(out, False)
    assert torch.equal(out, torch.full((64,), 3.0))
    with pytest.raises(ArgumentError, match="it is for registers, of that layout"):
        launch(out, True)


def test_compile_calls_and_gives_what_it_compiled() -> None:
    source, target = torch.arange(64.0), torch.zeros(64)
    compiled = flyc.compile(scale, source, target, 64)
    assert torch.equal(target, source * 2)
    assert compiled.kernels[0].name.startswith("scale_kernel")
    longer, other = torch.arange(100.0), torch.zeros(100)
    compiled(longer, other, 100)
    assert torch.equal(other, longer * 2)
    with pytest.raises(ArgumentError, match="this was compiled for"):
        compiled(longer.half(), other, 100)
    with pytest.raises(ArgumentError, match=r"compile takes a @flyc\.jit function"):
        flyc.compile(scale_kernel, source)


def test_proxies_of_objects_that_are_gone_do_not_matter() -> None:
    class Gone:
        pass

    gone = Gone()
    proxy = weakref.proxy(gone)
    tensor = torch.arange(4.0)
    del gone
    assert flyc.from_c_void_p(fx.Float32, tensor.data_ptr()) is not None
    assert type(proxy) is weakref.ProxyType


def test_what_was_compiled_takes_addresses_of_its_elements() -> None:
    source, target = torch.arange(64.0), torch.zeros(64)
    compiled = flyc.compile(scale, source, target, 64)
    other = torch.full((64,), 3.0)
    compiled(other.data_ptr(), target.data_ptr(), 64)
    assert torch.equal(target, other * 2)
    with pytest.raises(ArgumentError, match="no tensor has memory at 0x5"):
        compiled(5, target, 64)
    with pytest.raises(ArgumentError, match=r"not 5 \(int\)(?s:.*)flyc\.from_c_void_p"):
        scale(5, target, 64)  # which does not know the elements


def test_a_launcher_calculates_with_addresses() -> None:
    @flyc.kernel
    def at_address(start: fx.Int64):
        numbers = fx.inttoptr(fx.PointerType.get(fx.Float32, fx.AddressSpace.Global), start)
        numbers[fx.thread_idx.x] = fx.Float32(3)

    @flyc.jit
    def launch(A: fx.Pointer, n: fx.Int64):
        at_address(fx.ptrtoint(A) + n * 4).launch(grid=1, block=4)

    @flyc.jit
    def and_back(A: fx.Pointer, n: fx.Int64):
        start = fx.inttoptr(fx.PointerType.get(fx.Float32, fx.AddressSpace.Global), fx.ptrtoint(A))
        scale_kernel(start, start + n, 4).launch(grid=1, block=4)

    a = torch.zeros(16)
    launch(a, 4)
    assert a.tolist() == [0.0] * 4 + [3.0] * 4 + [0.0] * 8
    and_back(a[4:], 8)
    assert a.tolist() == [0.0] * 4 + [3.0] * 4 + [0.0] * 4 + [6.0] * 4
    with pytest.raises(MemoryFault, match="outside of A"):
        launch(a, 14)
