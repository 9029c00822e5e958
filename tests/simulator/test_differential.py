"""Every vector and scalar instruction on random and edge operands, bit for bit against the reference."""

from __future__ import annotations

import numpy as np
import pytest

from tests.simulator.differential import LANES, attempt, attempt_scalar, disagreements, run, samples
from tests.simulator.reference import (
    argument_reduction,
    compare,
    convert,
    division,
    ieee,
    packed,
    scalar,
    transcendental,
    vector_float,
    vector_integer,
)
from tests.simulator.reference.case import Case
from tests.simulator.reference.ieee import Mode

pytestmark = pytest.mark.slow

DEFAULT, FLUSHING, NOT_IEEE = 0x3F0, 0x300, 0x1F0
FLOATS = vector_float.CASES | division.CASES | packed.CASES | convert.CASES | argument_reduction.CASES
INTEGERS = vector_integer.CASES | compare.CASES
SATURATING = vector_integer.SATURATING | packed.SATURATING


def check(name: str, case: Case, mode: int, suffix: str = "") -> None:
    found = disagreements(attempt(name, case, mode, suffix), mode)
    assert not found, "\n".join([f"{len(found)} differences", *found[:8]])


@pytest.mark.parametrize("name", INTEGERS | FLOATS)
def test_vector_instruction(name: str) -> None:
    check(name, (INTEGERS | FLOATS)[name], DEFAULT)


@pytest.mark.parametrize("mode", [FLUSHING, NOT_IEEE], ids=["flushing", "not ieee"])
@pytest.mark.parametrize("name", FLOATS)
@pytest.mark.diagonal(2)
def test_float_modes(name: str, mode: int) -> None:
    check(name, FLOATS[name], mode)


# No document says that dot products obey the mode.
ROUNDED = [
    name
    for name in FLOATS
    if name.startswith(("v_add", "v_sub", "v_mul", "v_fma", "v_ldexp", "v_fract", "v_cvt_f", "v_cvt_pk", "v_pk_fma"))
]


@pytest.mark.parametrize("mode", [0x3F5, 0x3FA, 0x3FF], ids=["up", "down", "to zero"])
@pytest.mark.parametrize("name", ROUNDED)
@pytest.mark.diagonal(3)
def test_rounding_modes(name: str, mode: int) -> None:
    check(name, FLOATS[name], mode)


@pytest.mark.parametrize("mode", [0x350, 0x3A0], ids=["flush results", "flush operands"])
@pytest.mark.parametrize(
    "name", ["v_add_f32", "v_mul_f64", "v_fma_f16", "v_max_f32", "v_cvt_f16_f32", "v_cvt_pkrtz_f16_f32"]
)
def test_denormals_are_kept_on_one_side(name: str, mode: int) -> None:
    check(name, FLOATS[name], mode)


@pytest.mark.parametrize("name", SATURATING)
def test_clamp_saturates_integers(name: str) -> None:
    check(name, SATURATING[name], DEFAULT, " clamp")


@pytest.mark.parametrize("mode", [DEFAULT, FLUSHING], ids=["default", "flushing"])
@pytest.mark.parametrize("name", transcendental.ESTIMATES)
def test_transcendental_instruction(name: str, mode: int) -> None:
    """Within 1 ulp; special values exactly; what is within the accuracy of f64 is far below its 2**29 ulp."""
    estimate = transcendental.ESTIMATES[name]
    f = ieee.FORMATS[estimate.type_]
    values = samples(estimate.type_, np.random.default_rng(list(name.encode())), 12 * LANES)
    dwords = 2 if estimate.type_ == "f64" else 1
    vectors = {
        i: np.array([v >> 32 * i & 0xFFFFFFFF for v in values], np.uint32).reshape(-1, LANES) for i in range(dwords)
    }
    text = f"{name} v[4:5], v[0:1]" if dwords == 2 else f"{name} v4, v0"
    state = run(text, vectors=vectors, mode=mode)
    parts = [state.vgpr[4 + i].reshape(-1) for i in range(dwords)]
    for lane, x in enumerate(values):
        got = sum(int(p[lane]) << 32 * i for i, p in enumerate(parts))
        low, high = transcendental.acceptable(estimate, Mode(mode), x)
        if ieee.is_nan(f, low):
            assert ieee.is_nan(f, got), f"{text}: {x:#x} gives {got:#x}, not NaN"
            assert got & f.quiet_bit
        else:
            message = f"{text}: {x:#x} gives {got:#x}, not {low:#x} to {high:#x}"
            assert ieee.order(f, low) <= ieee.order(f, got) <= ieee.order(f, high), message
            assert got == low or low != high, message


@pytest.mark.parametrize("name", scalar.CASES)
def test_scalar_instruction(name: str) -> None:
    found = attempt_scalar(name, scalar.CASES[name])
    assert not found, "\n".join([f"{len(found)} differences", *found[:8]])
