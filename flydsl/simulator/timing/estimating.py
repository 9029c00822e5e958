"""The estimate of a launch: its trace, with the error of the time."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable

import numpy as np

from flydsl.arch.products import Product
from flydsl.errors import SimulatorError
from flydsl.simulator.arrays import Array
from flydsl.simulator.decoding.program import Instruction
from flydsl.simulator.dispatch import Dispatch
from flydsl.simulator.errors import MemoryFault
from flydsl.simulator.memory.buffers import Buffer, Memory
from flydsl.simulator.timing.accuracy import error_percent, kind_of
from flydsl.simulator.timing.instructions import unit_of
from flydsl.simulator.timing.left_out import LeftOut
from flydsl.simulator.timing.replay import Replayed
from flydsl.simulator.timing.sampling import Sample
from flydsl.simulator.timing.trace import WAVE, Trace, TracedInstruction


def estimate(
    dispatch: Dispatch,
    instruction_limit: int,
    threads: int | None,
    left_out: LeftOut | None = None,
    product: Product | None = None,
    *,
    cold: bool = False,
) -> Trace:
    """The time of a launch, and what the waves of a compute unit do in it. The launch's memory is not changed.

    product: the GPU, by default the one that stands for the architecture. cold: see `tracing`. left_out: of the
    launches before it, where they were not carried out, either: it warns if the launch depends on them. ArchError for a
    GPU without figures; whatever error the launch's workgroups run into.
    """
    sample, replay, is_guessed = _replay_of_what_is_known(dispatch, instruction_limit, threads, product, cold, left_out)
    clock = sample.timing.clock_mhz.value
    cycles = round(sample.launch_cycles(replay))
    waiting = sample.longest_wait / cycles
    adds, routed = dispatch.program.has_global_atomics, sample.is_routed
    kind = kind_of(replay, cycles / clock, adds=adds, routed=routed, waiting=waiting)
    compared = error_percent(sample.arch, kind) if sample.is_standard and not cold and not sample.takes_turns else None
    uncertain = None if left_out is None else _depends(sample, left_out, is_guessed=is_guessed)
    is_unknown = bool(uncertain) or sample.is_partial or sample.takes_tickets
    waves, events = _shown(sample, replay)
    return Trace(
        kernel=dispatch.kernel_name,
        arch=sample.arch.name,
        clock_mhz=clock,
        origin="model",
        cycles=cycles,
        error_percent=None if is_unknown else sample.error_of_figures(cycles) if compared is None else compared,
        is_compared=compared is not None,
        sampling="; ".join(filter(None, (sample.sentence(replay), uncertain))),
        instructions=tuple(_traced(i) for i in dispatch.program.instructions),
        waves=waves,
        events=events,
        memory=sample.memory_use(replay),
        writers=sample.writers(waves, events),
        idle_compute_units=sample.idle_compute_units,
        is_power_limited=sample.is_power_limited(replay),
    )


def _depends(sample: Sample, left_out: LeftOut, *, is_guessed: bool) -> str | None:
    """A sentence, which is also a warning, if launches that were left out decide what the sampled one executes.

    is_guessed: whether it was recorded with zeros for what they would have written.
    """
    buffer = left_out.decides(sample.dispatch, sample.streams, is_known=is_guessed)
    if buffer is None:
        return None
    sentence = f"what it executes depends on {buffer}, which an earlier launch of the block would have written"
    if is_guessed:
        sentence += " and which has zeros here, as the launch fails with what is there"
    name = sample.dispatch.kernel_name
    warnings.warn(f"the time of {name}: {sentence}; tracing(execute=True) carries launches out", stacklevel=2)
    return sentence


def _replay_of_what_is_known(
    dispatch: Dispatch,
    instruction_limit: int,
    threads: int | None,
    product: Product | None,
    cold: bool,
    left_out: LeftOut | None,
) -> tuple[Sample, Replayed, bool]:
    """A sample, its replay, and whether what launches before it would have written is guessed.

    What is there instead may be anything, an address or the end of a loop: where the launch fails with it, zeros are
    tried. The error is raised if it fails with them, too.
    """
    launch = (dispatch, instruction_limit, threads, product, cold)
    try:
        return *_replay_with_host_memory(*launch, Memory.with_copied_content), False
    except SimulatorError as error:
        if left_out is None or not left_out.concerns(dispatch.memory):
            raise
        try:
            return *_replay_with_host_memory(*launch, left_out.emptied), True
        except SimulatorError:
            raise error from None


def _replay_with_host_memory(
    dispatch: Dispatch,
    instruction_limit: int,
    threads: int | None,
    product: Product | None,
    cold: bool,
    copied: Callable[[Memory], Memory],
) -> tuple[Sample, Replayed]:
    """A sample and its replay, with the memory of the host that the kernel uses by its address, and no other."""
    used: list[Buffer] = []
    while True:
        work = copy.copy(dispatch)
        work.memory = dispatch.memory.with_in_place(used)
        sample = Sample(work, instruction_limit, threads, product, cold=cold, copied=copied)
        try:
            return sample, sample.replay()
        except MemoryFault as fault:
            found = dispatch.memory.in_place_around(fault.access.address)
            if found is None or any(found is known for known in used):
                raise
            used.append(found)


def _shown(sample: Sample, replay: Replayed) -> tuple[Array, Array]:
    """The recorded waves and their events, renumbered."""
    waves = np.zeros(len(replay.waves), WAVE)
    chosen = np.array(sample.plan.chosen)
    for column, name in enumerate(("workgroup", "cu", "simd", "slot", "start", "end")):
        waves[name] = replay.waves[:, column]
    waves["workgroup"] = chosen[replay.waves[:, 0]]
    waves["wave"] = np.concatenate([np.arange(len(w)) for w in sample.streams])
    shown = np.unique(replay.events["wave"])
    events = replay.events.copy()
    events["wave"] = np.searchsorted(shown, events["wave"])
    return waves[shown], events


def _traced(instruction: Instruction) -> TracedInstruction:
    at = instruction.location
    text = " ".join(instruction.listed.text.split())
    unit = unit_of(instruction.mnemonic)
    # The listing does not tell sizes: addresses count eight bytes for each instruction, as the simulator's do.
    file, line = (at.file, at.line) if at else (None, None)
    return TracedInstruction(8 * instruction.index, text, unit, file, line)
