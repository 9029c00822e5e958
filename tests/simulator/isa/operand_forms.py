"""Forms of operands and modifiers, as LLVM's instruction tests vary them, of the instructions that the table has."""

from __future__ import annotations

import re
from collections.abc import Iterator

from flydsl.arch import Arch
from flydsl.hsaco.assembler import AssemblerError, canonical_text
from flydsl.simulator.isa.spellings import entries_on
from tests.simulator.isa.test_syntax import ELSEWHERE, OF_HALVES, line

_WORDS = ["s7", "vcc_lo", "m0", "exec_lo", "null", "ttmp5", "-16", "64", "0.5", "-4.0", "0x12345678", "src_scc"]
_PAIRS = ["vcc", "exec", "null", "ttmp[4:5]", "s[10:11]", "0", "-16", "0.5", "0x12345678"]
_SIGNS = ("-{}", "|{}|", "-|{}|")
_WHOLE = " row_mask:0xf bank_mask:0xf"
_OF_VECTORS = (
    "clamp", "mul:2", "mul:4", "div:2", "op_sel:[1,0]", "op_sel:[0,1,0]", "op_sel:[1,1,0]", "op_sel:[0,0,1]",
    "op_sel:[1,0,0,1]", "op_sel_hi:[0,1]", "op_sel_hi:[1,0,1]", "neg_lo:[1,0]", "neg_lo:[0,1,1]", "neg_hi:[1,0,0]",
    f"quad_perm:[3,2,1,0]{_WHOLE}", "row_shl:1 row_mask:0x5 bank_mask:0x3", f"row_shr:15{_WHOLE} bound_ctrl:1",
    f"row_ror:4{_WHOLE}", f"row_mirror{_WHOLE}", f"row_half_mirror{_WHOLE}", f"row_share:3{_WHOLE}",
    f"row_xmask:5{_WHOLE} fi:1", "dpp8:[7,6,5,4,3,2,1,0]", "dpp8:[1,0,3,2,5,4,7,6] fi:1",
)  # fmt: skip
_OF_MEMORY = ("offset:4", "glc", "slc", "dlc", "glc slc dlc", "offset:4095", "offset:-4096", "offset:-1")
_OF_LDS = ("offset:65535", "offset:4", "gds", "offset0:3 offset1:255")
_BUFFER = "v90, s[8:11], s3 offen"
_OF_BUFFERS = (
    "v90, s[8:11], s3 idxen", "v[90:91], s[8:11], s3 idxen offen offset:8", "off, s[8:11], 0",
    "off, s[8:11], s3 offset:16", "off, ttmp[4:7], m0", "off, s[8:11], 0x10",
)  # fmt: skip
_TRIES = 12


def forms_of(arch: Arch) -> list[str]:
    """Lines of assembly, of which the assembler refuses many: each instruction in turn with every form."""
    found = []
    for semantics in entries_on(arch.instruction_sets).values():
        name = semantics.mnemonic
        if semantics.sources != ("...",) and not any(part in name for part in (*ELSEWHERE, *OF_HALVES, "::")):
            found += _forms(line(semantics, arch))
    return list(dict.fromkeys(found))


def _forms(text: str) -> Iterator[str]:
    name, _, operands = text.partition(" ")
    yield text
    if name.startswith(("v_", "s_")) and not name.startswith(("s_load", "s_buffer_load")):
        parts = operands.split(", ")
        for i, part in enumerate(parts):
            for other in _others(part, signed=i > 0 and name.startswith("v_")):
                yield f"{name} {', '.join([*parts[:i], other, *parts[i + 1 :]])}"
    modifiers = {"v": _OF_VECTORS, "d": _OF_LDS}.get(name[0], _OF_MEMORY if name[0] in "bgf" else ())
    yield from (f"{text} {modifier}" for modifier in modifiers)
    if name.startswith("buffer_"):
        yield from (text.replace(_BUFFER, place) for place in _OF_BUFFERS)


def _others(operand: str, signed: bool) -> Iterator[str]:
    """What else may stand in an operand's place."""
    single, pair = re.fullmatch(r"[vs]\d+", operand), re.fullmatch(r"[vs]\[\d+:\d+\]", operand)
    yield from _WORDS if single else _PAIRS if pair else ()
    if signed and (single or pair):
        yield from (sign.format(operand) for sign in _SIGNS)


def assembled(lines: list[str], arch: Arch) -> list[str]:
    """The lines that LLVM's assembler takes, as it prints them."""
    printed = (line.strip() for line in taken(lines, arch)[1].splitlines() if line.startswith("\t"))
    return [line for line in printed if line[0] != "."]


def taken(lines: list[str], arch: Arch, *options: str) -> tuple[list[int], str]:
    """The numbers of the lines that LLVM's assembler takes, from 0 on, and the text that it prints of them.

    options: those of clang -cc1as, besides.
    """
    numbers = list(range(len(lines)))
    for _ in range(_TRIES):
        try:
            text = canonical_text("\n".join(["L:", *(lines[number] for number in numbers), ""]), arch.name, *options)
        except AssemblerError as error:
            wrong = {int(number) for number in re.findall(r":(\d+):\d+: error", str(error))}
            numbers = [number for place, number in enumerate(numbers, 2) if place not in wrong]
        else:
            return numbers, text
    raise AssertionError(f"the assembler still refuses some of {len(numbers)} lines")
