"""The time of a launch from some of its workgroups.

Dies take workgroups in turn, so all of them do much the same: one is replayed. Of a long grid it gets as many as fit at
once from the beginning, as many from the middle, and what is left over for the end; the rounds between take as long as
the middle one.
"""

from __future__ import annotations

import copy
import math
from bisect import bisect
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from flydsl.arch import Arch
from flydsl.arch.instruction_costs import matrix_element, mfma_operations
from flydsl.arch.occupancy import occupancy
from flydsl.arch.products import Product, product_of
from flydsl.arch.timing import Timing
from flydsl.simulator.arrays import Array
from flydsl.simulator.counters.raw import LINE_BYTES
from flydsl.simulator.dispatch import Dispatch
from flydsl.simulator.memory.buffers import Memory
from flydsl.simulator.timing import recording
from flydsl.simulator.timing.accuracy import LEAST_PERCENT
from flydsl.simulator.timing.gpu import die, timing_of
from flydsl.simulator.timing.idle import Busy, busy_workgroups
from flydsl.simulator.timing.instructions import described, matrix_cycles
from flydsl.simulator.timing.needed import deciding_loads, needed_instructions
from flydsl.simulator.timing.recording import Lines, WaitsForOthers
from flydsl.simulator.timing.replay import Replayed, Work, replayed
from flydsl.simulator.timing.rounds import relative_work
from flydsl.simulator.timing.signals import SIGNAL_ROOM, SIGNAL_WORD, Signal, signalling_of
from flydsl.simulator.timing.together import Together, record_together
from flydsl.simulator.timing.trace import MemoryUse, Stall
from flydsl.simulator.timing.workgroup_waits import Course, Grid, Waits

_RECORDED_COMPUTE_UNITS = 1
_EVENT_ROOM = 400_000
_STEP_PERCENT = 5
_OF_OTHER_DIES = 3
"""Workgroups of each other die that are looked at for what they read together with this one."""
_OPERATIONS_PER_BYTE = 4096
"""With more of them per byte from LDS and L1, a launch is no product: one with tiles of 256 x 256 has 128."""
_WAITING_WORDS = 2_000
"""Words of rounds of loops that wait, as they are in the lengths of streams."""
_WORDS = 40_000_000
"""Words of all streams that are kept at once: what does not fit is left to fewer compute units."""


@dataclass(frozen=True)
class Plan:
    """The workgroups of a die that are replayed. chosen: their numbers, in order. skipped_rounds: how many were left
    out, of `round_size` workgroups each. compute_units: of the die. idle: how many of the last ones end at once."""

    chosen: tuple[int, ...]
    skipped_rounds: int
    round_size: int
    compute_units: int
    idle: int = 0

    @property
    def busy(self) -> int:
        """The chosen ones that have something to do."""
        return len(self.chosen) - self.idle

    def skips(self, workgroup: int) -> bool:
        """True for one of a round that was left out.

        >>> [w for w in range(11) if plan(range(11), 2, 1).skips(w)]
        [2, 3, 6, 7, 8, 9]
        """
        size, busy = self.round_size, self.chosen[: self.busy]
        ends = [*busy[size - 1 : size + 1], *busy[2 * size - 1 : 2 * size + 1]]
        return bisect(ends, workgroup) % 2 == 1 and workgroup not in ends


def plan(own: Sequence[int], compute_units: int, per_compute_unit: int) -> Plan:
    """The workgroups of a die to replay.

    >>> plan(range(10), 2, 1)
    Plan(chosen=(0, 1, 4, 5), skipped_rounds=3, round_size=2, compute_units=2, idle=0)
    >>> plan(range(5), 2, 1)
    Plan(chosen=(0, 1, 2, 3, 4), skipped_rounds=0, round_size=2, compute_units=2, idle=0)
    """
    size = compute_units * per_compute_unit
    rounds, rest = divmod(len(own), size)
    if rounds <= 2:
        return Plan(tuple(own), 0, size, compute_units)
    middle = rounds // 2 * size
    chosen = (*own[:size], *own[middle : middle + size], *own[len(own) - rest :])
    return Plan(chosen, rounds - 2, size, compute_units)


