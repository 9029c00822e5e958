"""Every instruction of the table is tested, and the page that lists them is current."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

from flydsl.arch import get_arch
from flydsl.simulator.isa import TABLE
from flydsl.simulator.isa.coverage import PAGE, page
from flydsl.simulator.isa.spellings import name_on
from flydsl.simulator.isa.table import mnemonic_of
from tests.simulator.reference import (
    argument_reduction,
    cdna5,
    compare,
    convert,
    division,
    matrix,
    packed,
    rdna,
    scalar,
    transcendental,
    vector_float,
    vector_integer,
    wmma,
)
from tests.simulator.reference.memory import LDS_LOADS, LDS_STORES, LDS_UPDATES, LOADS, RETURNING_ONLY, STORES, UPDATES
from tests.simulator.reference.names import (
    by_hand,
    of_cdna5,
    of_copies,
    of_rdna3,
    of_rdna_lanes,
    of_rdna_memory,
    of_stochastic_packs,
)

RDNA = get_arch("gfx1201").instruction_sets
SPACES = ("global", "flat", "buffer")
TO_LDS = [f"{space}_load_lds_{name}" for space in ("global", "scratch") for name in ("dword", *list(LOADS)[4:8])]


def with_a_reference() -> set[str]:
    """The mnemonics that the differential tests go through."""
    names: set[str] = set()
    for family in (argument_reduction, compare, convert, division, packed, scalar, vector_float, vector_integer):
        names |= set(family.CASES)
    names |= set(transcendental.ESTIMATES)
    names |= {case.mnemonic for case in (*matrix.DENSE, *matrix.SPARSE)}
    names |= {case.mnemonic for case in (*matrix.DENSE_OF_GFX950, *matrix.SPARSE_OF_GFX950, *matrix.DENSE_OF_GFX90A)}
    names |= {case.mnemonic for case in (*wmma.DENSE, *wmma.SPARSE, *wmma.MIXED)}
    names |= {case.mnemonic for case in (*wmma.SCALED, *wmma.FINELY_SCALED, *wmma.SPARSE_OF_GFX1250)}
    names |= {*cdna5.CASES, *rdna.CASES, *rdna.SCALAR, *(name for name, _ in rdna.MIXED_DOTS)}
    names |= {*rdna.OF_RDNA3, *rdna.SCALAR_OF_RDNA3, *of_rdna3()}
    names |= {name for name in map(mnemonic_of, TABLE) if "::" in name}  # test_rdna_lanes, test_gfx1250
    names |= by_hand() | of_rdna_memory() | of_rdna_lanes() | of_cdna5() | of_copies() | of_stochastic_packs()
    for space in (*SPACES, "scratch"):
        names |= {f"{space}_load_{n}" for n in LOADS} | {f"{space}_store_{n}" for n in STORES}
    for space in SPACES:
        names |= {f"{space}_atomic_{n}" for n in UPDATES}
    names |= {f"ds_read_{n}" for n in LDS_LOADS} | {f"ds_write_{n}" for n in LDS_STORES}
    names |= {f"ds_{n}" for n in LDS_UPDATES}
    for name in LDS_UPDATES | RETURNING_ONLY:
        operation, _, type_ = name.rpartition("_")
        names.add(f"ds_{operation}_rtn_{type_}")
    for bits in (32, 64):
        for stride in ("", "st64"):
            names |= {f"ds_{n}{stride}_b{bits}" for n in ("read2", "write2")} | {f"ds_wrxchg2{stride}_rtn_b{bits}"}
    names |= {f"{b}load_dword{s}" for b in ("s_", "s_buffer_") for s in ("", "x2", "x4", "x8", "x16")}
    return names | set(TO_LDS)


def without_a_reference() -> set[str]:
    """The others, but those that change no state that is simulated: there is nothing to compare."""
    return {mnemonic_of(n) for n in TABLE if TABLE[n].effect == "state"} - with_a_reference()


@cache
def sources_of_the_tests() -> str:
    folder = Path(__file__).parents[1]
    files = (*folder.glob("test_*.py"), *folder.glob("isa/test_*.py"))
    return "\n".join(p.read_text() for p in files if p != Path(__file__))


@pytest.mark.parametrize("name", sorted(without_a_reference()))
def test_what_has_no_reference_is_tested_by_hand(name: str) -> None:
    """Control flow, movement between lanes, and modes, which no table of operands can express."""
    spellings = "|".join(filter(None, (name, name_on(name, RDNA))))
    assert re.search(rf"(\\n|\b)({spellings})\b", sources_of_the_tests()), f"no test has {name}"


def test_the_worklist_has_references() -> None:
    """Nothing that compiled kernels use much is left to the tests by hand, but what moves data or control."""
    others = without_a_reference()
    assert not {n for n in others if n.startswith(("global_", "flat_", "buffer_", "scratch_", "v_cmp", "v_mfma"))}
    moves = re.compile("v_(read|write|mbcnt|accvgpr|permlane64)")
    assert not {n for n in others if n.startswith("v_") and not moves.match(n)}


def test_the_page_is_current() -> None:
    assert PAGE.read_text() == page(), "run python -m flydsl.simulator.isa.coverage"
