"""Native code for every tier of CPUs means the same, and needs nothing that a host may not have."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import traceback
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from flydsl.errors import ArgumentError
from flydsl.hsaco.listing import read_listing
from flydsl.simulator import Program
from flydsl.simulator.modes import FloatMode
from flydsl.simulator.native import host
from flydsl.simulator.native.generate import generate, module_text
from flydsl.simulator.native.shape import Shape, bind

ROOT = Path(__file__).parents[3]
DEFAULT_MODE = 0x3F0
INSTRUCTIONS = """
v_add_f32 v0, v1, v2
v_fma_f16 v0, v1, v2, v3
v_fma_f32 v0, v1, v2, v3
v_fma_f64 v[0:1], v[2:3], v[4:5], v[6:7]
v_cvt_i16_f16 v0, v1
v_cvt_u32_f64 v0, v[2:3]
v_cvt_f16_f32 v0, v1
v_cvt_pk_fp8_f32 v0, v1, v2
v_exp_f32 v0, v1
v_sin_f16 v0, v1
v_rsq_f64 v[0:1], v[2:3]
v_rndne_f16 v0, v1
v_floor_f64 v[0:1], v[2:3]
v_ldexp_f64 v[0:1], v[2:3], v4
v_dot2_f32_f16 v0, v1, v2, v3
v_bcnt_u32_b32 v0, v1, v2
v_ffbh_u32 v0, v1
v_mov_b32_dpp v0, v1 row_shr:3 row_mask:0xf bank_mask:0xf
ds_bpermute_b32 v0, v1, v2
global_atomic_pk_add_f16 v0, v1, s[2:3]
global_load_dwordx4 v[0:3], v4, s[2:3]
v_mfma_f32_4x4x4_16b_bf16 v[0:3], v[4:5], v[6:7], v[8:11]
v_mfma_f64_4x4x4_4b_f64 v[0:1], v[8:9], v[10:11], v[16:17]
"""


@cache
def shapes() -> list[Shape]:
    program = Program.from_listing({}, read_listing(f"k:\n{INSTRUCTIONS}\ns_endpgm\n"))
    return [bind(i, program, FloatMode(DEFAULT_MODE)).shape for i in program.instructions]


@cache
def handlers() -> str:
    """LLVM IR of a module with a handler of each instruction."""
    return module_text([generate(shape, f"handler{i}") for i, shape in enumerate(shapes())])


def assembly(triple: str, tier: host.Tier) -> str:
    import llvmlite.binding as binding

    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()
    module = binding.parse_assembly(handlers(), binding.create_context())
    machine = binding.Target.from_triple(triple).create_target_machine(cpu=tier.cpu, features=tier.features, opt=0)
    return str(machine.emit_assembly(module))


TARGETS = [(f"{m}-unknown-linux-gnu", t) for m in ("x86_64", "aarch64") for t in host.TIERS[m]]


@pytest.mark.slow
@pytest.mark.parametrize(("triple", "tier"), TARGETS, ids=[t.name for _, t in TARGETS])
def test_code_for_every_tier_calls_no_library(triple: str, tier: host.Tier) -> None:
    called = re.findall(r"^\s+(?:callq?|bl|jmp|b|movabsq)\s+\$?([A-Za-z_]\w*)", _text(triple, tier), re.MULTILINE)
    runtime = re.findall(r"^declare .*?@(\w+)\(", handlers(), re.MULTILINE)
    assert "leave" in called
    assert set(called) <= set(runtime)


@cache
def _text(triple: str, tier: host.Tier) -> str:
    return assembly(triple, tier)


@pytest.mark.slow
@pytest.mark.parametrize(("triple", "tier"), TARGETS, ids=[t.name for _, t in TARGETS])
def test_no_tier_computes_in_16_bits(triple: str, tier: host.Tier) -> None:
    """Not every host of a tier has these instructions."""
    assert not in_16_bits(_text(triple, tier))


@pytest.mark.slow
@pytest.mark.parametrize(("machine", "extension"), [("x86_64", "+avx512fp16"), ("aarch64", "+fullfp16")])
def test_a_tier_that_computes_in_16_bits_would_be_seen(machine: str, extension: str) -> None:
    tier = host.TIERS[machine][-1]
    able = replace(tier, features=",".join(filter(None, [tier.features, extension])))
    assert in_16_bits(assembly(f"{machine}-unknown-linux-gnu", able))


_OF_AVX512_FP16 = re.compile(r"^\s+(v\w*[ps]h|vcvtt?[ps]h2\w+|vcvt\w+2[ps]hx?|vmovw)\b", re.MULTILINE)
_OF_ARM_8_2 = re.compile(r"^\s+(f\w+|[su]cvtf)\s+(?:v\d+\.[48]h|h\d+)", re.MULTILINE)
_CONVERSIONS = {"vcvtps2ph", "vcvtph2ps", "fcvt", "fcvtn", "fcvtn2", "fcvtl", "fcvtl2", "fmov"}
"""The conversions between f16 and f32 that every host of a tier has."""


def in_16_bits(text: str) -> set[str]:
    """The instructions of a text that compute with f16."""
    return {*_OF_AVX512_FP16.findall(text), *_OF_ARM_8_2.findall(text)} - _CONVERSIONS


def test_every_machine_has_tiers_that_it_can_run() -> None:
    able = host.available_tiers()
    assert host.tier() in able
    assert len({t.name for t in able}) == len(able)


def test_a_tier_that_this_cpu_has_not_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLYDSL_SIMULATOR_HOST", "avx9")
    with pytest.raises(ArgumentError, match="one of native, "):
        host.tier.__wrapped__()


def test_the_cache_knows_tiers_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    described = set()
    for tier in host.TIERS["x86_64"]:
        monkeypatch.setattr(host, "tier", lambda t=tier: t)
        described.add(host.description())
    assert len(described) == len(host.TIERS["x86_64"])


def other_tiers() -> list[Any]:
    return [t.name for t in host.available_tiers() if t != host.tier()]


@pytest.mark.slow
@pytest.mark.parametrize("tier", other_tiers())
def test_the_backends_agree_under_every_tier(tier: str) -> None:
    """The tests of agreement once more, for the tiers that this run does not use."""
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-x",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:nbval",
        "tests/simulator/native/test_agreement.py",
    ]
    environment = {**os.environ, "FLYDSL_SIMULATOR_HOST": tier, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]


def test_an_interrupted_compilation_leaves_nothing_of_llvm_to_the_garbage_collector(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It frees a module and its context in any order, and one of the two crashes."""

    class Machine:
        def emit_object(self, module: Any) -> bytes:
            signal.raise_signal(signal.SIGINT)
            return b""

    monkeypatch.setattr(host, "_compiling_machine", lambda level: Machine())
    previous = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt) as caught:
            host.compile_module("define void @f() {\n  ret void\n}", optimize=False)
    finally:
        signal.signal(signal.SIGINT, previous)
    kept = [value for frame, _ in traceback.walk_tb(caught.tb) for value in frame.f_locals.values()]
    assert not any(type(value).__module__.startswith("llvmlite") for value in kept if value is not None)
