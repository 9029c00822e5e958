from __future__ import annotations

from collections.abc import Callable

import pytest

from flydsl.arch import ARCHS, Arch, conflict_ways, get_arch
from flydsl.errors import ArchError

MEASURED = [(arch, op) for arch in ARCHS for op in arch.lds_phases]
IDS = [f"{arch.name}-{op}" for arch, op in MEASURED]


@pytest.mark.parametrize(("arch", "op"), MEASURED, ids=IDS)
def test_every_lane_is_in_one_phase(arch: Arch, op: str) -> None:
    lanes = [lane for phase in arch.lds_phases[op] for lane in phase]
    assert sorted(lanes) == list(range(arch.wave_size))


@pytest.mark.parametrize(("arch", "op"), MEASURED, ids=IDS)
def test_lanes_side_by_side_do_not_conflict(arch: Arch, op: str) -> None:
    width_bytes = int(op.partition("_b")[2]) // 8
    for phase in conflict_ways(arch, op, [lane * width_bytes for lane in range(arch.wave_size)]):
        assert phase.ways == 1


@pytest.mark.parametrize(("arch", "op"), MEASURED, ids=IDS)
def test_same_dwords_are_a_broadcast(arch: Arch, op: str) -> None:
    assert {phase.ways for phase in conflict_ways(arch, op, [64] * arch.wave_size)} == {1}


@pytest.mark.parametrize(("arch", "op"), MEASURED, ids=IDS)
def test_one_bank_for_all_takes_as_many_passes_as_lanes(arch: Arch, op: str) -> None:
    stride_bytes = 4 * (arch.lds_banks or 0)
    for phase in conflict_ways(arch, op, [lane * stride_bytes for lane in range(arch.wave_size)]):
        assert phase.ways == len(phase.lanes)


def test_lanes_that_are_off_do_not_compete() -> None:
    addresses = [0 if lane == 0 else None for lane in range(64)]
    assert [phase.ways for phase in conflict_ways(get_arch("gfx942"), "read_b32", addresses)] == [1, 0]


def plain(row: int, chunk: int) -> int:
    return row * 128 + chunk * 16


def padded(row: int, chunk: int) -> int:
    return row * (128 + 16) + chunk * 16


def swizzled(row: int, chunk: int) -> int:
    return row * 128 + (chunk ^ (row & 7)) * 16


@pytest.mark.parametrize(("name", "ways"), [("gfx942", [4, 2, 1]), ("gfx950", [4, 2, 1]), ("gfx1201", [8, 1, 1])])
def test_a_tile_with_128_byte_rows(name: str, ways: list[int]) -> None:
    """A 16-row f16 tile; lane -> (row = lane % 16, 16-byte chunk = lane // 16). The numbers were measured."""
    arch = get_arch(name)

    def worst(layout: Callable[[int, int], int]) -> int:
        addresses = [layout(lane % 16, lane // 16) for lane in range(arch.wave_size)]
        return max(phase.ways for phase in conflict_ways(arch, "read_b128", addresses))

    assert [worst(plain), worst(padded), worst(swizzled)] == ways


@pytest.mark.parametrize(("name", "op"), [("gfx1250", "read_b32"), ("gfx950", "write_b128"), ("gfx942", "write_b64")])
def test_not_known_is_said(name: str, op: str) -> None:
    with pytest.raises(ArchError, match="not known"):
        conflict_ways(get_arch(name), op, [0] * get_arch(name).wave_size)


@pytest.mark.parametrize("addresses", [[0] * 32, [2] * 64, [-4] * 64], ids=["too few", "unaligned", "negative"])
def test_bad_addresses(addresses: list[int]) -> None:
    with pytest.raises(ArchError):
        conflict_ways(get_arch("gfx942"), "read_b32", addresses)
