"""What gfx1250 does otherwise than RDNA 4: registers beyond v255, scaled and signed offsets, bases of flat accesses."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

from flydsl.hsaco.listing import ListingError, read_listing
from flydsl.simulator import Memory, UnknownInstruction

Run = Callable[..., Any]
LANE = np.arange(32, dtype=np.uint32)
DATA = np.arange(1000, 1064, dtype=np.uint32)


@pytest.fixture(scope="session")
def gfx1250(run: Run) -> Run:
    return partial(run, arch="gfx1250")


# --- registers beyond v255


def test_the_upper_bits_of_registers_are_set_for_each_place(gfx1250: Run) -> None:
    """src0 1, src1 2, src2 3, the result 1: from the lowest two bits on."""
    registers = {i: LANE + 1000 * i for i in (5, 261, 517, 773)}
    found = gfx1250("s_set_vgpr_msb 0x79\nv_add3_u32 v6, v5, v5, v5\ns_set_vgpr_msb 0x7900", v=registers)
    assert found.v(262).tolist() == (3 * LANE + 1000 * (261 + 517 + 773)).tolist()
    assert found.v(6).tolist() == [0] * 32


def test_llvm_names_the_register_in_a_comment(gfx1250: Run) -> None:
    text = "s_set_vgpr_msb 0xc1\nv_mov_b32_e32 v96 /*v864*/, v[5] /*v[261]*/"
    with pytest.raises(ListingError, match="comments"):
        read_listing("k:\nv_mov_b32_e32 v96 /*the sum*/, 0\n")
    found = gfx1250(text.replace("v[5] /*v[261]*/", "v5 /*v261*/"), v={261: LANE})
    assert found.v(864).tolist() == LANE.tolist()


def test_a_comment_about_another_register_is_refused(gfx1250: Run) -> None:
    with pytest.raises(ListingError, match="v865 is not encoded as v96"):
        gfx1250("v_mov_b32_e32 v96 /*v865*/, 0")
    with pytest.raises(UnknownInstruction, match="v864, which means v96 after s_set_vgpr_msb 0x0"):
        gfx1250("v_mov_b32_e32 v96 /*v864*/, 0")


ACCESSES = {
    "ds_store_b32 v1, v2": 0x2 << 2,  # the data is in the place of src1
    "ds_store_2addr_b32 v1, v3, v2 offset1:1": 0x2 << 4,
    "scratch_store_b32 v1, v2, off": 0x2 << 2,
}


@pytest.mark.parametrize("text", ACCESSES)
def test_the_places_of_what_is_stored(gfx1250: Run, text: str) -> None:
    values = {1: 4 * LANE * 2, 2: LANE, 3: LANE, 514: LANE + 77}
    found = gfx1250(f"s_set_vgpr_msb {ACCESSES[text]:#x}\n{text}", v=values, lds=bytes(256), scratch_bytes=256)
    memory = found.waves.scratch if "scratch" in text else found.waves.lds
    assert 77 + 31 in memory.view(np.uint32)


def test_a_buffer_store_has_its_data_in_the_place_of_a_result(gfx1250: Run) -> None:
    out = np.zeros(32, np.uint32)
    memory = Memory()
    base = memory.map_array(out, name="out")
    scalars = {4: base, 6: 128 >> 7}
    text = "s_set_vgpr_msb 0x80\nbuffer_store_b32 v2, v1, s[4:7], null offen"
    gfx1250(text, v={1: 4 * LANE, 2: LANE, 514: LANE + 5}, s=scalars, memory=memory)
    assert out.tolist() == (LANE + 5).tolist()


def test_both_operations_of_a_pair_have_the_same_upper_bits(gfx1250: Run) -> None:
    text = "s_set_vgpr_msb 0x41\nv_dual_mov_b32 v0, v2 :: v_dual_mov_b32 v1, v3"
    found = gfx1250(text, v={2: LANE, 258: LANE + 1, 259: LANE + 2})
    assert found.v(256).tolist() == (LANE + 1).tolist()
    assert found.v(257).tolist() == (LANE + 2).tolist()


def test_the_second_register_of_fmamk_has_the_place_of_a_third(gfx1250: Run) -> None:
    text = "s_set_vgpr_msb 0x10\nv_fmamk_f32 v0, v1, 0x40000000, v1"
    found = gfx1250(text, v={1: np.full(32, 3, np.float32), 257: np.full(32, 1, np.float32)})
    assert found.v(0, np.float32).tolist() == [7.0] * 32


def test_a_branch_with_upper_bits_to_code_without_is_refused(gfx1250: Run) -> None:
    text = "s_cbranch_scc1 .L1\ns_set_vgpr_msb 1\nv_mov_b32_e32 v0, v1\ns_cbranch_scc0 .L2\n.L1:\ns_nop 0\n.L2:"
    with pytest.raises(UnknownInstruction, match="s_cbranch_scc1 to code in another state of s_set_vgpr_msb"):
        gfx1250(text)


# --- addresses


def data_before_and_after() -> tuple[Memory, int, int]:
    memory = Memory()
    base = memory.map_array(DATA.copy(), name="A")
    return memory, base, base + 4 * 32


def test_offsets_from_a_base_are_signed(gfx1250: Run) -> None:
    memory, _, middle = data_before_and_after()
    offset = 4 * (LANE.astype(np.int32) - 16)
    found = gfx1250("global_load_b32 v1, v0, s[4:5]", v={0: offset}, s={4: middle}, memory=memory)
    assert found.v(1).tolist() == DATA[16:48].tolist()


@pytest.mark.parametrize(("name", "bytes_"), [("b32", 4), ("b64", 8), ("u16", 2), ("u8", 1), ("d16_b16", 2)])
def test_scaled_offsets_count_elements_of_the_access(gfx1250: Run, name: str, bytes_: int) -> None:
    memory, base, _ = data_before_and_after()
    lanes = LANE % 16
    register = "v[2:3]" if name == "b64" else "v2"
    text = f"global_load_{name} {register}, v0, s[4:5] offset:4 scale_offset"
    text += f"\nflat_load_{name} {register.replace('2', '4').replace('3', '5')}, v0, s[4:5] offset:4 scale_offset"
    found = gfx1250(text, v={0: lanes}, s={4: base}, memory=memory)
    raw = DATA.view(np.uint8)
    for lane in range(32):
        at = 4 + bytes_ * int(lanes[lane])
        wanted = int.from_bytes(raw[at : at + bytes_].tobytes(), "little")
        for first in (2, 4):
            got = int(found.v(first)[lane]) | (int(found.v(first + 1)[lane]) << 32 if bytes_ == 8 else 0)
            assert got == wanted


def test_scaled_offsets_of_stores_and_atomics(gfx1250: Run) -> None:
    out = np.zeros(64, np.uint32)
    memory = Memory()
    base = memory.map_array(out, name="out")
    text = "\n".join(
        (
            "global_store_b32 v0, v1, s[4:5] scale_offset",
            "global_atomic_add_u32 v2, v0, v1, s[4:5] scale_offset th:TH_ATOMIC_RETURN",
            "flat_atomic_add_u32 v3, v0, v1, s[4:5] scale_offset th:TH_ATOMIC_RETURN",
            "flat_store_b32 v0, v1, s[6:7] scale_offset",
        )
    )
    found = gfx1250(text, v={0: LANE, 1: LANE + 1}, s={4: base, 6: base + 128}, memory=memory)
    assert out.tolist() == [*(3 * (LANE + 1)).tolist(), *(LANE + 1).tolist()]
    assert found.v(2).tolist() == (LANE + 1).tolist()
    assert found.v(3).tolist() == (2 * (LANE + 1)).tolist()


def test_scaled_offsets_of_scratch_and_scalar_loads(gfx1250: Run) -> None:
    memory, base, _ = data_before_and_after()
    text = "s_load_b64 s[8:9], s[4:5], s2 offset:0x8 scale_offset\ns_load_b32 s10, s[4:5], s2\n"
    text += "scratch_store_b32 v0, v1, off scale_offset\nscratch_load_b32 v2, v3, off"
    values = {0: LANE % 4, 1: LANE, 3: 4 * (LANE % 4)}
    found = gfx1250(text, v=values, s={2: 4, 4: base}, memory=memory, scratch_bytes=16)
    assert (found.s(8), found.s(9), found.s(10)) == (1010, 1011, 1001)
    assert found.v(2).tolist() == LANE.tolist()


def test_offsets_are_not_scaled_elsewhere(run: Run) -> None:
    memory, base, _ = data_before_and_after()
    with pytest.raises(UnknownInstruction, match="scale_offset is not a modifier"):
        run("global_load_b32 v1, v0, s[4:5] scale_offset", arch="gfx1201", s={4: base}, memory=memory)


# --- waits


def test_waits_for_its_counters_change_nothing(gfx1250: Run) -> None:
    names = ("loadcnt", "dscnt", "kmcnt", "storecnt", "xcnt", "asynccnt", "tensorcnt")
    found = gfx1250("\n".join(f"s_wait_{name} 0x0" for name in names), v={0: LANE})
    assert found.v(0).tolist() == LANE.tolist()
