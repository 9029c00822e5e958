"""Missing waits that launches meet under checking("waits")."""

from __future__ import annotations

import numpy as np
import pytest

from flydsl.errors import ArgumentError
from flydsl.simulator import MissingWait
from tests.simulator.waits.cases import CASES, IN_LDS, TO_LDS, Case
from tests.simulator.waits.launching import run


@pytest.mark.parametrize("case", {**CASES, **IN_LDS}.values(), ids={**CASES, **IN_LDS})
def test_uses_that_nothing_waits_for(case: Case) -> None:
    if case.missing is None:
        run(case.arch, case.text, "waits")
        return
    with pytest.raises(MissingWait) as caught:
        run(case.arch, case.text, "waits")
    assert (caught.value.counter, caught.value.enough) == case.missing


def test_the_error_says_what_the_hardware_may_see() -> None:
    text = "v_mov_b32_e32 v2, 1.0\nglobal_load_dword v2, v1, s[4:5]\nv_add_u32_e32 v4, v2, v2"
    with pytest.raises(MissingWait) as caught:
        run("gfx942", text, "waits")
    error = caught.value
    assert (error.instruction, error.started) == (text.split("\n")[2], text.split("\n")[1])
    assert (error.workgroup, error.wave, error.lane) == ((0, 0, 0), 0, 0)
    assert error.seen.startswith("v2 held 0x3f800000 (1 as f32) before, which the hardware may still see; 0x000003e8")


_LOADED = "global_load_dword v4, v1, s[4:5]\n"
_TO_LDS_OF_OTHERS = f"v_xor_b32_e32 v6, 0x100, v1\n{TO_LDS}\nglobal_load_dword v3, v1, s[4:5]"
_READ = "ds_read_b32 v2, v6\ns_waitcnt lgkmcnt(0)"


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        (f"{_TO_LDS_OF_OTHERS}\ns_barrier\n{_LOADED}{_READ}",
         "s_waitcnt vmcnt(1), or less, before the barrier in wave 1"),
        (f"{_TO_LDS_OF_OTHERS}\ns_barrier\ns_waitcnt vmcnt(0)\n{_READ}",
         "s_waitcnt vmcnt(1), or less, before the barrier in wave 1"),
        (f"{_TO_LDS_OF_OTHERS}\n{_READ}",
         "s_waitcnt vmcnt(0) in wave 1, and a barrier after it, before wave 0 accesses it"),
        (f"{_TO_LDS_OF_OTHERS}\n{_LOADED}ds_read_b32 v2, v1\ns_waitcnt lgkmcnt(0)",
         "nothing waits for it: s_waitcnt vmcnt(2) before the use would"),
    ],
    ids=["behind a barrier", "waited for behind it", "no barrier", "its own"],
)  # fmt: skip
def test_who_should_have_waited_for_a_load_to_lds(text: str, hint: str) -> None:
    """Its own wave, before the barrier that lets the others read."""
    with pytest.raises(MissingWait) as caught:
        run("gfx950", text, "waits", "races")
    assert caught.value.wave == 0
    assert caught.value.hint == hint


def test_lanes_that_are_masked_off_wait_for_nothing() -> None:
    """A load for half of the lanes, and a use by the others: what LLVM makes of a branch."""
    one = "s_mov_b64 exec, 0xffff\nglobal_load_dword v2, v1, s[4:5]\ns_mov_b64 exec, 0xff0000\nv_mov_b32_e32 v4, v2"
    run("gfx942", f"v_mov_b32_e32 v2, 0\n{one}", "waits")


def test_other_checks_leave_missing_waits_alone() -> None:
    run("gfx942", CASES["nothing waits"].text, "races")


_STORE = "global_store_dword v1, v4, s[4:5] offset:2048\ns_waitcnt vmcnt(0) lgkmcnt(0)"


def stored(text: str, *checks: str) -> list[int]:
    """What a text leaves in v4 of the first lanes of the first wave."""
    out = run("gfx950", f"v_mov_b32_e32 v2, 7\nv_mov_b32_e32 v3, 8\n{text}\n{_STORE}", *checks)
    return [int(number) for number in out[512:515]]


_TWO = "global_load_dword v2, v1, s[4:5]\nglobal_load_dword v3, v1, s[4:5] offset:4"
_LATE = {
    "nothing waits": (f"{_TWO}\nv_mov_b32_e32 v4, v2", [7, 7, 7]),
    "it waits for the first": (f"{_TWO}\ns_waitcnt vmcnt(1)\nv_mov_b32_e32 v4, v2", [1000, 1001, 1002]),
    "but not for the second": (f"{_TWO}\ns_waitcnt vmcnt(1)\nv_mov_b32_e32 v4, v3", [8, 8, 8]),
    "half of a register": ("global_load_short_d16_hi v2, v1, s[4:5]\nv_mov_b32_e32 v4, v2", [7, 7, 7]),
    "of LDS": ("ds_read_b32 v2, v1\nv_mov_b32_e32 v4, v2", [7, 7, 7]),
    "of LDS, waited for": ("ds_read_b32 v2, v1\ns_waitcnt lgkmcnt(0)\nv_mov_b32_e32 v4, v2", [0, 1, 2]),
    "a scalar": ("s_mov_b32 s6, 9\ns_load_dword s6, s[4:5], 0x0\nv_mov_b32_e32 v4, s6", [9, 9, 9]),
    "lanes apart": (
        "s_mov_b64 exec, 1\nglobal_load_dword v2, v1, s[4:5]\ns_mov_b64 exec, -2\nv_mov_b32_e32 v2, 5\n"
        "s_mov_b64 exec, -1\ns_waitcnt vmcnt(0)\nv_mov_b32_e32 v4, v2", [1000, 5, 5]),
    "straight to LDS": (
        f"{TO_LDS}\nds_read_b32 v4, v1\ns_waitcnt lgkmcnt(0)",
        [0, 1, 2]),
    "straight to LDS, waited for": (
        f"{TO_LDS}\ns_waitcnt vmcnt(0)\nds_read_b32 v4, v1\ns_waitcnt lgkmcnt(0)", None),
}  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), _LATE.values(), ids=_LATE)
def test_loads_that_come_as_late_as_they_may(text: str, expected: list[int] | None) -> None:
    """Those that are waited for come in time; the others leave what was there before."""
    assert stored(text, "late") == (expected or stored(text, "alignment"))


_COPY = "global_load_async_to_lds_b32 v1, v1, s[4:5]"


@pytest.mark.parametrize(
    ("wait", "expected"),
    [("", [0, 1, 2]), ("s_wait_loadcnt 0x0\n", [0, 1, 2]), ("s_wait_asynccnt 0x0\n", [1000, 1001, 1002])],
    ids=["nothing waits", "the wrong counter", "it waits"],
)
def test_asynchronous_copies_of_gfx1250_come_late_too(wait: str, expected: list[int]) -> None:
    text = f"{_COPY}\n{wait}ds_load_b32 v4, v1\ns_wait_dscnt 0x0\nglobal_store_b32 v1, v4, s[4:5] offset:2048"
    assert run("gfx1250", text, "late")[512:515].tolist() == expected


@pytest.mark.parametrize("case", [case for case in CASES.values() if case.missing is None])
def test_right_programs_end_as_ever_where_loads_are_late(case: Case) -> None:
    assert np.array_equal(run(case.arch, case.text, "late"), run(case.arch, case.text, "alignment"))


def test_late_goes_alone() -> None:
    with pytest.raises(ArgumentError, match="'late' must be the only check, got late, races"):
        run("gfx942", CASES["it waits"].text, "late", "races")
