"""Waits that authors write: the kernels' own are enough, and without them each is missed."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

# Kernels that are compiled stay so, whatever their waits are afterwards: each mutant has a process of its own.
_MUTANT = """
import sys
import torch
import flydsl.expr as fx
from flydsl.simulator import MissingWait, checking

wait, barrier = fx.rocdl.s_waitcnt, fx.gpu.barrier
later = []


def constant(count):
    return 0x0F70 | count & 15 | count >> 4 << 14


def weaker(bits):
    wait(constant((bits & 15 | bits >> 14 << 4) + 1))


def removed(bits):
    wait(constant(63))


def barrier_first():
    barrier()
    while later:
        wait(later.pop())


mutant = sys.argv[1]
if mutant == "behind the barrier":
    fx.rocdl.s_waitcnt, fx.gpu.barrier = later.append, barrier_first
elif mutant != "none":
    fx.rocdl.s_waitcnt = {"weaker": weaker, "removed": removed}[mutant]

from kernels import flash_attn_gfx950 as kernel

torch.manual_seed(0)
q, k, v = (torch.randn(1, 768, 1, 128).bfloat16() for _ in range(3))
o = torch.empty_like(q)
launch = kernel.build_flash_attn_dualwave_swp_module(1, 128, dtype_str="bf16", num_kv_heads=1, causal=False)
try:
    with checking("waits"):
        launch(*(x.view(-1) for x in (q, k, v, o)), 1, 768)
    print("nothing is missing")
except MissingWait as error:
    print(error)
with checking("late"):
    launch(*(x.view(-1) for x in (q, k, v, o)), 1, 768)
off = (o - kernel.reference(q, k, v, causal=False)).abs().max().item()
print("late loads do not matter" if off < 0.02 else "late loads give wrong results")
"""


@pytest.mark.parametrize("mutant", ["none", "weaker", "removed", "behind the barrier"])
def test_waits_before_barriers(mutant: str) -> None:
    """Copies to LDS, for which all waves wait before a barrier, as other waves read what they bring."""
    environment = {**os.environ, "ARCH": "gfx950", "FLYDSL_RUNTIME_ENABLE_CACHE": "0"}
    command = [sys.executable, "-W", "error", "-c", _MUTANT, mutant]
    said = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if mutant == "none":
        assert said.stdout == "nothing is missing\nlate loads do not matter\n", said.stderr
        return
    assert said.stdout.endswith("late loads give wrong results\n")
    assert "it arrives at the barrier before that has completed" in said.stdout, said.stderr
    assert "behind: buffer_load_dwordx4" in said.stdout
    assert "hint: s_waitcnt vmcnt(0)" in said.stdout
