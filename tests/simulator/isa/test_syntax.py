"""The table's names and operands are those of the assembler: every entry assembles for the GPUs that it is of."""

from __future__ import annotations

from collections.abc import Iterator

import llvmlite.binding as llvm
import pytest

from flydsl.arch import ARCHS, GFX942, Arch
from flydsl.hsaco.assembler import assemble
from flydsl.hsaco.listing import read_listing
from flydsl.simulator import Program
from flydsl.simulator.isa.forms import SCALED_FORMATS
from flydsl.simulator.isa.spellings import entries_on, name_on, older_spellings
from flydsl.simulator.isa.table import IMPLICIT, Semantics, look_up
from flydsl.simulator.modes import FloatMode
from flydsl.simulator.native.generate import generate, module_text
from flydsl.simulator.native.shape import bind

OLD_SPELLINGS = {new: old for old, new in older_spellings().items()}

# Where an operand must be of a certain kind, by mnemonic: position in the text and what stands there.
SPECIAL = {
    "v_readlane_b32": {0: "s5", 2: "s3"},
    "v_readfirstlane_b32": {0: "s5"},
    "v_writelane_b32": {1: "s3", 2: "3"},
    "v_accvgpr_read_b32": {1: "a3"},
    "v_accvgpr_write_b32": {0: "a3"},
    "v_accvgpr_mov_b32": {0: "a3", 1: "a7"},
    "v_fmamk_f32": {2: "0x3039"},
    "v_fmamk_f64": {2: "0x3039"},
    "v_fmaak_f64": {3: "0x3039"},
    "v_madmk_f16": {2: "0x3039"},
    "v_fmaak_f32": {3: "0x3039"},
    "v_madak_f16": {3: "0x3039"},
    "v_madmk_f32": {2: "0x3039"},
    "v_madak_f32": {3: "0x3039"},
    "v_fmamk_f16": {2: "0x3039"},
    "v_fmaak_f16": {3: "0x3039"},
    "s_fmamk_f32": {2: "0x3039"},
    "s_fmaak_f32": {3: "0x3039"},
    "v_permlane16_b32": {2: "s3", 3: "s4"},
    "v_permlanex16_b32": {2: "s3", 3: "s4"},
    **{f"v_permlane_{name}_b32": {2: "s3", 3: "s4"} for name in ("bcast", "up", "down", "xor")},
    "v_permlane_idx_gen_b32": {2: "s3"},
    "global_load_addtid_b32": {1: "s[8:9]"},
    "global_store_addtid_b32": {1: "s[8:9]"},
    "s_setreg_imm32_b32": {1: "0x39"},
    "s_set_vgpr_msb": {0: "0"},
    "ds_swizzle_b32": {1: "v20 offset:swizzle(SWAP,16)"},
}
RETURNING = {"cdna2": " glc", "rdna3": " glc", "rdna": " th:TH_ATOMIC_RETURN"}
"""The modifier of atomics that return the old value, where it is not sc0, by set of instructions."""
FIXED_WORDS = {"offset": "0x10", "imm": "0x12", "word": "hwreg(HW_REG_MODE, 0, 4)", "label": "L"}


def registers(file: str, first: int, count: int) -> str:
    return f"{file}[{first}:{first + count - 1}]" if count > 1 else f"{file}{first}"


def operand(mnemonic: str, word: str, position: int, packed: bool, mask_registers: int) -> str:
    """Some operand of the word's kind, in registers that suit the position."""
    word = word.rstrip("~")
    first = 4 + 16 * position
    if word in FIXED_WORDS:
        return FIXED_WORDS[word]
    if word == "mask":
        return registers("s", first, mask_registers)
    count = 1
    if word[1:].partition("x")[0] in ("32", "64"):
        type_, _, number = word.partition("x")
        count = int(number or 1) * int(type_[1:]) // 32
    if packed and word == "f32":
        count = 2
    if mnemonic.startswith(("s_", "v_s_")):
        return registers("s", first, count)
    return registers("v", first, count)


