"""Copies from buffer tensors straight into LDS, and buffer tensors of a size of their own."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import pytest
import torch

import flydsl
import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.atoms.buffer_copy import resource_flags
from flydsl.errors import ArgumentError, CompileError, LayoutError
from flydsl.expr import rocdl
from tests.launchers import launcher_of

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("dtype", [torch.float32, torch.int32], ids=str)
def test_a_tile_by_way_of_lds(dtype: torch.dtype) -> None:
    """Two waves load rows of 64 elements into LDS, with an offset that all lanes share; the block reverses them."""

    @flyc.kernel
    def kernel(A: fx.Tensor, Out: fx.Tensor, first: fx.Int32):
        t = fx.thread_idx.x
        shared = fx.SharedAllocator().allocate(fx.Array[A.dtype, 256, 16]).peek().view(fx.make_layout((128, 2)))
        to_lds = fx.make_copy_atom(fx.rocdl.BufferCopyLDS32b(), A.dtype)
        one = fx.make_layout(1, 1)
        elements = fx.logical_divide(fx.rocdl.make_buffer_tensor(A), one)
        for half in fx.range_constexpr(2):
            place = fx.logical_divide(shared[None, half], one)[None, t]
            fx.copy(to_lds, elements[None, half * 128 + t], place, soffset=first)
        rocdl.s_waitcnt(0)
        fx.barrier()
        Out[t] = shared[127 - t, 0]
        Out[t + 128] = shared[127 - t, 1]

    launch = launcher_of(kernel, grid=1, block=128)
    a = torch.arange(300).to(dtype)
    out = torch.zeros(256, dtype=dtype)
    launch(a, out, 40)
    assert torch.equal(out, torch.cat([a[40:168].flip(0), a[168:296].flip(0)]))
    isa = launch.lower(a, out, 40).artifact.isa
    assert "buffer_load_dword" in isa
    assert " lds" in isa


def test_which_there_are(trace: Callable[..., Any]) -> None:
    with pytest.raises(ArgumentError, match="BufferCopyLDS of 64 bits does not exist"):
        fx.rocdl.BufferCopyLDS64b()
    atom = fx.make_copy_atom(fx.rocdl.BufferCopyLDS32b(), fx.Float32)
    one = fx.make_layout(1, 1)
    with pytest.raises(LayoutError, match="from a buffer tensor to shared memory"):
        trace(lambda A, Out: fx.copy(atom, fx.get_iter(A).view(one), fx.make_rmem_tensor(1, fx.Float32)))

    @flyc.kernel
    def kernel(A: fx.Tensor):
        shared = fx.SharedAllocator().allocate(fx.Array[fx.Float32, 256, 16]).peek().view(fx.make_layout((4, 64)))
        four = fx.logical_divide(fx.rocdl.make_buffer_tensor(A), fx.make_layout(4, 1))
        t = fx.thread_idx.x
        fx.copy(fx.make_copy_atom(fx.rocdl.BufferCopyLDS128b(), fx.Float32), four[None, t], shared[None, t])
        rocdl.s_waitcnt(0)
        A[t] = shared[0, t]

    launch = launcher_of(kernel, grid=1, block=64)
    a = torch.zeros(256)
    with pytest.raises(CompileError, match=r"gfx942 has no .*buffer_copy_lds<128>; it is on gfx950"):
        launch(a)
    assert "buffer_load_dwordx4" in launch.lower(a, arch="gfx950").artifact.isa


@pytest.mark.parametrize("known", [True, False], ids=["constant", "runtime"])
def test_a_buffer_of_another_size(known: bool) -> None:
    """Elements beyond the size read as zero and are not written."""

    @flyc.kernel
    def kernel(A: fx.Tensor, Out: fx.Tensor, size: fx.Int32):
        bytes_ = 40 if known else size * 4
        copy = fx.make_copy_atom(fx.rocdl.BufferCopy32b(), fx.Float32)
        tensors = [fx.rocdl.make_buffer_tensor(T, num_records_bytes=bytes_) for T in (A, Out)]
        source, target = (fx.logical_divide(T, fx.make_layout(1, 1))[None, fx.thread_idx.x] for T in tensors)
        register = fx.make_rmem_tensor(1, fx.Float32)
        fx.copy(copy, source, register)
        register[0] = register[0] + 1
        fx.copy(copy, register, target)

    launch = launcher_of(kernel, grid=1, block=64)
    a, out = torch.arange(64.0), torch.zeros(64)
    launch(a, out, 10)
    assert torch.equal(out, torch.cat([a[:10] + 1, torch.zeros(54)]))


def test_cache_modifiers_are_in_the_instructions() -> None:
    @flyc.kernel
    def kernel(A: fx.Tensor, Out: fx.Tensor):
        source, target = (
            fx.logical_divide(fx.rocdl.make_buffer_tensor(T), fx.make_layout(4, 1))[None, fx.thread_idx.x]
            for T in (A, Out)
        )
        register = fx.make_rmem_tensor(4, fx.Float32)
        fx.copy(fx.make_copy_atom(fx.rocdl.BufferCopy128b(2), fx.Float32), source, register)
        fx.copy(fx.make_copy_atom(fx.rocdl.BufferCopy(128, cache_modifier=1), fx.Float32), register, target)

    launch = launcher_of(kernel, grid=1, block=64)
    a, out = torch.arange(256.0), torch.zeros(256)
    launch(a, out)
    assert torch.equal(out, a)
    lines = launch.lower(a, out).artifact.isa.splitlines()
    load, store = (next(line for line in lines if f"buffer_{name}_dwordx4" in line) for name in ("load", "store"))
    assert load.split(";")[0].rstrip().endswith(" nt")
    assert store.split(";")[0].rstrip().endswith(" sc0")


@pytest.mark.parametrize(
    ("arch", "load"), [("gfx1100", "b128"), ("gfx1201", "b128"), ("gfx1250", "b128"), ("gfx950", "dwordx4")]
)
def test_buffer_tensors_of_every_architecture(arch: str, load: str) -> None:
    """The resource has the flags of its architecture, and the copies are its buffer instructions."""

    @flyc.kernel
    def kernel(A: fx.Tensor, Out: fx.Tensor):
        copy = fx.make_copy_atom(fx.rocdl.BufferCopy128b(), fx.Float32)
        registers = fx.make_rmem_tensor(4, fx.Float32)
        source, target = (fx.logical_divide(fx.rocdl.make_buffer_tensor(t, max_size=False), 4) for t in (A, Out))
        fx.copy(copy, source[None, fx.thread_idx.x], registers)
        fx.copy(copy, registers, target[None, fx.thread_idx.x])

    launch = launcher_of(kernel, grid=1, block=32)
    artifact = launch.lower(torch.zeros(128), torch.zeros(128), arch=arch).artifact
    assert f"buffer_load_{load}" in artifact.isa
    assert f"buffer_store_{load}" in artifact.isa
    assert f"i32 {resource_flags(arch)}" in artifact.code.llvm_ir


def test_transposing_reads_from_lds() -> None:
    @flyc.kernel
    def kernel(Out: fx.Tensor):
        lds = fx.SharedAllocator().allocate(fx.Array[fx.Float16, 1024, 16]).peek().view(fx.make_layout((4, 256)))
        registers = fx.make_rmem_tensor(4, fx.Float16)
        fx.copy(
            fx.make_copy_atom(fx.rocdl.cdna4.LDSReadTrans16_64b(), fx.Float16), lds[None, fx.thread_idx.x], registers
        )
        place = fx.logical_divide(Out, 4)[None, fx.thread_idx.x]
        fx.copy(fx.make_copy_atom(fx.UniversalCopy64b(), fx.Float16), registers, place)

    launch = launcher_of(kernel, grid=1, block=64)
    out = torch.zeros(256, dtype=torch.float16)
    assert "ds_read_b64_tr_b16" in launch.lower(out, arch="gfx950").artifact.isa
    with pytest.raises(CompileError, match=r"gfx942 has no .*lds_read_trans.*; it is on gfx950"):
        _ = launch.lower(out).artifact
    with pytest.raises(ArgumentError, match="no transposing read of 16-bit elements in 96 bits"):
        fx.rocdl.cdna4.LDSReadTrans(16, 96)


@flyc.kernel
def async_kernel(source: fx.Tensor, out: fx.Tensor):
    lane = fx.thread_idx.x
    shared = fx.SharedAllocator().allocate(fx.Array[fx.Float32, 512, 16]).peek()
    halves = [fx.make_view(shared.ptr + 256 * half, fx.make_layout((4, 64), (1, 4))) for half in (0, 1)]
    buffer = fx.rocdl.make_buffer_tensor(source)
    tiles = fx.logical_divide(buffer, fx.make_layout(4, 1)), fx.logical_divide(source, fx.make_layout(4, 1))
    atoms = fx.rocdl.cdna4.BufferLoadAsyncLDS128b(), fx.rocdl.cdna4.GlobalLoadAsyncLDS128b()
    for half, (tile, atom) in enumerate(zip(tiles, atoms, strict=True)):
        fx.copy(fx.make_copy_atom(atom, fx.Float32), tile[None, lane], halves[half][None, lane])
        fx.rocdl.asyncmark()
    fx.rocdl.wait_asyncmark(0)
    fx.barrier()
    for i in fx.range_constexpr(4):
        out[lane * 4 + i] = halves[0][3 - i, lane] * 10.0 + halves[1][i, lane]


async_copy = launcher_of(async_kernel, grid=1, block=64)


def test_asynchronous_copies_into_lds_of_cdna_4(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLYDSL_GPU_ARCH", "gfx950")
    source, out = torch.randn(256), torch.zeros(256)
    async_copy(source, out)
    assert torch.equal(out, source.view(64, 4).flip(1).flatten() * 10.0 + source)
    isa = async_copy.lower(source, out).artifact.isa
    assert "buffer_load_dwordx4" in isa
    assert "global_load_lds_dwordx4" in isa


@flyc.kernel
def staged_kernel(source: fx.Tensor, out: fx.Tensor, atom: fx.Constexpr, other: fx.Constexpr):
    """Two copies are under way; the first half of LDS is read while the second one may still be."""
    lane = fx.thread_idx.x
    shared = fx.SharedAllocator().allocate(fx.Array[fx.Float32, 512, 16]).peek()
    halves = [fx.make_view(shared.ptr + 256 * half, fx.make_layout((4, 64), (1, 4))) for half in (0, 1)]
    tiles = fx.logical_divide(fx.rocdl.make_buffer_tensor(source), fx.make_layout(4, 1))
    for half, copy in enumerate((atom, other)):
        fx.copy(fx.make_copy_atom(copy, fx.Float32), tiles[None, lane + 64 * half], halves[half][None, lane])
    for half in fx.range_constexpr(2):
        fx.rocdl.s_waitcnt(vmcnt=1 - half)
        rocdl.s_barrier()
        for i in fx.range_constexpr(4):
            out[half, lane * 4 + i] = halves[half][3 - i, lane]


staged = launcher_of(staged_kernel, grid=1, block=64)


@pytest.mark.parametrize(
    ("atoms", "waits_itself"),
    [
        ((fx.rocdl.cdna4.BufferLoadAsyncLDS128b(), fx.rocdl.cdna4.BufferLoadAsyncLDS128b()), True),
        ((fx.rocdl.BufferCopyLDS128b(), fx.rocdl.BufferCopyLDS128b()), False),
        ((fx.rocdl.cdna4.BufferLoadAsyncLDS128b(), fx.rocdl.BufferCopyLDS128b()), False),
    ],
    ids=["asynchronous", "waited for", "both"],
)
def test_a_program_waits_itself_for_asynchronous_copies(
    atoms: Any, waits_itself: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """LLVM adds no waits for them, as FlyDSL's does not: only the copy that is read next has to be there."""
    monkeypatch.setenv("FLYDSL_GPU_ARCH", "gfx950")
    source, out = torch.randn(512), torch.zeros(2, 256)
    staged(source, out, *atoms)
    assert torch.equal(out, source.view(2, 64, 4).flip(2).view(2, 256))
    before_reads = staged.lower(source, out, *atoms).artifact.isa.partition("ds_read")[0]
    assert "vmcnt(1)" in before_reads
    assert ("vmcnt(0)" not in before_reads) == waits_itself


