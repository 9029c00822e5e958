"""Missing waits that are seen in a listing, without running it."""

from __future__ import annotations

import pytest

from flydsl.arch import get_arch
from flydsl.hsaco.listing import read_listing
from flydsl.simulator.waits.missing import MissingWait, missing_waits, reports_of_missing_waits
from tests.simulator.waits.cases import CASES, Case


def found_in(text: str, arch: str) -> list[MissingWait]:
    return missing_waits(read_listing(f"k:\n{text}\ns_endpgm\n"), get_arch(arch))


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_uses_that_nothing_waits_for(case: Case) -> None:
    found = found_in(case.text, case.arch)
    assert [(one.counter, one.enough) for one in found] == ([case.missing] if case.missing else [])


def test_a_finding_says_what_would_be_enough() -> None:
    loads = "global_load_dword v2, v1, s[4:5]\nglobal_load_dword v3, v1, s[4:5] offset:4"
    (found,) = found_in(f"{loads}\ns_waitcnt vmcnt(2)\nv_add_u32_e32 v4, v2, v2", "gfx942")
    assert (found.isa_line, found.started_line, found.always) == (5, 2, True)
    assert found.hint == "vmcnt(2) at ISA line 4 leaves it outstanding; vmcnt(1) or less waits for it"
    use = "v_add_u32_e32 v4, v2, v2 (ISA line 5)"
    assert str(found).startswith(f"{use} reads v2 before it has arrived: global_load_dword")


def test_a_path_on_which_nothing_waits_is_one_of_several() -> None:
    text = "global_load_dword v2, v1, s[4:5]\ns_cbranch_scc1 .Ldone\ns_waitcnt vmcnt(0)\n.Ldone:\nv_mov_b32_e32 v4, v2"
    (found,) = found_in(text, "gfx942")
    assert not found.always
    assert "before it has arrived on some path: " in str(found)


def test_a_load_to_lds_that_no_read_waits_for() -> None:
    load = "buffer_load_dword v1, s[8:11], 0 offen lds"
    (found,) = found_in(f"{load}\ns_barrier\nds_read_b32 v2, v1", "gfx950")
    assert (found.counter, found.started_line, found.isa_line) == ("vmcnt", 2, 4)
    assert found.hint == "s_waitcnt vmcnt(0) before the barrier at ISA line 3 would order them"
    waited_for = f"{load}\ns_waitcnt vmcnt(0)\ns_barrier\nds_read_b32 v2, v1"
    assert found_in(waited_for, "gfx950") == []
    assert found_in(f"{waited_for}\n{load}\ns_barrier\nds_read_b32 v3, v1", "gfx950") == []  # which may be elsewhere


def test_a_load_to_lds_that_is_waited_for_behind_the_barrier() -> None:
    """Its own wave has it then, and others read it, as nothing else is in LDS."""
    load, read = "buffer_load_dword v1, s[8:11], 0 offen lds", "s_waitcnt vmcnt(0)\nds_read_b32 v2, v1"
    (found,) = found_in(f"{load}\n{_OTHER_LOAD}\ns_barrier\n{read}", "gfx950")
    assert (found.counter, found.enough, found.started_line, found.isa_line) == ("vmcnt", 1, 2, 6)
    assert found.hint == "s_waitcnt vmcnt(1) before the barrier at ISA line 4 would order them"
    assert found_in(f"ds_write_b32 v1, v0\n{load}\ns_barrier\n{read}", "gfx950") == []  # its own, perhaps
    assert found_in(f"{load}\ns_barrier\n{read}\ns_barrier\nds_read_b32 v3, v1", "gfx950") == []
    assert found_in(f"{load}\n{read}", "gfx950") == []