def _lengths(streams: Sequence[Sequence[Array]]) -> list[int]:
    """The words recorded of each of some workgroups."""
    return [sum(map(len, of_waves)) for of_waves in streams]


def arch_of(dispatch: Dispatch) -> Arch:
    """The architecture as a launch's kernel sees it: where there is a choice, its descriptor says the mode."""
    arch, kernel = dispatch.program.arch, dispatch.program.kernels[dispatch.kernel_name]
    return arch.in_cu_mode() if arch.has_cu_mode and not kernel.descriptor.wgp_mode else arch


def workgroups_per_compute_unit(dispatch: Dispatch) -> int:
    """The number of workgroups of a launch that fit on a compute unit at once."""
    kernel, arch = dispatch.program.kernels[dispatch.kernel_name], arch_of(dispatch)
    x, y, z = dispatch.block
    resources = {"vgprs": kernel.vgprs, "agprs": kernel.agprs, "sgprs": kernel.sgprs}
    size = {"workgroup_size": x * y * z, "wave_size": kernel.wave_size}
    fitting = occupancy(arch, **resources, lds_bytes=dispatch.lds_bytes, **size)
    return max(1, fitting.waves_per_simd * arch.lds_simds // fitting.waves_per_workgroup)


class Sample:
    """A launch with some recorded workgroups. copied: makes the memory that they work on."""

    def __init__(
        self,
        dispatch: Dispatch,
        instruction_limit: int,
        threads: int | None,
        product: Product | None = None,
        *,
        cold: bool = False,
        copied: Callable[[Memory], Memory] = Memory.with_copied_content,
    ) -> None:
        self.dispatch, self._limit, self._threads, self._product = dispatch, instruction_limit, threads, product
        self._cold, self._copied = cold, copied
        self.arch = arch_of(dispatch)
        self.timing: Timing = timing_of(self.arch, product)
        self.lines = Lines.of(dispatch.memory)
        self.dies = int(self.timing.xcds.value)
        self.per_compute_unit = workgroups_per_compute_unit(dispatch)

        self._signalling = signalling_of(dispatch.program)
        self._together: Together | None = None
        self._known: dict[int, list[Array]] = {}
        self._unlike: dict[int, int] = {}
        self.waits = Waits()

    @property
    def idle_compute_units(self) -> int:
        """Those of the GPU that the launch has no workgroup for."""
        return max(0, self.dies * int(self.timing.compute_units_per_xcd.value) - self.dispatch.workgroup_count)

    def _record(self, workgroups: Sequence[int]) -> list[list[Array]]:
        if self._run_alone:
            try:
                new = [w for w in workgroups if w not in self._known]
                found = dict(zip(new, self._recorders.record(new), strict=True))
                return [found[w] if w in found else self._known[w] for w in workgroups]
            except WaitsForOthers:
                pass
        known = {} if self._together is None else self._together.streams
        if self._together is None or not known.keys() >= set(workgroups):
            wanted = {*workgroups, *known, *self._whole_plan.chosen, *self._others}
            self._together = self._record_together(wanted)
            if not known and not self.takes_turns:
                self._unlike = self._unlike_others(self._together)
            if self._unlike and not known:
                wanted |= set(self._unlike.values())
                self._together = self._record_together(wanted)
        return [self._together.streams[w] for w in workgroups]

    @property
    def _run_alone(self) -> bool:
        """True if a workgroup waits for no other one, as far as is known yet."""
        return self._together is None and not self._signalling.waits and not self.takes_turns

    @cached_property
    def _recorders(self) -> recording.Recorders:
        return recording.Recorders(self.dispatch, self._limit, self._threads, self._copied)

    @cached_property
    def _busy(self) -> Busy:
        """The workgroups that have something to do: all of them, where they wait for each other."""
        if self._run_alone:
            try:
                return busy_workgroups(self.dispatch.workgroup_count, self.dies, self._executed)
            except WaitsForOthers:
                pass
        return Busy.of_all(self.dispatch.workgroup_count, self.dies)

    def _executed(self, workgroups: Sequence[int]) -> list[int]:
        """The words of the longest stream of each of some workgroups."""
        new = sorted(set(workgroups) - self._known.keys())
        self._known.update(zip(new, self._recorders.record(new), strict=True))
        return [max(map(len, self._known[w])) for w in workgroups]

    def _record_together(self, chosen: Collection[int]) -> Together:
        places = self._places if self.takes_turns else None
        return record_together(self.dispatch, chosen, self._limit, self._signalling, self._copied, places)

    @property
    def _places(self) -> int:
        """The workgroups that fit on the GPU at once."""
        return self.dies * int(self.timing.compute_units_per_xcd.value) * self.per_compute_unit

    @property
    def takes_turns(self) -> bool:
        """True if workgroups take pieces of work from a counter, and wait for nothing, so that they may take turns."""
        signalling = self._signalling
        return bool(signalling.tickets) and not signalling.waits and self.dispatch.workgroup_count > 1

    @cached_property
    def _first(self) -> list[Array]:
        return self._record([0])[0]

    @property
    def is_standard(self) -> bool:
        """True on the product that launches of its architecture were compared with."""
        return self._product is None or self._product == product_of(self.arch.name)

    @cached_property
    def _whole_plan(self) -> Plan:
        """The workgroups to replay on all compute units of a die."""
        return self._planned(int(self.timing.compute_units_per_xcd.value))

    def _planned(self, units: int) -> Plan:
        """The workgroups to replay on some compute units of a die, with as many idle ones as fit at once."""
        own, idle = self._of_die(units)
        found = plan(own, units, self.per_compute_unit)
        idle = idle[: found.round_size]
        return replace(found, chosen=(*found.chosen, *idle), idle=len(idle))

    def _of_die(self, units: int) -> tuple[range, range]:
        """The workgroups that some compute units of a die get, those with something to do and those without."""
        every, busy = range(0, self.dispatch.workgroup_count, self.dies), self._busy.counts[0]
        step = self._step(units)
        return every[:busy:step], every[busy::step]

    def _step(self, units: int) -> int:
        """The number of a die's workgroups for each one that some of its compute units get."""
        return -(-int(self.timing.compute_units_per_xcd.value) // units)

    @cached_property
    def _others(self) -> list[int]:
        """Workgroups of every other die, at work at the same time as those of this one.

        They follow each other in the grid, so that they meet each tile as often as the dies do. Single ones at a fixed
        distance may always meet the same tile, or never one that is shared.
        """
        counts = {d: count for d, count in enumerate(self._busy.counts) if d and count}
        middle = min(self._whole_plan.round_size, *counts.values()) // 2 if counts else 0
        first = max(0, middle - 1)
        places = range(first, first + _OF_OTHER_DIES)
        return [d + self.dies * place for place in places for d, count in counts.items() if place < count]

    @cached_property
    def plan(self) -> Plan:
        """The workgroups that are replayed: of fewer compute units where all of them are too much to keep."""
        found = self._whole_plan
        words = sum(map(len, self._first))
        while found.compute_units > 1 and found.busy * words > _WORDS:
            found = self._planned(found.compute_units // 2)
        return found

    @cached_property
    def streams(self) -> list[list[Array]]:
        """The recording of what the chosen workgroups execute."""
        others = self._record(self.plan.chosen[1:]) if len(self.plan.chosen) > 1 else []
        return [self._first if self._together is None else self._together.streams[0], *others]

    @cached_property
    def first_shares(self) -> Array:
        """For each buffer, the part of a die's lines that no other die asks for before it.

        Workgroups of every other die are compared with those that this die executes at the same time.
        """
        others = self._others
        if not others:
            return np.ones(len(self.lines.bases) - 1)
        here = recording.touched_lines(s for w in self.streams[: self.plan.round_size] for s in w)
        there = [recording.touched_lines(s for s in w) for w in self._record(others)]
        bases = self.lines.bases.astype(np.int64)
        every = sum(np.histogram(lines, bases)[0] for lines in there)
        shared = sum(np.histogram(recording.common_lines(lines, here), bases)[0] for lines in there)
        part = np.divide(shared, every, out=np.zeros(len(bases) - 1), where=every > 0)
        return 1 / (1 + len({w % self.dies for w in others}) * part)

    def replay(self) -> Replayed:
        """The die at work on the chosen workgroups."""
        footprint = self.lines.count * LINE_BYTES
        units = int(self.timing.compute_units_per_xcd.value)
        gpu = die(
            self.timing,
            simds=self.arch.lds_simds,
            dies_at_work=self._busy.dies,
            workgroups_per_compute_unit=self.per_compute_unit,
            footprint_bytes=footprint,
            cold=self._cold,
        )
        part = self.plan.compute_units / units
        if part < 1:
            gpu.compute_units = self.plan.compute_units
            gpu.dispatch_cycles = round(gpu.dispatch_cycles / part)
            gpu.l2_channels = max(1, round(gpu.l2_channels * part))
            for name in ("cache_bytes_per_cycle", "read_bytes_per_cycle", "write_bytes_per_cycle"):
                setattr(gpu, name, getattr(gpu, name) * part)
        # What the rounds that are left out stored has filled the L2: of what waits for the end, these have their share.
        gpu.l2_dirty_lines = round(gpu.l2_dirty_lines * part * self._share_of_die)
        instructions = described(self.arch, self.timing, self.dispatch.program)
        streams, signals = self.streams, [] if self._together is None else self._together.numbered
        pauses = np.zeros(len(signals), np.uint64)
        work = Work(streams, instructions, self.lines.bases, self.first_shares, pauses)
        recorded = {"recorded_compute_units": _RECORDED_COMPUTE_UNITS, "event_room": _EVENT_ROOM}
        found = replayed(gpu, work, **recorded)
        if not signals:
            return found
        courses = self._courses(found, self.plan.chosen)
        if apart := sorted(set(self._unlike.values()) - courses.keys()):
            alone = Work(self._record(apart), instructions, self.lines.bases, self.first_shares, np.zeros_like(pauses))
            courses |= self._courses(replayed(gpu, alone, recorded_compute_units=0, event_room=1), apart)
        self.waits = self._waits(courses, int(gpu.start_cycles))
        for number, (workgroup, index) in enumerate(signals):
            awaited = self.waits.of.get(workgroup, {}).get(index)
            pauses[number] = 0 if awaited is None else awaited.cycles
        return replayed(gpu, work, **recorded) if pauses.any() else found

    def _courses(self, found: Replayed, workgroups: Sequence[int]) -> dict[int, Course]:
        """The courses of some workgroups, by a replay of them in which none waits."""
        assert self._together is not None
        numbers = defaultdict[int, list[int]](list)
        for number, (workgroup, _) in enumerate(self._together.numbered):
            numbers[workgroup].append(number)
        return {
            w: Course(start, end, found.asks[numbers[w]].tolist(), found.written[numbers[w]].tolist())
            for w, start, end in zip(workgroups, found.starts.tolist(), found.ends.tolist(), strict=True)
        }

    def _waits(self, courses: Mapping[int, Course], between: int) -> Waits:
        """The waits of all workgroups."""
        count = self.dispatch.workgroup_count
        places = int(self.timing.compute_units_per_xcd.value) * self.per_compute_unit
        likeness = [self._unlike.get(w) or self._like(w, self.plan) for w in range(count)]
        return Grid(count, self.dies, places, between, self._signals, courses, likeness).waits()

    def _unlike_others(self, together: Together) -> dict[int, int]:
        """For workgroups that execute much more or less than those replayed in their place, one to replay for them."""
        chosen, found = self._whole_plan.chosen, dict[int, int]()
        first_of = dict[int, int]()
        for workgroup, length in sorted(together.lengths.items()):
            usual = together.lengths.get(self._like(workgroup, self._whole_plan), length)
            if workgroup not in chosen and abs(length - usual) > _WAITING_WORDS + usual / 4:
                found[workgroup] = first_of.setdefault(round(4 * math.log2(length + 1)), workgroup)
        return found

    def _like(self, workgroup: int, plan: Plan) -> int:
        """The replayed workgroup that a workgroup does as."""
        chosen, size = plan.chosen, plan.round_size
        place = workgroup // self.dies // self._step(plan.compute_units)
        if not plan.skipped_rounds:
            return chosen[min(place, len(chosen) - 1)]
        last = (plan.skipped_rounds + 2) * size
        if place >= last:
            return chosen[min(2 * size + place - last, len(chosen) - 1)]
        return chosen[place if place < size else size + place % size]

    def whole_cycles(self, replay: Replayed) -> float:
        """The cycles of all workgroups, at the clock that power allows."""
        return max(self._cycles_at_full_clock(replay), self._sustained_matrix_cycles)

    def is_power_limited(self, replay: Replayed) -> bool:
        """True if the launch takes as long as its matrix instructions alone, at the clock that power allows."""
        return self._sustained_matrix_cycles > self._cycles_at_full_clock(replay)

    def _cycles_at_full_clock(self, replay: Replayed) -> float:
        """The cycles of all workgroups, with the rounds that were left out."""
        cycles = float(replay.cycles)
        if self.plan.skipped_rounds:  # else there is no round in the middle
            cycles += self._skipped_work * self._round_cycles(replay)
        return cycles + max(0, self.waits.end - self.waits.own_end)  # of other dies, which wait for longer

    def launch_cycles(self, replay: Replayed) -> float:
        """The cycles of the launch, from its beginning on."""
        alone = self.timing.cold_launch_us if self._cold else self.timing.launch_us
        return self.whole_cycles(replay) + alone.value * self.timing.clock_mhz.value

    def error_of_figures(self, cycles: int) -> float:
        """By how many percent the launch is longer than `cycles` if the figures are as far off as they may be.

        What the model leaves out is in none of its figures, so no less than is known of the kinds that were compared.
        """
        slower = copy.copy(self)
        slower.timing = self.timing.slower()
        percent = 100 * (slower.launch_cycles(slower.replay()) / cycles - 1)
        return max(LEAST_PERCENT, _STEP_PERCENT * math.ceil(percent / _STEP_PERCENT))

    @cached_property
    def _work(self) -> float:
        """The work of a round that was left out, in that of the replayed one from the middle: see `relative_work`."""
        if not self.plan.skipped_rounds or not self._run_alone:
            return 1.0
        every, _ = self._of_die(int(self.timing.compute_units_per_xcd.value))
        size, words, step = self.plan.round_size, self._words, self._step(self.plan.compute_units)
        skipped = [(w, i // step % size) for i, w in enumerate(every) if self.plan.skips(w)]
        replayed = words[:size], words[size : 2 * size], words[2 * size :]
        return relative_work(skipped, replayed, lambda them: _lengths(self._recorders.record(them)))

    @cached_property
    def _words(self) -> list[int]:
        """The words of each chosen workgroup that has something to do."""
        return _lengths(self.streams[: self.plan.busy])

    @property
    def _skipped_work(self) -> float:
        """The rounds that were left out, in rounds as the replayed one from the middle."""
        return self._work * self.plan.skipped_rounds

    @cached_property
    def _replayed_rounds(self) -> float:
        """The replayed rounds, in the same measure."""
        size, words = self.plan.round_size, self._words
        return len(words) / size if self._work == 1 else sum(words) / sum(words[size : 2 * size])

    @property
    def _share_of_die(self) -> float:
        """The work of the replayed workgroups, as a part of that of all that their compute units get."""
        return self._replayed_rounds / (self._replayed_rounds + self._skipped_work)

    @property
    def _part_replayed(self) -> float:
        """The work of the replayed workgroups, as a part of that of all."""
        own, _ = self._of_die(self.plan.compute_units)
        return self._share_of_die * len(own) / self._busy.total

    def _round_cycles(self, replay: Replayed) -> float:
        """The cycles of a round: of the one from the middle, and of its part of what memory has to move.

        Waves do not wait for what they write, so that a few rounds alone would be faster than the memory.
        """
        ends, size = replay.ends[: self.plan.busy], self.plan.round_size
        of_memory = replay.memory_cycles / self._replayed_rounds
        if self._work == 1:
            ends = np.sort(ends)
            return max(float(ends[2 * size - 1] - ends[size - 1]), of_memory)
        return max(float(ends[size : 2 * size].mean() - ends[:size].mean()), of_memory)

    @property
    def _bytes_moved(self) -> int:
        """Bytes that the recorded waves move to or from LDS and the vector L1."""
        moved = 0
        for stream in (s for workgroup in self.streams for s in workgroup):
            is_line = stream >= recording.LINE_WORD
            passes = stream[(stream >= recording.LDS_WORD) & (stream < SIGNAL_WORD)] & ~np.uint32(recording.LDS_WORD)
            moved += LINE_BYTES * int(is_line.sum()) + 128 * int(passes.sum())
        return moved

    @cached_property
    def _sustained_matrix_cycles(self) -> float:
        """The cycles of the matrix instructions alone, at the rate that power allows when all SIMDs are at work.

        0 for a launch whose matrix instructions take hardly anything from memory: what limits power is known of
        products only, where most of it goes into moving data.
        """
        program = self.dispatch.program
        counts = np.zeros(len(program.instructions), np.int64)
        for workgroup in self.streams:
            for stream in workgroup:
                counts += np.bincount(stream[stream < 1 << 31], minlength=len(counts))
        cycles, operations = 0.0, 0
        for instruction, count in zip(program.instructions, counts.tolist(), strict=True):
            element = matrix_element(instruction.table_name)
            if element is not None and count:
                busy = matrix_cycles(self.arch, self.timing, instruction)
                cycles += count * busy / self.timing.sustained_matrix_rate(element)
                operations += count * mfma_operations(instruction.table_name)
        if operations > _OPERATIONS_PER_BYTE * self._bytes_moved:
            return 0.0
        of_all = cycles / self._part_replayed
        simds = self.dies * self.timing.compute_units_per_xcd.value * self.arch.lds_simds
        return of_all / simds

    def memory_use(self, replay: Replayed) -> MemoryUse:
        """Use of the caches and the memory, with the workgroups that were left out."""
        state, scale = replay.state, 1 / self._part_replayed
        return MemoryUse(
            l1_hit_percent=100 * (1 - state.l1_misses / max(state.l1_requests, 1)),
            l2_hit_percent=100 * (1 - state.l2_misses / max(state.l2_requests, 1)),
            hbm_read_bytes=round(state.read_bytes * scale),
            hbm_write_bytes=round(state.write_bytes * scale),
        )

    def sentence(self, replay: Replayed) -> str:
        """A sentence about what was replayed, and how the rest follows."""
        chosen, every = len(self.plan.chosen), self.dispatch.workgroup_count
        units = int(self.timing.compute_units_per_xcd.value)
        where = f"on {self.plan.compute_units} of {units * self.dies} {self.timing.compute_units_per_xcd.unit}"
        text = "launched alone, with cold caches; " if self._cold else "one of repeated launches; "
        text += f"{chosen} of {every} workgroups replayed, {where}"
        if self._product is not None:
            text += f" of an {self._product.name}"
        if self.plan.skipped_rounds:
            text += f"; {self.plan.skipped_rounds} rounds of workgroups between are as long as the replayed one"
            if self._work != 1:
                text += f", times {self._skipped_work / self.plan.skipped_rounds:.2f} for what they execute"
        if self._busy.idle:
            text += f"; {_workgroups(self._busy.idle, 'has', 'have')} nothing to do"
        if self._together is not None and (self._together.stuck or not self.takes_turns):
            text += f"; {self._waiting(self._together)}"
        if self.takes_turns:
            text += "; workgroups take work from a counter in turns, after as many instructions each"
        elif self.takes_tickets:
            text += "; workgroups take work from a counter, of which the replayed ones take more than their share"
        if not replay.complete:
            text += f"; the first {len(replay.events)} instructions are shown"
        return text

    @property
    def is_routed(self) -> bool:
        """True if what the launch loads decides what its workgroups do, and none of them waits for others."""
        return self._run_alone and needed_instructions(self.dispatch).content and bool(deciding_loads(self.dispatch))

    @property
    def is_partial(self) -> bool:
        """True if workgroups wait for what is not known."""
        return self._together is not None and bool(self._together.stuck or self._together.too_many)

    @property
    def takes_tickets(self) -> bool:
        """True if a replayed wave takes more than one piece of work from a counter, and more than its share."""
        tickets = self._signalling.tickets
        if not tickets or self.takes_turns or self.dispatch.workgroup_count == 1:
            return False
        return any(np.isin(stream, tickets).sum() > 1 for workgroup in self.streams for stream in workgroup)

    @property
    def longest_wait(self) -> int:
        """The cycles of the longest wait for a signal."""
        return max((w.cycles for of in self.waits.of.values() for w in of.values()), default=0)

    def writers(self, waves: Array, events: Array) -> dict[int, int]:
        """See `Trace`: the writers of the signals that some waves wait for."""
        awaited = defaultdict[tuple[int, int], list[tuple[int, int]]](list)
        for workgroup, of in self.waits.of.items():
            for index, wait in sorted(of.items()):
                signal = self._signals[workgroup][index]
                awaited[workgroup, signal.wave].append((signal.instruction, wait.workgroup))
        found = {}
        for row in np.flatnonzero(events["reason"] == Stall.SIGNAL).tolist():
            wave = waves[events["wave"][row]]
            to_come = awaited[int(wave["workgroup"]), int(wave["wave"])]
            if to_come and to_come[0][0] == events["instruction"][row]:
                found[row] = to_come.pop(0)[1]
        return found

    @property
    def _signals(self) -> Mapping[int, list[Signal]]:
        return {} if self._together is None else self._together.signals

    def _waiting(self, together: Together) -> str:
        """A clause about the waits for other workgroups."""
        if together.stuck:
            waiting = _workgroups(together.stuck, "waits", "wait")
            return f"{waiting} for what no workgroup of the launch writes, and the time is that until then"
        if together.too_many:
            return f"waits for other workgroups end at once, as there are more than {SIGNAL_ROOM:,} accesses to signals"
        if not self._signalling.waits:
            return "waits for other workgroups end at once"
        if not self.waits.of:
            return "no workgroup waits for another one"
        us = self.longest_wait / self.timing.clock_mhz.value
        text = f"{_workgroups(len(self.waits.of), 'waits', 'wait')} for signals of others, for {us:.3g} us at most"
        if self.waits.endless:
            endless = (
                "the wait of 1 workgroup ends" if self.waits.endless == 1 else f"waits of {self.waits.endless} end"
            )
            text += f"; {endless} at once, as who would end it has no place on the GPU"
        return text


def _workgroups(count: int, one: str, several: str) -> str:
    return f"1 workgroup {one}" if count == 1 else f"{count} workgroups {several}"