@flyc.kernel
def scalar_kernel(source: fx.Tensor, out: fx.Tensor):
    whole = fx.get_iter(fx.rocdl.make_buffer_tensor(source, max_size=False))
    four = fx.rocdl.s_buffer_load(whole, 4, count=4)
    out[0] = fx.rocdl.s_buffer_load(whole, fx.block_idx.x + 3)
    out[1], out[2] = four[0], four[3]
    out[3] = fx.rocdl.s_buffer_load(whole, 100)
    two = fx.rocdl.get_buffer_rsrc(fx.rocdl.make_buffer_ptr(fx.get_iter(source), 8))
    for i in fx.range_constexpr(2):
        out[4 + i] = fx.Int32(fx.rocdl.raw_ptr_buffer_load(fx.T.i32, two, fx.Int32(4 + 4 * i), fx.Int32(0), 0))


scalar_reads = launcher_of(scalar_kernel, grid=1, block=64)


def test_scalar_reads_and_the_resource_of_a_buffer() -> None:
    out = torch.zeros(6, dtype=torch.int32)
    scalar_reads(torch.arange(10, 20, dtype=torch.int32), out)
    assert out.tolist() == [13, 14, 17, 0, 11, 0]


@flyc.kernel
def element_kernel(source: fx.Tensor, out: fx.Tensor, wide: fx.Tensor):
    i = fx.thread_idx.x
    reads, writes = (
        fx.rocdl.make_buffer_tensor(source, max_size=False),
        fx.rocdl.make_buffer_tensor(out, max_size=False),
    )
    writes[i, 1] = reads[i, 0] + 1.0
    writes[i + 100, 0] = 5.0  # beyond the end: dropped
    wide[i] = fx.rocdl.make_buffer_tensor(wide)[i + 4] * 2