_OTHER_LOAD = "global_load_dword v3, v1, s[4:5]"
_KEPT = "v_add_nc_u32_e32 v1, s4, v0\ns_add_co_i32 s5, s5, 1"  # s5 is of the pair that is read


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        (f"{_KEPT}\nv_mov_b32_e32 v2, s5", "s_wait_alu depctr_sa_sdst(0) in between is enough"),
        (f"{_KEPT}\ns_mov_b32 s8, s5", "s_wait_alu depctr_sa_sdst(0) in between is enough"),
        (f"{_KEPT}\ns_wait_alu depctr_sa_sdst(0)\nv_mov_b32_e32 v2, s5", ""),
        (f"{_KEPT}\ns_wait_alu depctr_va_sdst(0)\nv_mov_b32_e32 v2, s5",
         "s_wait_alu depctr_sa_sdst(0) in between is enough"),
        (f"{_KEPT}\ns_load_b32 s9, s[10:11], 0x0\nv_mov_b32_e32 v2, s5", ""),
        ("s_add_co_i32 s5, s5, 1\nv_mov_b32_e32 v2, s5", ""),
        ("v_mov_b32_e32 v1, s4\nv_readfirstlane_b32 s4, v0\nv_mov_b32_e32 v2, s4",
         "s_wait_alu depctr_va_sdst(0) in between is enough"),
        ("v_mov_b32_e32 v1, s4\nv_readfirstlane_b32 s4, v0\ns_mov_b32 s8, s4", ""),
        ("v_cndmask_b32_e32 v1, v0, v2, vcc_lo\nv_cmp_eq_u32_e32 vcc_lo, 0, v0\nv_cndmask_b32_e32 v1, v0, v2, vcc_lo",
         "s_wait_alu depctr_va_vcc(0) in between is enough"),
    ],
)  # fmt: skip
def test_scalars_that_the_vector_alu_keeps(text: str, missing: str) -> None:
    assert [one.hint for one in found_in(text, "gfx1201")] == ([missing] if missing else [])
    assert found_in(text, "gfx1250") == []


_LANE_READ = "v_readlane_b32 s2, v0, 1\ns_or_saveexec_b32 s34, -1\ns_wait_alu depctr_sa_sdst(0)\n"
_USE_OF_LANE = "s_mov_b32 exec_lo, s34\nv_mov_b32_e32 v1, s2"


@pytest.mark.parametrize("before", ["s_swappc_b64 s[30:31], s[6:7]\n", "s_setpc_b64 s[30:31]\nf:\n"])
def test_all_scalars_may_have_been_read_behind_a_call_and_where_a_function_begins(before: str) -> None:
    """The scalar ALU's own read of one of them waits for what the vector ALU writes, so LLVM does not."""
    end = "s_setpc_b64 s[30:31]" if "f:" in before else "s_endpgm"
    assert found_in(f"{before}{_LANE_READ}{_USE_OF_LANE}\n{end}", "gfx1201") == []
    early = f"{before}{_LANE_READ}v_mov_b32_e32 v1, s2\n{end}"
    assert [one.hint for one in found_in(early, "gfx1201")] == ["s_wait_alu depctr_va_sdst(0) in between is enough"]
    assert found_in(f"{_LANE_READ}v_mov_b32_e32 v1, s2", "gfx1201") == []  # a kernel has read nothing


def test_listings_of_which_only_copies_are_looked_at() -> None:
    load = "buffer_load_dword v1, s[8:11], 0 offen lds"
    text = read_listing(f"k:\n{load}\nds_read_b32 v2, v1\nv_mov_b32_e32 v4, v2\ns_endpgm\n")
    (of_copies,) = missing_waits(text, get_arch("gfx950"), registers=False)
    assert (of_copies.started_line, of_copies.isa_line) == (2, 3)
    assert len(missing_waits(text, get_arch("gfx950"))) == 2


def reports_in(text: str) -> list[MissingWait]:
    return reports_of_missing_waits(read_listing(f"k:\n{text}\ns_endpgm\n"), get_arch("gfx942"))


