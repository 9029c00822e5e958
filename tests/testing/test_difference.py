"""What a failure says of a kernel that has become worse."""

from __future__ import annotations

from flydsl.testing.baseline import compare
from flydsl.testing.code import Code, Passage
from flydsl.testing.difference import Difference, changed_lines, changed_times
from flydsl.testing.tolerances import DEFAULT, listed

BEFORE = (
    Passage("a.py:3", "v = x[i]", ("v_mov_b32 v0, v1", "global_load_dword v2, v[0:1], off"), 900),
    Passage("a.py:4", "y[i] = v * 2", ("v_mul_f32 v2, 2.0, v2", "s_endpgm"), 8),
)
AFTER = (
    Passage("a.py:5", "v = x[i]", ("v_mov_b32 v7, v1", "global_load_dword v2, v[0:1], off"), 900),
    Passage("a.py:6", "y[i] = v * 2", ("v_mul_f32 v3, 2.0, v2", "v_nop", "v_nop", "s_endpgm"), 40),
)


def difference(before: Code | None, after: Code) -> Difference:
    old = {"vgprs": 24.0, "time_us": 2.0, "waves_per_simd": 8.0, "VALU_instructions": 2.0}
    new = {"vgprs": 44.0, "time_us": 2.05, "waves_per_simd": 5.0, "VALU_instructions": 4.0}
    return Difference("k_0", "gfx942", "test_a.figures.txt", compare(old, new), before, after)


def test_the_first_three_lines_say_what_is_wrong() -> None:
    lines = str(difference(BEFORE, AFTER)).splitlines()
    assert lines[:3] == [
        "k_0 on gfx942 is worse than in test_a.figures.txt: vgprs 24 -> 44 (+20)",
        "  also worse: waves_per_simd 8 -> 5 (-3), VALU_instructions 2 -> 4 (+2)",
        "  first difference: a.py:6  y[i] = v * 2: v_nop instead of s_endpgm",
    ]
    assert "  a.py:6  y[i] = v * 2: 2 -> 4 instructions, +2 v_nop" in lines
    assert "  a.py:6  y[i] = v * 2: 8 -> 40 (+32)" in lines


def test_moved_lines_and_other_registers_are_no_difference() -> None:
    assert [passage.place for passage, *_ in changed_lines(BEFORE, AFTER)] == ["a.py:6"]
    assert [(was, now) for _, was, now in changed_times(BEFORE, AFTER)] == [(8, 40)]
    assert difference(BEFORE, BEFORE).first_difference() == "none, the instructions are the same"


def test_without_code_of_before() -> None:
    text = str(difference(None, AFTER))
    assert "first difference: unknown, as no machine code is kept" in text
    assert "vgprs" in text


def test_tolerances() -> None:
    def worse(**tolerances: str) -> list[str]:
        lines = [f"{name}={amount}" for name, amount in tolerances.items()]
        old, new = {"vgprs": 20.0, "time_us": 2.0}, {"vgprs": 21.0, "time_us": 2.07}
        return [change.name for change in compare(old, new, DEFAULT | listed(lines)) if change.is_worse]

    assert worse() == ["vgprs", "time_us"]
    assert worse(time_us="4%") == ["vgprs"]
    assert worse(time_us="4%", vgprs="1") == []
    assert worse(time_us="0.05") == ["vgprs", "time_us"]
