"""Programs of random instructions on random bits: both backends end in the same state, NaNs and all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from flydsl.arch import get_arch
from flydsl.simulator.isa.spellings import name_on
from tests.simulator.differential import width_of
from tests.simulator.reference import compare, convert, packed, rdna, vector_float, vector_integer
from tests.simulator.reference.case import Case

pytestmark = pytest.mark.slow

Run = Callable[..., Any]
INSTRUCTIONS = 40
REGISTERS = 24
MODES = (0x3F0, 0x000, 0x0F0, 0x330)
CASES: dict[str, Case] = {
    name: case
    for family in (vector_float, vector_integer, convert, packed, compare)
    for name, case in family.CASES.items()
    if not name.startswith("v_cmpx")  # it would switch lanes off for good
}


RDNA = get_arch("gfx1201").instruction_sets
OF_RDNA = {str(name_on(name, RDNA)): case for name, case in CASES.items() if name_on(name, RDNA) and "8" not in name}
"""By its own names; floats of 8 bits have other operands there."""
OF_RDNA |= {name: case for name, case in rdna.CASES.items() if "0x" not in "".join(case.operands)}


def operand(word: str, rng: np.random.Generator, *, is_rdna: bool) -> str:
    """A register of the kind, whatever was computed into it."""
    if word in ("mask", "vcc"):
        first = 20 + 2 * int(rng.integers(4))
        return f"s{first}" if is_rdna else f"s[{first}:{first + 1}]"
    dwords = max(width_of(word) // 32, 1)
    first = int(rng.integers(REGISTERS // dwords)) * dwords
    return f"v{first}" if dwords == 1 else f"v[{first}:{first + dwords - 1}]"


def instruction(rng: np.random.Generator, *, is_rdna: bool) -> str:
    cases = OF_RDNA if is_rdna else CASES
    name = str(rng.choice(sorted(cases)))
    case = cases[name]
    words = [w for w in (*case.results, *case.operands) if w not in ("old", "old1", "vcc")]
    texts = [w if w.startswith("0x") else operand(w, rng, is_rdna=is_rdna) for w in words]
    return f"{name} {', '.join(texts)}{case.suffix}"


def program(seed: int, *, is_rdna: bool = False) -> str:
    rng = np.random.default_rng(seed)
    return "\n".join(instruction(rng, is_rdna=is_rdna) for _ in range(INSTRUCTIONS))


def registers(seed: int) -> dict[int, Any]:
    """Any bits; in every other register floats around 1, so that results are not all NaN or 0."""
    rng = np.random.default_rng([seed, 1])
    rows = rng.integers(0, 1 << 32, (REGISTERS, 64), np.uint32)
    rows[::2] = rows[::2] & 0x80FFFFFF | 0x3F000000
    return dict(enumerate(rows))


@pytest.mark.parametrize("seed", range(4))
def test_both_backends_end_in_the_same_state(run: Run, seed: int) -> None:
    lanes = (1 << 64) - 1 if seed % 3 else 0x5555_0000_FFFF_1234
    run(program(seed), v=registers(seed), s={20: 0xF0F0 << 32 | 5, 22: lanes}, exec_bits=lanes, mode=MODES[seed % 4])


def test_both_backends_end_in_the_same_state_on_rdna3(run: Run) -> None:
    """What the two generations name alike."""
    names = {name_on(row, get_arch("gfx1151").instruction_sets) for row in (*CASES, *rdna.CASES)}
    lines = [line for line in program(9, is_rdna=True).splitlines() if line.split()[0] in names]
    assert len(lines) > INSTRUCTIONS // 2
    v = {i: row[:32] for i, row in registers(9).items()}
    run("\n".join(lines), v=v, s={20: 0xF0F0, 22: 0xFFFF}, exec_bits=0xFFFF_1234, mode=0x3F0, arch="gfx1151")


@pytest.mark.parametrize("seed", range(3))
def test_both_backends_end_in_the_same_state_on_rdna(run: Run, seed: int) -> None:
    lanes = 0xFFFF_FFFF if seed else 0xFFFF_1234
    text, v = program(seed, is_rdna=True), {i: row[:32] for i, row in registers(seed).items()}
    run(text, v=v, s={20: 0xF0F0, 22: lanes}, exec_bits=lanes, mode=(0x1F0, 0x100)[seed % 2], arch="gfx1201")
