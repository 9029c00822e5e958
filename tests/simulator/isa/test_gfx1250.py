"""What gfx1250 does otherwise than RDNA 4: registers beyond v255, scaled and signed offsets, bases of flat accesses."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

from flydsl.hsaco.listing import ListingError, read_listing
from flydsl.simulator import Memory, MemoryFault, UnknownInstruction

pytestmark = pytest.mark.slow

Run = Callable[..., Any]
LANE = np.arange(32, dtype=np.uint32)
DATA = np.arange(1000, 1064, dtype=np.uint32)


@pytest.fixture(scope="session")
def gfx1250(run: Run) -> Run:
    return partial(run, arch="gfx1250")


def test_lanes_whose_data_goes_nowhere(gfx1250: Run) -> None:
    """Triton masks writes to LDS by an address that the hardware drops; any other one beyond it is an error."""
    address = np.where(LANE % 3 == 0, 0x7FFFFFFF, 4 * LANE).astype(np.uint32)
    text = "ds_store_b32 v0, v1\nds_store_2addr_b32 v0, v1, v1 offset0:32 offset1:64\nds_store_b8 v0, v1 offset:384"
    found = gfx1250(text, v={0: address, 1: LANE + 1}, lds=bytes(512))
    words = np.where(LANE % 3 == 0, 0, LANE + 1)
    assert found.waves.lds.view(np.uint32)[:128].tolist() == [*words, *words, *words, *words]
    memory = Memory()
    base = memory.map_array(np.arange(10, 42, dtype=np.uint32), name="A")
    text = "global_load_async_to_lds_b32 v0, v2, s[2:3]"
    found = gfx1250(text, v={0: address, 2: 4 * LANE}, s={2: base}, memory=memory, lds=bytes(512))
    assert found.waves.lds.view(np.uint32)[:32].tolist() == np.where(LANE % 3 == 0, 0, LANE + 10).tolist()
    with pytest.raises(MemoryFault, match="ds_store_b32 writes 4 bytes outside of LDS"):
        gfx1250("ds_store_b32 v0, v1", v={0: np.full(32, 0x7FFFFFF0), 1: LANE}, lds=bytes(512))


def test_a_function_of_bits_takes_an_operand_from_another_lane(gfx1250: Run) -> None:
    x, y = LANE * 0x01234567, LANE * 0x89ABCDEF ^ 0x5A5A
    text = "v_bitop3_b32_e64_dpp v3, v0, v1, v0 bitop3:0x80 quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf bound_ctrl:1"
    found = gfx1250(text, v={0: x, 1: y})
    assert found.v(3).tolist() == (x[LANE ^ 1] & y & x).tolist()


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


@pytest.mark.parametrize(
    ("high_bits", "text"),
    [
        (0x41, "global_load_async_to_lds_b32 v0 /*v256*/, v1 /*v257*/, s[2:3]"),
        (0x41, "global_load_async_to_lds_b32 v0 /*v256*/, v[4:5] /*v[260:261]*/, off"),
        (0x41, "global_load_async_to_lds_b32 v0 /*v256*/, v2 /*v258*/, s[2:3] scale_offset"),
        (0x41, "cluster_load_async_to_lds_b32 v0 /*v256*/, v1 /*v257*/, s[2:3]"),
        (0x05, "global_store_async_from_lds_b32 v1 /*v257*/, v0 /*v256*/, s[2:3]"),
    ],
)
def test_the_places_of_asynchronous_copies(gfx1250: Run, high_bits: int, text: str) -> None:
    """As LLVM writes them: the address in LDS of a load has the place of a result."""
    data = np.arange(100, 132, dtype=np.uint32)
    memory = Memory()
    base = memory.map_array(data, name="A")
    address = base + 4 * LANE.astype(np.uint64)
    registers = {256: 4 * LANE[::-1], 257: 4 * LANE, 258: LANE, 260: address & 0xFFFFFFFF, 261: address >> 32}
    lds = np.arange(32, dtype=np.uint32).tobytes()
    found = gfx1250(f"s_set_vgpr_msb {high_bits:#x}\n{text}", v=registers, s={2: base}, memory=memory, lds=lds)
    if "store" in text:
        assert data.tolist() == LANE[::-1].tolist()
    else:
        assert found.waves.lds.view(np.uint32)[:32].tolist() == data[::-1].tolist()


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


# --- conversions

FORMATS = {"fp8": (4, 3, 7), "bf8": (5, 2, 15), "fp6": (2, 3, 1), "bf6": (3, 2, 3), "fp4": (2, 1, 1)}


def number(name: str, code: int) -> float:
    """The number of a code; of 8 bits there are NaNs, and of bf8 infinities, too (OCP specifications)."""
    exponent_bits, mantissa_bits, bias = FORMATS[name]
    sign = -1.0 if code >> (exponent_bits + mantissa_bits) else 1.0
    magnitude = code & ((1 << (exponent_bits + mantissa_bits)) - 1)
    if (name, magnitude) in (("fp8", 0x7F), ("bf8", 0x7D), ("bf8", 0x7E), ("bf8", 0x7F)):
        return float("nan")
    if (name, magnitude) == ("bf8", 0x7C):
        return sign * float("inf")
    exponent, mantissa = divmod(magnitude, 1 << mantissa_bits)
    return sign * (mantissa / (1 << mantissa_bits) + (exponent > 0)) * 2.0 ** (max(exponent, 1) - bias)


def bits_of(name: str) -> int:
    return 1 + sum(FORMATS[name][:2])


def packed(codes: list[int], bits: int) -> list[int]:
    whole = sum(code << bits * i for i, code in enumerate(codes))
    return [whole >> 32 * i & 0xFFFFFFFF for i in range(bits * len(codes) // 32)]


def unpacked(found: Any, first: int, bits: int, count: int, lane: int) -> list[int]:
    dwords = (int(found.v(first + i)[lane]) << 32 * i for i in range(bits * count // 32))
    whole = sum(dwords)
    return [whole >> bits * i & ((1 << bits) - 1) for i in range(count)]


def of_wide(type_: str, raw: list[int]) -> list[float]:
    if type_ == "bf16":
        return [float(np.uint32(x << 16).view(np.float32)) for x in raw]
    return [
        float(x) for x in np.array(raw, np.uint32 if type_ == "f32" else np.uint16).view(type_.replace("f", "float"))
    ]


@pytest.mark.parametrize("name", ["fp8", "bf8"])
def test_float8_as_f16(gfx1250: Run, name: str) -> None:
    codes = np.arange(256, dtype=np.uint32)
    text = f"v_cvt_f16_{name} v1, v0 byte_sel:1\nv_cvt_pk_f16_{name} v2, v0"
    found = gfx1250(text, v={0: codes << 8 | 0x38})
    wanted = np.array([number(name, int(code)) for code in codes], np.float16)
    np.testing.assert_array_equal((found.v(1) & 0xFFFF).astype(np.uint16).view(np.float16), wanted)
    np.testing.assert_array_equal((found.v(2) >> 16).astype(np.uint16).view(np.float16), wanted)
    low = (found.v(2) & 0xFFFF).astype(np.uint16).view(np.float16)
    assert (low == np.float16(number(name, 0x38))).all()


@pytest.mark.parametrize("name", ["fp8", "bf8"])
def test_float8_of_f16(gfx1250: Run, name: str) -> None:
    """Every number comes back; the result is the half that op_sel names. With no random bits, it is cut off."""
    codes = np.array([c for c in range(256) if np.isfinite(number(name, c))], np.uint32)
    codes = np.resize(codes, 256)
    halves = np.array([number(name, int(c)) for c in codes], np.float16).view(np.uint16).astype(np.uint32)
    text = f"v_cvt_pk_{name}_f16 v1, v0\nv_cvt_pk_{name}_f16 v1, v0 op_sel:[0,1]\n"
    text += f"v_cvt_sr_{name}_f16 v2, v0, v3 byte_sel:2"
    found = gfx1250(text, v={0: halves | 0x3C00 << 16, 2: np.uint32(0x11223344)})
    one = next(c for c in range(256) if number(name, c) == 1.0)
    assert found.v(1).tolist() == ((codes | one << 8) * 0x10001).tolist()
    assert found.v(2).tolist() == ((codes << 16) | 0x11003344).tolist()


@pytest.mark.slow
@pytest.mark.parametrize("wide", ["f32", "f16", "bf16"])
@pytest.mark.parametrize("name", FORMATS)
def test_blocks_with_a_scale(gfx1250: Run, name: str, wide: str) -> None:
    bits, count = bits_of(name), 16 if "6" in name else 8
    rng = np.random.default_rng(3)
    finite = [c for c in range(1 << bits) if abs(number(name, c)) < 2**13]  # which f16 has times the scale, too
    codes = [[int(rng.choice(finite)) for _ in range(count)] for _ in range(32)]
    columns = np.array([packed(row, bits) for row in codes], np.uint32)
    scales = LANE % 5 + 125
    wide_bits = 32 if wide == "f32" else 16
    registers, narrow = count * wide_bits // 32, columns.shape[1]
    source = "v0" if narrow == 1 else f"v[0:{narrow - 1}]"
    block, back = f"v[10:{9 + registers}]", "v50" if narrow == 1 else f"v[50:{49 + narrow}]"
    text = f"v_cvt_scale_pk{count}_{wide}_{name} {block}, {source}, v8 scale_sel:1\n"
    text += f"v_cvt_scalef32_pk{count}_{name}_{wide} {back}, {block}, v9"
    values = {i: columns[:, i] for i in range(narrow)} | {8: scales << 8 | 0x33, 9: scales << 23}
    found = gfx1250(text, v=values)
    for lane in range(32):
        got = of_wide(wide, unpacked(found, 10, wide_bits, count, lane))
        assert got == [number(name, c) * 2.0 ** (int(scales[lane]) - 127) for c in codes[lane]]
        assert unpacked(found, 50, bits, count, lane) == codes[lane]


def test_a_scale_that_no_document_names_is_refused(gfx1250: Run) -> None:
    with pytest.raises(UnknownInstruction, match="scale_sel:4"):
        gfx1250("v_cvt_scale_pk8_f32_fp4 v[10:17], v0, v8 scale_sel:4")


@pytest.mark.parametrize("type_", ["f32", "f16"])
def test_the_hyperbolic_tangent(gfx1250: Run, type_: str) -> None:
    dtype = np.dtype(type_.replace("f", "float"))
    near = np.concatenate([np.linspace(-11, 11, 900), np.geomspace(1e-7, 1, 100), [0.0, np.inf, -np.inf, np.nan]])
    x = np.resize(near, 1024).astype(dtype)
    found = gfx1250(f"v_tanh_{type_} v1, v0", v={0: x}).v(1)
    got = found.view(np.float32) if type_ == "f32" else (found & 0xFFFF).astype(np.uint16).view(np.float16)
    wanted = np.tanh(x.astype(np.float64)).astype(dtype)
    np.testing.assert_array_max_ulp(got[~np.isnan(x)], wanted[~np.isnan(x)], 0)
    assert np.isnan(got[np.isnan(x)]).all()


def test_constants_of_bf16_are_rounded(gfx1250: Run) -> None:
    """But 1 / (2 pi), an inline constant, is cut off. v_fma_mix has the bits of a bf16 even where it reads an f32."""
    text = "v_pk_add_bf16 v1, 0.1, v0\nv_pk_add_bf16 v2, 0.15915494, v0\nv_fma_mix_f32_bf16 v3, 0.1, 1.0, v0"
    found = gfx1250(text, v={0: np.zeros(32, np.uint32)})
    assert [int(found.v(i)[0]) & 0xFFFF for i in (1, 2, 3)] == [0x3DCD, 0x3E22, 0x3DCD]


def test_signs_of_bf16(gfx1250: Run) -> None:
    found = gfx1250(
        "v_sqrt_bf16_e64 v1, -v0\nv_rcp_bf16_e64 v2, |v0|\nv_cvt_f32_bf16_e64 v3, -|v0|\nv_exp_bf16 v4, 1.0",
        v={0: np.full(32, 0xC080)},
    )
    assert found.v(1)[0] & 0xFFFF == 0x4000  # the root of 4
    assert found.v(2)[0] & 0xFFFF == 0x3E80
    assert found.v(3, np.float32)[0] == -4.0
    assert found.v(4)[0] & 0xFFFF == 0x4000


def test_mixed_multiply_adds_of_bf16(gfx1250: Run) -> None:
    """op_sel_hi tells which operands are bf16, op_sel the half."""
    x, y = 0x4000_3F80, 0x40A0_0000  # 2 and 1; 5
    values = {0: np.uint32(x), 1: np.uint32(y), 2: np.float32(0.25), 3: np.uint32(0xAAAA_BBBB)}
    select = "op_sel:[1,1,0] op_sel_hi:[1,1,0]"
    text = f"v_fma_mix_f32_bf16 v4, v0, v1, v2 {select}\nv_mov_b32 v5, v3\nv_mov_b32 v6, v3\n"
    text += f"v_fma_mixlo_bf16 v5, v0, -v1, v2 {select}\nv_fma_mixhi_bf16 v6, v0, v1, |v2| {select}"
    found = gfx1250(text, v={k: np.full(32, value) for k, value in values.items()})
    assert found.v(4, np.float32)[0] == 10.25
    assert found.v(5)[0] == 0xAAAA_C11C  # -9.75
    assert found.v(6)[0] == 0x4124_BBBB


# --- between lanes


@pytest.mark.parametrize(("size", "distance"), [(32, 5), (16, 3), (8, 2), (4, 1), (8, 40)])
def test_permutations_in_groups(gfx1250: Run, size: int, distance: int) -> None:
    names = ("bcast", "up", "down", "xor")
    text = "\n".join(f"v_permlane_{name}_b32 v{i}, v0, s2, s3" for i, name in enumerate(names, 1))
    found = gfx1250(text, v={0: LANE + 100}, s={2: distance, 3: size})
    for lane in range(32):
        place, first = lane % size, lane - lane % size
        wanted = {
            "bcast": first + distance % size,
            "up": lane - distance if place >= distance else lane,
            "down": lane + distance if place + distance < size else lane,
            "xor": first + (place ^ distance) if place ^ distance < size else lane,
        }
        for i, name in enumerate(names, 1):
            assert found.v(i)[lane] == wanted[name] + 100, (name, lane)


def test_addresses_of_lanes_in_groups(gfx1250: Run) -> None:
    text = "v_permlane_idx_gen_b32 v1, v0, s2\nds_bpermute_b32 v2, v1, v3"
    found = gfx1250(text, v={0: 3 * LANE + 1, 3: LANE + 100}, s={2: 8})
    picked = (LANE & ~np.uint32(7)) + (3 * LANE + 1) % 8
    assert found.v(1).tolist() == (4 * picked).tolist()
    assert found.v(2).tolist() == (picked + 100).tolist()


def test_rows_of_two_registers_change_places(gfx1250: Run) -> None:
    found = gfx1250("v_permlane16_swap_b32 v0, v1", v={0: LANE + 100, 1: LANE + 200})
    assert found.v(0).tolist() == [*range(100, 116), *range(200, 216)]
    assert found.v(1).tolist() == [*range(116, 132), *range(216, 232)]


@pytest.mark.parametrize(("bits", "upper", "lower"), [(4, 1, 1), (6, 1, 2), (8, 2, 2)])
def test_tables_in_registers(gfx1250: Run, bits: int, upper: int, lower: int) -> None:
    """The first operand is the upper part of the table."""
    rng = np.random.default_rng(bits)
    dwords = rng.integers(0, 1 << 32, (upper + lower, 32), dtype=np.uint64).astype(np.uint32)
    indices = rng.integers(0, 1 << 32, (2, 32), dtype=np.uint64).astype(np.uint32)
    names = {"v0": upper, "v4": lower, "v8": 2, "v12": 16 * bits // 32}
    high, low, index, result = (n if c == 1 else f"v[{n[1:]}:{int(n[1:]) + c - 1}]" for n, c in names.items())
    values = {i: dwords[lower + i] for i in range(upper)} | {4 + i: dwords[i] for i in range(lower)}
    found = gfx1250(
        f"v_perm_pk16_b{bits}_u4 {result}, {high}, {low}, {index}", v=values | {8: indices[0], 9: indices[1]}
    )
    for lane in range(32):
        table = sum(int(d) << 32 * i for i, d in enumerate(dwords[:, lane]))
        chosen = [int(indices[i // 8, lane]) >> 4 * (i % 8) & 15 for i in range(16)]
        wanted = [table >> bits * c & ((1 << bits) - 1) for c in chosen]
        assert unpacked(found, 12, bits, 16, lane) == wanted


# --- loads that transpose


def transposed_at(bits: int, space: str, lane: int) -> tuple[int, int]:
    """The column and the first row of what a lane loads (AMD's test of the instructions; in LDS, Triton's lowering)."""
    if bits == 4:
        return lane, 0
    if bits == 6:
        return 4 * (lane >> 3) + (lane & 3) + 16 * (lane >> 2 & 1), 0
    if bits == 8 and space == "ds":
        return (lane & 3) + 4 * (lane >> 3 & 1) + 8 * (lane >> 4), 8 * (lane >> 2 & 1)
    return (lane & 7) + 8 * (lane >> 4), 8 * (lane >> 3 & 1)


@pytest.mark.parametrize("space", ["ds", "global"])
@pytest.mark.parametrize(("bits", "dwords"), [(16, 4), (8, 2), (6, 3), (4, 2)])
def test_loads_transpose_a_tile(gfx1250: Run, space: str, bits: int, dwords: int) -> None:
    """A tile of 16 rows lies in memory column by column; lanes get elements of a row, as WMMA takes them."""
    columns = 16 if bits >= 8 else 32
    rng = np.random.default_rng(bits)
    tile = rng.integers(0, 1 << bits, (16, columns))
    memory_bits = "".join(f"{int(tile[m, k]):0{bits}b}"[::-1] for k in range(columns) for m in range(16))
    raw = np.packbits([int(c) for c in memory_bits], bitorder="little")
    places = [transposed_at(bits, space, lane) for lane in range(32)]
    addresses = np.array([(16 * k + m) * bits // 8 for k, m in places], np.uint32)
    name = f"{space}_load_tr{bits}_b{32 * dwords}"
    if space == "ds":
        found = gfx1250(f"{name} v[2:{1 + dwords}], v0", v={0: addresses}, lds=raw.tobytes())
    else:
        memory = Memory()
        base = memory.map_array(raw.copy(), name="A")
        found = gfx1250(f"{name} v[2:{1 + dwords}], v0, s[4:5]", v={0: addresses}, s={4: base}, memory=memory)
    count = 32 * dwords // bits
    for lane in range(32):
        row, half = lane % 16, lane // 16
        if bits == 4:
            held = [i % 8 + 8 * half + 16 * (i // 8) for i in range(count)]
        else:
            held = [count * half + i for i in range(count)]
        assert unpacked(found, 2, bits, count, lane) == [int(tile[row, k]) for k in held]


# --- pairs with three sources


def test_pairs_with_three_sources_and_signs(gfx1250: Run) -> None:
    values = {i: np.float32(i) * np.ones(32, np.float32) for i in range(1, 13)}
    text = "v_dual_fma_f32 v20, v1, -v5, v9 :: v_dual_fma_f32 v21, v2, v6, -v10\n"
    text += "v_dual_cndmask_b32 v22, v1, v5, s4 :: v_dual_cndmask_b32 v23, v2, -v6, s5\n"
    text += "v_dual_sub_nc_u32 v24, v1, v5 :: v_dual_bitop2_b32 v25, v2, v6 bitop3:0x14\n"
    text += "v_dual_add_f64 v[26:27], v[28:29], v[30:31] :: v_dual_ashrrev_i32 v33, v34, v38"
    doubles = {28: np.full(32, 1.5), 30: np.full(32, 2.25), 34: np.full(32, 4), 38: np.full(32, -64, np.int32)}
    found = gfx1250(text, v=values | doubles, s={4: 0xF, 5: 0xF0})
    assert found.v(20, np.float32)[0] == -5 + 9
    assert found.v(21, np.float32)[0] == 12 - 10
    assert found.v(22, np.float32).tolist() == [5.0] * 4 + [1.0] * 28
    assert found.v(23, np.float32).tolist() == [2.0] * 4 + [-6.0] * 4 + [2.0] * 24
    one, two, five, six = (int(np.float32(x).view(np.uint32)) for x in (1, 2, 5, 6))
    assert found.v(24)[0] == one - five & 0xFFFFFFFF
    assert found.v(25)[0] == two ^ six  # of 0x14, entries 2 and 4: one of both, where the third source is 0
    assert found.v(26, np.float64)[0] == 3.75
    assert found.v(33, np.int32)[0] == -4


# --- resources, scratch, and code at addresses


def test_a_resource_has_57_bits_of_base_and_45_of_records(gfx1250: Run) -> None:
    memory, base, _ = data_before_and_after()
    resource = base | 100 << 57 | (0 << 64)  # 100 bytes
    scalars = {4: resource & (1 << 64) - 1, 6: resource >> 64 & (1 << 64) - 1}
    text = "buffer_load_b32 v1, v0, s[4:7], null offen\n"
    text += "s_buffer_load_b64 s[10:11], s[4:7], 0x5c\ns_buffer_load_u8 s12, s[4:7], 0x64"
    found = gfx1250(text, v={0: 4 * LANE}, s=scalars | {12: 7}, memory=memory)
    assert found.v(1).tolist() == [*DATA[:25].tolist(), *[0] * 7]
    assert (found.s(10), found.s(11), found.s(12)) == (1023, 1024, 0)


def test_offsets_of_buffers_do_not_wrap(gfx1250: Run) -> None:
    memory, base, _ = data_before_and_after()
    scalars = {4: base, 6: 256 >> 7}
    found = gfx1250(
        "buffer_load_b32 v1, v0, s[4:7], null offen offset:8",
        v={0: np.full(32, -4, np.int32)},
        s=scalars,
        memory=memory,
    )
    assert found.v(1).tolist() == [0] * 32


def test_records_with_a_stride(gfx1250: Run) -> None:
    """The stride is in units of 4 bytes; with bit 29 an access does not leave its record."""
    memory, base, _ = data_before_and_after()
    scalars = {4: base, 6: 256 >> 7, 7: 2 << 12 | 1 << 26}
    values = {0: LANE % 8, 1: 4 * (LANE // 8)}
    found = gfx1250("buffer_load_b32 v2, v[0:1], s[4:7], null idxen offen", v=values, s=scalars, memory=memory)
    assert found.v(2).tolist() == DATA[2 * (LANE % 8) + LANE // 8].tolist()
    inside = gfx1250(
        "buffer_load_b32 v2, v[0:1], s[4:7], null idxen offen",
        v=values,
        s=scalars | {7: scalars[7] | 1 << 29},
        memory=memory,
    )
    assert inside.v(2).tolist() == np.where(LANE < 16, DATA[2 * (LANE % 8) + LANE // 8], 0).tolist()


def test_flat_addresses_in_scratch_name_their_lane(gfx1250: Run) -> None:
    text = "v_mbcnt_lo_u32_b32 v1, -1, 0\nv_lshlrev_b32_e32 v1, 20, v1\nv_mov_b32_e32 v0, 8\n"
    text += "v_add_nc_u64_e32 v[2:3], src_flat_scratch_base_lo, v[0:1]\nflat_store_b32 v[2:3], v4 offset:4\n"
    text += "scratch_load_b32 v5, off, off offset:12\nflat_load_b32 v6, v[2:3] offset:4\n"
    text += "s_mov_b32 s4, src_flat_scratch_base_hi\nv_xor_b32_e32 v7, s4, v3"
    found = gfx1250(text, v={4: LANE + 9}, scratch_bytes=16)
    assert found.v(5).tolist() == found.v(6).tolist() == (LANE + 9).tolist()
    assert (found.v(7) < 1 << 26).all()  # how compilers tell such an address


def test_code_at_an_address(gfx1250: Run) -> None:
    text = "s_get_pc_i64 s[12:13]\ns_add_nc_u64 s[12:13], s[12:13], f@rel64+4\ns_swap_pc_i64 s[30:31], s[12:13]\n"
    text += "s_add_co_i32 s4, s4, 1\ns_endpgm\nf:\ns_mov_b32 s4, 41\ns_set_pc_i64 s[30:31]"
    assert gfx1250(text).s(4) == 42


def test_literals_of_64_bits(gfx1250: Run) -> None:
    text = "s_mov_b64 s[4:5], 0x123456789abcdef\nv_add_nc_u64_e32 v[0:1], 0x123456789abcdef, v[2:3]\n"
    text += "v_add_f64_e32 v[4:5], 0x40000000, v[2:3]\nv_fmaak_f64 v[6:7], v[2:3], v[2:3], 0x4008000000000001"
    found = gfx1250(text, v={2: np.zeros(32, np.float64)})
    assert found.s(4, 2) == 0x123456789ABCDEF == int(found.v(0, np.uint64)[0])
    assert found.v(4, np.float64)[0] == 2.0
    assert int(found.v(6, np.uint64)[0]) == 0x4008000000000001


@pytest.mark.parametrize("name", ["global", "flat", "buffer", "ds"])
def test_atomics_of_f64(gfx1250: Run, name: str) -> None:
    out = np.array([2.0, 8.0, -3.0])
    memory = Memory()
    base = memory.map_array(out, name="out")
    values = {0: np.zeros(32, np.uint32), 2: np.full(32, 5.0)}
    rests = {"global": "s[4:5]", "flat": "s[4:5]", "buffer": "s[4:7], null offen", "ds": ""}
    names = ("add", "min_num", "max_num")
    lines = []
    for i, n in enumerate(names):
        operands = "v[2:3], v0" if name == "buffer" else "v0, v[2:3]"
        rest = f", {rests[name]}" if rests[name] else ""
        lines.append(f"{name}_{'' if name == 'ds' else 'atomic_'}{n}_f64 {operands}{rest} offset:{8 * i}")
    found = gfx1250("\n".join(lines), v=values, s={4: base, 6: 1}, memory=memory, lds=out.tobytes(), exec_bits=1)
    got = found.waves.lds[:24].view(np.float64) if name == "ds" else out
    assert got.tolist() == [7.0, 5.0, 5.0]


def test_monitored_loads_load(gfx1250: Run) -> None:
    memory, base, _ = data_before_and_after()
    text = "global_load_monitor_b32 v1, v0, s[4:5]\nflat_load_monitor_b64 v[2:3], v0, s[4:5]\ns_monitor_sleep 1"
    text += "\nglobal_load_monitor_b128 v[4:7], v0, s[4:5]\nflat_load_monitor_b32 v8, v[10:11]"
    text += "\ns_get_shader_cycles_u64 s[8:9]"
    text += "\nglobal_prefetch_b8 v0, s[4:5]\nflat_prefetch_b8 v[10:11]\ns_setprio_inc_wg 1"
    address = np.full(32, base, np.uint64)
    found = gfx1250(text, v={0: 4 * (LANE % 8), 10: address}, s={4: base}, memory=memory)
    assert found.v(1).tolist() == found.v(2).tolist() == found.v(4).tolist() == DATA[LANE % 8].tolist()
    assert found.v(8).tolist() == [1000] * 32


def test_modes_that_say_nothing_of_floats(gfx1250: Run) -> None:
    text = "s_setreg_imm32_b32 hwreg(HW_REG_WAVE_MODE, 25, 1), 1\n"
    text += "s_setreg_imm32_b32 hwreg(HW_REG_WAVE_SCHED_MODE, 0, 2), 2\n"
    text += "s_getreg_b32 s4, hwreg(HW_REG_WAVE_MODE)\ns_getreg_b32 s5, hwreg(HW_REG_IB_STS2, 6, 4)"
    found = gfx1250(text, mode=0x1F0)
    assert (found.s(4), found.s(5)) == (0x1F0, 0)
    with pytest.raises(UnknownInstruction, match="upper bits of the numbers of VGPRs"):
        gfx1250("s_setreg_b32 hwreg(HW_REG_WAVE_MODE, 12, 8), s4")


@pytest.mark.parametrize(("constant", "target", "source"), [(0, 6, 5), (0x4000, 6, 261), (0x1000, 262, 5)])
def test_a_constant_for_mode_sets_the_upper_bits_too(gfx1250: Run, constant: int, target: int, source: int) -> None:
    text = f"s_set_vgpr_msb 1\ns_setreg_imm32_b32 hwreg(HW_REG_WAVE_MODE, 25, 1), {constant:#x}\nv_mov_b32 v6, v5"
    found = gfx1250(f"{text}\ns_set_vgpr_msb 0", v={5: LANE, 261: LANE + 1000})
    assert found.v(target).tolist() == (LANE if source == 5 else LANE + 1000).tolist()


@pytest.mark.parametrize("name", ["cluster_load_b32 v0,", "cluster_load_async_to_lds_b32 v0,", "global_load_b32 v0,"])
@pytest.mark.parametrize("address", ["off, off", "v1, off", "v[2:3], s[4:5]", "off, s[4:5]"])
def test_addresses_of_other_registers_are_refused(gfx1250: Run, name: str, address: str) -> None:
    with pytest.raises(UnknownInstruction, match=r"an address of . vector and . scalar registers"):
        gfx1250(f"{name} {address}")


def test_packed_bf16_takes_constants(gfx1250: Run) -> None:
    """A float constant is a bf16 in the lower half, which op_sel_hi repeats; an integer is its bits."""
    halves = np.full(32, 0x4040_3F80, np.uint32)
    text = "v_pk_mul_bf16 v1, 2.0, v0 op_sel_hi:[0,1]\nv_pk_add_bf16 v2, v0, 1\nv_pk_mul_bf16 v3, -0.5, v0"
    found = gfx1250(text, v={0: halves})
    assert [hex(found.v(i)[0]) for i in (1, 2, 3)] == ["0x40c04000", "0x40403f80", "0xbf00"]


FAR_BRANCHES = """s_add_pc_i64 .Lfar-.Lpost_addpc0
.Lpost_addpc0:
s_mov_b32 s11, 7
.Lback:
s_mov_b32 s10, 3
s_endpgm
.Lfar:
s_add_pc_i64 .Lback-.Lpost_addpc1
.Lpost_addpc1:
s_mov_b32 s11, 5"""


def test_a_branch_too_far_for_16_bits(gfx1250: Run) -> None:
    found = gfx1250(FAR_BRANCHES)
    assert (found.s(10), found.s(11)) == (3, 0)
    for other in ("s[2:3]", "0x40", ".Lfar-.Lback"):  # distances in bytes, which the simulator does not count
        with pytest.raises(UnknownInstruction, match="s_add_pc_i64"):
            gfx1250(FAR_BRANCHES.replace(".Lfar-.Lpost_addpc0", other))
