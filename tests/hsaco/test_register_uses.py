"""Which registers an instruction uses, against the simulator's table of instructions."""

from __future__ import annotations

import pytest
import torch

from flydsl.arch import GFX942
from flydsl.hsaco.operands import Register
from flydsl.hsaco.register_uses import RegisterSet, reads_result, registers_of, result_count, uses
from flydsl.simulator import Program
from flydsl.simulator.isa.table import IMPLICIT, Semantics, entries_of
from kernels.vector_add import vector_add
from tests.kernels.examples import tiledCopy, tiledMma
from workbench.machine_code.analysis import analyses

# Entries for contexts that change the operands ("/lds") are told apart by modifiers here; with "..." any operands go.
ENTRIES = [s for name, s in entries_of(GFX942.instruction_sets).items() if "/" not in name and s.sources != ("...",)]


def explicit(words: tuple[str, ...]) -> list[str]:
    return [word for word in words if word not in IMPLICIT]


def test_results_are_those_of_the_simulator():
    wrong = [s.mnemonic for s in ENTRIES if result_count(s.mnemonic, operands(s), []) != results(s)]
    assert wrong == []


def operands(semantics: Semantics) -> int:
    return len(explicit(semantics.results)) + len(explicit(semantics.sources))


def results(semantics: Semantics) -> int:
    """A branch's label stands on the left of the table, and is not a register."""
    return sum(word != "label" for word in explicit(semantics.results))


def test_results_that_are_read_are_those_of_the_simulator():
    """Except 16-bit results of instructions that leave the other half alone: nobody reads that half as such."""
    table = {s.mnemonic for s in ENTRIES if results(s) and {"dst", "dst1"} & set(s.sources)}
    halves = {s.mnemonic for s in ENTRIES if any(word.endswith("~") for word in s.results)}
    found = {s.mnemonic for s in ENTRIES if results(s) and reads_result(s.mnemonic, "v0", [])}
    assert (found ^ table) - halves == set()


