"""The instructions that decide where waves go and what they touch. The others need not be executed for a trace.

A backward walk over the program with the set of registers that matter after each instruction: those that a branch, an
address or EXEC is computed from. What a register has in lanes that EXEC leaves out is a set of its own: an instruction
in a branch replaces a value in the lanes that take it, which is all of them until the others come back.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np

from flydsl.hsaco.operands import EXEC, VCC, Keyword, Register, StatusBit, Symbol
from flydsl.simulator.arrays import Array
from flydsl.simulator.counters.instruction_class import instruction_class
from flydsl.simulator.decoding.admission import registers
from flydsl.simulator.decoding.program import Instruction, Program
from flydsl.simulator.dispatch import Dispatch
from flydsl.simulator.isa.table import FIXED

_FIRST = {"s": 0, "v": 129, "a": 129 + 256}
_SCC = 128
_ALWAYS = 3 << EXEC
_SAVED = 1024
_IDLE = 1024
_SCALARS = (1 << _SCC + 1) - 1
_LOADS = ("VMEM load", "VMEM atomic", "LDS", "SMEM")
_BETWEEN_LANES = ("permute", "swizzle", "lane")
_CALLS = ("s_setpc_b64", "s_swappc_b64", "s_call_b64")


@dataclass(frozen=True)
class Needed:
    """skipped: the instructions that a trace need not execute. content: whether what is in memory matters."""

    skipped: Array
    content: bool


def register_bits(chosen: Iterable[Register]) -> int:
    """A set of registers as the bits of a number.

    >>> register_bits([Register("s", 2, 2)])
    12
    """
    bits = 0
    for register in chosen:
        bits |= ((1 << register.count) - 1) << (_FIRST[register.file] + register.first)
    return bits


@dataclass(frozen=True)
class Effects:
    """The registers that an instruction reads and writes, as sets."""

    reads: int
    writes: int


def effects(instruction: Instruction) -> Effects:
    """The registers of an instruction, SCC and those that its text does not show included."""
    semantics = instruction.semantics
    if semantics is None:
        return Effects(0, 0)
    sources = [o for o in instruction.sources if o is not None]
    reads = register_bits(o.atom for o in sources if isinstance(o.atom, Register))
    writes = register_bits(o.atom for o in instruction.results if isinstance(o.atom, Register))
    for operand in sources:
        if isinstance(operand.atom, StatusBit):
            reads |= 1 << _SCC | 3 << VCC | _ALWAYS
    reads |= _implicit(semantics.sources) | (writes if {"dst", "dst1"}.intersection(semantics.sources) else 0)
    return Effects(reads, writes | _implicit(semantics.results))


_effects: WeakKeyDictionary[Program, list[Effects]] = WeakKeyDictionary()


def effects_of(program: Program) -> list[Effects]:
    """The effects of all instructions, found once for a program: each trace asks for them several times."""
    if (known := _effects.get(program)) is None:
        known = _effects[program] = [effects(instruction) for instruction in program.instructions]
    return known


def _implicit(words: tuple[str, ...]) -> int:
    fixed = register_bits(FIXED[word][1] for word in words if word in FIXED)
    return fixed | (1 << _SCC if "scc" in words else 0)


_needed: WeakKeyDictionary[Program, dict[str, Needed]] = WeakKeyDictionary()


def needed_instructions(dispatch: Dispatch) -> Needed:
    """The instructions that a trace of a launch must execute, found once for a kernel."""
    known = _needed.setdefault(dispatch.program, {})
    if dispatch.kernel_name not in known:
        known[dispatch.kernel_name] = _found(dispatch)
    return known[dispatch.kernel_name]


def _found(dispatch: Dispatch) -> Needed:
    program = dispatch.program
    nothing = Needed(np.zeros(0, np.intp), content=True)
    if program.has_global_atomics or not _can_walk(program):
        return nothing
    walk = _walk(dispatch)
    after = walk.solution()
    if any(walk.deciding_loads(after)):
        return nothing
    kinds = {i.index: instruction_class(i.mnemonic) for i in program.instructions}
    skipped = [
        i for i, kind in kinds.items() if kind in ("VALU", "MFMA") and not walk.effects[i].writes & (after[i] | _ALWAYS)
    ]
    return Needed(np.array(skipped, np.intp), content=False)


def deciding_loads(dispatch: Dispatch) -> list[int]:
    """The instructions that load what decides where a launch's waves go or what they touch: all loads if in doubt."""
    program = dispatch.program
    if not _can_walk(program):
        return [i.index for i in program.instructions if instruction_class(i.mnemonic) in _LOADS]
    walk = _walk(dispatch)
    return list(walk.deciding_loads(walk.solution()))


