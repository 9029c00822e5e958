"""Traces from a seed, of a program like a matrix product: loads into LDS, a barrier, LDS reads, a wait, products."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from flydsl.simulator.timing import EVENT, WAVE, Stall, Trace, TracedInstruction, Unit

SOURCE = "/src/kernel.py"
SIMDS = 4


@dataclass(frozen=True)
class Step:
    """An instruction of the program: unit, what it is called, line; cycles that the wave stalls before and why."""

    unit: Unit
    text: str
    line: int | None = None
    latency: int = 4
    issue: int = 4
    stall: int = 0
    reason: Stall = Stall.NONE


PROLOGUE = (
    Step(Unit.SCALAR_MEMORY, "s_load_dwordx4 s[0:3], s[4:5], 0x0", 10, latency=120),
    Step(Unit.VALU, "v_lshlrev_b32_e32 v1, 4, v0", 10),
    Step(Unit.MESSAGE, "s_waitcnt lgkmcnt(0)", 10, stall=110, reason=Stall.WAIT_SCALAR),
)
LOOP = (
    Step(Unit.VECTOR_MEMORY, "buffer_load_dwordx4 v[4:7], v1, s[0:3], 0 offen", 20, latency=600),
    Step(Unit.LDS, "ds_read_b128 v[8:11], v2", 21, latency=128),
    Step(Unit.MESSAGE, "s_waitcnt lgkmcnt(0)", 21, stall=100, reason=Stall.WAIT_LDS),
    Step(Unit.MATRIX, "v_mfma_f32_16x16x16_f16 a[0:3], v[8:9], v[10:11], a[0:3]", 22, latency=32),
    Step(Unit.MATRIX, "v_mfma_f32_16x16x16_f16 a[0:3], v[8:9], v[12:13], a[0:3]", 22, 32, 4, 28, Stall.MATRIX_BUSY),
    Step(Unit.SCALAR, "s_add_u32 s6, s6, 1", 19),
    Step(Unit.MESSAGE, "s_barrier", 23, stall=20, reason=Stall.BARRIER),
    Step(Unit.BRANCH, "s_cbranch_scc1 .LBB0_1", 19),
)
EPILOGUE = (
    Step(Unit.VECTOR_MEMORY, "buffer_store_dwordx4 v[4:7], v1, s[0:3], 0 offen", 30, latency=300),
    Step(Unit.MESSAGE, "s_endpgm"),
)


def synthetic(
    waves: int = 4, iterations: int = 8, seed: int = 0, *, jitter: int = 3, loop: tuple[Step, ...] = LOOP
) -> Trace:
    """A trace: waves on the SIMDs of one CU, each with its own random cycles more (at most `jitter`) in its stalls."""
    program = (*PROLOGUE, *loop, *EPILOGUE)
    executed = [
        *range(len(PROLOGUE)),
        *(list(range(len(PROLOGUE), len(PROLOGUE) + len(loop))) * iterations),
        *range(len(PROLOGUE) + len(loop), len(program)),
    ]
    chance = random.Random(seed)
    rows, events = [], []
    for wave in range(waves):
        start = 1000 + 10 * wave
        found = list(_events(program, executed, wave, start, chance, jitter))
        events += found
        end = found[-1][2] + program[-1].issue
        rows.append((wave // 4, wave % 4, 0, 1, wave % SIMDS, wave // SIMDS, start, end))
    return Trace(
        kernel="synthetic",
        arch="gfx942",
        clock_mhz=2100.0,
        origin="model",
        cycles=max(row[-1] for row in rows),
        error_percent=None,
        sampling=f"{waves} waves from seed {seed}",
        instructions=tuple(
            TracedInstruction(8 * i, step.text, step.unit, SOURCE if step.line else None, step.line)
            for i, step in enumerate(program)
        ),
        waves=np.array(rows, WAVE),
        events=np.array(events, EVENT),
    )


def _events(
    program: tuple[Step, ...], executed: list[int], wave: int, start: int, chance: random.Random, jitter: int
) -> Iterator[tuple[int, ...]]:
    cycle = start
    for index in executed:
        step = program[index]
        stall = step.stall + (chance.randint(0, jitter) if step.stall else 0)
        cycle += stall
        yield wave, index, cycle, step.latency, stall, int(step.reason)
        cycle += step.issue


def with_stall(text: str, cycles: int) -> tuple[Step, ...]:
    """The loop with other cycles before the instruction whose text begins so."""
    return tuple(replace(step, stall=cycles) if step.text.startswith(text) else step for step in LOOP)
