"""Native counting: the memory in which a thread counts, and the records that call the counting handlers.

The records of a launch that counts are followed by a second copy. In the first one every handler is one that counts
and goes on to the handler which the second one has at the same place. `runtime/count.c` has the native side.
"""

from __future__ import annotations

from ctypes import sizeof
from dataclasses import dataclass
from functools import cache
from weakref import WeakKeyDictionary

import numpy as np

from flydsl.arch import Arch
from flydsl.arch.lds_banks import phases
from flydsl.simulator.arrays import Array
from flydsl.simulator.counters.instruction_class import instruction_class, is_lds_atomic, lds_operation
from flydsl.simulator.counters.raw import no_counts
from flydsl.simulator.decoding.program import Program
from flydsl.simulator.native import layout
from flydsl.simulator.native.group import aligned_zeros
from flydsl.simulator.native.library import library

_ACCESSES = frozenset({"VMEM load", "VMEM store", "VMEM atomic", "LDS"})
_ENTRY_FIELDS = (
    *("executions", "active_lanes", "global_bytes", "global_lines"),
    *("lds_bytes", "lds_passes", "lds_phases"),
)
_PATTERN_FIELDS = {"lds_uncounted": "uncounted", "lds_max_ways": "max_ways", "scratch_bytes": "scratch_bytes"}


@dataclass(frozen=True)
class _Plan:
    """The accesses of a program. accessing: its instructions with vector accesses; rules: their LDS rules; atomic:
    whether they are atomic operations in LDS."""

    accessing: Array
    rules: tuple[Array | None, ...]
    rule_addresses: Array
    atomic: Array


_plans: WeakKeyDictionary[Program, _Plan] = WeakKeyDictionary()


def _plan(program: Program) -> _Plan:
    if program not in _plans:
        accessing = [i for i in program.instructions if instruction_class(i.mnemonic) in _ACCESSES]
        rules = tuple(_lds_rule(program.arch, i.mnemonic, i.wave_size) for i in accessing)
        addresses = np.array([0 if rule is None else rule.ctypes.data for rule in rules], np.int64)
        atomic = np.array([is_lds_atomic(i.mnemonic) for i in accessing], np.int64)
        _plans[program] = _Plan(np.array([i.index for i in accessing], np.intp), rules, addresses, atomic)
    return _plans[program]


def counting_records(records: Array, program: Program) -> Array:
    """The records of a program with counting handlers. Their memory also holds the original records, which follow."""
    handlers = library().counting
    return _watched_records(records, program, handlers["count"], handlers["count_access"])


def tracing_records(records: Array, program: Program, skipped: Array) -> Array:
    """The records of a program with handlers that record; see `counting_records`. skipped: not to be executed."""
    handlers = library().tracing
    watched = _watched_records(records, program, handlers["trace"], handlers["trace_access"])
    watched[skipped, 0] = handlers["trace_only"]
    return watched


def _watched_records(records: Array, program: Program, each: int, access: int) -> Array:
    watched = doubled(records)
    watched[: len(program.instructions), 0] = each
    watched[_plan(program).accessing, 0] = access
    return watched


def doubled(records: Array) -> Array:
    """A copy of records, followed in memory by another one, which keeps the handlers that are replaced in the first."""
    both = aligned_zeros(2 * records.nbytes).view(np.int64).reshape(2, *records.shape)
    both[:] = records
    return both[0]


class CountWatch:
    """Counts: see `launch_block.Watch`."""

    @property
    def observer(self) -> int:
        return library().counting["observe"]

    def records(self, records: Array, program: Program) -> Array:
        return counting_records(records, program)


class ThreadCounts:
    """The counters of one thread. `address` is that of its counting block."""

    def __init__(self, program: Program) -> None:
        self._count = len(program.instructions)
        self._plan = _plan(program)
        accessing = self._plan.accessing
        start = sizeof(layout.CountingBlock)
        end = start + sizeof(layout.Entry) * (self._count + 1)
        self._block = aligned_zeros(end + sizeof(layout.Pattern) * len(accessing))
        self._entries = self._block[start:end].view(layout.Entry)
        self._patterns = self._block[end:].view(layout.Pattern)
        self._entries["pattern"][accessing] = self.address + end + sizeof(layout.Pattern) * np.arange(len(accessing))
        self._patterns["rule"], self._patterns["is_atomic"] = self._plan.rule_addresses, self._plan.atomic
        self.block.lds_banks = program.arch.lds_banks or 0
        self.fallen_back = no_counts(self._count)  # what the lock-step machine counts for this thread

    @property
    def address(self) -> int:
        return int(self._block.ctypes.data)

    @property
    def block(self) -> layout.CountingBlock:
        return layout.CountingBlock.from_buffer(self._block.data)

    def counts(self) -> Array:
        """The counts in the form of `counters.raw`, without those of the lock-step machine."""
        counts = no_counts(self._count)
        for name in _ENTRY_FIELDS:
            counts[name] = self._entries[name][: self._count]
        for name, field in _PATTERN_FIELDS.items():
            counts[name][self._plan.accessing] = self._patterns[field]
        return counts


@cache
def _lds_rule(arch: Arch, mnemonic: str, wave_size: int) -> Array | None:
    """The lanes that compete in an LDS access, as a `layout.Rule`; None if unknown."""
    operation = lds_operation(arch, mnemonic)
    if operation is None:
        return None
    groups, banks = phases(arch, operation, wave_size), arch.lds_banks
    assert banks is not None
    assert banks <= layout.MAX_BANKS
    assert len({len(lanes) for lanes in groups}) == 1, "the native side takes phases of one size"
    dwords = int(operation.rpartition("b")[2]) // 32
    lanes = [lane for group in groups for lane in group]
    return np.array([dwords, banks, len(groups), len(groups[0]), *lanes], np.int64)
