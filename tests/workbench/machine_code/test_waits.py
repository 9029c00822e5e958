"""What is under way at each instruction, and what each wait waits for."""

from __future__ import annotations

import pytest

from flydsl.arch import get_arch
from flydsl.hsaco.listing import read_listing
from workbench.machine_code import Outstanding, blocks, outstanding, read_function

LOAD, LOAD_12 = "global_load_dword v0, v1, off", "global_load_b32 v0, v1, off"


def of(text: str, arch: str = "gfx942") -> Outstanding:
    instructions = read_function(read_listing(f"k:\n{text}\n.Lfunc_end0:\n"), "k")
    return outstanding(instructions, blocks(instructions), get_arch(arch))


@pytest.mark.parametrize(
    ("arch", "text", "found"),
    [
        ("gfx942", f"{LOAD}\n{LOAD}\ns_waitcnt vmcnt(1)", [("vmcnt", 1, 2)]),
        ("gfx942", f"{LOAD}\nglobal_store_dword v3, v1, off\ns_waitcnt vmcnt(0)", [("vmcnt", 0, 1)]),
        ("gfx942", "ds_read_b32 v0, v1\nglobal_load_dword v2, v1, off\ns_waitcnt lgkmcnt(0)", [("lgkmcnt", 0, 2)]),
        ("gfx942", "flat_load_dword v0, v[2:3]\ns_waitcnt vmcnt(0) lgkmcnt(0)", [("vmcnt", 0, 1), ("lgkmcnt", 0, 1)]),
        ("gfx942", "s_waitcnt vmcnt(0)", [("vmcnt", 0, None)]),
        ("gfx942", "global_load_dword v0, v1, off\ns_waitcnt 0xf70", [("vmcnt", 0, 1)]),
        ("gfx942", "s_waitcnt_depctr 0xfffe\ns_nop 0", []),
        ("gfx1201", f"{LOAD_12}\nglobal_store_b32 v3, v1, off\ns_wait_loadcnt 0x0", [("loadcnt", 0, 2)]),
        ("gfx1201", "ds_load_b32 v0, v1\ns_wait_loadcnt_dscnt 0x100", [("loadcnt", 1, None), ("dscnt", 0, 1)]),
        ("gfx1201", "s_load_b32 s0, s[2:3], 0x0\ns_wait_kmcnt 0x0", [("kmcnt", 0, 1)]),
        ("gfx1250", "global_load_b32 v0, v1, off\ns_wait_xcnt 0x0\ns_wait_loadcnt 0x0", [("loadcnt", 0, 2)]),
    ],
)  # fmt: skip
def test_each_counter_waits_for_the_last_that_must_have_come(
    arch: str, text: str, found: list[tuple[str, int, int | None]]
) -> None:
    assert [(w.counter, w.at_most, w.distance) for w in of(text, arch).waits] == found


def test_operations_are_counted_at_each_line() -> None:
    load, store = "global_load_dword v0, v1, off", "global_store_dword v3, v1, off"
    found = of(f"{load}\nds_read_b32 v2, v1\n{store}\ns_waitcnt vmcnt(1)\nv_mov_b32_e32 v4, v0\ns_endpgm")
    assert found.counters == ("vmcnt", "lgkmcnt")
    assert found.counts == ((0, 0), (1, 0), (1, 1), (2, 1), (1, 1), (1, 1))


def test_a_loop_waits_for_what_its_last_turn_loaded() -> None:
    loop = "global_load_dword v0, v1, off\n.LBB0_1:\ns_waitcnt vmcnt(0)\nv_mov_b32_e32 v2, v0\n" \
           "global_load_dword v0, v1, off\ns_cbranch_scc1 .LBB0_1\ns_waitcnt vmcnt(0)\ns_endpgm"  # fmt: skip
    first, last = of(loop).waits
    assert (first.cause.index, first.distance, first.count) == (3, 2, 1)
    assert (last.cause.index, last.distance, last.count) == (3, 2, 1)


def test_a_pipeline_waits_for_the_loads_of_earlier_turns() -> None:
    load = "global_load_lds_dword v[0:1], off"
    turn = f".LBB0_1:\n{load}\n{load}\ns_waitcnt vmcnt(4)\ns_barrier\ns_cbranch_scc1 .LBB0_1"
    (wait,) = of(f"{load}\n{load}\n{load}\n{load}\n{turn}\ns_endpgm", "gfx950").waits
    assert (wait.count, wait.cause.index, wait.distance) == (2, 5, 11)  # the second load, two turns before


def test_stores_that_nothing_waits_for_fill_the_counter() -> None:
    loop = ".LBB0_1:\nglobal_store_dword v0, v1, off\ns_cbranch_scc1 .LBB0_1\ns_endpgm"
    assert of(loop).counts[-1] == (63,)