elements = launcher_of(element_kernel, grid=1, block=4)


def test_elements_of_buffer_tensors_are_read_and_written() -> None:
    source, out, wide = torch.randn(3, 2), torch.zeros(4, 2), torch.arange(8)
    elements(source, out, wide)
    assert torch.equal(out[:, 1], torch.cat([source[:, 0], torch.zeros(1)]) + 1.0)
    assert not out[:, 0].any()
    assert wide[:4].tolist() == [8, 10, 12, 14]


@pytest.mark.parametrize("arch", ["gfx90a", "gfx950", "gfx1100", "gfx1250"])
def test_three_words_at_once(arch: str, monkeypatch: pytest.MonkeyPatch) -> None:
    @flyc.kernel
    def kernel(A: fx.Tensor, B: fx.Tensor):
        threes = [fx.logical_divide(fx.rocdl.make_buffer_tensor(x), fx.make_layout(3, 1)) for x in (A, B)]
        source, target = (x[None, fx.thread_idx.x] for x in threes)
        atom = fx.make_copy_atom(fx.rocdl.BufferCopy(96), fx.Float32)
        register = fx.make_rmem_tensor(fx.make_layout(3, 1), fx.Float32)
        fx.copy_atom_call(atom, source, register)
        fx.copy_atom_call(atom, register, target)

    monkeypatch.setenv("FLYDSL_GPU_ARCH", arch)
    a, b = torch.randn(192), torch.zeros(192)
    launcher_of(kernel, grid=1, block=64)(a, b)
    assert torch.equal(a, b)


