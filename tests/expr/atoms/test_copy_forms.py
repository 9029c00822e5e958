"""Copies that move bits, whatever the tensors say of them."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.errors import LayoutError
from tests.launchers import launcher_of


def run(body: Any, *tensors: torch.Tensor) -> None:
    @flyc.kernel
    def kernel(A: fx.Tensor, B: fx.Tensor):
        body(fx.thread_idx.x, A, B)

    launch = launcher_of(kernel, grid=1, block=64)
    launch(*tensors)


@pytest.mark.parametrize("buffer", [False, True])
def test_elements_of_another_type_of_the_same_width(buffer: bool) -> None:
    def body(t: Any, A: Any, B: Any) -> None:
        source, target = (fx.rocdl.make_buffer_tensor(x) if buffer else x for x in (A, B))
        op = fx.rocdl.BufferCopy32b() if buffer else fx.UniversalCopy32b()
        atom = fx.make_copy_atom(op, fx.Int32)
        registers = fx.make_rmem_tensor(fx.make_layout(1, 1), fx.Int32)
        fx.copy(atom, fx.slice(fx.logical_divide(source, fx.make_layout(1, 1)), (None, t)), registers)
        registers.store(registers.load() + 1)
        fx.copy(atom, registers, fx.slice(fx.logical_divide(target, fx.make_layout(1, 1)), (None, t)))

    a, b = torch.randn(64, generator=torch.Generator().manual_seed(0)), torch.zeros(64)
    run(body, a, b)
    assert torch.equal(b.view(torch.int32), a.view(torch.int32) + 1)


def test_memory_given_by_its_first_element() -> None:
    def body(t: Any, A: Any, B: Any) -> None:
        atom = fx.make_copy_atom(fx.UniversalCopy128b(), fx.Int32)
        registers = fx.make_rmem_tensor(fx.make_layout(4, 1), fx.Int32)
        place = fx.make_layout(1, 0)
        fx.copy(atom, fx.make_view(fx.add_offset(fx.get_iter(A), t * 8), place), registers)
        fx.copy(atom, registers, fx.make_view(fx.add_offset(fx.get_iter(B), t * 8), place))

    a = torch.randn(512, generator=torch.Generator().manual_seed(1)).bfloat16()
    b = torch.zeros_like(a)
    run(body, a, b)
    assert torch.equal(a, b)


def test_other_differences_stay_errors() -> None:
    def body(t: Any, A: Any, B: Any) -> None:
        atom = fx.make_copy_atom(fx.UniversalCopy32b(), fx.Float32)
        registers = fx.make_rmem_tensor(fx.make_layout(4, 1), fx.Float32)
        fx.copy(atom, fx.slice(fx.logical_divide(A, fx.make_layout(2, 1)), (None, t)), registers)

    with pytest.raises(LayoutError, match="the source has 2 elements, the destination 4"):
        run(body, torch.zeros(128), torch.zeros(1))


@pytest.mark.parametrize("values", [2, 1])
def test_two_types_of_floats_of_one_width_are_an_error(values: int) -> None:
    def body(t: Any, A: Any, B: Any) -> None:
        atom = fx.make_copy_atom(fx.UniversalCopy32b(), fx.Float16)
        registers = fx.make_rmem_tensor(fx.make_layout(2, 1), fx.Float16)
        fx.copy(atom, fx.slice(fx.logical_divide(A, fx.make_layout(values, 1)), (None, t)), registers)

    with pytest.raises(LayoutError, match="the source has elements bf16, the destination f16"):
        run(body, torch.zeros(128).bfloat16(), torch.zeros(1))


def test_a_layout_called_with_none_is_sliced() -> None:
    layout = fx.make_layout((4, 8, 2), (16, 2, 1))
    assert layout(None, 3, None) == fx.slice(layout, (None, 3, None))


def test_a_part_of_a_runtime_tuple_is_an_index() -> None:
    def body(t: Any, A: Any, B: Any) -> None:
        part = fx.get(fx.idx2crd(t, fx.make_layout((8, 8), (8, 1))), 1)
        assert part.dtype is fx.Index
        A[t] = fx.Int32(fx.arith.addi(part, fx.Index(t)))

    a = torch.zeros(64, dtype=torch.int32)
    run(body, a, torch.zeros(1))
    lanes = torch.arange(64, dtype=torch.int32)
    assert torch.equal(a, lanes % 8 + lanes)


def test_a_list_given_alone_holds_the_modes_of_a_tile() -> None:
    modes = (fx.make_layout(8, 1), 24)
    assert fx.make_tile(list(modes)) == fx.make_tile(modes) == fx.make_tile(*modes)
    assert fx.make_tile([8]) == fx.make_tile(8)


def test_the_part_of_a_tensor_whatever_its_elements_are() -> None:
    """Where a thread's part begins in a tensor of bytes that nothing reads, as a program that gathers asks."""

    def body(t: Any, A: Any, B: Any) -> None:
        atom = fx.make_copy_atom(fx.UniversalCopy64b(), fx.Float32)
        copy = fx.make_tiled_copy(atom, fx.make_layout(((8, 8), (1, 2)), ((16, 1), (1, 8))), fx.make_tile(8, 16))
        places = fx.make_view(fx.inttoptr(fx.PointerType.get(fx.Int8.ir_type, 1, 512), 0), fx.make_layout((8, 16)))
        part = copy.get_slice(t).partition_S(places)
        B[t] = fx.Int32(fx.ptrtoint(fx.get_iter(part)))

    places = torch.zeros(64, dtype=torch.int32)
    run(body, places, places)
    threads = torch.arange(64, dtype=torch.int32)
    assert torch.equal(places, threads % 8 * 16 + threads // 8)


def test_a_tensor_given_by_its_first_element_is_indexed() -> None:
    def body(t: Any, A: Any, B: Any) -> None:
        whole, pairs = (fx.make_view(fx.get_iter(A), fx.make_layout(*shape)) for shape in ((1, 1), ((1, 1), (5, 2))))
        B[t] = whole[t] + pairs[t]

    a, b = torch.randn(128, generator=torch.Generator().manual_seed(2)), torch.zeros(64)
    run(body, a, b)
    assert torch.equal(b, a[:64] + a[::2])