def unneeded_products(dispatch: Dispatch) -> Array:
    """The matrix instructions that a trace need not execute, also where what is in memory matters."""
    if not _can_walk(dispatch.program):
        return np.zeros(0, np.intp)
    walk = _walk(dispatch)
    after = walk.solution()
    products = (i.index for i in dispatch.program.instructions if instruction_class(i.mnemonic) == "MFMA")
    return np.array([i for i in products if not walk.effects[i].writes & (after[i] | _ALWAYS)], np.intp)


def _can_walk(program: Program) -> bool:
    """True if every instruction says where it goes on, and which registers it uses."""
    return not any(
        i.semantics is None or i.mnemonic in _CALLS or "gpr_idx" in i.mnemonic or "movrel" in i.mnemonic
        for i in program.instructions
    )


def _walk(dispatch: Dispatch) -> _Walk:
    return _Walk(dispatch.program, dispatch.entry, _kernarg_pointers(dispatch), dispatch.lanes // 32)


def _kernarg_pointers(dispatch: Dispatch) -> int:
    """The registers that hold the addresses of the arguments and of the dispatch packet."""
    user_sgprs = dispatch.program.kernels[dispatch.kernel_name].descriptor.user_sgprs
    names = ("kernarg_segment_ptr", "dispatch_ptr")
    return register_bits(Register("s", r.first_sgpr, 2) for r in user_sgprs if r.name in names)


class _Walk:
    """The registers that matter after each instruction, found by walking backwards until nothing changes."""

    def __init__(self, program: Program, entry: int, arguments: int, mask_registers: int) -> None:
        self._instructions, self._mask_registers = program.instructions, mask_registers
        self.effects = effects_of(program)
        self._targets = [branch_target(program, i) for i in self._instructions]
        self._kinds = [instruction_class(i.mnemonic) for i in self._instructions]
        self._initial = self._where_initial(entry, arguments | _ALWAYS)
        self._arguments = arguments

    def solution(self) -> list[int]:
        """The registers that matter after each instruction, in any lane."""
        count = len(self._instructions)
        after = [_ALWAYS] * count
        before = [_ALWAYS] * (count + 1)
        changed = True
        while changed:
            changed = False
            for i in range(count - 1, -1, -1):
                out = before[i + 1] if not self._ends(i) else _ALWAYS
                target = self._targets[i]
                if target is not None:
                    out |= before[target]
                now = self._before(i, out)
                changed |= now != before[i]
                after[i], before[i] = out, now
        return [bits & (1 << _IDLE) - 1 | bits >> _IDLE for bits in after]

    def _before(self, i: int, after: int) -> int:
        effect, addresses = self.effects[i], self._addresses(i)
        active, idle = self._lanes_before(i, after)
        if addresses is None and not effect.writes & (active | idle) and self._targets[i] is None:
            return active | idle << _IDLE
        instruction, semantics = self._instructions[i], self._instructions[i].semantics
        every = semantics is not None and semantics.ignores_exec
        if "dpp" in instruction.encoding:  # some lanes may keep what they have
            active &= ~(effect.writes & _SCALARS)
        else:
            active &= ~effect.writes
        reads = effect.reads | _ALWAYS if addresses is None else addresses
        if every:
            idle &= ~effect.writes
        if every or self._moves_between_lanes(i):
            idle |= reads & ~_SCALARS
        return active | reads | idle << _IDLE

    def _lanes_before(self, i: int, after: int) -> tuple[int, int]:
        """The registers that matter after an instruction, in the lanes active before it and in the others."""
        active, idle = after & (1 << _IDLE) - 1, after >> _IDLE
        if self.effects[i].writes & _ALWAYS:
            if not self._leaves_lanes_out(i):
                idle |= active & ~_SCALARS
            active |= idle
        return active, 0 if self._initial[i] & _ALWAYS == _ALWAYS else idle

    def _leaves_lanes_out(self, i: int) -> bool:
        """True if an instruction that writes EXEC adds no lane to it."""
        instruction = self._instructions[i]
        if instruction.mnemonic.startswith(("s_and_saveexec_b", "v_cmpx_")):
            return True
        first = registers(instruction.sources[:1])
        is_first = [r.file == "s" and r.first == EXEC for r in first] == [True]
        return is_first and instruction.mnemonic.startswith(("s_and_b", "s_andn2_b", "s_and_not1_b"))

    def _addresses(self, i: int) -> int | None:
        """The operands of an access but the data that it stores; None for other instructions."""
        kind = self._kinds[i]
        is_access = kind in ("SMEM", "LDS") or kind.startswith("VMEM")
        if not is_access or self._moves_between_lanes(i):
            return None
        return self.effects[i].reads & ~_stored_registers(self._instructions[i]) | _ALWAYS

    def _where_initial(self, entry: int, chosen: int) -> list[int]:
        """The ones of some registers that have, before each instruction, their values from the kernel's beginning.

        From bit _SAVED on: the scalar registers that hold the initial EXEC, each by its first one.
        """
        initial = [chosen | -1 << _SAVED] * (len(self._instructions) + 1)
        initial[entry] = chosen
        reached, todo = {entry}, [entry]
        while todo:
            i = todo.pop()
            if i == len(self._instructions):
                continue
            following = self._initial_after(i, initial[i])
            for place in (None if self._ends(i) else i + 1, self._targets[i]):
                if place is not None and (place not in reached or initial[place] & ~following):
                    reached.add(place)
                    initial[place] &= following
                    todo.append(place)
        self._reached = reached
        return initial

    def _initial_after(self, i: int, before: int) -> int:
        """The registers with initial values after an instruction: EXEC again where the saved mask is added to it."""
        instruction, writes = self._instructions[i], self.effects[i].writes
        scalar = writes & ((1 << _SCC) - 1)
        after = before & ~writes & ~((scalar | scalar >> 1) << _SAVED)
        operands = registers((*instruction.results, *instruction.sources))
        masks = [r.first for r in operands if r.file == "s" and r.count == self._mask_registers]
        is_whole = before & _ALWAYS == _ALWAYS
        name, _, width = instruction.mnemonic.rpartition("_b")
        is_of_masks = width == str(32 * self._mask_registers)
        saves = "saveexec" in name or (name == "s_mov" and masks[1:] == [EXEC])
        if is_of_masks and saves and is_whole:
            after |= 1 << _SAVED + masks[0]
        restores = name in ("s_or", "s_mov") and masks[:1] == [EXEC]
        if is_of_masks and restores and any(before >> _SAVED + mask & 1 for mask in masks[1:]):
            after |= _ALWAYS
        return after

    def _ends(self, i: int) -> bool:
        return self._instructions[i].mnemonic in ("s_endpgm", "s_branch")

    def deciding_loads(self, after: list[int]) -> Iterator[int]:
        """The loads, other than those of arguments of the kernel, of what decides anything in it."""
        for i, kind in enumerate(self._kinds):
            if i not in self._reached or not self.effects[i].writes & after[i]:
                continue
            is_argument = kind == "SMEM" and self._is_argument(i)
            if kind in _LOADS and not is_argument and not self._moves_between_lanes(i):
                yield i

    def _moves_between_lanes(self, i: int) -> bool:
        """True for what hands values from lane to lane, though it may go through the hardware of LDS."""
        instruction = self._instructions[i]
        return "dpp" in instruction.encoding or any(word in instruction.mnemonic for word in _BETWEEN_LANES)

    def _is_argument(self, i: int) -> bool:
        base = self._instructions[i].sources[0] if self._instructions[i].sources else None
        if base is None or not isinstance(base.atom, Register):
            return True  # the clock
        bits = register_bits([base.atom])
        return bits & self._arguments & self._initial[i] == bits


def _stored_registers(instruction: Instruction) -> int:
    """The registers with what an instruction stores or an atomic adds, unless its address is in them, too."""
    family, _, rest = instruction.mnemonic.partition("_")
    sources = [o.atom for o in instruction.sources if o is not None and isinstance(o.atom, Register)]
    if family == "buffer" and rest.startswith(("store", "atomic")):
        data, addresses = sources[:1], sources[1:]
    elif rest.startswith(("store", "atomic")) or (family == "ds" and rest.startswith("write")):
        data, addresses = (
            [r for r in sources[1:] if r.file != "s"],
            [sources[0], *(r for r in sources if r.file == "s")],
        )
    else:
        return 0
    return register_bits(data) & ~register_bits(addresses)


def branch_target(program: Program, instruction: Instruction) -> int | None:
    """The target of a branch; None for other instructions."""
    if not instruction.mnemonic.startswith(("s_branch", "s_cbranch")):
        return None
    for operand in (*instruction.results, *instruction.sources):
        atom = None if operand is None else operand.atom
        name = atom.name if isinstance(atom, Symbol) else atom.text if isinstance(atom, Keyword) else ""
        if name in program.labels:
            return program.labels[name]
    return None
