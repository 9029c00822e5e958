"""Instructions as somebody may write them, against the text that LLVM prints for them: both do the same.

LLVM's printer names the encoding and writes every constant as the bits that are encoded, so that what an operand or a
modifier means in one spelling is held against what it means in the other.
"""

from __future__ import annotations

import random
import re
import warnings
from functools import cache
from typing import Any

import numpy as np

from flydsl.arch import Arch
from flydsl.errors import FlyError
from flydsl.hsaco.assembler import AssemblerError, canonical_text
from flydsl.hsaco.listing import read_listing
from flydsl.hsaco.operands import EXEC, M0, VCC
from flydsl.simulator import Memory, Program, UnknownInstruction
from flydsl.simulator.isa.spellings import entries_on, name_on
from flydsl.simulator.isa.table import IMPLICIT, Semantics, mnemonic_of
from flydsl.simulator.lockstep.bind import bind_program
from flydsl.simulator.lockstep.machine import Machine
from flydsl.simulator.waves import Waves
from tests.fuzz.archs import ARCHS
from tests.fuzz.workers import run_trials

_WRITTEN = 300
"""Instructions of a trial. LLVM accepts a quarter of them, and spells a fifth of those otherwise."""
_NOT_ALONE = re.compile(
    r"s_(c?branch|cbranch|call|endpgm|trap|sendmsg|sleep|sethalt|rfe|set_gpr|set_vgpr|setkill|wait_event|alloc|add_pc|"
    r"ttrace|setpc|swappc|getpc|get_|set_pc|swap_pc|memtime|memrealtime|monitor|setreg|barrier)|.*(tensor_|barrier|::)"
)
"""What jumps, waits, or needs others."""
_ERROR = re.compile(r"listing\.s:(\d+):\d+: error")
_DATA_BYTES, _LDS_BYTES, _SCRATCH_BYTES = 1 << 15, 1 << 13, 1 << 8


def _pool(text: str) -> tuple[str, ...]:
    return tuple(text.split())


_MODES = (0x3F0, 0x3F0, 0x300, 0x1F0, 0x3FF, 0x350, 0x3A0)
_NUMBERS = _pool(
    "0 1 -1 7 -16 64 33 65 -17 100 0.5 -0.5 1.0 -1.0 2.0 -4.0 4.0 0.15915494 0.15915494309189532 0.1592 1.5 0.1 "
    "0x12345678 0xdeadbeef 0x3c00 0x3e22 0x3118 0xfc00 0x80000000 0x3f80 0x3fc00000 0xffff 0xfffffff0 "
    "0x3f000000 3000000000 -100000"
)
_SELECTIONS = _pool("BYTE_0 BYTE_1 BYTE_2 BYTE_3 WORD_0 WORD_1 DWORD")
_LANES = _pool(
    "quad_perm:[3,1,0,2] row_shl:3 row_shr:15 row_ror:7 row_mirror row_half_mirror row_bcast:15 row_bcast:31 "
    "wave_shl:1 wave_ror:1 row_newbcast:5 row_share:9 row_xmask:6"
)
_MEMORY = re.compile(r"(global|flat|scratch|buffer|ds|cluster)_|s_(buffer_)?load")
_MEMORY_MODIFIERS = _pool(
    "offset:0 offset:4 offset:16 offset:60 offset:4095 offset0:1 offset1:3 offen idxen sc0 sc1 nt glc slc "
    "th:TH_LOAD_NT th:TH_ATOMIC_RETURN scope:SCOPE_SYS scale_offset offset:0x7f"
)


def run(seed: int, count: int) -> None:
    """AssertionError with the trials in which two spellings did not do the same."""
    run_trials(trial, seed, count, lambda: warnings.simplefilter("ignore"))


def trial(random_: random.Random) -> None:
    arch = random_.choice(ARCHS)
    halves = arch.wave_size == 32 and random_.random() < 0.3
    written = [_instruction(random_.choice(_rows(arch)), arch, halves, random_) for _ in range(_WRITTEN)]
    pairs = zip(*_printed([text for text in written if text], arch), strict=True)
    readable = [(one, other) for one, other in pairs if one != other and "/*Invalid" not in other]
    findings = [_difference(one, other, arch, random_.getrandbits(32)) for one, other in readable]
    assert not any(findings), f"{arch.name}:\n" + "\n".join(filter(None, findings))


