"""Signals between workgroups: which writes a load waits for, in a recording of all workgroups of a launch.

A word of memory has a version for each write to it. A load that other workgroups may write for waits for the first
version that is as good as the one that it found: the comparison of the loaded value comes out the same. Versions are
counted and have no author, as counters have none: whoever comes last to a barrier of the grid ends its waits.
"""

from __future__ import annotations

import operator
import re
from collections import defaultdict
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from functools import cached_property
from weakref import WeakKeyDictionary

import numpy as np

from flydsl.hsaco.operands import Immediate, Register
from flydsl.simulator.arrays import Array
from flydsl.simulator.counters.instruction_class import instruction_class
from flydsl.simulator.decoding.program import Instruction, Program
from flydsl.simulator.native import layout
from flydsl.simulator.timing.needed import branch_target, effects, register_bits

_ACCESS = np.dtype(layout.SignalAccess)
SIGNAL_ROOM = 1 << 20
"""Accesses that are kept of a launch."""
LONGEST_LOOP = 512
"""Words of a round of a loop that waits: it loads, compares and sleeps."""
_NEAR = 24
"""Instructions after a load in which its value is compared."""
_COMPARISON = re.compile(r"[vs]_cmp_(eq|ne|lg|lt|le|gt|ge)_([iu])(32|64)")
_OPERATORS: dict[str, Callable[[int, int], bool]] = {
    name: getattr(operator, "ne" if name == "lg" else name) for name in ("eq", "ne", "lg", "lt", "le", "gt", "ge")
}
_COPIES = ("v_readfirstlane_b32", "v_mov_b32", "s_mov_b32", "s_mov_b64")
_WORK = ("VMEM store", "VMEM atomic", "LDS", "MFMA")
_SCOPES = ("sc0", "sc1", "glc", "scope:")


@dataclass(frozen=True)
class Comparison:
    """A comparison of a loaded value. other: a constant, or a register, which it is compared with. comes_first:
    whether the loaded value is the left side."""

    mnemonic: str
    other: int | Register
    comes_first: bool

    def holds(self, loaded: int, compared: int) -> bool:
        """True if it holds for a loaded value. compared: what the other register had."""
        match = _COMPARISON.match(self.mnemonic)
        assert match
        bits, is_signed = int(match[3]), match[2] == "i"
        other = compared if isinstance(self.other, Register) else self.other
        sides = [_as_integer(value, bits, is_signed=is_signed) for value in (loaded, other)]
        return _OPERATORS[match[1]](*(sides if self.comes_first else reversed(sides)))


def _as_integer(value: int, bits: int, *, is_signed: bool) -> int:
    value &= (1 << bits) - 1
    return value - (1 << bits) if is_signed and value >> bits - 1 else value


class Signalling:
    """The instructions of a program that give and await signals. polls: those that await them, and what each compares.

    writers: those that write. tickets: atomic operations in loops that do more than wait, whose results are compared:
    whoever comes takes the next piece of work.
    """

    def __init__(self, program: Program) -> None:
        self._instructions = program.instructions
        kinds = [instruction_class(i.mnemonic) for i in program.instructions]
        waiting = _in_waiting_loops(program, kinds)
        self.waits = bool(waiting)
        polls = [i for i, kind in enumerate(kinds) if kind == "VMEM load" and is_coherent(self._instructions[i])]
        polls += [i for i in waiting if kinds[i] == "VMEM atomic"]
        self.polls = {i: self._comparison(i) for i in polls}
        writers = {i for i, kind in enumerate(kinds) if kind in ("VMEM store", "VMEM atomic")}
        self.writers = {i for i in writers if i not in polls or "swap" in self._instructions[i].mnemonic}
        returning = [i for i, kind in enumerate(kinds) if kind == "VMEM atomic" and self._instructions[i].results]
        counting = [i for i in returning if i not in waiting and "swap" not in self._instructions[i].mnemonic]
        loops = _loops(program) if counting else []
        self.tickets = [i for i in counting if any(i in loop for loop in loops) and self._decides(program, i)]

    @cached_property
    def watched(self) -> Array:
        """For each instruction what `layout.SignalLog` has of it."""
        found = np.full(len(self._instructions) + 1, -1, np.int64)
        found[list(self.writers)] = layout.Wave.sgpr.offset
        for i, comparison in self.polls.items():
            found[i] = layout.Wave.sgpr.offset if comparison is None else _offset(comparison.other)
        return found

    @cached_property
    def looks(self) -> Array:
        """For each instruction 1 if it only looks at signals."""
        found = np.zeros(len(self._instructions) + 1, np.uint8)
        found[[i for i in self.polls if i not in self.writers]] = 1
        return found

    def _decides(self, program: Program, atomic: int) -> bool:
        """True if what follows from the result of an atomic operation is compared soon."""
        known = register_bits(o.atom for o in self._instructions[atomic].results if isinstance(o.atom, Register))
        at = atomic + 1
        for _ in range(_NEAR):
            if at == len(self._instructions):
                return False
            instruction = self._instructions[at]
            effect = effects(instruction)
            if effect.reads & known:
                if _COMPARISON.match(instruction.mnemonic):
                    return True
                known |= effect.writes
            target = branch_target(program, instruction) if instruction.mnemonic == "s_branch" else None
            at = at + 1 if target is None else target
        return False

    def _comparison(self, load: int) -> Comparison | None:
        """The first comparison of what an instruction loads; None where it is none with a constant or a register."""
        loaded = register_bits(o.atom for o in self._instructions[load].results if isinstance(o.atom, Register))
        written = 0
        for instruction in self._instructions[load + 1 : load + _NEAR]:
            effect = effects(instruction)
            if _COMPARISON.match(instruction.mnemonic) and effect.reads & loaded:
                return _compared(instruction, loaded, written)
            if instruction.mnemonic.startswith(_COPIES) and effect.reads & loaded:
                loaded |= effect.writes
            elif effect.writes & loaded:
                return None
            else:
                written |= effect.writes
        return None