_FOUR_LOADS = "\n".join(f"global_load_dword v{i}, v1, s[4:5] offset:{4 * i}" for i in range(2, 6))
_FOUR_USES = "\n".join(f"v_add_u32_e32 v{i + 8}, v{i}, v{i}" for i in range(2, 6))
_TO_LDS = "buffer_load_dword v1, s[8:11], 0 offen lds"
_PRODUCTS = "v_mfma_f32_16x16x16_f16 a[0:3], v[6:7], v[6:7], 0"
_GROUPS = {
    "one wait for four loads": (f"{_FOUR_LOADS}\n{_FOUR_USES}", [("s_waitcnt vmcnt(0) before the use would", 3)]),
    "a wait that is too weak for two": (
        f"{_FOUR_LOADS}\ns_waitcnt vmcnt(2)\n{_FOUR_USES}", [("vmcnt(0) waits for it", 1)]),
    "two waits that are too weak": (
        f"{_FOUR_LOADS}\ns_waitcnt vmcnt(4)\n{_FOUR_USES[: _FOUR_USES.index('v_add_u32_e32 v12')]}"
        f"s_waitcnt vmcnt(1)\n{_FOUR_USES[_FOUR_USES.index('v_add_u32_e32 v12') :]}",
        [("vmcnt(2) or less waits for it", 1), ("vmcnt(0) waits for it", 0)]),
    "a load between the uses": (
        f"{_FOUR_LOADS}\nv_mov_b32_e32 v8, v2\nglobal_load_dword v9, v1, s[4:5]\nv_mov_b32_e32 v10, v9\n"
        "v_mov_b32_e32 v11, v3",
        [("s_waitcnt vmcnt(3) before the use would", 0), ("s_waitcnt vmcnt(0) before the use would", 1)]),
    "another counter": (
        "global_load_dword v2, v1, s[4:5]\nds_read_b32 v3, v1\nv_add_u32_e32 v4, v2, v3",
        [("s_waitcnt vmcnt(0) before the use would", 0), ("s_waitcnt lgkmcnt(0) before the use would", 0)]),
    "another block": (
        f"{_FOUR_LOADS}\nv_mov_b32_e32 v8, v2\ns_cbranch_scc1 .Ldone\nv_mov_b32_e32 v8, v3\n.Ldone:\ns_nop 0",
        [("s_waitcnt vmcnt(3) before the use would", 0), ("s_waitcnt vmcnt(2) before the use would", 0)]),
    "copies before one barrier": (
        f"{_TO_LDS}\n{_TO_LDS}\ns_barrier\nds_read_b32 v2, v1\nds_read_b32 v3, v1",
        [("s_waitcnt vmcnt(0) before the barrier at ISA line 4 would order them", 1)]),
    "wait states": (
        f"{_PRODUCTS}\nv_accvgpr_read_b32 v8, a0\nv_accvgpr_read_b32 v9, a1\nv_accvgpr_read_b32 v10, a2",
        [("s_nop 6 in between is enough", 2)]),
}  # fmt: skip


@pytest.mark.parametrize(("text", "reports"), _GROUPS.values(), ids=_GROUPS)
def test_uses_that_one_wait_would_order_are_one_report(text: str, reports: list[tuple[str, int]]) -> None:
    found = reports_in(text)
    assert [(one.hint.rpartition("; ")[2].removeprefix("nothing waits for it: "), one.more) for one in found] == reports
    assert sum(1 + one.more for one in found) == len(found_in(text, "gfx942"))


def test_a_report_says_how_many_uses_miss_the_same_wait() -> None:
    (report,) = reports_in(f"{_FOUR_LOADS}\n{_FOUR_USES}")
    assert str(report).endswith("before the use would; 3 more uses miss the same wait, the last at ISA line 9")


def test_the_wait_of_a_report_orders_all_of_its_uses() -> None:
    """Put where the report says, nothing is found."""
    text = f"{_FOUR_LOADS}\nv_nop\nds_read_b32 v9, v1\n{_FOUR_USES}"
    (report,) = reports_in(text)
    wait = report.hint.removeprefix("nothing waits for it: ").removesuffix(" before the use would")
    lines = text.split("\n")
    assert found_in("\n".join([*lines[: report.isa_line - 2], wait, *lines[report.isa_line - 2 :]]), "gfx942") == []