@cache
def _rows(arch: Arch) -> tuple[tuple[str, Semantics], ...]:
    """The instructions of a GPU that can be run alone, with their mnemonics."""
    sets = arch.instruction_sets
    rows = [(mnemonic_of(name_on(s.mnemonic, sets) or s.mnemonic), s) for s in entries_on(sets).values()]
    unknown = {"...", "word", "register", "label"}
    return tuple(
        (name, s)
        for name, s in rows
        if not _NOT_ALONE.match(name) and "::" not in s.mnemonic and not unknown & {*s.results, *s.sources}
    )


# --- what is written


def _instruction(row: tuple[str, Semantics], arch: Arch, halves: bool, random_: random.Random) -> str:
    mnemonic, semantics = row
    form, modifiers = _form(mnemonic, arch, random_)
    operands = [_result(w, mnemonic, arch, halves, random_) for w in semantics.results if w not in IMPLICIT]
    operands += [_source(w, mnemonic, form, arch, halves, random_) for w in semantics.sources if w not in IMPLICIT]
    return f"{mnemonic}{form} {', '.join(operands)} {modifiers}".rstrip()


def _form(mnemonic: str, arch: Arch, random_: random.Random) -> tuple[str, str]:
    """The suffix of an encoding, and modifiers."""
    if _MEMORY.match(mnemonic):
        return "", " ".join(random_.choices(_MEMORY_MODIFIERS, k=random_.choice((0, 1, 1, 2))))
    if not mnemonic.startswith("v_"):
        return "", ""
    of_lanes = ("_dpp", "_e64_dpp") if arch.wave_size == 32 else ("_sdwa", "_dpp")
    form = random_.choice(("", "", "", "", "_e64", "_e32", *of_lanes))
    modifiers = [] if form in ("_sdwa", "_dpp", "_e32") else _modifiers(mnemonic, random_)
    if form.endswith("_dpp"):
        masks = f"row_mask:{random_.randrange(16):#x} bank_mask:{random_.randrange(16):#x}"
        modifiers += [random_.choice(_LANES), masks, random_.choice(("", "bound_ctrl:1", "bound_ctrl:0", "fi:1"))]
    if form == "_sdwa":
        unused = random_.choice(("UNUSED_PAD", "UNUSED_SEXT", "UNUSED_PRESERVE"))
        selected = [f"{which}_sel:{random_.choice(_SELECTIONS)}" for which in ("dst", "src0", "src1")]
        modifiers += [*random_.sample(selected, random_.randint(1, 3)), f"dst_unused:{unused}"]
    return form, " ".join(modifiers)


def _modifiers(mnemonic: str, random_: random.Random) -> list[str]:
    """A few, such as the mnemonic may have."""

    def bits(name: str) -> str:
        return f"{name}:[{','.join(random_.choices('01', k=random_.choice((2, 2, 3, 3, 4))))}]"

    chosen = ["clamp"] * (random_.random() < 0.1)
    chosen += [random_.choice(("mul:2", "mul:4", "div:2"))] * (random_.random() < 0.07)
    chosen += [bits("op_sel")] * (random_.random() < 0.25)
    if re.search("_pk_|dot|mix|wmma|swmmac", mnemonic):
        chosen += [bits(name) for name in ("op_sel_hi", "neg_lo", "neg_hi") if random_.random() < 0.35]
    if re.search("mfma|smfmac", mnemonic):
        chosen += [f"{name}:{random_.randrange(4)}" for name in ("cbsz", "abid", "blgp") if random_.random() < 0.3]
    if "bitop3" in mnemonic:
        chosen.append(f"bitop3:{random_.choice((random_.randrange(256), hex(random_.randrange(256))))}")
    if "cvt" in mnemonic and random_.random() < 0.3:
        chosen.append(random_.choice((f"byte_sel:{random_.randrange(4)}", f"scale_sel:{random_.randrange(8)}")))
    return chosen


def _named(file: str, first: int, count: int) -> str:
    return f"{file}{first}" if count == 1 else f"{file}[{first}:{first + count - 1}]"


