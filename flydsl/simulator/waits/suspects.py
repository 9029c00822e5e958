"""The instructions of a program that the run-time check of waits has to look at.

Registers do not depend on what a program computes, so the static check knows which uses may come too early on some
path. A launch looks at these only, on the path that its waves take; where there are none, nothing is looked at.
"""

from __future__ import annotations

from dataclasses import dataclass
from weakref import WeakKeyDictionary

from flydsl.hsaco.listing import Listing
from flydsl.simulator.decoding.program import Program
from flydsl.simulator.waits.flow import Flow, Use
from flydsl.simulator.waits.hazards import Early, Hazards
from flydsl.simulator.waits.instructions import Facts


@dataclass(frozen=True)
class Suspects:
    """facts: of every instruction. uses, hazards: by the index of the instruction that may come too early.
    starting: the instructions whose results may be used too early."""

    facts: list[Facts]
    uses: dict[int, list[Use]]
    hazards: dict[int, list[Early]]
    starting: frozenset[int]


_found: WeakKeyDictionary[Program, Suspects] = WeakKeyDictionary()


def suspects_of(program: Program) -> Suspects:
    """The suspects of a program, which are looked for once."""
    if program not in _found:
        _found[program] = _suspects(program)
    return _found[program]


def _suspects(program: Program) -> Suspects:
    listing = Listing(tuple(instruction.listed for instruction in program.instructions), dict(program.labels))
    flow = Flow(listing, program.arch)
    uses: dict[int, list[Use]] = {}
    for use in flow.uses:
        uses.setdefault(use.instruction, []).append(use)
    hazards: dict[int, list[Early]] = {}
    for early in Hazards(flow.facts, listing.labels, program.arch).early:
        hazards.setdefault(early.instruction, []).append(early)
    return Suspects(list(flow.facts), uses, hazards, frozenset(use.key.instruction for use in flow.uses))