_signalling: WeakKeyDictionary[Program, Signalling] = WeakKeyDictionary()


def signalling_of(program: Program) -> Signalling:
    """The signals of a program, found once."""
    if (known := _signalling.get(program)) is None:
        known = _signalling[program] = Signalling(program)
    return known


def is_coherent(instruction: Instruction) -> bool:
    """True for an access that looks beyond the caches of its compute unit."""
    return any(word in instruction.listed.text for word in _SCOPES)


def _loops(program: Program) -> list[range]:
    """The instructions between each branch back and its target."""
    targets = [(branch_target(program, branch), end) for end, branch in enumerate(program.instructions)]
    return [range(target, end + 1) for target, end in targets if target is not None and target <= end]


def _in_waiting_loops(program: Program, kinds: list[str]) -> list[int]:
    """The accesses of loops that do nothing but look at memory that others write."""
    found = []
    for loop in _loops(program):
        accesses = [i for i in loop if kinds[i].startswith("VMEM")]
        others = [i for i in loop if kinds[i] in _WORK and i not in accesses]
        barriers = [i for i in loop if "barrier" in program.instructions[i].mnemonic]
        is_look = all(
            kinds[i] == "VMEM load" or (kinds[i] == "VMEM atomic" and program.instructions[i].results) for i in accesses
        )
        if is_look and not others and not barriers and any(is_coherent(program.instructions[i]) for i in accesses):
            found += accesses
    return found


def _compared(instruction: Instruction, loaded: int, written: int) -> Comparison | None:
    """A comparison, unless its other side changed since the load."""
    sides = [None if o is None else o.atom for o in instruction.sources][:2]
    are_loaded = [isinstance(a, Register) and bool(register_bits([a]) & loaded) for a in sides]
    if are_loaded not in ([True, False], [False, True]):
        return None
    other = sides[are_loaded.index(False)]
    if isinstance(other, Immediate) and isinstance(other.value, int):
        return Comparison(instruction.mnemonic, other.value, are_loaded[0])
    is_usable = isinstance(other, Register) and other.count == 1 and other.file in "sv"
    if not isinstance(other, Register) or not is_usable or register_bits([other]) & written:
        return None
    return Comparison(instruction.mnemonic, other, are_loaded[0])


def _offset(other: int | Register) -> int:
    """The offset of a register in a wave's state."""
    if not isinstance(other, Register) or other.file == "s":
        return int(layout.Wave.sgpr.offset) + 4 * (other.first if isinstance(other, Register) else 0)
    return int(layout.Wave.vgpr.offset) + layout.ROW_BYTES * other.first


class Log:
    """Room for what native code records of signals."""

    def __init__(self, signalling: Signalling) -> None:
        self._accesses = np.empty(SIGNAL_ROOM, _ACCESS)  # of memory that the host only provides where it is written
        self._watched, self._looks = signalling.watched, signalling.looks
        first = self._accesses.ctypes.data
        end = self._accesses.ctypes.data + self._accesses.nbytes
        watched, looks = self._watched.ctypes.data, self._looks.ctypes.data
        self.block = layout.SignalLog(at=first, end=end, watched=watched, looks=looks)

    @property
    def is_full(self) -> bool:
        """True if there was no room for all accesses."""
        return int(self.block.at) > int(self.block.end)

    def accesses(self) -> Array:
        """The recorded accesses, in order; none if some are missing."""
        count = (self.block.at - self._accesses.ctypes.data) // _ACCESS.itemsize
        return self._accesses[: 0 if self.is_full else count]


@dataclass
class Signal:
    """An access of a wave that gives or awaits a signal. at: its place in the stream, in words.

    values: by address, what it found and what it is compared with. needs: the versions of words that it awaits; gives:
    the words that it writes.
    """

    workgroup: int
    wave: int
    instruction: int
    at: int
    values: dict[int, tuple[int, int]] = field(default_factory=dict)
    needs: list[tuple[int, int]] = field(default_factory=list)
    gives: list[int] = field(default_factory=list)


