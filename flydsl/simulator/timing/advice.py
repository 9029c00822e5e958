"""Advice about a launch, its limit and what would help: sentences whose every number is computed from the trace.

The part that is looked at is the innermost loop in which most of the time goes, or the whole program without one. For
each reason to stall that takes more than a few percent of it there is a `Finding`. What a change would hide is bounded
three times: by the stall itself, by the time that the change gains, and by what the busiest unit and the other waves of
the SIMD leave. It takes for granted that latencies stay as they are.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from flydsl.errors import SourceLocation
from flydsl.simulator.arrays import Array
from flydsl.simulator.timing.hot_spots import Cost, costs
from flydsl.simulator.timing.memory_waits import producers
from flydsl.simulator.timing.strong_waits import strong_waits
from flydsl.simulator.timing.trace import Stall, Trace, Unit
from flydsl.simulator.timing.traced_loops import Region, hot_region
from flydsl.simulator.timing.utilisation import Utilisation, utilisation

_LEAST_SHARE = 0.03  # of the time, for a reason to be worth a sentence
_BUSY = 0.8  # share from which a unit is what limits
_MANY_IDLE = 0.2
_MOSTLY = 0.6  # of the time in which a SIMD issues, for its instructions to be what limits
_WIDE = re.compile(r"b128|dwordx4|_b96|_x4|tr_b|2_b64|2st64_b64")
_COMES_TO_BARRIER = re.compile(r"s_barrier(_signal\S*)?($| )")
_NO_CAUSE = (Stall.NONE, Stall.BARRIER, Stall.NO_SLOT)
"""Not what keeps a wave from a barrier: an earlier one, or others."""
_WAITS = {Stall.WAIT_VECTOR_MEMORY: Unit.VECTOR_MEMORY, Stall.WAIT_LDS: Unit.LDS, Stall.WAIT_SCALAR: Unit.SCALAR_MEMORY}
UNIT_NAMES = {
    Unit.SCALAR: "scalar unit",
    Unit.VALU: "vector unit",
    Unit.TRANSCENDENTAL: "transcendental unit",
    Unit.MATRIX: "matrix unit",
    Unit.LDS: "LDS",
    Unit.VECTOR_MEMORY: "vector memory",
    Unit.SCALAR_MEMORY: "scalar memory",
    Unit.BRANCH: "branches",
    Unit.MESSAGE: "waits and others",
}
REASON_NAMES = {
    Stall.NONE: "no stall",
    Stall.DEPENDENCY: "waiting for results of earlier instructions",
    Stall.WAIT_VECTOR_MEMORY: "waiting for global memory",
    Stall.WAIT_LDS: "waiting for LDS",
    Stall.WAIT_SCALAR: "waiting for scalar loads",
    Stall.LDS_BUSY: "waiting for a free LDS",
    Stall.MATRIX_BUSY: "waiting for a free matrix unit",
    Stall.MEMORY_BUSY: "waiting for vector memory to take more",
    Stall.BARRIER: "waiting at barriers",
    Stall.NO_SLOT: "letting another wave go first",
    Stall.INSTRUCTION_FETCH: "waiting for instructions",
    Stall.SIGNAL: "waiting for signals of other workgroups",
}


@dataclass(frozen=True)
class Finding:
    """A reason to stall, in the part that is looked at. sentence: what it costs, and what would help.

    reason: None for all waves of a SIMD together, which stall for different ones, for waits that are too strong, and
    for compute units without work.
    stall_cycles: of a wave in one run of the part; hidden_cycles: those of them that the change would hide, at most,
    None where the trace cannot say. share: of the cycles of the part. instructions: that stalled, the most costly
    first; causes: those that they waited for. Both are indices into `Trace.instructions`.
    """

    reason: Stall | None
    sentence: str
    stall_cycles: float
    hidden_cycles: float | None
    share: float
    instructions: tuple[int, ...]
    causes: tuple[int, ...] = ()


@dataclass(frozen=True)
class Advice:
    """The limit of a launch. limit: in one sentence. region: the part of the program that this is about."""

    limit: str
    region: Region
    utilisation: Utilisation
    findings: tuple[Finding, ...]

    def __str__(self) -> str:
        return "\n".join([self.limit, *(f"- {finding.sentence}" for finding in self.findings)])


def advise(trace: Trace) -> Advice:
    """The limits of the traced waves, the costliest first. A trace without instructions has no findings."""
    return _Adviser(trace).advice()


class _Adviser:
    """The facts that several findings need."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.region = hot_region(trace)
        self.cycles = self.region.cycles_per_run
        self.costs: tuple[Cost, ...] = costs(trace)
        within = [i in self.region for i in range(len(trace.instructions))]
        self.inside = np.array(within, bool)[trace.events["instruction"]] if within else np.zeros(0, bool)
        issues = trace.events["issue"][self.inside].astype(np.int64)
        self.utilisation = utilisation(trace, *((int(issues.min()), int(issues.max()) + 1) if len(issues) else ()))

    def advice(self) -> Advice:
        stalls = self.region.cost.stalls
        reasons = sorted((r for r in Stall if stalls[r]), key=lambda reason: -stalls[reason])
        worth = [r for r in reasons if stalls[r] >= _LEAST_SHARE * self.region.cost.cycles]
        findings = [self._finding(reason) for reason in worth]
        return Advice(
            self._limit(findings),
            self.region,
            self.utilisation,
            (*findings, *self._strong_waits(), *self._occupancy(), *self._idle_compute_units()),
        )

    @property
    def part(self) -> str:
        return "the loop" if self.region.is_loop else "the kernel"

    @property
    def run(self) -> str:
        """The words behind a count of something, which say that it is an iteration's."""
        return " an iteration" if self.region.is_loop else ""

    @property
    def whole(self) -> str:
        """The cycles of a run, in words."""
        return f"{self.cycles:.0f} cycles an iteration" if self.region.is_loop else f"a wave's {self.cycles:.0f} cycles"

    @cached_property
    def spare(self) -> float:
        """The cycles of a run that could go, by what the busiest unit and other waves of the SIMD leave."""
        busiest = self.utilisation.busiest
        busy = busiest[1] if busiest is not None else 0.0
        return max(0.0, 1 - max(busy, self.utilisation.issuing)) * self.cycles

    def stall(self, reason: Stall) -> float:
        """The cycles of a run that a wave stalls for a reason."""
        return self.region.cost.stalls[reason] / max(self.region.runs, 1)

    def _limit(self, findings: list[Finding]) -> str:
        if self.trace.is_power_limited:
            return (
                "What limits the launch is power: its matrix instructions alone take its whole time at the clock that "
                "all matrix units together sustain. Only fewer or cheaper ones make it faster."
            )
        busiest = self.utilisation.busiest
        cycles = f"{'its ' * self.region.is_loop}{self.whole}" if self.cycles else "the time"
        if busiest is not None and busiest[1] >= _BUSY:
            return f"What limits {self.part} is the {UNIT_NAMES[busiest[0]]}: busy {busiest[1]:.0%} of {cycles}."
        work = f"; the {UNIT_NAMES[busiest[0]]} has work {busiest[1]:.0%} of the time" if busiest is not None else ""
        lost = [finding for finding in findings if finding.reason is not Stall.NO_SLOT]
        if not lost:
            return f"Nothing stalls {self.part} for more than {_LEAST_SHARE:.0%} of {cycles}{work}."
        name, issuing = REASON_NAMES[lost[0].reason or Stall.NONE], self.utilisation.issuing
        if issuing > _MOSTLY and lost[0].share < 1 - issuing:
            own = f"its own instructions: in {issuing:.0%} of the time some wave of a SIMD goes on"
            return f"What limits {self.part} most is {own}; {name} takes {lost[0].share:.0%} of {cycles}{work}."
        if lost[0].reason is Stall.BARRIER and self._late is not None:
            name += f", where the last wave comes late by {REASON_NAMES[self._late[0]]}"
        return f"What limits {self.part} most is {name}: {lost[0].share:.0%} of {cycles}{work}."

    def _finding(self, reason: Stall) -> Finding:
        stalled = self._stalled(reason)
        cause, more = self._memory_wait(reason) if reason in _WAITS else ((), self._others[reason](reason, stalled))
        hidden, help_ = more
        share = self.region.cost.stalls[reason] / self.region.cost.cycles
        stall = self.stall(reason)
        cycles = f"{share:.0%} of {self.part} ({stall:.0f} of {self.whole})"
        named = self.named(cause or stalled) if cause or reason not in _WAITS else _WAITED_FOR[reason]
        sentence = f"Waves {_WHAT[reason].format(cycles=cycles, named=named)}. {help_}"
        return Finding(reason, sentence, stall, hidden, share, stalled, cause)

    def _stalled(self, reason: Stall) -> tuple[int, ...]:
        """The instructions of the region that stalled for a reason, the most costly first."""
        inside = range(self.region.first, self.region.last + 1)
        found = [i for i in inside if self.costs[i].stalls[reason]]
        return tuple(sorted(found, key=lambda i: -self.costs[i].stalls[reason]))

    def named(self, instructions: tuple[int, ...]) -> str:
        """The first of some instructions, with its line of the source, and how many more there are."""
        mnemonics = list(dict.fromkeys(self.trace.instructions[i].text.split(None, 1)[0] for i in instructions))
        more = f" and {len(mnemonics) - 1} other" + "s" * (len(mnemonics) > 2) if len(mnemonics) > 1 else ""
        return f"{mnemonics[0]}{self._line(instructions[0])}{more}"

    def _line(self, instruction: int) -> str:
        """The line of the source of an instruction, as it follows a name; empty if unknown."""
        found = self.trace.instructions[instruction]
        return "" if found.file is None or found.line is None else f" ({_place(found.file, found.line)})"

    def _memory_wait(self, reason: Stall) -> tuple[tuple[int, ...], tuple[float | None, str]]:
        """The instructions that were waited for; the cycles hidden by issuing them one iteration earlier, in words."""
        events = self.trace.events
        rows = np.flatnonzero(self.inside & (events["reason"] == reason) & (events["stall"] > 0))
        made = self._producers[rows]
        rows, made = rows[made >= 0], made[made >= 0]
        weight = np.bincount(events["instruction"][made], weights=events["stall"][rows]) if len(rows) else np.zeros(0)
        causes = tuple(int(i) for i in np.argsort(-weight, kind="stable") if weight[i])
        if not self.region.is_loop or not len(rows):
            return causes, (None, _NO_LOOP[reason])
        room = max(0.0, self.cycles - self.stall(reason))
        earlier = float(np.minimum(events["stall"][rows], room).sum()) / max(self.region.runs, 1)
        hidden = min(earlier, self.spare)
        return causes, (hidden, self._prefetch(reason, rows, made, hidden, is_bounded=hidden < earlier))

    def _prefetch(self, reason: Stall, rows: Array, made: Array, hidden: float, *, is_bounded: bool) -> str:
        heads = np.cumsum(self.trace.events["instruction"] == self.region.first)
        ahead = round(float((heads[rows] - heads[made]).mean()))
        earlier = f"{ahead} iteration{'s' * (ahead != 1)} ahead" if ahead else "in the same iteration"
        gain = f"one iteration earlier would hide {hidden:.0f} of these {self.stall(reason):.0f}"
        return f"It is issued {earlier}; {gain}{self._bound() if is_bounded else ''}."

    def _bound(self) -> str:
        """The limit that keeps a change from hiding more."""
        busiest = self.utilisation.busiest
        if busiest is not None and busiest[1] >= self.utilisation.issuing:
            return f", as the {UNIT_NAMES[busiest[0]]} is busy {busiest[1]:.0%} of the time"
        return f", as some wave of the SIMD goes on in {self.utilisation.issuing:.0%} of the time"

    @cached_property
    def _producers(self) -> Array:
        return producers(self.trace)

    def _barrier(self, reason: Stall, stalled: tuple[int, ...]) -> tuple[float | None, str]:
        barriers = sum(self.costs[i].executions for i in stalled) / max(self.region.runs, 1)
        hidden = min(self.stall(reason), self.spare)
        is_one = round(barriers, 2) == 1
        count = f"{'is' if is_one else 'are'} {barriers:.3g} barrier{'' if is_one else 's'}{self.run}"
        gain = f"would save up to {hidden:.0f} cycles"
        help_ = f"There {count}; waves that arrive together, or fewer barriers (another buffer), {gain}."
        if self._late is None:
            return hidden, help_
        late, share = self._late
        return hidden, f"{help_} The last wave to come had stalled {share:.0%} by {REASON_NAMES[late]}."

    @cached_property
    def _late(self) -> tuple[Stall, float] | None:
        """For what the last wave to come to each barrier stalled most since the one before, and its share of that."""
        events = self.trace.events
        texts = [instruction.text for instruction in self.trace.instructions]
        comes = [i for i, text in enumerate(texts) if _COMES_TO_BARRIER.match(text)]
        rows = np.flatnonzero(np.isin(events["instruction"], comes))
        if not len(rows):
            return None
        waves, numbers = events["wave"][rows], np.arange(len(rows))
        is_first = np.r_[True, waves[1:] != waves[:-1]]
        begins = np.where(is_first, np.searchsorted(events["wave"], waves), np.r_[0, rows[:-1] + 1])
        which = numbers - np.maximum.accumulate(np.where(is_first, numbers, 0))
        groups = self.trace.waves["workgroup"][waves]
        waited = np.where(events["reason"] == Stall.BARRIER, events["stall"], 0)
        order = np.lexsort((events["issue"][rows] - waited[rows], which, groups))
        is_last = np.r_[(np.diff(groups[order]) != 0) | (np.diff(which[order]) != 0), True]
        chosen = order[is_last & self.inside[rows[order]]]
        stalls = {r: self._stalls_between(r, begins[chosen], rows[chosen]) for r in Stall if r not in _NO_CAUSE}
        late, whole = max(stalls, key=lambda reason: stalls[reason]), sum(stalls.values())
        return (late, stalls[late] / whole) if whole else None

    def _stalls_between(self, reason: Stall, begins: Array, ends: Array) -> int:
        """The cycles that events from some rows to some others stalled for a reason."""
        events = self.trace.events
        sums = np.r_[0, np.cumsum(np.where(events["reason"] == reason, events["stall"], 0).astype(np.int64))]
        return int((sums[ends + 1] - sums[begins]).sum())

    def _matrix_busy(self, _reason: Stall, _stalled: tuple[int, ...]) -> tuple[float | None, str]:
        share = self.utilisation.busy.get(Unit.MATRIX, 0.0)
        most = f"; hiding everything else makes it at most {1 / share:.2f} times as fast" if share else ""
        return 0.0, f"Only fewer or cheaper matrix instructions help: the unit is busy {share:.0%} of the time{most}."

    def _unit_busy(self, reason: Stall, _stalled: tuple[int, ...]) -> tuple[float | None, str]:
        unit = Unit.LDS if reason is Stall.LDS_BUSY else Unit.VECTOR_MEMORY
        inside = range(self.region.first, self.region.last + 1)
        found = [i for i in inside if self.trace.instructions[i].unit == unit and self.costs[i].executions]
        narrow = [i for i in found if not _WIDE.search(self.trace.instructions[i].text)]
        conflicts = ", and a layout without bank conflicts," if unit is Unit.LDS else ""
        hidden = min(self.stall(reason), self.spare)
        amount = f"{len(narrow)} of its {len(found)} instructions move less than 128 bits a lane"
        return hidden, f"{amount}; wider and fewer ones{conflicts} would save up to {hidden:.0f} cycles."

    def _dependency(self, reason: Stall, stalled: tuple[int, ...]) -> tuple[float | None, str]:
        hidden = min(self.stall(reason), self.spare)
        count = f"{len(stalled)} instruction{'s' * (len(stalled) != 1)}"
        return hidden, f"Independent work before these {count} would hide up to {hidden:.0f} cycles."

    def _no_slot(self, _reason: Stall, _stalled: tuple[int, ...]) -> tuple[float | None, str]:
        waves = self.utilisation.waves_per_simd
        return 0.0, f"That is no loss: the {waves:.1f} waves of a SIMD share it, and it issued another one."

    def _fetch(self, reason: Stall, _stalled: tuple[int, ...]) -> tuple[float | None, str]:
        inside = range(self.region.first, self.region.last + 1)
        branches = sum(self.costs[i].executions for i in inside if self.trace.instructions[i].unit == Unit.BRANCH)
        count = f"{branches / max(self.region.runs, 1):.3g} branches{self.run}"
        hidden = min(self.stall(reason), self.spare)
        amount = f"{self.part.capitalize()} has {len(inside)} instructions, and {count}"
        return hidden, f"{amount}; fewer of either would save up to {hidden:.0f} cycles."

    def _signal(self, reason: Stall, _stalled: tuple[int, ...]) -> tuple[float | None, str]:
        stall = self.stall(reason)
        return (
            stall,
            f"Work that needs none of it, before the wait, or signals given earlier hide up to {stall:.0f} cycles.",
        )

    @property
    def _others(self) -> dict[Stall, Callable[[Stall, tuple[int, ...]], tuple[float | None, str]]]:
        return {
            Stall.NONE: self._dependency,
            Stall.DEPENDENCY: self._dependency,
            Stall.LDS_BUSY: self._unit_busy,
            Stall.MATRIX_BUSY: self._matrix_busy,
            Stall.MEMORY_BUSY: self._unit_busy,
            Stall.BARRIER: self._barrier,
            Stall.NO_SLOT: self._no_slot,
            Stall.INSTRUCTION_FETCH: self._fetch,
            Stall.SIGNAL: self._signal,
        }

    def _strong_waits(self) -> Iterator[Finding]:
        """Waits for loads that nothing uses for long, as far as a weaker wait would save more than a few percent."""
        for wait in strong_waits(self.trace):
            share = wait.saved_cycles / max(self.region.cost.cycles, 1)
            if wait.instruction not in self.region or share < _LEAST_SHARE:
                continue
            runs = max(self.region.runs, 1)
            stall, hidden = wait.stall_cycles / runs, min(wait.saved_cycles / runs, self.spare)
            loads = f"{wait.loads} load{'s' * (wait.loads != 1)}"
            sentence = (
                f"{wait.counter}({wait.at_most}){self._line(wait.instruction)} waits for {loads} that nothing uses for "
                f"{wait.unused_cycles:.0f} cycles; {wait.counter}({wait.enough}) here, and a wait for the rest before "
                f"that use, would hide up to {hidden:.0f} of the {stall:.0f} cycles that it stalls{self.run}."
            )
            yield Finding(None, sentence, stall, hidden, share, (wait.instruction,))

    def _occupancy(self) -> Iterator[Finding]:
        """All waves of a SIMD stall at once: one more would fill some of that."""
        idle, waves = 1 - self.utilisation.issuing, self.utilisation.waves_per_simd
        if not waves or idle < _MANY_IDLE:
            return
        busiest = self.utilisation.busiest
        busy = busiest[1] if busiest is not None else 0.0
        fits = min(1.0, (1 - busy) * waves / busy) if busy else 1.0  # the part of one more wave that its unit can take
        filled = min(idle, self.utilisation.issuing / waves * fits)
        sentence = (
            f"All waves of a SIMD, {waves:.1f} at a time, stall at once in {idle:.0%} of its cycles. "
            f"One more wave would issue in up to {filled:.0%} of the cycles."
        )
        yield Finding(None, sentence, idle * self.cycles, filled * self.cycles, idle, ())

    def _idle_compute_units(self) -> Iterator[Finding]:
        """Workgroups that are fewer than the GPU's compute units."""
        idle = self.trace.idle_compute_units
        if not idle:
            return
        split = "Smaller tiles, or a split of the loop between" if self.region.is_loop else "Less work for each of more"
        units = "1 compute unit of the GPU has" if idle == 1 else f"{idle} compute units of the GPU have"
        sentence = f"{units} no workgroup. {split} workgroups would give {'it' if idle == 1 else 'them'} work."
        yield Finding(None, sentence, 0.0, None, 0.0, ())


