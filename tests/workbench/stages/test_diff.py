"""The diff: what counts as a change, and how it is shown."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.stages.diff import Diff

NAMES = ("%0", "%1", "%x", "%c1_i32")
operands = st.integers(0, 7)
programs = st.lists(st.tuples(st.sampled_from(["add", "mul", "load"]), operands, operands), min_size=1, max_size=12)


def module(program: list[tuple[str, int, int]], name=lambda i: f"%{i}") -> str:
    """Straight-line IR: each operation uses earlier results, or arguments where there are none."""

    def operand(i: int, given: int) -> str:
        return name(given % i) if i else "%arg0"

    body = [f"    {name(i)} = t.{op} {operand(i, a)}, {operand(i, b)} : i32" for i, (op, a, b) in enumerate(program)]
    return "\n".join(["  func.func @f(%arg0: i32) {", *body, "    return", "  }"])


def signs(before: str, after: str) -> list[str]:
    return [change.sign + change.text.strip() for change in Diff.between(before, after, "mlir").changes]


@given(programs, st.integers(1, 1000))
def test_renamed_values_are_no_change(program, offset):
    renamed = module(program, lambda i: f"%v{i * 7 + offset}")
    assert Diff.between(module(program), renamed, "mlir").is_empty


@given(programs, programs)
def test_a_diff_hides_no_change(one, other):
    """Where there is no change, renaming values in the order of their definition makes the texts equal."""
    diff = Diff.between(module(one), module(other), "mlir")
    assert diff.is_empty == (canonical(one) == canonical(other))


def canonical(program: list[tuple[str, int, int]]) -> list[tuple[str, int, int]]:
    """A program with each operand as the number of its definition."""
    return [(op, a % i if i else -1, b % i if i else -1) for i, (op, a, b) in enumerate(program)]


@given(st.lists(st.sampled_from("abcd ")), st.lists(st.sampled_from("abcd ")))
def test_before_and_after_can_be_read_back(before, after):
    diff = Diff.between("\n".join(before), "\n".join(after))
    if not diff.is_empty:
        assert [c.text for c in diff.changes if c.sign in " +~"] == after
        assert [c.text.strip() for c in diff.changes if c.sign in " -~"] == [line.strip() for line in before]


def test_one_changed_operation_does_not_change_what_uses_it():
    before = module([("add", 0, 0), ("mul", 0, 0), ("load", 1, 1)])
    after = before.replace("t.add", "t.sub")
    assert [sign for sign in signs(before, after) if sign[0] != " "] == [
        "-%0 = t.add %arg0, %arg0 : i32",
        "+%0 = t.sub %arg0, %arg0 : i32",
    ]


def test_swapped_operands_are_a_change():
    program = [("add", 0, 0), ("add", 0, 0), ("mul", 0, 1)]
    before = module(program)
    after = before.replace("t.mul %0, %1", "t.mul %1, %0")
    assert Diff.between(before, after, "mlir").summary == "+1 -1"


def test_two_loads_of_one_address_are_two_values():
    """They read the same; only their place tells them apart."""
    lines = "%0 = t.load %arg0\n{store}%1 = t.load %arg0\nt.use {used}"
    before = lines.format(store="t.store %arg0\n", used="%0")
    after = lines.format(store="t.store %arg0\n", used="%1")
    assert Diff.between(before, after, "mlir").summary == "+1 -1"


def test_a_constant_is_its_value_whatever_its_name():
    before = "%c1 = arith.constant 1 : i32\n%c1_0 = arith.constant 1 : i32\nt.use %c1\nt.use %c1_0"
    after = "%k = arith.constant 1 : i32\nt.use %k\nt.use %k"
    assert Diff.between(before, after, "mlir").summary == "+0 -1"
    other = after.replace("constant 1", "constant 2")
    assert Diff.between(after, other, "mlir").summary == "+3 -3"


def test_names_are_of_their_function():
    before = "func.func @f {\n%0 = t.a\n}\nfunc.func @g {\n%0 = t.b\nt.use %0\n}"
    after = before.replace("%0 = t.a", "%5 = t.a")
    assert Diff.between(before, after, "mlir").is_empty


def test_in_an_unrolled_kernel_each_copy_meets_itself():
    copies = [line for i in range(50) for line in (f"%a{i} = t.load %arg0[{i}]", f"%b{i} = t.mul %a{i}, %a{i}")]
    before, after = "\n".join(copies), "\n".join(copies[:10] + copies[12:])
    assert Diff.between(before, after, "mlir").summary == "+0 -2"


@pytest.mark.parametrize(
    ("after", "summary"),
    [("  a\n  b", "+0 -0, ~1 in white space"), ("  a\nc", "+1 -1"), ("a\nc", "+1 -1, ~1 in white space")],
)
def test_white_space_is_counted_apart(after, summary):
    assert Diff.between("  a\nb", after).summary == summary


def test_three_lines_of_context(read):
    before = "\n".join(f"line {i}" for i in range(30))
    diff = Diff.between(before, before.replace("line 10\n", "").replace("line 20\n", "new\n"))
    lines = [line for line in read(diff.html()).text.splitlines() if line]
    assert "line 6" not in "\n".join(lines)
    assert lines[0].endswith("line 7")
    assert diff.text().splitlines()[:4] == [" line 7", " line 8", " line 9", "-line 10"]
    assert diff.text().splitlines()[4:8] == [" line 11", " line 12", " line 13", "..."]


def test_lines_are_lines_without_styles(read):
    """Some pages that show notebooks remove styles."""
    diff = Diff.between("a\nb\n c\nd", "a\nx\ny\nc\nd")
    assert read(diff.html()).text.splitlines() == [" a", "-b", "+x", "+y", "~c", " d"]


def test_changes_within_a_line_are_marked():
    html = Diff.between("%0 = t.a %arg0 : i32", "%0 = t.a %arg0 : i64", "mlir").html()
    assert re.findall("<u>(.*?)</u>", html) == ["i32", "i64"]


def test_a_long_diff_is_cut_off_and_says_so(read):
    diff = Diff.between("", "\n".join(map(str, range(100))))
    assert "90 more lines" in read(diff.html(max_lines=10)).text
    assert "more lines" not in diff.html()


def test_llvm_labels_are_names():
    before = "define void @f() {\n  br label %1\n\n1:\n  ret void\n}"
    assert Diff.between(before, before.replace("1", "7"), "llvm").is_empty
    assert not Diff.between(before, before.replace("1:", "7:"), "llvm").is_empty
