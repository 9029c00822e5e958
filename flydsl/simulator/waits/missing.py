"""Waits that a listing misses: uses of what may still be under way, and uses that come before their wait states.

    for missing in missing_waits(read_listing(text), arch):
        print(missing)

A finding is a use that some path of control reaches too early; what LLVM waits for itself is never one. Of a load
straight to LDS the use is a read of LDS, whose address is not known here: see `lds_loads`.
"""

from __future__ import annotations

from dataclasses import dataclass

from flydsl.arch import Arch
from flydsl.arch.wait_states import SCALAR_READS_ARE_KEPT
from flydsl.errors import SourceLocation
from flydsl.hsaco.listing import ListedInstruction, Listing
from flydsl.simulator.waits.flow import Flow, Key, Use
from flydsl.simulator.waits.hazards import Early, Hazards, register_names
from flydsl.simulator.waits.instructions import facts_of
from flydsl.simulator.waits.lds_loads import EarlyLdsRead, early_lds_reads
from flydsl.simulator.waits.scalar_reads import EarlyRead, early_reads


@dataclass(frozen=True)
class MissingWait:
    """A use that comes too early.

    instruction, isa_line, at: of the use. started, started_line, started_at: of what it should have waited for.
    problem: what the use does that it must not do yet. hint: the wait that would be enough.
    counter, enough: the counter to wait for, and its largest count that would do; "" and 0 where wait states are
    missing. always: on every path.
    """

    instruction: str
    isa_line: int
    at: SourceLocation | None
    started: str
    started_line: int
    started_at: SourceLocation | None
    problem: str
    hint: str
    counter: str = ""
    enough: int = 0
    always: bool = True

    def __str__(self) -> str:
        path = "" if self.always else " on some path"
        return (
            f"{self.instruction} ({_place(self.isa_line, self.at)}) {self.problem}{path}: "
            f"{self.started} ({_place(self.started_line, self.started_at)}); {self.hint}"
        )


def missing_waits(listing: Listing, arch: Arch, *, registers: bool = True) -> list[MissingWait]:
    """The findings of a listing, in the order of its instructions. registers: of what it does with registers, too."""
    if not registers:
        flow = Flow(listing, arch, facts_of(listing, arch, registers=False))
        return _ordered([_of_lds(flow, listing, early) for early in early_lds_reads(flow)])
    flow = Flow(listing, arch)
    found = [_of_use(flow, listing, use) for use in flow.uses]
    found += [_of_lds(flow, listing, early) for early in early_lds_reads(flow)]
    found += [_of_hazard(listing, early) for early in Hazards(flow.facts, listing.labels, arch).early]
    if arch.name in SCALAR_READS_ARE_KEPT:
        found += [_of_scalar(listing, early) for early in early_reads(flow.facts, listing.labels)]
    return _ordered(found)


def _ordered(found: list[MissingWait]) -> list[MissingWait]:
    return sorted(dict.fromkeys(found), key=lambda one: (one.isa_line, one.started_line))


def waiting_text(counter: str, most: int) -> str:
    """A wait in assembly.

    >>> waiting_text("vmcnt", 2), waiting_text("loadcnt", 0)
    ('s_waitcnt vmcnt(2)', 's_wait_loadcnt 0')
    """
    if counter in ("vmcnt", "lgkmcnt", "expcnt"):
        return f"s_waitcnt {counter}({most})"
    return f"s_waitcnt_vscnt null, {most}" if counter == "vscnt" else f"s_wait_{counter} {most}"


def enough_text(counter: str, most: int) -> str:
    """A count that is low enough, and what is as good.

    >>> enough_text("vmcnt", 2), enough_text("vmcnt", 0)
    ('vmcnt(2) or less', 'vmcnt(0)')
    """
    return f"{counter}({most})" + (" or less" if most else "")


def _of_use(flow: Flow, listing: Listing, use: Use) -> MissingWait:
    counter, enough = flow.counter_of(use.key), flow.enough(use.key, use.under_way)
    verb = "overwrites" if use.writes else "reads"
    problem = f"{verb} {register_names(use.registers)} before it has come"
    return _missing(
        listing, use.instruction, use.key.instruction, problem,
        left_outstanding(flow, listing, use.key, use.under_way.wait, enough), counter, enough, use.under_way.always,
    )  # fmt: skip


def left_outstanding(flow: Flow, listing: Listing, key: Key, wait: tuple[int, int] | None, enough: int) -> str:
    """The wait that would have been enough, beside the one that was not."""
    counter = flow.counter_of(key)
    if wait is None:
        return f"nothing waits for it: {waiting_text(counter, enough)} before the use would"
    index, least = wait
    most = flow.facts[index].limits.get(counter, 0)
    line = listing.instructions[index].line
    return f"{counter}({most}) at ISA line {line} leaves it outstanding; {enough_text(counter, least)} waits for it"


def _of_lds(flow: Flow, listing: Listing, early: EarlyLdsRead) -> MissingWait:
    counter = flow.counter_of(early.key)
    wait = waiting_text(counter, early.enough)
    hint = f"{wait} and then a barrier would order them"
    if early.barrier is not None:
        hint = f"{wait} before the barrier at ISA line {listing.instructions[early.barrier].line} would order them"
    came = "other waves know that it has come" if early.waited else "it has come"
    problem = f"reads LDS, as all that follow do, before {came}"
    return _missing(listing, early.read, early.key.instruction, problem, hint, counter, early.enough, True)


def _of_scalar(listing: Listing, early: EarlyRead) -> MissingWait:
    problem = f"reads {register_names(early.registers)}, as the vector ALU has before it was written"
    hint = f"s_wait_alu depctr_{early.field}(0) in between is enough"
    return _missing(listing, early.instruction, early.writer, problem, hint, "", 0, False)


def _of_hazard(listing: Listing, early: Early) -> MissingWait:
    problem, hint = hazard_problem(early)
    return _missing(listing, early.instruction, early.before, problem, hint, "", 0, True)


def hazard_problem(early: Early) -> tuple[str, str]:
    """The problem of missing wait states in words, and what to do."""
    unit = "vector instruction" if early.counts_vector else "wait state"
    missing = early.needed - early.passed
    nops = "v_nop" + f", {missing} times," * (missing > 1) if early.counts_vector else f"s_nop {missing - 1}"
    names = f" ({register_names(early.registers)})" if early.registers else ""
    passed = f"{early.passed} {unit}{'s' * (early.passed != 1)}"
    problem = f"{early.rule}{names}, {passed} behind it, and needs {early.needed}"
    return problem, f"{nops} in between is enough"


def _missing(
    listing: Listing, index: int, started: int, problem: str, hint: str, counter: str, enough: int, always: bool
) -> MissingWait:
    use, start = listing.instructions[index], listing.instructions[started]
    return MissingWait(
        _shown(use), use.line, use.location, _shown(start), start.line, start.location, problem, hint, counter, enough,
        always,
    )  # fmt: skip


def _shown(listed: ListedInstruction) -> str:
    return " ".join(listed.text.split())


def _place(line: int, at: SourceLocation | None) -> str:
    return f"ISA line {line}" + (f", {at}" if at else "")
