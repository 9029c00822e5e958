"""Listings with other instructions, operands, lines and directives than their code object has."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from functools import cache

from flydsl.arch import Arch
from flydsl.simulator.isa.spellings import entries_on, name_on
from flydsl.simulator.isa.table import IMPLICIT, Semantics, mnemonic_of
from tests.fuzz.archs import ARCHS
from tests.fuzz.corpus import modules
from tests.fuzz.launching import load_and_launch, prepare
from tests.fuzz.workers import run_trials

_INSTRUCTION = re.compile(r"\t([a-z]\w+)( .*)?$")
_NUMBER = re.compile(r"\d+")
_REGISTER = re.compile(r"\b[sva](\d+\b|\[\d+:\d+\])")


@cache
def _entries(arch: Arch) -> tuple[tuple[Semantics, ...], tuple[Semantics, ...]]:
    """The rows of single instructions and of pairs."""
    rows = entries_on(arch.instruction_sets).values()
    return tuple(s for s in rows if "::" not in s.mnemonic), tuple(s for s in rows if "::" in s.mnemonic)


@cache
def _mnemonics(arch: Arch) -> list[str]:
    return sorted({_spelled(s, arch) for s in _entries(arch)[0]})


def _spelled(row: Semantics, arch: Arch) -> str:
    return mnemonic_of(name_on(row.mnemonic, arch.instruction_sets) or row.mnemonic)


def _pool(text: str, separator: str | None = None) -> tuple[str, ...]:
    return tuple(text.split(separator))


_NUMBERS = _pool(
    "0 1 -1 2 3 4 7 8 15 16 31 32 63 64 65 100 102 127 128 255 256 511 512 4095 4096 65535 65536 -4096 -4097 "
    "0xffffffff 0x7fffffff 0x80000000 2147483648 4294967295 4294967296 -2147483649 18446744073709551616"
)
_FLOATS = _pool("0.5 -0.5 1.0 -1.0 2.0 -4.0 0.15915494 1e300 70000.0")
_SPECIALS = _pool(
    "vcc vcc_lo exec exec_hi m0 scc src_shared_base src_private_limit flat_scratch ttmp3 ttmp[4:7] off null lds "
    "hwreg(HW_REG_MODE) hwreg(HW_REG_MODE,0,4) hwreg(99) .LBB0_1 scale@rel32@lo+4 nowhere@rel32@hi gpr_idx(DST) "
    "sext(v1) |v1| -v2 -|v3| neg(s2) abs(v0) s[1000000:10] v[0:0] v[5:2] s[144:10] a[255:256] vmcnt(0) v v[ ] () null "
    "ttmp9 src_flat_scratch_base_lo v[5]/*v[261]*/ v5/*v261*/ v5.l v5.h v300 -|v5.h| m0.l"
)
_MODIFIERS = _pool(
    "clamp mul:2 mul:4 div:2 mul:3 op_sel:[0,1] op_sel:[1,0,1] op_sel:[0,0,0,1] op_sel_hi:[0,0] op_sel_hi:[1,0,1] "
    "neg_lo:[1,0] neg_hi:[0,1,1] op_sel:[9,9] op_sel:[0,1,0,1,1,1] neg_lo:5 cbsz:1 cbsz:7 abid:3 abid:15 blgp:1 blgp:7 "
    "quad_perm:[0,1,2,3] quad_perm:[3,3,3,9] quad_perm:[1] row_shl:1 row_shr:15 row_ror:3 row_shl:99 row_mirror "
    "row_half_mirror row_bcast:15 row_bcast:31 row_bcast:7 row_newbcast:3 row_newbcast:77 wave_shr:1 wave_rol:5 "
    "row_mask:0xf row_mask:0x3 bank_mask:0xa bound_ctrl:0 bound_ctrl:1 dst_sel:BYTE_1 dst_sel:WORD_1 dst_sel:DWORD "
    "dst_sel:BYTE_9 dst_sel:FOO dst_unused:UNUSED_PRESERVE dst_unused:UNUSED_SEXT dst_unused:X src0_sel:BYTE_3 "
    "src1_sel:WORD_1 src0_sel:WORD_7 offset:0 offset:4 offset:16 offset:-8 offset:4095 offset:65535 offset:999999 "
    'offset:abc offset:[1,2] offset:swizzle(QUAD_PERM,0,1,2,3) offset:swizzle(BITMASK_PERM,"00p11") '
    "offset:swizzle(REVERSE,16) offset:swizzle(SWAP,77) offset:swizzle(X) offset0:1 offset1:255 offset0:256 offen "
    "idxen lds sc0 sc1 nt gds tfe glc x:y foo :3 offset:"
)
_MODIFIERS_OF_RDNA = _pool(
    "dpp8:[7,6,5,4,3,2,1,0] dpp8:[0,0,0,0,0,0,0,9] row_share:3 row_share:77 row_xmask:5 row_xmask:99 fi:1 byte_sel:0 "
    "byte_sel:3 byte_sel:9 index_key:0 index_key:3 index_key:9 scale_offset th:TH_LOAD_NT th:TH_ATOMIC_RETURN th:FOO "
    "scope:SCOPE_SYS scope:SCOPE_SE scope:9 bitop3:0x96 bitop3:0x999 neg_lo:[1,0,0] neg_hi:[0,0,1] op_sel:[0,0,1] "
    "matrix_a_reuse matrix_b_reuse matrix_a_fmt:MATRIX_FMT_FP4 matrix_b_fmt:MATRIX_FMT_BF6 matrix_a_fmt:MATRIX_FMT_X "
    "matrix_a_scale:MATRIX_SCALE_ROW1 matrix_a_scale_fmt:MATRIX_SCALE_FMT_E4M3 scale_sel:2 scale_sel:9 nv "
    "offset:-8388608 offset:8388607 offset:16777216 wait_va_vdst:0 wait_exp:3 r128 a16 d16 dim:SQ_RSRC_IMG_2D"
)
_DIRECTIVES = _pool(
    '.zero 99999999999|.fill 1000000000, 8, 0|.p2align 60|.p2align 4|.long 0xbf810000|.ascii "a|.section .rodata|.text|'
    '.loc 1 2|.loc 99 1 1|.file 1 "a"|.amdhsa_kernel x|.end_amdhsa_kernel|.amdgpu_metadata|.quad scale|.quad nowhere+8|'
    '.data|.bss|.space 1000000000000|.byte 1e5|.short 70000|.include "/etc/passwd"|.incbin "/etc/passwd"|.set x, 1|'
    ".rept 1000000|.endr|label:|scale:|.LBB0_1:|.fill|.loc|.p2align -1|.p2align 3,,100000000000|.zero -5"
    "|.org 1000000000",
    "|",
)


def _modifiers(arch: Arch) -> tuple[str, ...]:
    return _MODIFIERS + _MODIFIERS_OF_RDNA if arch.wave_size == 32 else _MODIFIERS


def run(seed: int, count: int) -> None:
    """AssertionError with the trials that ended otherwise than they may."""
    for arch in ARCHS:
        modules(arch)
    run_trials(trial, seed, count, prepare)


def trial(random_: random.Random) -> None:
    arch = random_.choice(ARCHS)
    code, listing = random_.choice(modules(arch))
    lines = listing.split("\n")
    for _ in range(random_.choice((1, 1, 2, 3, 5, 9))):
        random_.choice(MUTATIONS)(lines, random_, arch)
    load_and_launch(code, "\n".join(lines), random_, checks=random_.random() < 0.01)


def _places(lines: list[str]) -> list[int]:
    return [i for i, line in enumerate(lines) if _INSTRUCTION.match(line)] or [0]


def _move_line(lines: list[str], random_: random.Random, arch: Arch) -> None:
    """Delete one, double one, swap two, or take an instruction of another kernel or module."""
    i, j = random_.choice(_places(lines)), random_.choice(_places(lines))
    what = random_.randrange(4)
    if what == 0:
        del lines[i]
    elif what == 1:
        lines.insert(j, lines[i])
    elif what == 2:
        lines[i], lines[j] = lines[j], lines[i]
    else:
        other = random_.choice(modules(arch))[1].split("\n")
        lines[i] = other[random_.choice(_places(other))]
    if not lines:
        lines.append("")


def _other_number(lines: list[str], random_: random.Random, arch: Arch) -> None:
    i = random_.choice(_places(lines))
    found = list(_NUMBER.finditer(lines[i]))
    if found:
        start, stop = random_.choice(found).span()
        lines[i] = lines[i][:start] + random_.choice(_NUMBERS) + lines[i][stop:]


def _other_operand(lines: list[str], random_: random.Random, arch: Arch) -> None:
    i = random_.choice(_places(lines))
    found = list(_REGISTER.finditer(lines[i]))
    if found:
        start, stop = random_.choice(found).span()
        lines[i] = lines[i][:start] + _any_operand(random_) + lines[i][stop:]


def _other_mnemonic(lines: list[str], random_: random.Random, arch: Arch) -> None:
    i = random_.choice(_places(lines))
    lines[i] = _INSTRUCTION.sub(lambda m: f"\t{random_.choice(_mnemonics(arch))}{m[2] or ''}", lines[i])


def _modifier(lines: list[str], random_: random.Random, arch: Arch) -> None:
    lines[random_.choice(_places(lines))] += " " + random_.choice(_modifiers(arch))


def _new_instruction(lines: list[str], random_: random.Random, arch: Arch) -> None:
    """One whose operands nearly fit its signature."""
    single, pairs = _entries(arch)
    what = random_.random()
    if pairs and what < 0.2:
        text = _pair(random_.choice(pairs), random_)
    elif arch.addressable_vgprs > 256 and what < 0.3:
        text = f"s_set_vgpr_msb {random_.choice((*_UPPER_BITS, random_.getrandbits(16)))}"
    else:
        row = random_.choice(single)
        mnemonic = _spelled(row, arch)
        text = (
            f"{mnemonic}{random_.choice(_SUFFIXES)} {_operands((*row.results, *row.sources), mnemonic, arch, random_)}"
        )
    modifiers = " ".join(random_.choices(_modifiers(arch), k=random_.choice((0, 0, 0, 0, 0, 1, 2))))
    lines.insert(random_.choice(_places(lines)), f"\t{text} {modifiers}".rstrip())


_SUFFIXES = ("", "", "", "", "_e32", "_e64", "_sdwa", "_dpp", "_e64_dpp")
_UPPER_BITS = (0, 1, 4, 0x40, 0x55, 0x79, 0xFF, 0x4100, 0x10000)
_SOURCES_OF_PAIRS = {"mov_b32": 1, "fmaak_f32": 3, "fmamk_f32": 3, "fma_f32": 3, "fma_f64": 3}


def _pair(row: Semantics, random_: random.Random) -> str:
    """Two operations, of registers in the banks that they need, mostly."""
    mnemonic, _, form = row.mnemonic.partition("/")
    names = [name.removeprefix("v_dual_") for name in mnemonic.split("::")]
    halves = []
    for number, name in enumerate(names):
        sources = _SOURCES_OF_PAIRS.get(name, 2)
        words = ["f64" if "f64" in name else "f32"] * (1 + sources) + ["mask"] * (name == "cndmask_b32" and bool(form))
        operands = [_of_a_pair(word, number, place, random_) for place, word in enumerate(words)]
        halves.append(f"v_dual_{name} {', '.join(operands)}" + (" bitop3:0x40" if name == "bitop2_b32" else ""))
    return " :: ".join(halves)


def _of_a_pair(word: str, number: int, place: int, random_: random.Random) -> str:
    if word == "mask":
        return random_.choice(("vcc_lo", "s2", "s7"))
    size = 2 if word == "f64" else 1
    if place == 1 and random_.random() < 0.3:
        return random_.choice(("s4", "1.0", "0x12345678", "-1", "vcc_lo"))
    return _named("v", random_.choice((0, 4, 8, 12)) + 2 * number * (size == 1) + 4 * (size == 2) * number
                  + random_.choice((0, 1, place % 2)) * (size == 1), size)  # fmt: skip


def _operands(words: tuple[str, ...], mnemonic: str, arch: Arch, random_: random.Random) -> str:
    named = [w for w in words if w not in (*IMPLICIT, "...")]
    return ", ".join(
        _fitting(w, mnemonic, arch, random_) if random_.random() < 0.97 else _any_operand(random_) for w in named
    )


def _fitting(word: str, mnemonic: str, arch: Arch, random_: random.Random) -> str:
    if word in ("imm", "label", "word"):
        return {"imm": "5", "label": ".LBB0_1", "word": random_.choice(("hwreg(HW_REG_MODE,0,4)", "gpr_idx(SRC0)"))}[
            word
        ]
    if word == "any":
        return random_.choice(("off", "v0", "v[0:1]", "s[4:5]", "s[2:3]"))
    type_, _, count = word.rstrip("~").partition("x")
    size = int(count or 1) * (
        2 if type_ in ("i64", "f64", "mask") or (mnemonic.startswith("v_pk_") and "f32" in word) else 1
    )
    size = 1 if type_ in ("f16", "i16") else size
    if type_ == "mask" and arch.wave_size == 32:
        return random_.choice(("vcc_lo", "s2", "s3", "null", "exec_lo", "s[2:3]"))
    in_scalar = mnemonic.startswith("s_") or type_ == "mask" or random_.random() < 0.15
    if not in_scalar and random_.random() < 0.1:
        return random_.choice((*_FLOATS, "7", "-5", "0x12345678"))
    first = random_.choice((0, 4, 8, 12))
    if not in_scalar and random_.random() < 0.1:
        return _at_the_end(size, arch, random_)
    return _named("s" if in_scalar else random_.choice("vvvvvva"), first, size)


def _at_the_end(size: int, arch: Arch, random_: random.Random) -> str:
    """Registers that end where there are no more."""
    return _named("v", random_.choice((64, 256, arch.addressable_vgprs)) - size, size)


def _named(file: str, first: int, count: int) -> str:
    return f"{file}{first}" if count == 1 else f"{file}[{first}:{first + count - 1}]"


def _any_operand(random_: random.Random) -> str:
    what = random_.randrange(4)
    if what == 0:
        return random_.choice(_SPECIALS)
    if what == 1:
        return random_.choice((*_NUMBERS, *_FLOATS))
    first = random_.choice((0, 1, 2, 3, 4, 5, 6, 8, 30, 100, 101, 106, 126, 127, 252, 254, 255, 256, 1000))
    return _named(random_.choice("sva"), first, random_.choice((1, 1, 2, 2, 3, 4, 8, 16, 32, 1000)))


def _directive(lines: list[str], random_: random.Random, arch: Arch) -> None:
    if random_.random() < 0.3:
        lines.insert(random_.randrange(len(lines)), "\t" + random_.choice(_DIRECTIVES))
    else:
        _other_number_anywhere(lines, random_)


def _other_number_anywhere(lines: list[str], random_: random.Random) -> None:
    i = random_.randrange(len(lines))
    lines[i] = _NUMBER.sub(lambda m: random_.choice(_NUMBERS) if random_.random() < 0.5 else m[0], lines[i])


def _characters(lines: list[str], random_: random.Random, arch: Arch) -> None:
    i = random_.randrange(len(lines))
    line = lines[i]
    at = random_.randrange(len(line) + 1)
    lines[i] = (
        line[:at] + random_.choice(("", ",", "[", "]", ":", "\x00", "é", "\u2028", '"', ";", " ", "-")) + line[at + 1 :]
    )


MUTATIONS: tuple[Callable[[list[str], random.Random, Arch], None], ...] = (
    _move_line,
    _other_number,
    _other_operand,
    _other_operand,
    _other_mnemonic,
    _modifier,
    _new_instruction,
    _new_instruction,
    _new_instruction,
    _directive,
    _characters,
)