def _size(word: str, mnemonic: str) -> int:
    """The registers of an operand, of a wave of 64 for a mask."""
    type_, _, count = word.rstrip("~").partition("x")
    if word in ("f16x2", "i16x2", "bf16x2"):
        return 1
    wide = type_ in ("i64", "f64") or (mnemonic.startswith("v_pk_") and type_ == "f32")
    return int(count or 1) * (2 if wide else 1)


def _result(word: str, mnemonic: str, arch: Arch, halves: bool, random_: random.Random) -> str:
    """Registers that no source is of."""
    if word == "mask":
        return random_.choice(("vcc_lo", "s50", "null") if arch.wave_size == 32 else ("vcc", "s[50:51]"))
    size = _size(word, mnemonic)
    if mnemonic.startswith("s_") or re.match("v_read(first)?lane", mnemonic):
        special = random_.choice(("vcc", "exec") if size == 2 else ("vcc_lo", "m0", "exec_lo"))
        return special if size <= 2 and random_.random() < 0.1 else _named("s", 48, size)
    if halves and "16" in word and size == 1:
        return f"v{random_.randrange(64, 100)}.{random_.choice('lh')}"
    file = "a" if arch.wave_size == 64 and random_.random() < 0.08 else "v"
    return _named(file, 2 * random_.randrange(32, 36), size)


def _source(word: str, mnemonic: str, form: str, arch: Arch, halves: bool, random_: random.Random) -> str:
    if word == "imm":
        return random_.choice(("5", "0x7fff", "1", "0x1234"))
    if word == "mask":
        return random_.choice(("vcc_lo", "s10", "null") if arch.wave_size == 32 else ("vcc", "s[10:11]"))
    if word == "any":
        return random_.choice(("off", "v104", "v[100:101]", "s[20:21]"))
    size = _size(word, mnemonic)
    kind = random_.random()
    if _MEMORY.match(mnemonic) and kind < 0.5:
        return {1: "v104", 2: "v[100:101]", 4: "s[24:27]"}.get(size, "v[8:15]")
    if size <= 2 and kind < 0.3:
        return random_.choice(_NUMBERS)
    if size <= 2 and kind < 0.38:
        pairs, singles = ("vcc", "exec", "null"), ("vcc_lo", "m0", "exec_lo", "src_scc", "scc", "src_vccz", "null")
        return random_.choice(pairs if size == 2 else singles)
    if mnemonic.startswith("s_") or (kind < 0.5 and size <= 2):
        return _named("s", 8 + 4 * random_.randrange(3), size)
    if halves and "16" in word and size == 1:
        register = f"v{random_.randrange(60)}.{random_.choice('lh')}"
    else:
        file = "a" if arch.wave_size == 64 and random_.random() < 0.08 else "v"
        register = _named(file, 2 * random_.randrange(8), size)
    return _decorated(register, "f" in word, form, random_)


def _decorated(register: str, is_float: bool, form: str, random_: random.Random) -> str:
    if form == "_sdwa" and random_.random() < 0.2:
        return f"sext({register})"
    if random_.random() > (0.3 if is_float else 0.02):
        return register
    return random_.choice((f"-{register}", f"|{register}|", f"-|{register}|", f"neg({register})", f"abs({register})"))


# --- what LLVM makes of it


def _printed(lines: list[str], arch: Arch) -> tuple[list[str], list[str]]:
    """The instructions that LLVM accepts, and its spellings of them."""
    try:
        text = canonical_text("\n".join(lines) + "\n", arch.name)
    except AssemblerError as error:
        wrong = {int(line) for line in _ERROR.findall(str(error))}
        if not wrong:
            raise
        return _printed([line for i, line in enumerate(lines, 1) if i not in wrong], arch)
    bare = [re.split("//|;", line)[0] for line in text.splitlines() if re.match(r"\t[a-z]", line)]
    assert len(bare) == len(lines), f"LLVM prints {len(bare)} instructions for {len(lines)}"
    return lines, [" ".join(line.split()) for line in bare]


# --- what it does