def _copy_with_offsets(into_lds: Any) -> Callable[..., Any]:
    """Four copies of 64 elements from one address each in memory and LDS; the last three begin an element later."""

    @flyc.kernel
    def kernel(A: fx.Tensor, Out: fx.Tensor):
        t = fx.thread_idx.x
        shared = fx.SharedAllocator().allocate(fx.Array[fx.Float32, 256, 16]).peek().view(fx.make_layout(256))
        atom = fx.make_copy_atom(into_lds(), fx.Float32)
        one = fx.make_layout(1, 1)
        source = fx.logical_divide(fx.rocdl.make_buffer_tensor(A), one)[None, t]
        place = fx.logical_divide(shared, one)[None, t]
        fx.copy(atom, source, place)
        for i in fx.range_constexpr(1, 4):
            fx.copy(atom, source, place, imm_offset=i * 256, soffset=1)
        rocdl.s_waitcnt(0)
        fx.barrier()
        for i in fx.range_constexpr(4):
            Out[t + 64 * i] = shared[t + 64 * i]

    return launcher_of(kernel, grid=1, block=64)


@pytest.mark.parametrize("interpreted", [False, True], ids=["machine code", "interpreted"])
def test_a_mode_of_one_element_counts_steps_in_a_buffer(trace: Callable[..., Any], interpreted: bool) -> None:
    """A table of groups behind an address, taken by numbers that are known: its descriptor is the only bound."""

    def layout() -> Any:
        return fx.make_layout((4, 1), (1, 4))

    @flyc.kernel
    def kernel(A: fx.Tensor, Out: fx.Tensor):
        groups = fx.rocdl.make_buffer_tensor(fx.get_iter(A).view(layout()), num_records_bytes=40)
        four = fx.make_rmem_tensor(4, fx.Float32)
        for i in fx.range_constexpr(3):
            fx.copy(fx.make_copy_atom(fx.rocdl.BufferCopy128b(), fx.Float32), groups[None, i], four)
            for j in fx.range_constexpr(4):
                Out[4 * i + j] = four[j]

    launch = launcher_of(kernel, grid=1, block=1)
    a, out = torch.arange(1.0, 13.0), torch.full((12,), -1.0)
    with flydsl.interpreting() if interpreted else nullcontext():
        launch(a, out)
    assert out.tolist() == [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 0, 0]
    with pytest.raises(LayoutError, match=r"index 1 is outside of 0 to 1 \(exclusive\)"):
        trace(lambda A, Out: fx.get_iter(A).view(layout())[None, 1])


