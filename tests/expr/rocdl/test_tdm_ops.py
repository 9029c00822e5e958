"""Descriptors of the tensor data mover, word by word, and the instructions that come out."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
import torch
from mlir import ir

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.compiler.kernel_function import CompilationContext
from flydsl.errors import ArchError, ArgumentError, FlyError
from flydsl.expr import tdm_ops
from flydsl.utils.smem_allocator import SmemAllocator
from tests.launchers import launcher_of


@pytest.fixture
def issued() -> Callable[..., str]:
    """`issued(function)`: the assembly of a kernel on gfx1250 that calls `function(A, lds, n)`; A is f16 (64, 256)."""
    allocator = SmemAllocator(None, global_sym_name="tile")
    part = allocator.allocate_array(fx.Float16, 128 * 80, 128)

    def run(function: Callable[..., Any], arch: str = "gfx1250", block: int = 128) -> str:
        @flyc.kernel
        def kernel(A: fx.Tensor, n: fx.Int32):
            with ir.InsertionPoint(CompilationContext.get_current().gpu_module_body):
                allocator.finalize()
            function(A, part(allocator.get_base()), n)

        launch = launcher_of(kernel, grid=1, block=block)
        return launch.lower(torch.zeros(64, 256, dtype=torch.float16), 3, arch=arch).artifact.isa

    return run


def constants(group: Any) -> list[int | None]:
    """The words of a group that are known at compile time."""
    return [int(word) & 0xFFFF_FFFF if word.is_static else None for word in map(fx.Int32, elements(group))]


def elements(group: Any) -> list[Any]:
    """The values that `Vector.from_elements` was called with."""
    return [
        fx.Int32(value) if fold(value) is None else fx.Int32(fold(value)) for value in group.ir_value().owner.operands
    ]


def fold(value: ir.Value) -> int | None:
    owner = value.owner
    if isinstance(owner, ir.Block):
        return None
    return owner.attributes["value"].value if owner.name == "arith.constant" else None


def tile(A: Any, lds: Any, **options: Any) -> Any:
    given: dict[str, Any] = {
        "global_ptr": A,
        "lds_memref": lds.get(),
        "global_offset": (0, 0),
        "tensor_shape": (64, 64),
        "strides": (256, 1),
        "tile_shape": (64, 64),
        "elem_bytes": 2,
    }
    return tdm_ops.make_tensor_descriptor_2d(**{**given, **options})


def test_the_words_of_a_descriptor(issued: Callable[..., str]) -> None:
    words = []

    def body(A: Any, lds: Any, n: Any) -> None:
        words.append(constants(tile(A, lds, pad_interval=64, pad_amount=8, workgroup_mask=0b101).dgroup1))
        words.append(
            constants(
                tile(
                    A,
                    lds,
                    tensor_shape=(0x12345, 0x6789A),
                    tile_shape=(32, 16),
                    strides=(0x1000, 1),
                    atomic_barrier_enable=True,
                    early_timeout=True,
                ).dgroup1
            )
        )
        desc = tile(A, lds, for_store=True, pad_interval=64, pad_amount=8)
        words.append(constants(desc.dgroup1))
        words.append(constants(desc.dgroup0))
        tdm_ops.tensor_store_2d(desc)

    issued(body)
    # log2 of 2 bytes in bits 16 and 17; padding: bit 20, after 2**(4 + 1) words 3 + 1 words.
    assert words[0] == [0b101 | 1 << 16 | 1 << 20 | 4 << 22 | 3 << 25, 64 << 16, 64 << 16, 64 << 16, 64, 256, 0, 0]
    assert words[1] == [1 << 16 | 1 << 18 | 1 << 21, 0x789A << 16, 0x6 | 0x2345 << 16, 0x1 | 16 << 16, 32, 0x1000, 0, 0]
    # A store skips the padding as columns that lie beyond the tensor.
    assert words[2] == [1 << 16, 64 << 16, 64 << 16, 72 << 16, 64, 256, 0, 0]
    assert words[3] == [1, None, None, None]


def test_the_instructions(issued: Callable[..., str]) -> None:
    def body(A: Any, lds: Any, n: Any) -> None:
        desc = tile(A, lds, num_warps=4, oob_outer_bound=n, global_offset=(fx.block_idx.x * 64, 0))
        tdm_ops.tensor_load_2d(desc)
        tdm_ops.tensor_wait(0)
        fx.barrier()
        moved = tdm_ops.update_tensor_descriptor_2d_addr64(desc, desc.dgroup0[2], desc.dgroup0[3], n * 128)
        tdm_ops.tensor_load_2d(moved, cache_policy=1)
        tdm_ops.tensor_wait(2)
        tdm_ops.tensor_store_2d(tdm_ops.update_tensor_descriptor_2d_addr_lo(desc, n))
        elsewhere = tdm_ops.update_tensor_descriptor_2d_lds_addr(desc, 0x1230)
        tdm_ops.tensor_load_2d(elsewhere)

    text = issued(body)
    assert re.search(r"tensor_load_to_lds s\[\d+:\d+\], s\[\d+:\d+\]\s", text)
    assert "tensor_load_to_lds" in text
    assert re.search(r"tensor_load_to_lds .* th:TH_LOAD_NT", text)
    assert re.search(r"tensor_store_from_lds s\[\d+:\d+\], s\[\d+:\d+\]\s", text)
    assert "s_wait_tensorcnt 0x0" in text
    assert "s_wait_tensorcnt 0x2" in text
    assert "0x1230" in text
    assert "ttmp8" in text  # the wave's number decides about its part of the tile


def test_a_place_in_shared_memory_is_any_of_its_forms(issued: Callable[..., str]) -> None:
    def body(A: Any, lds: Any, n: Any) -> None:
        storage = fx.SharedAllocator().allocate(fx.Array[fx.Float16, 64 * 64, 128])
        array = storage.peek()
        view = array.view(fx.make_layout((64, 64), (64, 1)))
        for place in (lds, lds.get(), lds.base_memref, storage, array, array.ptr, view):
            tdm_ops.tensor_load_2d(tile(A, lds, lds_memref=place))

    assert len(re.findall("tensor_load_to_lds ", issued(body))) == 7


def test_rows_by_number(issued: Callable[..., str]) -> None:
    words = []

    def body(A: Any, lds: Any, n: Any) -> None:
        desc = tdm_ops.make_tensor_gather_descriptor(
            global_ptr=A,
            lds_memref=lds,
            row_indices=[5, 6, n],
            row_width=64,
            tensor_dim0=256,
            tensor_dim1=64,
            stride=256,
            elem_bytes=2,
            pad_interval=64,
            pad_amount=8,
            gather_tile_dim1=n,
            lds_byte_offset=16,
            global_byte_offset=n * 2,
        )
        words.extend(constants(group) for group in (desc.dgroup0, desc.dgroup1, desc.dgroup2, desc.dgroup3))
        tdm_ops.tensor_load_gather(desc)
        short = tdm_ops.make_tensor_gather_descriptor(A, lds, [1, 2, 3], 64, 256, 64, 256, 2, index_size=16)
        words.extend(constants(group) for group in (short.dgroup0, short.dgroup1, short.dgroup2))
        tdm_ops.tensor_store_gather(tdm_ops.update_tensor_gather_descriptor_addr_lo_hi(short, n, n))

    text = issued(body)
    assert words[0][0] == 0xC000_0001
    assert words[1] == [1 << 16 | 1 << 20 | 4 << 22 | 3 << 25, 256 << 16, 64 << 16, 64 << 16, None, 256, 0, 0]
    assert words[2] == [5, 6, None, 0]
    assert words[3] == [0, 0, 0, 0]
    assert words[4][0] == 0x8000_0001
    assert words[5][4] == 3
    assert words[6] == [1 | 2 << 16, 3, 0, 0]
    assert len(re.findall(r"tensor_(?:load_to|store_from)_lds(?: s\[\d+:\d+\],?){4}", text)) == 2


def test_an_address_carries_into_its_upper_word(issued: Callable[..., str]) -> None:
    sums = []

    def body(A: Any, lds: Any, n: Any) -> None:
        low, high = tdm_ops.add_addr_with_carry(fx.Int32(-16), fx.Int32(-(2**31) + 5), fx.Int32(32))
        sums.extend((int(low), int(high)))

    issued(body)
    assert sums == [16, -(2**31) + 6]


def test_a_descriptor_advances_by_bytes() -> None:
    @flyc.kernel
    def kernel(offset: fx.Int32, Out: fx.Tensor):
        words = fx.Vector.from_elements([fx.Int32(word) for word in (1, 64, -16, 5 - 2**31)], fx.Int32)
        desc = tdm_ops.TDMDescriptor2D(words, None)
        for i, by in enumerate((32, fx.Index(offset), fx.Int64(offset), -offset, 2**32)):
            group = fx.Vector(tdm_ops.advance_tdm_descriptor(desc, by).dgroup0)
            for word in range(4):
                Out[i, word] = group[word]

    out = torch.zeros(5, 4, dtype=torch.int32)
    launcher_of(kernel, grid=1, block=1)(32, out)
    further, before = [1, 64, 16, 6 - 2**31], [1, 64, -48, 5 - 2**31]
    assert out.tolist() == [further, further, further, before, [1, 64, -16, 6 - 2**31]]


def test_a_prefetch_touches_every_row(issued: Callable[..., str]) -> None:
    def body(A: Any, lds: Any, n: Any) -> None:
        tdm_ops.l2_prefetch_tile(
            A, (0, n), (64, 64), (256, 1), elem_bytes=2, thread_id=fx.thread_idx.x, block_threads=32
        )

    assert len(re.findall("global_prefetch_b8 .* scope:SCOPE_SE", issued(body, block=32))) == 2


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda A, lds, n: tile(A, lds, elem_bytes=3), ArgumentError, "1, 2, 4 or 8"),
        (lambda A, lds, n: tile(A, lds, pad_interval=48, pad_amount=8), ArgumentError, "2 to 256 words"),
        (lambda A, lds, n: tile(A, lds, pad_interval=64, pad_amount=1), ArgumentError, "1 to 128 words"),
        (lambda A, lds, n: tile(A, lds, num_warps=3), ArgumentError, "does not divide among 3 waves"),
        (lambda A, lds, n: tile(A, lds, tile_shape=(n, 64)), ArgumentError, "must be known at compile time"),
        (lambda A, lds, n: tile(A, lds, tile_shape=(64, 65536)), ArgumentError, "65536 is outside of 1 to 65535"),
        (lambda A, lds, n: tile(A, lds, workgroup_mask=1 << 16), ArgumentError, "outside of 0 to 65535"),
        (lambda A, lds, n: tile(A, lds, lds_memref=A), ArgumentError, "a tensor or pointer in LDS"),
        (
            lambda A, lds, n: tdm_ops.make_tensor_gather_descriptor(A, lds, [0] * 9, 64, 256, 64, 256, 2),
            ArgumentError,
            "1 to 8",
        ),
        (
            lambda A, lds, n: tdm_ops.make_tensor_gather_descriptor(A, lds, [0], 1, 256, 64, 256, 2),
            ArgumentError,
            "a multiple of 4",
        ),
        (
            lambda A, lds, n: tdm_ops.tensor_load_to_lds(
                fx.Vector.filled(4, 0, fx.Int32), fx.Vector.filled(4, 0, fx.Int32)
            ),
            ArgumentError,
            "takes vector<8xi32>",
        ),
        (
            lambda A, lds, n: tdm_ops.tensor_load_to_lds(fx.Vector.filled(4, 0, fx.Int32)),
            ArgumentError,
            "2 or 4 groups",
        ),
    ],
)
def test_wrong_use_is_an_error_at_the_line(
    call: Callable[..., Any], error: type[FlyError], message: str, issued: Callable[..., str]
) -> None:
    with pytest.raises(error, match=message) as caught:
        issued(call)
    assert caught.value.at.file == __file__


def test_other_targets_have_none(issued: Callable[..., str]) -> None:
    with pytest.raises(ArchError, match="gfx950 does not have it"):
        issued(lambda A, lds, n: tile(A, lds), "gfx950")
