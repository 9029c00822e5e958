"""Waits that a listing misses: uses of what may still be under way, and uses that come before their wait states.

    for missing in missing_waits(read_listing(text), arch):
        print(missing)

A finding is a use that some path of control reaches too early; what LLVM waits for itself is never one. Of a load
straight to LDS the use is a read of LDS, whose address is not known here: see `lds_loads`. `reports_of_missing_waits`
has one for all uses that the same wait would order: see `grouping`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

from flydsl.arch import Arch
from flydsl.arch.wait_states import SCALAR_READS_ARE_KEPT
from flydsl.errors import SourceLocation
from flydsl.hsaco.listing import ListedInstruction, Listing
from flydsl.simulator.waits.flow import Flow, Use
from flydsl.simulator.waits.grouping import Place, Places
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
    missing. always: on every path. more: further uses that miss the same wait, the last one at last_line.
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
    more: int = 0
    last_line: int = 0

    def __str__(self) -> str:
        path = "" if self.always else " on some path"
        others = "1 more use misses" if self.more == 1 else f"{self.more} more uses miss"
        more = f"; {others} the same wait, the last at ISA line {self.last_line}" if self.more else ""
        return (
            f"{self.instruction} ({_place(self.isa_line, self.at)}) {self.problem}{path}: "
            f"{self.started} ({_place(self.started_line, self.started_at)}); {self.hint}{more}"
        )


class _Found(NamedTuple):
    """A finding, the place where its wait is missing, and the hint for a count there."""

    missing: MissingWait
    place: Place
    hint: Callable[[int], str]


def missing_waits(listing: Listing, arch: Arch, *, registers: bool = True) -> list[MissingWait]:
    """The findings of a listing, in the order of its instructions. registers: of what it does with registers, too."""
    return _ordered([one.missing for one in _found(listing, arch, registers=registers)])


def reports_of_missing_waits(listing: Listing, arch: Arch, *, registers: bool = True) -> list[MissingWait]:
    """One finding for each wait that is missing: the first of those that it would order, with a count for all."""
    groups: dict[tuple[int, str], list[_Found]] = {}
    for one in _found(listing, arch, registers=registers):
        groups.setdefault(one.place[:2], []).append(one)
    return _ordered([_report(found) for found in groups.values()])


def _report(found: list[_Found]) -> MissingWait:
    all_of_them = _ordered([one.missing for one in found])
    first = next(one for one in found if one.missing == all_of_them[0])
    count = min(one.place.enough for one in found)
    return replace(
        first.missing, hint=first.hint(count), enough=max(0, count), more=len(all_of_them) - 1,
        last_line=max(one.isa_line for one in all_of_them), always=any(one.always for one in all_of_them),
    )  # fmt: skip


def _found(listing: Listing, arch: Arch, *, registers: bool) -> list[_Found]:
    flow = Flow(listing, arch, facts_of(listing, arch, registers=registers))
    found = [_of_lds(flow, listing, early) for early in early_lds_reads(flow)]
    if not registers:
        return found
    places = Places(flow)
    found += [_of_use(flow, listing, use, places.of_use(use)) for use in flow.uses]
    hazards = Hazards(flow.facts, listing.labels, arch).early
    found += [_of_hazard(listing, early, places.of_hazard(early)) for early in hazards]
    if arch.name in SCALAR_READS_ARE_KEPT:
        early_scalars = early_reads(flow.facts, listing.labels)
        found += [_of_scalar(listing, early, places.of_scalar(early)) for early in early_scalars]
    return found


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


def _of_use(flow: Flow, listing: Listing, use: Use, place: Place) -> _Found:
    counter, enough = flow.counter_of(use.key), flow.enough(use.key, use.under_way)
    verb = "overwrites" if use.writes else "reads"
    problem = f"{verb} {register_names(use.registers)} before it has arrived"

    def hint(count: int) -> str:
        if use.under_way.wait is None:
            return f"nothing waits for it: {waiting_text(counter, count)} before the use would"
        most = flow.facts[place.at].limits.get(counter, 0)
        line = listing.instructions[place.at].line
        return f"{counter}({most}) at ISA line {line} leaves it outstanding; {enough_text(counter, count)} waits for it"

    there = enough if use.under_way.wait is None else place.enough
    missing = _missing(
        listing, use.instruction, use.key.instruction, problem, hint(there), counter, enough, use.under_way.always
    )
    return _Found(missing, place, hint)


def _of_lds(flow: Flow, listing: Listing, early: EarlyLdsRead) -> _Found:
    counter = flow.counter_of(early.key)

    def hint(count: int) -> str:
        wait = waiting_text(counter, count)
        if early.barrier is None:
            return f"{wait} and then a barrier would order them"
        return f"{wait} before the barrier at ISA line {listing.instructions[early.barrier].line} would order them"

    came = "other waves know that it has arrived" if early.waited else "it has arrived"
    problem = f"reads LDS, as all that follow do, before {came}"
    missing = _missing(
        listing, early.read, early.key.instruction, problem, hint(early.enough), counter, early.enough, True
    )
    where = early.read if early.barrier is None else early.barrier
    return _Found(missing, Place(where, f"{counter} for LDS", early.enough), hint)


def _of_scalar(listing: Listing, early: EarlyRead, place: Place) -> _Found:
    problem = f"reads {register_names(early.registers)}, as the vector ALU has before it was written"
    hint = f"s_wait_alu depctr_{early.field}(0) in between is enough"
    return _Found(
        _missing(listing, early.instruction, early.writer, problem, hint, "", 0, False), place, lambda _: hint
    )


def _of_hazard(listing: Listing, early: Early, place: Place) -> _Found:
    def hint(count: int) -> str:
        return hazard_hint(early, -count)

    problem = hazard_problem(early)
    missing = _missing(listing, early.instruction, early.before, problem, hint(place.enough), "", 0, True)
    return _Found(missing, place, hint)


def hazard_problem(early: Early) -> str:
    """The problem of missing wait states in words."""
    unit = "vector instruction" if early.counts_vector else "wait state"
    names = f" ({register_names(early.registers)})" if early.registers else ""
    passed = f"{early.passed} {unit}{'s' * (early.passed != 1)}"
    return f"{early.rule}{names}, {passed} after it, and needs {early.needed}"


def hazard_hint(early: Early, missing: int) -> str:
    """The instructions to put in between where some wait states, or vector instructions, are missing."""
    nops = "v_nop" + f", {missing} times," * (missing > 1) if early.counts_vector else f"s_nop {missing - 1}"
    return f"{nops} in between is enough"


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
