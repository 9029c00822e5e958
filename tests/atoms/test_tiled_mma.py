"""Tiled MMAs and the copies of their operands, against layouts that FlyDSL 0.2.2 prints for its examples."""

from __future__ import annotations

import pytest

from flydsl import layout as algebra
from flydsl.atoms import MFMA, BufferCopy, TiledCopy, TiledMma
from flydsl.errors import LayoutError
from flydsl.layout import Layout, make_tile

WAVES_2X2 = TiledMma(MFMA(16, 16, 4, "f32", "f32", "f32"), Layout((2, 2, 1), (1, 2, 0)))
PERMUTED = TiledMma(
    MFMA(16, 16, 16, "f16", "f16", "f32"),
    Layout((1, 4, 1), (0, 1, 0)),
    make_tile(None, None, Layout((4, 4, 2), (1, 8, 4))),
)


def fragment(mma: TiledMma, operand: str, shape: tuple[int, int]) -> Layout:
    part = mma.partition(operand, Layout(shape, (shape[1], 1)))
    return algebra.make_fragment_layout_like(algebra.slice(part, (0, *[None] * (algebra.rank(part) - 1))))


def test_thread_value_layouts_of_example_03() -> None:
    assert WAVES_2X2.tile_size_mnk == (32, 32, 4)
    assert WAVES_2X2.threads == 256
    assert str(WAVES_2X2.layout_tv("a")) == "((16,4,2,2),(1,(1,1))):((1,32,16,0),(0,(0,0)))"
    assert str(WAVES_2X2.layout_tv("b")) == "((16,4,2,2),(1,(1,1))):((1,32,0,16),(0,(0,0)))"
    assert str(WAVES_2X2.layout_tv("c")) == "((16,8,2),((4,1),(1,1))):((32,4,512),((1,0),(0,0)))"


def test_fragments_of_example_03() -> None:
    assert str(fragment(WAVES_2X2, "a", (64, 8))) == "(1,2,2):(0,2,1)"
    assert str(fragment(WAVES_2X2, "c", (64, 64))) == "((4,1),2,2):((1,0),8,4)"


@pytest.mark.parametrize(
    ("operand", "shape", "retiled"),
    [("a", (64, 8), "((1,1),2,2):((0,0),2,1)"), ("c", (64, 64), "((1,4),2,2):((0,1),8,4)")],
)
def test_retiled_fragments_of_example_03(operand: str, shape: tuple[int, int], retiled: str) -> None:
    copy = TiledCopy(BufferCopy(32), 32, WAVES_2X2.layout_tv(operand), WAVES_2X2.tile_of(operand))
    assert str(copy.retile(fragment(WAVES_2X2, operand, shape))) == retiled


def test_a_permutation_puts_the_values_of_two_calls_side_by_side() -> None:
    """Eight values of 16 bits: one load of 128 bits feeds two instructions."""
    assert PERMUTED.tile_size_mnk == (16, 64, 32)
    values = algebra.get(PERMUTED.layout_tv("b"), 1)
    assert [values(i) for i in range(8)] == [64 * k for k in range(8)]
    copy = TiledCopy(BufferCopy(128), 16, PERMUTED.layout_tv("b"), PERMUTED.tile_of("b"))
    assert str(copy.retile(fragment(PERMUTED, "b", (128, 64)))) == "((8,1),2,2):((1,0),16,8)"


@pytest.mark.parametrize("mma", [WAVES_2X2, PERMUTED], ids=["2x2 waves", "permuted"])
@pytest.mark.parametrize("operand", "abc")
def test_the_threads_reach_every_element_of_the_tile(mma: TiledMma, operand: str) -> None:
    layout = mma.layout_tv(operand)
    size = algebra.size(mma.tile_of(operand).modes[0]) * algebra.size(mma.tile_of(operand).modes[1])
    assert {layout(i) for i in range(algebra.size(layout))} == set(range(size))


@pytest.mark.parametrize("mma", [WAVES_2X2, PERMUTED], ids=["2x2 waves", "permuted"])
@pytest.mark.parametrize(("operand", "modes"), [("a", (0, 2)), ("b", (1, 2)), ("c", (0, 1))])
def test_a_copy_moves_what_the_mma_multiplies(mma: TiledMma, operand: str, modes: tuple[int, int]) -> None:
    """Value by value, partition and retile of a copy agree with the partition and fragment of the MMA."""
    shape = tuple(2 * mma.tile_size_mnk[mode] for mode in modes)
    tensor = Layout(shape, (shape[1], 1))
    bits = 8 * 4 if mma is WAVES_2X2 else 16
    copy = TiledCopy(BufferCopy(bits), bits, mma.layout_tv(operand), mma.tile_of(operand))
    for thread in (0, 5, 63, 64, 200, 255):
        by_copy, start = algebra.slice_and_offset((thread, None, None, None), copy.partition(tensor))
        by_mma, first = algebra.slice_and_offset((thread, None, None, None), mma.partition(operand, tensor))
        registers = algebra.make_fragment_layout_like(by_mma)
        retiled = copy.retile(registers)
        moved = {retiled(i): start + by_copy(i) for i in range(algebra.size(retiled))}
        held = {registers(i): first + by_mma(i) for i in range(algebra.size(registers))}
        assert moved == held


def test_a_permutation_that_the_instructions_do_not_divide_is_refused() -> None:
    with pytest.raises(LayoutError, match="does not divide the 24"):
        TiledMma(MFMA(16, 16, 16, "f16", "f16", "f32"), Layout((1, 1, 1)), make_tile(24, None, None))


def test_atoms_are_laid_out_along_three_modes() -> None:
    with pytest.raises(LayoutError, match="modes M, N and K"):
        TiledMma(MFMA(16, 16, 16, "f16", "f16", "f32"), Layout((2, 2)))


@pytest.mark.parametrize("strides", [(1, 1, 0), (2, 4, 0), (0, 0, 0)])
def test_each_atom_has_its_own_wave(strides: tuple[int, ...]) -> None:
    with pytest.raises(LayoutError, match="not executed by waves 0 to 3"):
        TiledMma(MFMA(16, 16, 4, "f32", "f32", "f32"), Layout((2, 2, 1), strides))
