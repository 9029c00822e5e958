"""The facts of each instruction of a listing: registers, what it starts, what it waits for, where control goes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from flydsl.arch import Arch
from flydsl.arch.wait_counters import Stream, WaitCounters, wait_counters
from flydsl.hsaco.listing import ListedInstruction, Listing
from flydsl.hsaco.register_uses import base_name, uses
from flydsl.hsaco.wait_counts import counts_waited_for, encoded_counts
from flydsl.simulator.isa.operations import is_load, operation_of

_RETURNS = re.compile(r"\b(sc0|glc|TH_ATOMIC_\w*RETURN)\b")
_CALLS = ("s_swappc_b64", "s_swap_pc_i64", "s_call_b64", "s_call_i64")
RETURNS = ("s_setpc_b64", "s_set_pc_i64")
"""Go on at an address: so functions return."""
_ENDS = ("s_endpgm", *RETURNS, "s_branch", "s_trap", "s_add_pc_i64", "s_rfe_b64", "s_rfe_i64")
_FAR_BRANCH = "s_add_pc_i64"
SCC = 1 << 2048
"""The bit of the scalar condition code in a set of registers, after those of all files."""
_HALF = re.compile(r"(byte|short)_d16|d16(_hi)?_[bui](8|16)|_store_(b8|b16|byte|short)|ds_write_b(8|16)")
_ON_SCC = re.compile(r"s_(cbranch_scc|cselect|cmov|addc|subb|add_co_ci|sub_co_ci)")


@dataclass(frozen=True, slots=True)
class Facts:
    """The facts of one instruction. index: in the listing. reads, writes: sets of registers, see `hsaco.register_uses`.

    kind: of the operation that it starts, "" for none; streams: those that count it, and must let it go; besides: one
    that counts it as well. limits: counter -> the most that may be under way after it, "all" for every counter.
    targets: instructions that a branch goes to; falls_through: whether the next one may follow. is_call: code that is
    elsewhere runs before the next one.
    """

    index: int
    text: str
    mnemonic: str
    reads: int
    writes: int
    kind: str
    streams: tuple[Stream, ...]
    besides: Stream | None
    limits: Mapping[str, int]
    targets: tuple[int, ...]
    falls_through: bool
    is_call: bool

    @property
    def half(self) -> str:
        """The half of its data's registers, "low" or "high", that a load or store of 16 bits or fewer touches."""
        if not _HALF.search(self.mnemonic):
            return ""
        return "high" if "_d16_hi" in self.mnemonic else "low"

    @property
    def results(self) -> int:
        """The registers that are written when the operation that it starts has completed."""
        return self.writes if is_load(self.kind) else 0


def facts_of(listing: Listing, arch: Arch, *, registers: bool = True) -> list[Facts]:
    """The facts of all instructions of a listing. registers: of others than accesses to LDS, too, which takes long."""
    counters = wait_counters(arch)
    return [
        _facts(i, listed, listing.labels, counters, registers=registers)
        for i, listed in enumerate(listing.instructions)
    ]


def _facts(
    index: int, listed: ListedInstruction, labels: Mapping[str, int], counters: WaitCounters, *, registers: bool
) -> Facts:
    text = listed.text
    name, _, rest = text.partition(" ")
    mnemonic = _base_name(name)
    kind = operation_of(_with_form(mnemonic, rest))
    streams = counters.streams.get(kind, ())
    reads, writes = map(int, uses(text)) if registers or kind == "LDS" else (0, 0)
    if kind == "first at barrier":
        writes |= SCC
    elif _ON_SCC.match(mnemonic):
        reads |= SCC
    elif streams and "_d16" in mnemonic and is_load(kind):
        reads &= ~writes  # the half that stays is not read before the data has come
    target = _target(mnemonic, rest, labels)
    return Facts(
        index, text, mnemonic, reads, writes, kind if streams else "", streams, counters.besides.get(kind),
        _limits(text, counters) if mnemonic.startswith("s_wait") else _NO_LIMITS, target,
        not mnemonic.startswith(_ENDS), mnemonic in _CALLS,
    )  # fmt: skip


_NO_LIMITS: Mapping[str, int] = {}


@cache
def _base_name(name: str) -> str:
    return base_name(name)


def _with_form(mnemonic: str, rest: str) -> str:
    """The name of an instruction in the table, as far as the kind of its operation depends on the form."""
    if "atomic" in mnemonic:
        return f"{mnemonic}/returning" if _RETURNS.search(rest) else mnemonic
    return f"{mnemonic}/lds" if mnemonic.startswith("buffer_load") and rest.endswith(" lds") else mnemonic


def _limits(text: str, counters: WaitCounters) -> Mapping[str, int]:
    constant = encoded_counts(text)
    return counts_waited_for(text) if constant is None else counters.decoded(constant)


def _target(mnemonic: str, rest: str, labels: Mapping[str, int]) -> tuple[int, ...]:
    """The instruction that a branch goes to; none for other instructions, and for labels that are not there."""
    if not mnemonic.startswith(("s_branch", "s_cbranch", _FAR_BRANCH)):
        return ()
    label = rest.partition("-")[0].strip() if mnemonic == _FAR_BRANCH else rest.strip()
    return (labels[label],) if label in labels else ()
