"""A tile in LDS: padding, and the conflicts of a wave's access, which are those of `conflict_ways`."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flydsl.arch import ARCHS, conflict_ways, get_arch
from flydsl.errors import ArgumentError, LayoutError
from flydsl.layout import Layout, Swizzle, cosize, make_composed_layout, make_layout, parse, size
from workbench.layouts.grid import Grid
from workbench.layouts.lds import ACROSS, ALONG, OPS, LdsAccess
from workbench.layouts.padding import padded

TILE = Layout((16, 64), (64, 1))  # rows of 128 bytes of f16
COORDINATE_SWIZZLED = parse("(16,64):(64,1) o (0,0) o [CS<3,0,[0],3,[1]> o (0,0) o (16,64):(1E0,1E1)]")


@pytest.mark.parametrize(
    ("tile", "ways"),
    [
        (TILE, {"gfx942": 4, "gfx950": 4, "gfx1201": 8}),
        (padded(TILE, 8), {"gfx942": 2, "gfx950": 2, "gfx1201": 1}),
        (make_composed_layout(Swizzle(3, 3, 3), 0, TILE), {"gfx942": 1, "gfx950": 1, "gfx1201": 1}),
        (COORDINATE_SWIZZLED, {"gfx942": 1, "gfx950": 1, "gfx1201": 1}),
    ],
    ids=["plain", "padded", "swizzled", "coordinates swizzled"],
)
def test_a_tile_with_128_byte_rows(tile: Any, ways: dict[str, int]) -> None:
    """The numbers were measured; see `flydsl.arch.lds_banks`."""
    access = LdsAccess(tile, "read_b128", 16)
    assert {name: access.tally(get_arch(name)).ways for name in ways} == ways


swizzles = st.tuples(st.integers(0, 3), st.integers(3, 5), st.integers(3, 5)).map(lambda s: Swizzle(*s))


@given(swizzles, st.sampled_from([0, 8, 16, 24]), st.sampled_from([ACROSS, ALONG]), st.sampled_from(ARCHS))
def test_conflicts_are_those_of_the_addresses(swizzle: Swizzle, padding: int, order: str, arch: Any) -> None:
    tile = make_composed_layout(swizzle, 0, padded(TILE, padding))
    tally = LdsAccess(tile, "read_b128", 16, order).tally(arch)

    def address(lane: int) -> int:
        row, chunk = (lane % 16, lane // 16) if order == ACROSS else (lane // 8, lane % 8)
        return int(2 * tile(row, 8 * chunk))

    if arch.lds_banks is None:
        assert "not known" in tally.unknown
        return
    phases = conflict_ways(arch, "read_b128", [address(lane) for lane in range(arch.wave_size)])
    assert tally.ways == max(phase.ways for phase in phases)
    assert tally.turns == sum(phase.ways for phase in phases)
    assert tally.phases == len(phases)


def test_a_column_major_tile_is_the_same_turned_round() -> None:
    turned = Layout((64, 16), (1, 64))
    for order in (ACROSS, ALONG):
        rows, columns = LdsAccess(TILE, "read_b64", 16, order), LdsAccess(turned, "read_b64", 16, order)
        assert rows.addresses(64) == columns.addresses(64)
        assert rows.vectors == [tuple((r, c) for c, r in cells) for cells in columns.vectors]


def test_lanes_beyond_the_tile_are_off() -> None:
    access = LdsAccess(Layout((2, 8), (8, 1)), "read_b128", 16)
    assert access.addresses(64) == [0, 16, *[None] * 62]
    assert (access.tally(get_arch("gfx942")).ways, access.tally(get_arch("gfx942")).phases) == (1, 1)


def test_modes_beyond_the_second_are_more_columns() -> None:
    folded = LdsAccess(Layout((4, 8, 2), (8, 1, 32)), "read_b128", 16)
    assert folded.addresses(8) == [0, 16, 32, 48, 64, 80, 96, 112]


def test_the_slowest_phase_has_the_lanes_that_compete() -> None:
    arch = get_arch("gfx942")
    access = LdsAccess(TILE, "read_b128", 16)
    cells = access.slowest_phase(arch)
    assert {row for row, _ in cells} == {0, 1, 2, 3, 4, 5, 6, 7}
    assert {(row, column // 8) for row, column in cells} == {(r, 0) for r in range(4)} | {(r, 1) for r in range(4, 8)}
    assert len(cells) == 8 * 8


def test_a_vector_that_is_torn_apart_is_refused() -> None:
    torn = make_composed_layout(Swizzle(3, 0, 6), 0, TILE)
    with pytest.raises(LayoutError, match=r"at \(1,0\) .* offsets 65, 64, 67.*not side by side"):
        LdsAccess(torn, "read_b128", 16).tally(get_arch("gfx942"))


def test_a_vector_between_two_others_is_refused() -> None:
    with pytest.raises(LayoutError, match=r"at \(1,0\) begins at byte 136, .* 16 bytes"):
        LdsAccess(padded(TILE, 4), "read_b128", 16).tally(get_arch("gfx942"))


@pytest.mark.parametrize(
    ("op", "bits", "order", "message"),
    [
        ("read_b96", 16, ACROSS, "not an LDS access"),
        ("read_b32", 16, "down", "lanes go"),
        ("read_b32", 64, ACROSS, "must take a whole number of elements of 64 bits"),
    ],
)
def test_accesses_there_are_none_of(op: str, bits: int, order: str, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        LdsAccess(TILE, op, bits, order)


def test_a_row_shorter_than_a_vector_is_refused() -> None:
    with pytest.raises(LayoutError, match=r"takes 8 elements .* has 4 of them"):
        _ = LdsAccess(Layout((16, 4), (4, 1)), "read_b128", 16).vectors


def test_every_measured_access_can_be_asked_for() -> None:
    assert set(OPS) == {op for arch in ARCHS for op in arch.lds_phases}


def test_an_access_shows_what_it_costs_everywhere(read: Any) -> None:
    access = LdsAccess(TILE, "write_b128", 16, ALONG)
    text, page = repr(access), read(access._repr_html_()).text
    for tally in access.tallies():
        assert f"{tally.arch.name}{tally.verdict}{tally.cost}" in page
        assert tally.verdict in text
    assert "gfx950 serves an LDS write_b128 is not known" in text


# --- padding ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["(4,8):(8,1)", "(8,4):(1,8)", "((2,2),(2,4)):((8,16),(1,2))", "(1,8):(8,1)"])
@pytest.mark.parametrize("padding", [0, 1, 8])
def test_padding_moves_rows_apart(text: str, padding: int) -> None:
    layout = parse(text)
    moved = padded(layout, padding)
    assert moved.shape == layout.shape
    for i in range(size(layout)):
        assert moved(i) == layout(i) + layout(i) // 8 * padding
    assert cosize(moved) >= cosize(layout)


@pytest.mark.parametrize("text", ["8:1", "(2,2,2):(1,2,4)", "(4,8):(1,3)", "(2,(2,2)):(2,(1,4))"])
def test_what_has_no_rows_cannot_be_padded(text: str) -> None:
    with pytest.raises(LayoutError, match=r"rows"):
        padded(parse(text), 1)
    assert padded(parse(text), 0) == make_layout(parse(text).shape, parse(text).stride)


@pytest.mark.parametrize("text", ["(?,4):(4,1)", "(4,8):(1E0,1E1)"])
def test_rows_of_run_time_sizes_cannot_be_padded(text: str) -> None:
    with pytest.raises(LayoutError, match="not a layout of known numbers"):
        padded(parse(text), 1)


def test_a_swizzle_of_coordinates_is_drawn_as_that_of_indices() -> None:
    """Rows of 64 elements: three bits of the row, from bit 6 of the index on, go into those from bit 3 on."""
    grids = [Grid.of(layout) for layout in (COORDINATE_SWIZZLED, make_composed_layout(Swizzle(3, 3, 3), 0, TILE))]
    assert (grids[0].offsets == grids[1].offsets).all()
    assert grids[0].shape == grids[1].shape
