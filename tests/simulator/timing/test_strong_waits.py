"""Waits that are stronger than needed, and what weaker ones would save, in traces where that is built in."""

from __future__ import annotations

from dataclasses import replace

from flydsl.simulator.timing import Stall, Unit
from flydsl.simulator.timing.advice import advise
from flydsl.simulator.timing.strong_waits import strong_waits
from tests.simulator.timing.synthetic import PROLOGUE, Step, synthetic

FIRST = Step(Unit.VECTOR_MEMORY, "buffer_load_dwordx4 v[4:7], v1, s[0:3], 0 offen", 20, latency=104)
SECOND = Step(Unit.VECTOR_MEMORY, "buffer_load_dwordx4 v[8:11], v1, s[0:3], 0 offen", 21, latency=600)
# It goes on when the second load has come, 600 cycles behind its issue.
WAIT = Step(Unit.MESSAGE, "s_waitcnt vmcnt(0)", 22, stall=596, reason=Stall.WAIT_VECTOR_MEMORY)
USE_FIRST = Step(Unit.VALU, "v_add_f32_e32 v12, v4, v5", 23)
USE_SECOND = Step(Unit.VALU, "v_add_f32_e32 v13, v8, v9", 24)
WORK = Step(Unit.VALU, "v_exp_f32_e32 v14, v14", 25, issue=400)
BRANCH = Step(Unit.BRANCH, "s_cbranch_scc1 .LBB0_1", 19)
LOOP = (FIRST, SECOND, WAIT, USE_FIRST, WORK, USE_SECOND, BRANCH)
PLACE = len(PROLOGUE) + 2


def test_a_load_that_is_used_late_could_be_waited_for_later() -> None:
    (wait,) = strong_waits(synthetic(waves=2, iterations=5, jitter=0, loop=LOOP))
    assert (wait.instruction, wait.counter, wait.at_most, wait.enough, wait.loads) == (PLACE, "vmcnt", 0, 1, 1)
    # The wave would go on 100 cycles behind the second load instead of 600, and use it 408 cycles behind the wait.
    assert wait.unused_cycles == 408
    assert wait.stall_cycles == 2 * 5 * 596
    assert wait.saved_cycles == 2 * 5 * 408


def test_the_saving_ends_when_the_loads_that_are_needed_have_come() -> None:
    (wait,) = strong_waits(synthetic(waves=1, iterations=5, jitter=0, loop=(replace(FIRST, latency=400), *LOOP[1:])))
    assert wait.saved_cycles == 5 * (600 - 396)


def test_loads_that_are_used_at_once_are_rightly_waited_for() -> None:
    assert strong_waits(synthetic(loop=(FIRST, SECOND, WAIT, USE_SECOND, WORK, USE_FIRST, BRANCH), jitter=0)) == ()


def test_nobody_knows_who_needs_a_store_or_a_copy_to_lds() -> None:
    for text in ("buffer_store_dwordx4 v[8:11], v1, s[0:3], 0 offen", "buffer_load_dword v1, s[0:3], 0 offen lds"):
        assert strong_waits(synthetic(loop=(FIRST, replace(SECOND, text=text), *LOOP[2:]), jitter=0)) == ()


def test_measured_traces_do_not_say_when_loads_come() -> None:
    assert strong_waits(replace(synthetic(loop=LOOP), origin="rocprofv3")) == ()


def test_the_advice_has_a_sentence() -> None:
    sentences = [finding.sentence for finding in advise(synthetic(iterations=9, loop=LOOP, jitter=0)).findings]
    (said,) = [sentence for sentence in sentences if "that nothing uses for" in sentence]
    assert said.startswith("vmcnt(0) (kernel.py:22) waits for 1 load that nothing uses for 408 cycles; vmcnt(1) here")
    assert "of the 596 cycles that it stalls an iteration" in said
