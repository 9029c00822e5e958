"""What limits a launch is what was built into its trace, and the numbers are those of the trace."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from flydsl.simulator.timing import Stall, Trace, Unit
from flydsl.simulator.timing.advice import advise
from flydsl.simulator.timing.memory_waits import producers
from flydsl.simulator.timing.traced_loops import hot_region, loops
from tests.simulator.timing.synthetic import LOOP, PROLOGUE, Step, synthetic, with_stall

READ, WAIT = len(PROLOGUE) + 1, len(PROLOGUE) + 2


def test_the_loop_is_found() -> None:
    trace = synthetic(waves=2, iterations=6)
    (loop,) = loops(trace)
    assert (loop.first, loop.last, loop.runs) == (len(PROLOGUE), len(PROLOGUE) + len(LOOP) - 1, 12)
    assert hot_region(trace) == loop


def test_without_a_loop_it_is_the_whole_program() -> None:
    region = hot_region(synthetic(waves=2, iterations=1))
    assert not region.is_loop
    assert region.runs == 2


def test_waiting_for_lds_names_the_read_and_what_a_prefetch_hides() -> None:
    trace = synthetic(waves=4, iterations=10, jitter=0)
    finding = advise(trace).findings[0]
    assert finding.reason is Stall.WAIT_LDS
    assert finding.instructions == (WAIT,)
    assert finding.causes == (READ,)
    assert finding.stall_cycles == 100
    assert "ds_read_b128 (kernel.py:21)" in finding.sentence
    assert "issued in the same iteration" in finding.sentence
    cycles = hot_region(trace).cycles_per_run
    assert finding.share == pytest.approx(100 / cycles)
    assert finding.hidden_cycles is not None
    assert 0 < finding.hidden_cycles <= 100
    assert f"({100:.0f} of {cycles:.0f} cycles an iteration)" in finding.sentence
    assert f"would hide {finding.hidden_cycles:.0f} of these 100" in finding.sentence


def test_a_prefetch_hides_no_more_than_the_rest_of_an_iteration() -> None:
    rest = sum(step.issue for step in LOOP) + sum(step.stall for step in LOOP if step is not LOOP[2])
    trace = synthetic(waves=1, iterations=20, jitter=0, loop=with_stall("s_waitcnt", 10 * rest))
    finding = advise(trace).findings[0]
    assert finding.hidden_cycles == pytest.approx(rest)


def test_the_longest_wait_comes_first_and_small_ones_are_left_out() -> None:
    stalls = [Stall.WAIT_LDS, Stall.MATRIX_BUSY, Stall.BARRIER]
    assert [f.reason for f in advise(synthetic(iterations=30)).findings[:3]] == stalls
    at_barriers = advise(synthetic(iterations=30, loop=with_stall("s_barrier", 2000)))
    assert at_barriers.findings[0].reason is Stall.BARRIER
    assert "What limits the loop most is waiting at barriers" in at_barriers.limit
    assert Stall.MATRIX_BUSY not in [finding.reason for finding in at_barriers.findings]


def test_a_wait_at_a_barrier_is_caused_by_what_the_last_wave_waited_for() -> None:
    """Half of the waves come late, and have waited for global memory where the others waited for LDS."""
    trace = synthetic(waves=4, iterations=30, jitter=0, loop=with_stall("s_barrier", 200))
    late = trace.events["wave"] % 2 == 1
    trace.events["issue"][late] += 50
    trace.events["reason"][late & (trace.events["reason"] == Stall.WAIT_LDS)] = Stall.WAIT_VECTOR_MEMORY
    advice = advise(trace)
    assert "at barriers, where the last wave comes late by waiting for global memory: " in advice.limit
    assert re.search(r"last wave to come had stalled 7\d% by waiting for global memory\.", advice.findings[0].sentence)


def test_a_busy_matrix_unit_is_the_limit() -> None:
    products = tuple(replace(step, latency=300) if step.unit is Unit.MATRIX else step for step in LOOP)
    advice = advise(synthetic(waves=8, iterations=20, loop=products))
    assert re.match(r"What limits the loop is the matrix unit: busy \d+% of its \d+ cycles an iteration", advice.limit)


@pytest.mark.parametrize("reason", list(Stall), ids=lambda reason: reason.name)
def test_every_reason_has_its_sentence(reason: Stall) -> None:
    loop = (*LOOP[:3], Step(Unit.LDS, "ds_write_b32 v1, v2", 24, stall=200, reason=reason), *LOOP[3:])
    findings = {finding.reason: finding for finding in advise(synthetic(iterations=9, loop=loop)).findings}
    assert re.search(r"^Waves .* \d+% of the loop \(\d+ of \d+ cycles an iteration\).*\.$", findings[reason].sentence)
    assert findings[reason].hidden_cycles is None or findings[reason].hidden_cycles >= 0


def test_the_producer_is_the_one_that_the_counter_says() -> None:
    ahead = replace(LOOP[2], text="s_waitcnt lgkmcnt(1)")
    loop = (LOOP[1], LOOP[1], ahead)
    trace = synthetic(waves=2, iterations=3, loop=loop)
    made = producers(trace)
    waits = np.flatnonzero(trace.events["reason"] == Stall.WAIT_LDS)
    assert (trace.events["instruction"][made[waits]] == len(PROLOGUE)).all()
    assert (trace.events["wave"][made[waits]] == trace.events["wave"][waits]).all()
    scalar = np.flatnonzero(trace.events["reason"] == Stall.WAIT_SCALAR)
    assert (trace.events["instruction"][made[scalar]] == 0).all()


def test_a_trace_without_instructions_has_no_advice() -> None:
    trace = synthetic(waves=1)
    empty = Trace("k", "gfx942", 1.0, "model", 0, None, "nothing", (), trace.waves[:0], trace.events[:0])
    assert advise(empty).findings == ()


def test_power_is_named_where_it_sets_the_time() -> None:
    trace = synthetic(waves=4, iterations=10)
    assert "power" not in advise(trace).limit
    found = advise(replace(trace, is_power_limited=True))
    assert found.limit.startswith("What limits the launch is power: its matrix instructions alone")
    assert found.findings == advise(trace).findings


def test_compute_units_without_work_are_named() -> None:
    trace = synthetic(waves=4, iterations=10)
    assert not any("have no workgroup" in finding.sentence for finding in advise(trace).findings)
    last = advise(replace(trace, idle_compute_units=192)).findings[-1]
    assert last.sentence.startswith("192 compute units of the GPU have no workgroup.")


def test_a_wave_that_mostly_issues_is_limited_by_its_own_instructions() -> None:
    """What it stalls for takes less of the time, though it is the longest stall."""
    work = (Step(Unit.VALU, "v_add_u32_e32 v1, v1, v2"), Step(Unit.SCALAR, "s_add_u32 s6, s6, 1")) * 5
    wait = Step(Unit.MESSAGE, "s_waitcnt lgkmcnt(0)", stall=8, reason=Stall.WAIT_LDS)
    loop = (Step(Unit.LDS, "ds_read_b128 v[8:11], v2"), *work, wait, Step(Unit.BRANCH, "s_cbranch_scc1 .LBB0_1"))
    limit = advise(synthetic(waves=1, loop=loop)).limit
    assert re.match(
        r"What limits the loop most is its own instructions: in \d+% .*; waiting for LDS takes 1\d% ", limit
    )
