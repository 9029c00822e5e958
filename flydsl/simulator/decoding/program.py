"""Decode a code object and its listing, once, into instructions bound to their semantics."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from flydsl.arch import GFX942, Arch, get_arch
from flydsl.errors import SourceLocation
from flydsl.hsaco import KernelInfo, read_hsaco
from flydsl.hsaco.data import DataSegment, page_aligned
from flydsl.hsaco.listing import ListedInstruction, Listing, ListingError, read_listing
from flydsl.hsaco.operands import (
    Immediate,
    Modifiers,
    ModifierValue,
    Null,
    Operand,
    Symbol,
    parse_modifier,
    parse_operand,
    split_encoding,
    split_operands,
    split_words,
)
from flydsl.simulator.decoding import admission, high_registers, modifier_rules
from flydsl.simulator.decoding.literals import as_encoded
from flydsl.simulator.errors import RegisterFault, UnknownInstruction
from flydsl.simulator.isa.forms import forms
from flydsl.simulator.isa.spellings import in_table
from flydsl.simulator.isa.table import IMPLICIT, Semantics, look_up

CODE_BASE, INSTRUCTION_BYTES = 0x7F00_0000_0000, 8
"""Code addresses: the listing does not tell sizes, so every instruction counts 8 bytes. Differences stay consistent."""


@dataclass(frozen=True)
class Instruction:
    """A decoded instruction. `problem` says what is unknown about it if semantics is None."""

    index: int
    listed: ListedInstruction
    mnemonic: str
    encoding: str
    results: tuple[Operand, ...]
    sources: tuple[Operand | None, ...]  # in the order of semantics.sources; None for what is implicit
    modifiers: Modifiers
    semantics: Semantics | None
    problem: str = ""
    wave_size: int = 64
    high_bits: int = 0  # of the numbers of VGPRs, before it (`high_registers`)

    @property
    def table_name(self) -> str:
        """The mnemonic, and the form of the operands where modifiers tell it: the name in the table of semantics."""
        return self.semantics.mnemonic if self.semantics else self.mnemonic

    @property
    def location(self) -> SourceLocation | None:
        return self.listed.location

    def unknown(self, problem: str) -> UnknownInstruction:
        """The error for an instruction that cannot be executed."""
        return UnknownInstruction(
            f"the simulator does not know {problem}: {self.listed.text} (ISA line {self.listed.line})", at=self.location
        )

    def beyond(self, vgprs: int, agprs: int) -> RegisterFault:
        """The error for an instruction with registers beyond those that a wave has."""
        return RegisterFault(
            f"{self.mnemonic} uses registers that the kernel was not given: it has {vgprs} VGPRs and {agprs} AGPRs\n"
            f"  instruction: {self.listed.text} (ISA line {self.listed.line})",
            at=self.location,
            hint="the code object's metadata (.vgpr_count, .agpr_count) says how many: is the listing its own?",
        )

    def unknown_form(self, reason: Exception) -> UnknownInstruction:
        return self.unknown(f"this form of {self.mnemonic} ({reason})")


@dataclass(frozen=True, eq=False)
class Program:
    """A code object ready to execute.

    kernels describes each kernel, instructions is the code of the whole module, labels maps a symbol to the index of
    its first instruction. constants and variables are the module's data; what launches write to the variables stays
    in `variable_storage`, as on a device where the module stays loaded. prepared: what launches of its kernels with the
    same sizes share (`launching.prepare`).
    """

    kernels: Mapping[str, KernelInfo]
    instructions: tuple[Instruction, ...]
    labels: Mapping[str, int]
    constants: DataSegment = field(default_factory=DataSegment)
    variables: DataSegment = field(default_factory=DataSegment)
    arch: Arch = GFX942
    prepared: dict[Any, Any] = field(default_factory=dict, init=False, repr=False)

    @classmethod
    def load(cls, hsaco: bytes, listing: str) -> Program:
        """Decode a code object. `listing` must be the assembly text of the same module as `hsaco`.

        Raises HsacoError or ListingError for content that is not understood, ArchError for an unknown target.
        """
        code_object = read_hsaco(hsaco)
        arch = get_arch(code_object.arch_name)
        program = cls.from_listing(code_object.kernels, read_listing(listing), arch)
        for name in program.kernels:
            if name not in program.labels:
                raise ListingError(f"the listing has no kernel {name!r}: is it the listing of this code object?")
        return program

    @classmethod
    def from_listing(
        cls, kernels: Mapping[str, KernelInfo], listing: Listing, arch: Arch = GFX942, wave_size: int | None = None
    ) -> Program:
        """Decode a listing. wave_size: of code before the first kernel; by default as this, or the GPU, has."""
        instructions: list[Instruction] = []
        register_indexing, high_bits = "", 0
        starts = {
            listing.labels[name]: kernel.wave_size
            for name, kernel in kernels.items()
            if name in listing.labels and kernel.wave_size in arch.vgpr_files  # others cannot be launched
        }
        size = wave_size or next(iter(starts.values()), arch.wave_size)
        is_cdna5 = "cdna5" in arch.instruction_sets  # the one whose VGPRs' numbers have bits elsewhere
        for index, listed in enumerate(listing.instructions):
            size = starts.get(index, size)
            branch = _far_branch(listed, index, listing.labels) if is_cdna5 else None
            instruction = decode(index, branch or listed, arch, register_indexing, size, high_bits)
            instruction = replace(instruction, listed=listed) if branch else instruction
            register_indexing = _register_indexing_after(instruction, register_indexing)
            high_bits = _high_bits_after(instruction, high_bits) if is_cdna5 else 0
            instructions.append(instruction)
        instructions = _without_unclear_branches(_with_true_distances(instructions), listing.labels)
        return cls(kernels, tuple(instructions), listing.labels, listing.constants, listing.variables, arch)

    def instructions_of(self, kernel: str) -> tuple[Instruction, ...]:
        """The instructions from the beginning of a kernel to that of the next one, or to the end."""
        first = self.labels[kernel]
        starts = [self.labels[name] for name in self.kernels if self.labels[name] > first]
        return self.instructions[first : min(starts, default=None)]

    @cached_property
    def variable_storage(self) -> np.ndarray[Any, Any]:
        return page_aligned(self.variables.content)

    @cached_property
    def has_global_atomics(self) -> bool:
        return any("_atomic" in i.mnemonic and not i.mnemonic.startswith("ds_") for i in self.instructions)

    @cached_property
    def has_locks(self) -> bool:
        """True if it compares and swaps in global memory, as a workgroup does that takes a lock."""
        return any("_atomic_cmpswap" in i.mnemonic for i in self.instructions)

    @cached_property
    def _registers_needed(self) -> np.ndarray[Any, Any]:
        """(instructions, 2): the VGPRs and AGPRs that a wave must have for each instruction."""
        needed = np.zeros((len(self.instructions), 2), np.int64)
        for i, instruction in enumerate(self.instructions):
            if instruction.semantics is None:
                continue  # for which there is another error
            for register in admission.registers((*instruction.results, *instruction.sources)):
                if register.file != "s":
                    column = int(register.file == "a")
                    needed[i, column] = max(needed[i, column], register.first + register.count)
        return needed

    def beyond(self, vgprs: int, agprs: int) -> list[int]:
        """The instructions with a register beyond the vector registers that a wave has."""
        return [int(i) for i in np.flatnonzero((self._registers_needed > (vgprs, agprs)).any(axis=1))]

    def unknown_instructions(self) -> list[Instruction]:
        """The instructions whose mnemonic or number of operands the table does not have."""
        return [i for i in self.instructions if i.semantics is None]


_FAR_BRANCH = re.compile(r"s_add_pc_i64 ([\w.$]+)-([\w.$]+)")


def _far_branch(listed: ListedInstruction, index: int, labels: Mapping[str, int]) -> ListedInstruction | None:
    """The branch for `s_add_pc_i64 target-next`, where `next` is the label after it; None for anything else."""
    written = _FAR_BRANCH.fullmatch(listed.text)
    if written is None or labels.get(written[2]) != index + 1:
        return None
    return replace(listed, text=f"s_branch {written[1]}")


def relocated(symbols: Mapping[str, int], symbol: Symbol, index: int) -> int:
    """The bits, 32 or 64, that a relocation puts into the literal of instruction `index`. KeyError for an unknown
    symbol."""
    kind, _, half = symbol.relocation.partition("@")
    address = symbols[f"{symbol.name}@got" if kind.startswith("gotpcrel") else symbol.name] + symbol.addend
    if symbol.minus:
        address -= symbols[symbol.minus]
    if kind.endswith(("rel32", "rel64")):
        address -= CODE_BASE + INSTRUCTION_BYTES * index + 4  # where the literal stands
    if kind.endswith("rel64"):
        return address & 0xFFFF_FFFF_FFFF_FFFF
    return (address >> 32 if half == "hi" else address) & 0xFFFF_FFFF


_GETPC = "s_getpc_b64"
_NEAR = 8  # instructions


def _with_true_distances(instructions: list[Instruction]) -> list[Instruction]:
    """The instructions, where addends of addresses count every instruction as INSTRUCTION_BYTES, as the PC does here.

    LLVM writes `s_getpc_b64 s[0:1]`, on RDNA some instructions of 4 bytes, and `s_add_co_u32 s0, s0, f@rel32@lo+12`:
    the addend is the distance from what the first one reads to the literal.
    """
    return [_with_true_distance(i, instructions) if _relative(i) else i for i in instructions]


def _relative(instruction: Instruction) -> Symbol | None:
    """The address relative to the PC that an instruction has as a literal."""
    symbols = (source.atom for source in instruction.sources if source and isinstance(source.atom, Symbol))
    return next((symbol for symbol in symbols if symbol.relocation.endswith(("rel32@lo", "rel32@hi", "rel64"))), None)


def _with_true_distance(instruction: Instruction, instructions: list[Instruction]) -> Instruction:
    before = instructions[max(instruction.index - _NEAR, 0) : instruction.index]
    start = next((i.index + 1 for i in reversed(before) if i.mnemonic == _GETPC), instruction.index)
    between = instructions[start : instruction.index]
    surplus = sum(INSTRUCTION_BYTES - _size_bytes(i) for i in between)
    sources = tuple(
        replace(s, atom=replace(s.atom, addend=s.atom.addend + surplus)) if s and isinstance(s.atom, Symbol) else s
        for s in instruction.sources
    )
    return replace(instruction, sources=sources)


def _size_bytes(instruction: Instruction) -> int:
    """The size of an instruction of the scalar ALU."""
    atoms = [source.atom for source in instruction.sources if source]
    return 8 if any(isinstance(a, Symbol) or getattr(a, "is_literal", False) for a in atoms) else 4


def decode(
    index: int,
    listed: ListedInstruction,
    arch: Arch = GFX942,
    register_indexing: str = "",
    wave_size: int | None = None,
    high_bits: int = 0,
) -> Instruction:
    """Decode one line of assembly for a GPU and look its mnemonic up. ListingError names the line.

    register_indexing is the mode of the s_set_gpr_idx_on that is in effect, such as "gpr_idx(SRC0)". wave_size: the
    lanes of the waves that execute it, by default as many as the GPU's waves have. high_bits: of the numbers of VGPRs,
    as the last s_set_vgpr_msb left them.
    """
    size = wave_size or arch.wave_size
    try:
        written = _read(high_registers.full_names(listed.text), arch.instruction_sets, high_bits)
    except ValueError as error:
        raise ListingError(
            f"line {listed.line} is not understood: {listed.text!r} ({error})", at=listed.location
        ) from error
    mnemonic, modifiers = (written.row or written.name).partition("/")[0], written.modifiers
    semantics = _look_up(written.row, written.operands, modifiers, arch, register_indexing) if written.row else None
    problem = "" if semantics else " under ".join(filter(None, (written.name, register_indexing)))
    results: tuple[Operand, ...] = ()
    sources: tuple[Operand | None, ...] = ()
    if semantics:
        try:
            rules = modifier_rules.rules_of(arch.instruction_sets, size)
            results, sources, modifiers = _operands(mnemonic, written, semantics, rules, high_bits)
            places = enumerate(zip(sources, semantics.sources, strict=False))
            form = mnemonic, written.encoding, arch.instruction_sets
            sources = tuple(as_encoded(source, place, word, *form) for place, (source, word) in places)
        except ValueError as error:
            semantics, problem = None, f"this form of {written.name} ({error})"
    return Instruction(
        index, listed, mnemonic, written.encoding, results, sources, modifiers, semantics, problem, size, high_bits
    )


def _operands(
    mnemonic: str, written: _Written, semantics: Semantics, rules: modifier_rules.Rules, high_bits: int
) -> tuple[tuple[Operand, ...], tuple[Operand | None, ...], Modifiers]:
    """The results, sources and modifiers of an instruction. ValueError for a form that the GPU does not have."""
    modifiers = modifier_rules.without_zeros(written.modifiers)
    if mnemonic not in _WORDS_LIKE_MODIFIERS:
        modifier_rules.check_names(semantics, modifiers, written.encoding, rules)
    _check_clamp(semantics, modifiers)
    operands, modifiers = halves_as_op_sel(semantics, written.operands, modifiers)
    if "::" not in mnemonic:  # of pairs `_read_pair` has done it
        count = sum(word not in IMPLICIT for word in semantics.results)
        operands = high_registers.resolve(mnemonic, operands, count, high_bits)
    results, sources = _assign(semantics, operands)
    if semantics.sources != ("...",):
        admission.check(semantics, operands, modifiers, written.encoding, rules)
    sources = tuple(source and _without_null(source) for source in sources)
    return results, sources, modifiers


_WORDS_LIKE_MODIFIERS = ("s_waitcnt", "s_waitcnt_depctr", "s_delay_alu", "s_wait_alu")


@dataclass(frozen=True)
class _Written:
    """A line of assembly. name: the mnemonic as written; row: where the table may have it, None if nowhere."""

    name: str
    row: str | None
    encoding: str
    operands: list[Operand]
    modifiers: Modifiers


def _read(text: str, instruction_sets: tuple[str, ...], high_bits: int) -> _Written:
    """Split a line into its parts. ValueError for what is not understood."""
    if "::" in text:
        return _read_pair(text, instruction_sets, high_bits)
    name, *rest = text.split(None, 1)
    spelled, encoding = split_encoding(name)
    if encoding.endswith("dpp8"):  # LLVM does not write it
        spelled, encoding = name, ""
    operands, modifiers = _parse_operands("".join(rest))
    if "rdna" not in instruction_sets and "bound_ctrl" in modifiers.values:
        modifiers = Modifiers({**modifiers.values, "bound_ctrl": 1})  # 0 is an older spelling
    row = in_table(spelled, instruction_sets)
    return _Written(spelled, row, encoding or _implied_encoding(modifiers), operands, modifiers)


def _read_pair(text: str, instruction_sets: tuple[str, ...], high_bits: int) -> _Written:
    """Two operations that one instruction issues. The row has the results of both first, then the sources of both."""
    first, second = (_read(part, instruction_sets, high_bits) for part in text.split("::", 1))
    takes_table = second.name == "v_dual_bitop2_b32" and second.modifiers.values.keys() == {"bitop3"}
    if first.modifiers.values or (second.modifiers.values and not takes_table) or first.encoding or second.encoding:
        raise ValueError("modifiers of a pair")
    x, y = (high_registers.resolve(part.name, part.operands, 1, high_bits) for part in (first, second))
    operands = [*x[:1], *y[:1], *x[1:], *y[1:]]
    selections = [part for part in (first, second) if part.name == "v_dual_cndmask_b32"]
    name = f"{first.name}::{second.name}"
    row = f"{name}/masks" if selections and all(len(part.operands) == 4 for part in selections) else name
    return _Written(name, row, "", operands, second.modifiers)


def halves_as_op_sel(
    semantics: Semantics, operands: list[Operand], modifiers: Modifiers
) -> tuple[list[Operand], Modifiers]:
    """The halves of registers (v1.l, v1.h) as the op_sel that the instruction has for them: sources first, the result
    last. ValueError for a half where no 16 bits are expected."""
    if all(operand.half is None for operand in operands):
        return operands, modifiers
    words = [w for w in (*semantics.results, *semantics.sources) if w not in IMPLICIT]
    for operand, word in zip(operands, words, strict=False):
        if operand.half is not None and word.rstrip("~") not in ("f16", "i16", "bf16", "bfloat"):
            raise ValueError(f"a half of a register as {word}")
    count = sum(w not in IMPLICIT for w in semantics.results)
    places = (*operands[count:], *operands[:count])
    halves = tuple(operand.half or 0 for operand in places)
    values = modifiers.values | {"op_sel": halves} if any(halves) else modifiers.values
    return [replace(operand, half=None) for operand in operands], Modifiers(values)


def _without_null(source: Operand) -> Operand:
    return replace(source, atom=Immediate(0)) if isinstance(source.atom, Null) else source


def _implied_encoding(modifiers: Modifiers) -> str:
    """The encoding of a mnemonic without a suffix, which the assembler also accepts: the modifiers tell it."""
    if not modifiers.values.keys().isdisjoint(modifier_rules.DPP_CONTROLS):
        return "dpp"
    return "" if modifiers.values.keys().isdisjoint(modifier_rules.SDWA_SELECTORS) else "sdwa"


def _look_up(
    mnemonic: str, operands: list[Operand], modifiers: Modifiers, arch: Arch, register_indexing: str
) -> Semantics | None:
    names = (f"{mnemonic}/{form}".rstrip("/") for form in forms(mnemonic, operands, modifiers, register_indexing))
    return next(filter(None, (look_up(name, arch.instruction_sets) for name in names)), None)


def _register_indexing_after(instruction: Instruction, before: str) -> str:
    if instruction.mnemonic == "s_set_gpr_idx_on":
        return instruction.listed.text.partition(",")[2].strip()
    return "" if instruction.mnemonic == "s_set_gpr_idx_off" else before


_ENDS_OF_CODE = ("s_endpgm", "s_endpgm_saved", "s_branch", "s_setpc_b64")


def _high_bits_after(instruction: Instruction, before: int) -> int:
    """The state after an instruction; what follows the end of code is come to from elsewhere, in state 0."""
    if instruction.mnemonic in _ENDS_OF_CODE or instruction.semantics is None:
        return 0 if instruction.mnemonic in _ENDS_OF_CODE else before
    operands = [source for source in instruction.sources if source]
    return high_registers.high_bits_after(instruction.mnemonic, operands, instruction.listed.text, before)


def _without_unclear_branches(instructions: list[Instruction], labels: Mapping[str, int]) -> list[Instruction]:
    """The instructions, where branches to code in another state of `high_registers` are refused."""
    if not any(instruction.high_bits for instruction in instructions):
        return instructions
    return [_with_clear_target(instruction, instructions, labels) for instruction in instructions]


def _with_clear_target(i: Instruction, instructions: list[Instruction], labels: Mapping[str, int]) -> Instruction:
    if i.semantics is None:
        return i
    wanted = {0} if i.mnemonic in ("s_setpc_b64", "s_swappc_b64") else set()
    for word, operand in zip(i.semantics.results, i.results, strict=False):
        name = getattr(operand.atom, "name", getattr(operand.atom, "text", None))
        if word == "label" and labels.get(str(name), len(instructions)) < len(instructions):
            wanted.add(instructions[labels[str(name)]].high_bits)
    if wanted <= {i.high_bits}:
        return i
    problem = f"{i.mnemonic} to code in another state of {high_registers.SET_HIGH_BITS}"
    return replace(i, semantics=None, results=(), sources=(), problem=problem)


def _parse_operands(text: str) -> tuple[list[Operand], Modifiers]:
    """Operands are separated by commas; modifiers follow the last one, separated by spaces."""
    operands: list[Operand] = []
    values: dict[str, ModifierValue] = {}
    for piece in split_operands(text):
        first, *following = split_words(piece)
        operands.append(parse_operand(first))
        values.update(parse_modifier(word) for word in following)
    return operands, Modifiers(values)


def _check_clamp(semantics: Semantics, modifiers: Modifiers) -> None:
    """A float's clamp is applied to the result; the semantics say how an integer saturates."""
    whole = any(word[0] == "i" for word in semantics.results)
    if whole and modifiers.flag("clamp") and "modifiers" not in semantics.sources:
        raise ValueError("clamp on an integer result")


def _assign(semantics: Semantics, operands: list[Operand]) -> tuple[tuple[Operand, ...], tuple[Operand | None, ...]]:
    """Match the operands with the words of the signature, results first."""
    explicit_results = [w for w in semantics.results if w not in IMPLICIT]
    explicit_sources = [w for w in semantics.sources if w not in IMPLICIT]
    if explicit_sources == ["..."]:
        return (), ()
    expected = len(explicit_results) + len(explicit_sources)
    if len(operands) != expected:
        raise ValueError(f"{len(operands)} operands, not {expected}")
    remaining = iter(operands)
    results = tuple(next(remaining) for _ in explicit_results)
    sources = tuple(None if w in IMPLICIT else next(remaining) for w in semantics.sources)
    return results, sources