def _difference(one: str, other: str, arch: Arch, seed: int) -> str:
    """What two spellings do otherwise. One that is refused says nothing wrong."""
    first, second = _run(one, arch, seed), _run(other, arch, seed)
    if isinstance(first, UnknownInstruction) or isinstance(second, UnknownInstruction):
        return ""
    if isinstance(first, FlyError) or isinstance(second, FlyError):
        found = "" if type(first) is type(second) else f"{_shown(first)}, but {_shown(second)}"
    else:
        found = ", ".join(name for name, state in first.items() if not np.array_equal(state, second[name]))
    return found and f"{one} => {other} (seed {seed}): {found}"


def _shown(result: Any) -> str:
    return " ".join(str(result).split())[:200] if isinstance(result, FlyError) else "no error"


def _run(text: str, arch: Arch, seed: int) -> dict[str, Any] | FlyError:
    """The state after an instruction in lock-step, or the error."""
    rng, memory = np.random.default_rng(seed), Memory()
    data = _numbers(rng, _DATA_BYTES // 4).view(np.uint8)
    waves = _waves(rng, memory.map_array(data, name="data") + _DATA_BYTES // 2, arch)
    try:
        program = Program.from_listing({}, read_listing(f"k:\n{text}\ns_endpgm\n"), arch)
        Machine(program, bind_program(program), waves, memory, {}, 1000).run()
    except FlyError as error:
        return error
    return {"memory": data} | {name: getattr(waves, name) for name in ("sgpr", "scc", "mode", "vgpr", "lds", "scratch")}


def _waves(rng: np.random.Generator, address: int, arch: Arch) -> Waves:
    """A wave whose registers are numbers of all kinds, but for those that instructions have addresses in."""
    lanes = arch.wave_size
    waves = Waves([(0, 0, 0)], (lanes, 1, 1), vgprs=128, agprs=128 if lanes == 64 else 0, lds_bytes=_LDS_BYTES,
                  scratch_bytes=_SCRATCH_BYTES, entry=0, mode=int(rng.choice(_MODES)), lanes=lanes)  # fmt: skip
    waves.lds[:] = rng.integers(0, 256, waves.lds.shape, np.uint8)
    waves.vgpr[:] = _numbers(rng, waves.vgpr.size).reshape(waves.vgpr.shape)
    waves.sgpr[:, 8:48] = _numbers(rng, 40)
    offsets = 4 * rng.permutation(lanes).astype(np.uint64)
    waves.vgpr[100], waves.vgpr[101] = address + offsets & 0xFFFFFFFF, address + offsets >> np.uint64(32)
    waves.vgpr[104] = offsets
    waves.sgpr[:, 20:22] = address & 0xFFFFFFFF, address >> 32
    waves.sgpr[:, 24:28] = address & 0xFFFFFFFF, address >> 32, 2048, 0x27000 if lanes == 64 else 0x31027000
    every = (1 << lanes) - 1
    exec_ = every if rng.random() < 0.7 else every & 0xFFFF0001FFF7
    waves.sgpr[:, EXEC : EXEC + 2] = exec_ & 0xFFFFFFFF, exec_ >> 32
    waves.sgpr[:, VCC : VCC + lanes // 32] = rng.integers(0, 1 << 32, lanes // 32)
    waves.sgpr[:, M0] = rng.choice([0, 2, 64, 0x10000])
    waves.scc[:, 0] = rng.integers(0, 2)
    return waves


_EDGES = np.array([0, 1 << 31, 0x7F800000, 0xFF800000, 0x7FC00001, 1, 0x7C007C00, 0x00018000, 0x7FFFFFFF, 0x7F7FFFFF])


def _numbers(rng: np.random.Generator, count: int) -> Any:
    """Any bits, floats of 32 and of 16 bits near 1, edges, and small integers."""
    any_ = rng.integers(0, 1 << 32, count, np.uint32)
    singles = (rng.standard_normal(count) * 2.0 ** rng.integers(-30, 30, count)).astype(np.float32).view(np.uint32)
    halves = rng.standard_normal(2 * count).astype(np.float16).view(np.uint32)
    edges, small = rng.choice(_EDGES, count).astype(np.uint32), rng.integers(0, 300, count).astype(np.uint32)
    return np.choose(rng.integers(0, 5, count), [any_, singles, halves, edges, small])