@pytest.mark.parametrize("interpreted", [False, True], ids=["machine code", "interpreted"])
def test_an_offset_in_the_instruction_counts_for_both_addresses(interpreted: bool) -> None:
    launch = _copy_with_offsets(fx.rocdl.BufferCopyLDS32b)
    a, out = torch.arange(300.0), torch.zeros(256)
    with flydsl.interpreting() if interpreted else nullcontext():
        launch(a, out)
    assert torch.equal(out, torch.cat([a[:64], a[65:257]]))
    assert "offset:768 lds" in launch.lower(a, out).artifact.isa
    launch_async = _copy_with_offsets(fx.rocdl.cdna4.BufferLoadAsyncLDS32b)
    assert "offset:768 lds" in launch_async.lower(a, out, arch="gfx950").artifact.isa


def test_an_offset_in_the_instruction_is_a_constant(trace: Callable[..., Any]) -> None:
    def body(A: Any, Out: Any, offset: Any) -> None:
        fx.make_copy_atom(fx.rocdl.BufferCopyLDS32b(), fx.Float32).set_value("imm_offset", offset)

    with pytest.raises(ArgumentError, match="4096 is outside of 0 to 4095"):
        trace(lambda A, Out: body(A, Out, 4096))
    with pytest.raises(ArgumentError, match="must be known at compile time"):
        trace(lambda A, Out: body(A, Out, fx.thread_idx.x))
    with pytest.raises(LayoutError, match="no value 'imm_offset'"):
        fx.make_copy_atom(fx.rocdl.BufferCopy32b(), fx.Float32).set_value("imm_offset", 4)