def signals_of(accesses: Array, signalling: Signalling, streams: Callable[[int, int], int]) -> dict[int, list[Signal]]:
    """The signals of each workgroup by wave, then in order. streams: where the stream of a wave begins."""
    is_poll = np.isin(accesses["instruction"], list(signalling.polls))
    polled = np.unique(accesses["address"][is_poll])
    is_write = np.isin(accesses["instruction"], list(signalling.writers))
    both = np.intersect1d(polled, np.unique(accesses["address"][is_write]))
    chosen = accesses[np.isin(accesses["address"], both)]
    last = _last_rounds(chosen, signalling, streams)
    _number_versions(chosen, last, signalling)
    found = defaultdict[int, list[Signal]](list)
    for signal in {id(s): s for s in last if s is not None}.values():
        found[signal.workgroup].append(signal)
    for signals in found.values():
        signals.sort(key=lambda s: (s.wave, s.at))
    return dict(found)


def _last_rounds(accesses: Array, signalling: Signalling, streams: Callable[[int, int], int]) -> list[Signal | None]:
    """The signal of each access, None for those of a wave that goes on looking: of a loop the last round counts."""
    found: list[Signal | None] = [None] * len(accesses)
    of_wave = defaultdict[tuple[int, int], list[_Looking]](list)
    names = ("group", "wave", "instruction", "at", "address", "value", "compared")
    rows = zip(*(accesses[name].tolist() for name in names), strict=True)
    for row, (group, wave, instruction, place, address, value, compared) in enumerate(rows):
        at, before = (place - streams(group, wave)) // 4, of_wave[group, wave]
        is_poll = instruction in signalling.polls
        again = _seen_before(before, instruction, at, address) if is_poll else None
        if again is not None:
            while before[-1] is not again:
                for old in before.pop().rows.values():
                    found[old] = None
            if address in again.rows:
                found[again.rows[address]] = None
            again.signal.at = at
        elif not before or before[-1].signal.instruction != instruction or before[-1].signal.at != at:
            before.append(_Looking(Signal(group, wave, instruction, at), is_poll))
        signal = before[-1].signal
        before[-1].rows[address], found[row] = row, signal
        signal.values[address] = (value, compared)
    return found


@dataclass
class _Looking:
    """A signal of a wave, and the rows of the accesses that are in it, by address."""

    signal: Signal
    is_poll: bool
    rows: dict[int, int] = field(default_factory=dict)


def _seen_before(before: list[_Looking], instruction: int, at: int, address: int) -> _Looking | None:
    """The look that a wave takes again: at the same word, a short time ago, and all it did since was to look."""
    for looking in reversed(before):
        if not looking.is_poll or at - looking.signal.at > LONGEST_LOOP:
            return None
        if looking.signal.instruction == instruction and address in looking.rows:
            return looking
    return None


def _number_versions(accesses: Array, signals: list[Signal | None], signalling: Signalling) -> None:
    """Set what each signal needs and gives. A version's value is what the next access finds."""
    versions = defaultdict[int, list[int]](list)
    pending = dict[int, bool]()
    for signal, address, value in zip(signals, accesses["address"].tolist(), accesses["value"].tolist(), strict=True):
        history = versions[address]
        if pending.get(address, True):
            history.append(value)
            pending[address] = False
        if signal is None:
            continue
        if signal.instruction in signalling.polls:
            comparison, compared = signalling.polls[signal.instruction], signal.values[address][1]
            first = _first_as_good(history, comparison, compared)
            if first:
                signal.needs.append((address, first))
        if signal.instruction in signalling.writers:
            signal.gives.append(address)
            pending[address] = True


def _first_as_good(history: list[int], comparison: Comparison | None, compared: int) -> int:
    """The first version of a word for which a comparison comes out as for the last one."""
    if comparison is None:
        return len(history) - 1
    outcome = comparison.holds(history[-1], compared)
    return next(n for n, value in enumerate(history) if comparison.holds(value, compared) == outcome)


def is_in(signal: Signal, stream: Array, keep: Array) -> bool:
    """True if a signal's access is among the kept words of a stream."""
    return 0 < signal.at <= len(stream) and bool(keep[signal.at - 1]) and stream[signal.at - 1] == signal.instruction


def with_signals(stream: Array, keep: Array, numbers: Collection[tuple[int, int]]) -> Array:
    """The kept words of a stream, with a word after each access that is a signal. numbers: (place, number)."""
    if not numbers:
        return stream[keep]
    places, words = np.array(sorted(numbers), np.int64).T
    moved = np.concatenate([[0], np.cumsum(keep)])[places]
    return np.insert(stream[keep], moved, (SIGNAL_WORD | words).astype(np.uint32))


SIGNAL_WORD = 0xA000_0000
"""The mark of a word that is the number of a signal."""