def _place(file: str, line: int) -> str:
    return f"{posixpath.basename(SourceLocation(file, line).file_label)}:{line}"


_WAITED_FOR = {Stall.WAIT_VECTOR_MEMORY: "global memory", Stall.WAIT_LDS: "the LDS", Stall.WAIT_SCALAR: "scalar loads"}
_NO_LOOP = {
    Stall.WAIT_VECTOR_MEMORY: "More loads before the first wait share it; more waves hide it.",
    Stall.WAIT_LDS: "More accesses before the first wait share it; more waves hide it.",
    Stall.WAIT_SCALAR: "More of them before the first wait share it; more waves hide it.",
}
_WHAT = {
    Stall.NONE: "stall {cycles} at {named}",
    Stall.DEPENDENCY: "wait {cycles} at {named} for results of earlier instructions",
    Stall.WAIT_VECTOR_MEMORY: "wait {cycles} for {named}",
    Stall.WAIT_LDS: "wait {cycles} for {named}",
    Stall.WAIT_SCALAR: "wait {cycles} for {named}",
    Stall.LDS_BUSY: "wait {cycles} at {named}, as the LDS is taken",
    Stall.MATRIX_BUSY: "wait {cycles} at {named}, as the matrix unit is taken",
    Stall.MEMORY_BUSY: "wait {cycles} at {named}, as vector memory takes no more",
    Stall.BARRIER: "wait {cycles} at {named} for others of their workgroup",
    Stall.NO_SLOT: "let others go first {cycles} at {named}",
    Stall.INSTRUCTION_FETCH: "wait {cycles} at {named} for instructions",
    Stall.SIGNAL: "wait {cycles} at {named} for signals of other workgroups",
}