@pytest.mark.parametrize(
    ("text", "reads", "writes"),
    [
        ("v_add_f32_e32 v2, v2, v3", "v2 v3", "v2"),
        ("v_mfma_f32_16x16x16_f16 a[0:3], v[0:1], v[2:3], a[0:3]", "v0 v1 v2 v3 a0 a1 a2 a3", "a0 a1 a2 a3"),
        ("v_fmac_f32_e32 v0, s1, v2", "s1 v0 v2", "v0"),
        ("v_addc_co_u32_e32 v1, vcc, 0, v1, vcc", "vcc_lo vcc_hi v1", "vcc_lo vcc_hi v1"),
        ("v_div_fmas_f32 v0, v1, v2, v3", "vcc_lo vcc_hi v1 v2 v3", "v0"),
        ("v_add_f32_e64 v0, -v1, |s2|", "s2 v1", "v0"),
        ("v_readfirstlane_b32 s4, v1", "v1", "s4"),
        ("s_load_dwordx2 s[8:9], s[0:1], 0x0", "s0 s1", "s8 s9"),
        ("s_cmp_lg_u32 s3, s6", "s3 s6", ""),
        ("s_cbranch_vccnz .LBB0_2", "vcc_lo vcc_hi", ""),
        ("s_waitcnt vmcnt(0) lgkmcnt(0)", "", ""),
        ("s_endpgm", "", ""),
        ("s_bitset1_b32 s0, 3", "s0", "s0"),
        ("global_load_dwordx4 v[6:9], v[6:7], off", "v6 v7", "v6 v7 v8 v9"),
        ("global_store_dword v[0:1], v2, off offset:16", "v0 v1 v2", ""),
        ("global_load_dword v1, v2, s[4:5]", "s4 s5 v2", "v1"),
        ("buffer_load_dwordx4 v[0:3], v4, s[8:11], 0 offen", "s8 s9 s10 s11 v4", "v0 v1 v2 v3"),
        ("buffer_load_dword v1, s[8:11], 0 offen lds", "s8 s9 s10 s11 v1", ""),
        ("buffer_load_short_d16 v1, v2, s[8:11], 0 offen", "s8 s9 s10 s11 v1 v2", "v1"),
        ("global_atomic_add v[0:1], v2, off", "v0 v1 v2", ""),
        ("global_atomic_add v3, v[0:1], v2, off sc0", "v0 v1 v2", "v3"),
        ("global_atomic_add_u32 v3, v0, v2, s[0:1] th:TH_ATOMIC_RETURN", "s0 s1 v0 v2", "v3"),
        ("buffer_atomic_add v0, off, s[0:3], 0 sc0", "s0 s1 s2 s3 v0", "v0"),
        ("ds_write_b128 v0, v[4:7]", "v0 v4 v5 v6 v7", ""),
        ("ds_add_u32 v0, v1", "v0 v1", ""),
        ("ds_add_rtn_u32 v2, v0, v1", "v0 v1", "v2"),
        ("ds_bpermute_b32 v2, v0, v1", "v0 v1", "v2"),
        ("v_mov_b32_dpp v0, v1 quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf", "v0 v1", "v0"),
        ("v_mov_b32_dpp v0, v1 row_shr:1 row_mask:0xf bank_mask:0xf bound_ctrl:1", "v1", "v0"),
        ("v_dual_cndmask_b32 v0, v1, v2 :: v_dual_add_f32 v3, v4, v5", "vcc_lo v1 v2 v4 v5", "v0 v3"),
        ("v_dual_cndmask_b32 v0, v1, v2, s6 :: v_dual_add_f32 v3, v4, v5", "s6 v1 v2 v4 v5", "v0 v3"),
        ("v_dual_mul_f32 v0, v1, v2 :: v_dual_add_f32 v3, s4, v5", "s4 v1 v2 v5", "v0 v3"),
        ("v_cmpx_lt_f32_e32 v0, v1", "v0 v1", ""),
        ("v_cmp_lt_f32_e32 vcc_lo, v0, v1", "v0 v1", "vcc_lo"),
        ("v_add_f32_e32 v4 /*v260*/, v1, v2 /*v514*/", "v1 v514", "v260"),
        ("v_swap_b32 v0, v1", "v0 v1", "v0 v1"),
        ("v_add_f16_e32 v0.l, v1.l, v2.h", "v0 v1 v2", "v0"),
    ],
)
def test_instructions_of_every_family(text, reads, writes):
    found = uses(text)
    assert (found.reads.names(), found.writes.names()) == (reads.split(), writes.split())


def test_sets_of_registers():
    found = registers_of("v[2:3], a0, s7, vcc_hi, m0, exec, 0x10, v4x")
    assert found.names() == ["s7", "vcc_hi", "v2", "v3", "a0"]
    assert [found.count(file) for file in "sva"] == [2, 2, 1]
    assert RegisterSet.of("v", 1023).names() == ["v1023"]


def decoded(operands) -> RegisterSet:
    """The registers of operands that the simulator has decoded, as far as they are counted."""
    found = 0
    for register in (getattr(operand, "atom", None) for operand in operands):
        if isinstance(register, Register) and (register.file != "s" or register.first < 108):
            found |= RegisterSet.of(register.file, register.first, register.count)
    return RegisterSet(found)


KERNELS = {
    "vector_add": lambda: vector_add.lower(*(torch.ones(4096) for _ in range(3))),
    "tiledCopy": lambda: tiledCopy.lower(torch.zeros(40, 72), torch.zeros(40, 72)),
    "tiledMma": lambda: tiledMma.lower(*(torch.zeros(64, n) for n in (8, 8, 64))),
}


@pytest.mark.parametrize("name", KERNELS)
def test_registers_are_those_that_the_simulator_decodes(name):
    code = KERNELS[name]().artifact.code
    program = Program.load(code.hsaco, code.listing)
    (analysis,) = analyses(code)
    start = program.labels[analysis.kernel.name]
    for instruction in analysis.instructions:
        other = program.instructions[start + instruction.index]
        sources, results = other.semantics.sources, decoded(other.results)
        vcc = registers_of("vcc")
        reads = decoded(other.sources) | (results if {"dst", "dst1"} & set(sources) else 0)
        reads |= vcc if {"vcc", "vcc_bits"} & set(sources) else 0
        writes = results | (vcc if "vcc" in other.semantics.results else 0)
        assert (instruction.uses.reads, instruction.uses.writes) == (reads, writes), instruction.text