def operands(mnemonic: str, semantics: Semantics, arch: Arch) -> Iterator[str]:
    words = [w for w in (*semantics.results, *semantics.sources) if w not in IMPLICIT]
    addresses = iter(["v90", "off"] if mnemonic.startswith("scratch") else ["v[90:91]", "off"])
    is_buffer = mnemonic.startswith("buffer_")
    for position, word in enumerate(words):
        if is_buffer and position >= len(words) - 3:
            yield ("v90", "s[8:11]", "s3 offen")[position - len(words) + 3]
        elif position in SPECIAL.get(mnemonic, {}):
            yield SPECIAL[mnemonic][position]
        elif word == "any":
            yield next(addresses)
        elif semantics.mnemonic.endswith("/base") and position == len(words) - 1:
            yield "s[8:9]"
        else:
            yield operand(mnemonic, word, position, semantics.packed, arch.wave_size // 32)


def line(semantics: Semantics, arch: Arch = GFX942) -> str:
    mnemonic, _, form = semantics.mnemonic.partition("/")
    if arch.name == "gfx90a":
        mnemonic = OLD_SPELLINGS.get(mnemonic, mnemonic)
    if mnemonic.startswith("s_barrier_"):
        return f"{mnemonic} {form}"
    if "::" in mnemonic:
        return pair_line(mnemonic, form)
    if mnemonic.startswith("tensor_"):
        return f"{mnemonic} {', '.join(('s[0:3]', 's[4:11]', 's[12:15]', 's[16:19]')[: int(form)])}"
    if mnemonic.startswith("s_sendmsg_rtn_"):
        return f"{mnemonic} s[4:5], {form}"
    returning = next((word for name, word in RETURNING.items() if name in arch.instruction_sets), " sc0")
    form = form.removesuffix("base").removesuffix("/")
    suffix = {"returning": returning, "lds": " lds", "clamp": " clamp", "": ""}.get(form)
    if suffix is None:  # the formats of A and B
        suffix = " " + " ".join(
            f"{name}:{SCALED_FORMATS.index(f)}" for name, f in zip(("cbsz", "blgp"), form.split("_"), strict=True)
        )
    name = name_on(mnemonic, arch.instruction_sets)
    return f"{name} {', '.join(operands(mnemonic, semantics, arch))}{suffix}"


def pair_line(mnemonic: str, form: str = "") -> str:
    """Two operations with registers of different banks, and of even and odd numbers for the results."""
    parts = []
    for i, name in enumerate(mnemonic.split("::")):
        count = 1 if "mov" in name else 3 if "_fma_" in name else 2
        if "f64" in name:
            sources = [f"v[{4 * n + 4}:{4 * n + 5}]" for n in range(count)]
            parts.append(f"{name} v[24:25], {', '.join(sources)}")
            continue
        sources = [f"v{4 * n + i + 1}" for n in range(count)]
        if form and "cndmask" in name:
            sources.append("s5")
        if name == "v_dual_fmamk_f32":  # of other banks than the results, which other operations add to
            sources[-1] = ("v8", "v11")[i]
        literal = {"v_dual_fmaak_f32": 2, "v_dual_fmamk_f32": 1}.get(name)
        if literal is not None:
            sources.insert(literal, "0x3039")
        table = " bitop3:0x14" if "bitop2" in name else ""
        parts.append(f"{name} {', '.join([('v20', 'v23')[i], *sources])}{table}")
    return " :: ".join(parts)


WITH_ALL_PAIRS = ("rdna3", "rdna4")


def is_sample(pair: str) -> bool:
    """Whether it is one of some pairs of gfx1250 that have all its operations; the others differ in the combination."""
    first, second = pair.partition("/")[0].split("::")
    return first == "v_dual_fma_f32" or second in ("v_dual_fma_f32", "v_dual_bitop2_b32")


# Of the 25 combinations of each scaled product, whose handlers are long: both orders of elements, and one with itself.
SOME_FORMATS = ("/fp8_fp8", "/fp8_fp4", "/bf6_fp6")

# Indexed moves, which are above, and products of RDNA, which are in test_wmma.py with their modifiers.
ELSEWHERE = ("gpr_idx", "wmma")

# Entries that the lock-step machine executes for the native backend, too: slow, so each one needs a reason. Handlers do
# not know what other workgroups have signalled; no compiler writes that for a cluster's barrier.
WITHOUT_NATIVE_HANDLER = {"s_barrier_signal_isfirst"}


@pytest.mark.slow
@pytest.mark.parametrize(
    "mode",
    [0x3F0, pytest.param(0, marks=pytest.mark.sweep)],
    ids=["denormals kept in IEEE mode", "flushed without it"],
)
def test_every_entry_has_a_native_handler(mode: int) -> None:
    lines = [f"s_set_gpr_idx_on s3, {mode}\nv_mov_b32 v0, v1" for mode in ("gpr_idx(SRC0)", "gpr_idx(DST)")]
    programs, seen = [program_of(lines, GFX942)], set[str]()
    for arch in (GFX942, *ARCHS):
        entries = entries_on(arch.instruction_sets)
        new = [s for s in entries.values() if s.entry not in seen]
        seen |= {s.entry for s in new}
        new = [s for s in new if not any(part in s.mnemonic for part in ELSEWHERE)]
        new = [
            s for s in new if "::" not in s.mnemonic or s.instruction_set in ("rdna3", "rdna4") or is_sample(s.mnemonic)
        ]
        new = [s for s in new if "f8f6f4" not in s.mnemonic or s.mnemonic.endswith(SOME_FORMATS)]
        lines = [s.mnemonic if s.sources == ("...",) else line(s, arch) for s in new]
        programs.append(program_of(lines, arch))
    missing, handlers = set(), []
    for program, instruction in ((p, i) for p in programs for i in p.instructions):
        try:
            shape = bind(instruction, program, FloatMode(mode)).shape
            handlers.append(generate(shape, f"h{len(handlers)}"))
        except NotImplementedError:
            missing.add(instruction.mnemonic)
    assert missing == WITHOUT_NATIVE_HANDLER
    llvm.parse_assembly(module_text(handlers)).verify()
    shared = {function.name: function for handler in handlers for function in handler.functions}
    llvm.parse_assembly(module_text(shared.values())).verify()


OF_HALVES = ("v_mov_b16", "v_swap_b16")
"""Which LLVM has for RDNA 4 with a feature only, and by default for RDNA 3."""


def test_moves_of_halves_assemble_where_they_are_on_by_default() -> None:
    assert assemble("".join(f"{name} v4.l, v20.h\n" for name in OF_HALVES), "gfx1100")


def program_of(lines: list[str], arch: Arch) -> Program:
    return Program.from_listing({}, read_listing("L:\n" + "\n".join(lines) + "\n"), arch)


def test_old_spellings_are_what_the_assembler_takes_them_for() -> None:
    machine_code = []
    for old_ones in (False, True):
        entries = {old: look_up(new, GFX942.instruction_sets) for old, new in older_spellings().items()}
        both = [(line(s), s.mnemonic, old) for old, s in entries.items() if s]
        lines = [text.replace(new, old if old_ones else new, 1) for text, new, old in both]
        machine_code.append(assemble("\n".join(lines) + "\n", "gfx942"))
    assert machine_code[0] == machine_code[1]
    assert len(both) > 20


@pytest.mark.parametrize("arch", ARCHS, ids=lambda arch: arch.name)
def test_every_entry_assembles(arch: Arch) -> None:
    entries = entries_on(arch.instruction_sets).values()
    tested = [s for s in entries if s.sources != ("...",) and not any(part in s.mnemonic for part in ELSEWHERE)]
    tested = [s for s in tested if s.mnemonic not in OF_HALVES]
    lines = ["L:", *(line(s, arch) for s in tested)]
    assert assemble("\n".join(lines) + "\n", arch.name)
    assert len(lines) > 800
