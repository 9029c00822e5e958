"""Waits that authors write: the kernels' own are enough, and without them each is missed."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import Any

import pytest

from flydsl import simulator
from flydsl.errors import SourceLocation
from flydsl.runtime import simulated
from flydsl.simulator import LdsRace, MissingWait, Program
from tests.kernels import test_hgemm_splitk, test_preshuffle_gemm, test_wmma_gemm_gfx1250
from tests.kernels.wait_mutants import MUTATIONS, mutants, written_waits
from tests.processes import run_python

# Kernels that are compiled stay so, whatever their waits are afterwards: each mutant has a process of its own.
_MUTANT = """
import sys
import warnings
import torch
import flydsl.expr as fx
from flydsl.simulator import MissingWait, checking

wait, barrier = fx.rocdl.s_waitcnt, fx.rocdl.s_barrier
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
warnings.simplefilter("error" if mutant == "none" else "default")
if mutant == "behind the barrier":
    fx.rocdl.s_waitcnt, fx.rocdl.s_barrier = later.append, barrier_first
elif mutant != "none":
    fx.rocdl.s_waitcnt = {"weaker": weaker, "removed": removed}[mutant]

from kernels import flash_attn_gfx950 as kernel

torch.manual_seed(0)
q, k, v = (torch.randn(1, 256, 1, 128).bfloat16() for _ in range(3))
o = torch.empty_like(q)
launch = kernel.build_flash_attn_dualwave_swp_module(1, 128, dtype_str="bf16", num_kv_heads=1, causal=False)
try:
    with checking("waits"):
        launch(*(x.view(-1) for x in (q, k, v, o)), 1, 256)
    print("nothing is missing")
except MissingWait as error:
    print(error)
with checking("late"):
    launch(*(x.view(-1) for x in (q, k, v, o)), 1, 256)
off = (o - kernel.reference(q, k, v, causal=False)).abs().max().item()
print("late loads do not matter" if off < 0.02 else "late loads give wrong results")
"""


@pytest.mark.parametrize(
    "mutant",
    ["removed", *(pytest.param(name, marks=pytest.mark.sweep) for name in ("none", "weaker", "behind the barrier"))],
)
def test_waits_before_barriers(mutant: str) -> None:
    """Copies to LDS, for which all waves wait before a barrier, as other waves read what they bring."""
    environment = {**os.environ, "ARCH": "gfx950", "FLYDSL_RUNTIME_ENABLE_CACHE": "0"}
    said = run_python("-c", _MUTANT, mutant, env=environment)
    if mutant == "none":
        assert said.stdout == "nothing is missing\nlate loads do not matter\n", said.stderr
        return
    assert said.stdout.endswith("late loads give wrong results\n"), said.stderr
    assert "reads LDS at LDS address" in said.stdout
    assert "after: buffer_load_dwordx4" in said.stdout
    assert re.search(r"hint: .*vmcnt\(\d+\)", said.stdout)
    # Without running anything, only a wait that is not there at all is told.
    told = said.stderr.count("UserWarning: a wait is missing: ds_read")
    assert told == (9 if mutant == "removed" else 0)  # one for each barrier, not for each copy


_RING: dict[str, Any] = {"B_TO_LDS": True, "TILE_M": 16, "TILE_N": 64, "TILE_K": 64, "BLOCK_M_WARPS": 1}


def ring(**options: Any) -> Callable[[], None]:
    return lambda: test_hgemm_splitk.product("f16", 5, 64, 320, **(_RING | options))


def copied_a(**options: Any) -> Callable[[], None]:
    def product() -> None:
        result = test_preshuffle_gemm.product(16, 64, 192, "fp8", (16, 64, 64), use_async_copy=True, **options)
        test_preshuffle_gemm.assert_close(*result)

    return product


def tiles(buffers: int) -> Callable[[], None]:
    """The last wait of these is left out: `s_endpgm` waits for everything itself (RDNA 4 ISA, S_ENDPGM)."""
    return lambda: test_wmma_gemm_gfx1250.product(32, 64, 160, num_buffers=buffers, use_tdm_store=True)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arch", "product"),
    [
        ("gfx942", copied_a()),
        ("gfx1250", tiles(3)),
        pytest.param("gfx942", ring(STAGES=3), marks=pytest.mark.sweep),
        pytest.param("gfx942", ring(), marks=pytest.mark.sweep),
        pytest.param("gfx942", copied_a(lds_stage=1), marks=pytest.mark.sweep),
        pytest.param("gfx1250", tiles(2), marks=pytest.mark.sweep),
    ],
    ids=["two buffers of A", "tiles in three", "ring of three", "ring", "one buffer of A", "tiles in two"],
)
def test_every_written_wait_is_missed(arch: str, product: Callable[[], None], monkeypatch: pytest.MonkeyPatch) -> None:
    """Each mutant of a wait is named. One that is not changes nothing, however late loads come: where LLVM waits for
    all copies before it reads any, the next wait has nothing to wait for."""
    monkeypatch.setenv("ARCH", arch)
    launches = Launches(monkeypatch, product)
    launches.outcome("waits", "races")
    named: set[tuple[SourceLocation | None, str]] = set()
    (program,) = launches.programs
    waits = [i for i in written_waits(program) if program.instructions[i + 1].mnemonic != "s_endpgm"]
    for index in waits:
        at = program.instructions[index].location
        for mutation, mutant in mutants(program, index):
            launches.mutant = mutant
            if launches.outcome("waits", "races"):
                named.add((at, mutation))
            else:
                assert not launches.outcome("late"), (program.instructions[index].listed, mutation)
    for at in {program.instructions[index].location for index in waits}:
        assert {(at, mutation) for mutation in MUTATIONS[:2]} <= named
    assert {mutation for _, mutation in named} == set(MUTATIONS)


class Launches:
    """Launches of one kernel, of which a mutant may take the place. programs: those that were launched."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, product: Callable[[], None]) -> None:
        self.programs: dict[Program, None] = {}
        self.mutant: Program | None = None
        self._product, self._checks = product, ("waits",)
        launch = simulated.launch

        def launched(program: Program, *arguments: Any, **options: Any) -> Any:
            self.programs[program] = None
            return launch(self.mutant or program, *arguments, **options)

        monkeypatch.setattr(simulated, "launch", launched)
        for module in (test_hgemm_splitk, test_preshuffle_gemm, test_wmma_gemm_gfx1250):
            monkeypatch.setattr(module, "checking", lambda: simulator.checking(*self._checks))

    def outcome(self, *checks: str) -> str:
        """The error of a launch under some checks, or of the comparison with the right result; "" for none."""
        self._checks = checks
        try:
            self._product()
        except (MissingWait, LdsRace, AssertionError) as error:
            return str(error)
        return ""
