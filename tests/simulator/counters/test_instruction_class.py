"""Every instruction of the table has its class."""

from __future__ import annotations

import pytest

from flydsl.simulator.counters.instruction_class import CLASSES, instruction_class
from flydsl.simulator.isa import TABLE
from flydsl.simulator.isa.table import mnemonic_of
from flydsl.simulator.isa.waits_and_hints import effect_of


def test_few_instructions_have_no_class_of_their_own() -> None:
    others = {name for name in map(mnemonic_of, TABLE) if instruction_class(name) == "other"}
    assert {instruction_class(mnemonic_of(name)) for name in TABLE} == set(CLASSES)
    assert {name for name in others if effect_of(name) == "state"} == {
        "s_endpgm",
        "s_endpgm_saved",
        "s_trap",
        "s_sendmsg_rtn_b64",
    }


@pytest.mark.parametrize(
    ("mnemonic", "name"),
    [
        ("v_smfmac_f32_16x16x32_f16", "MFMA"),
        ("v_accvgpr_read_b32", "VALU"),
        ("v_readfirstlane_b32", "VALU"),
        ("flat_load_dwordx2", "VMEM load"),
        ("tensor_load_to_lds", "VMEM load"),
        ("tensor_store_from_lds", "VMEM store"),
        ("cluster_load_async_to_lds_b64", "VMEM load"),
        ("global_store_async_from_lds_b64", "VMEM store"),
        ("scratch_store_dword", "VMEM store"),
        ("global_atomic_pk_add_f16", "VMEM atomic"),
        ("s_buffer_load_dwordx4", "SMEM"),
        ("s_memtime", "SMEM"),
        ("s_set_gpr_idx_on", "SALU"),
        ("s_setpc_b64", "branch"),
        ("buffer_inv", "wait"),
        ("s_waitcnt", "wait"),
        ("s_barrier", "barrier"),
        ("s_barrier_wait", "barrier"),
        ("s_wait_loadcnt_dscnt", "wait"),
        ("v_wmma_f32_16x16x16_f16", "MFMA"),
        ("v_dual_mov_b32::v_dual_add_f32", "VALU"),
        ("global_inv", "wait"),
    ],
)
def test_classes(mnemonic: str, name: str) -> None:
    assert instruction_class(mnemonic) == name
