"""The sentences about instructions: every instruction has one, and where it is a formula, it is what is computed."""

from __future__ import annotations

import re

import pytest

from flydsl.arch import ARCHS, GFX942, GFX1201, Arch
from flydsl.hsaco.operands import Modifiers
from flydsl.simulator.decoding.instruction_help import instruction_help
from flydsl.simulator.isa.meanings import meaning
from flydsl.simulator.isa.spellings import entries_on, name_on
from flydsl.simulator.isa.table import TABLE, Semantics, mnemonic_of
from flydsl.simulator.lockstep.values import NumpyValues

FORMULA = re.compile(r"D = ((?=[SD~(])(?:S\d|D|SCC|[-+*&|^~()]|<<| )+)(?=, (?:in|of|rounded) |; SCC|\.$)")
NUMBERS = {"S0": 5, "S1": 3, "S2": 2, "D": 7, "SCC": 1}


@pytest.mark.parametrize("arch", ARCHS, ids=lambda arch: arch.name)
def test_every_executed_instruction_has_a_meaning(arch: Arch) -> None:
    rows = (semantics.mnemonic for semantics in entries_on(arch.instruction_sets).values())
    names = {(name_on(row, arch.instruction_sets) or "").partition("/")[0] for row in rows}
    assert len(names) > 600
    assert sorted(name for name in names if not meaning(name)) == []


def test_meanings_are_whole_sentences() -> None:
    for entry in TABLE:
        sentence = meaning(mnemonic_of(entry)) or "absent on this spelling."
        assert sentence.endswith("."), entry
        assert not re.search(r"[{}]|  ", sentence), (entry, sentence)


def formulas() -> dict[str, tuple[Semantics, str]]:
    """The entries whose meaning is a formula of numbers alone, by name."""
    found = {}
    for entry, semantics in TABLE.items():
        match = None if "::" in entry else FORMULA.match(meaning(semantics.mnemonic))
        words = {word.rstrip("~") for word in (*semantics.results[:1], *semantics.sources)}
        if match and words <= {"i16", "i32", "i64", "f16", "f32", "f64", "dst", "scc", "modifiers"}:
            found[entry] = semantics, match[1]
    return found


def computed(semantics: Semantics) -> int:
    b, type_ = NumpyValues(), semantics.results[0].rstrip("~")
    explicit = iter(["S0", "S1", "S2"])
    values = {"scc": lambda: b.const("i1", 1), "dst": lambda: b.const(type_, 7), "modifiers": lambda: Modifiers()}
    operands = [
        values[word]() if word in values else b.const(word, NUMBERS[next(explicit)]) for word in semantics.sources
    ]
    result = semantics.evaluate(b, *operands)
    return int((result[0] if isinstance(result, tuple) else result).item())


def test_formulas_are_what_is_computed() -> None:
    found = formulas()
    assert len(found) > 100
    for entry, (semantics, formula) in found.items():
        bits = int(semantics.results[0].rstrip("~")[1:])
        expected = eval(formula, {}, NUMBERS)
        assert (computed(semantics) - expected) % (1 << bits) == 0, (entry, formula)


def test_help_has_what_the_tables_know() -> None:
    help_ = instruction_help("v_mfma_f32_16x16x16_f16 v[0:3], v[4:5], v[6:7], v[0:3]", GFX942)
    assert [role for role, _ in help_.operands] == ["D", "A", "B", "C"]
    assert (help_.unit, help_.cost) == ("matrix core", "16 cycles of the matrix core of its SIMD")
    assert help_.not_executed == ""
    help_ = instruction_help("s_and_saveexec_b64 s[0:1], vcc", GFX942)
    assert (help_.reads, help_.writes) == (("EXEC",), ("SCC", "EXEC"))


def test_help_says_what_is_not_executed() -> None:
    assert "does not know v_foo" in instruction_help("v_foo v1", GFX942).not_executed


def test_waves_of_64_may_take_twice_as_long_where_simds_have_32_lanes() -> None:
    for text, cost in (("v_add_nc_u32_e32 v0, v1, v2", "2 cycles"), ("v_add_f32_e32 v0, v1, v2", "1 cycle")):
        assert instruction_help(text, GFX1201, 32).cost == "1 cycle of its SIMD"
        assert instruction_help(text, GFX1201, 64).cost == f"{cost} of its SIMD"  # f32: both halves at once
