"""One numbering for two texts, and their lines beside each other."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from workbench.stages.alignment import align, parse
from workbench.stages.diff import Diff
from workbench.stages.renaming import in_names_of
from workbench.stages.rows import rows

operands = st.integers(0, 7)
programs = st.lists(st.tuples(st.sampled_from(["add", "mul", "load"]), operands, operands), min_size=1, max_size=12)


def module(program: list[tuple[str, int, int]], first: int = 0) -> str:
    """Straight-line IR whose results are numbered from `first`: operations use earlier results."""
    body = [
        f"  %{i + first} = t.{op} " + (f"%{a % i + first}, %{b % i + first}" if i else "%arg0")
        for i, (op, a, b) in enumerate(program)
    ]
    return "\n".join(["func.func @f(%arg0: i32) {", *body, "}"])


def renamed(before: str, after: str) -> list[str]:
    old, new = parse(before), parse(after)
    return in_names_of(old, new, align(old, new))


@given(programs, st.integers(1, 100))
def test_a_text_that_is_only_numbered_anew_becomes_the_other(program, first):
    assert "\n".join(renamed(module(program), module(program, first))) == module(program, first)


@given(programs, programs)
def test_different_values_never_share_a_name(one, other):
    """Each definition of the first text has a name of its own, as it had before."""
    lines = renamed(module(one), module(other))
    defined = [match[1] for line in lines if (match := re.match(r"  (%\S+) = ", line))]
    assert len(set(defined)) == len(defined) == len(one)


@given(programs, programs)
def test_renaming_changes_names_alone(one, other):
    def shape(text: str) -> str:
        return re.sub(r"%[\w.]+", "%", text)

    assert [shape(line) for line in renamed(module(one), module(other))] == list(map(shape, module(one).splitlines()))


def test_what_is_gone_takes_no_name_that_is_there():
    before = "func.func @f(%arg0: i32) {\n  %0 = t.a %arg0\n  %1 = t.b %0\n  t.use %1, %0\n}"
    after = "func.func @f(%arg0: i32) {\n  %0 = t.b %arg0\n  t.use %0, %arg0\n}"
    assert renamed(before, after)[1] == "  %0_old = t.a %arg0"
    assert renamed(before, after)[2] == "  %0 = t.b %0_old"


def test_labels_of_llvm_keep_their_form():
    before = "define void @f() {\n  br label %3\n3:\n  ret void\n}"
    after = before.replace("3", "7")
    assert renamed(before, after) == after.splitlines()


@given(programs, programs)
def test_rows_are_both_texts_in_order(one, other):
    before, after = module(one), module(other)
    found = rows(Diff.between(before, after, "mlir"))
    if not found:
        assert before == after
        return
    assert [row.right.text for row in found if row.right is not None] == after.splitlines()
    assert [row.left_number for row in found if row.left_number] == list(range(1, len(before.splitlines()) + 1))
    assert [row.right_number for row in found if row.right_number] == list(range(1, len(after.splitlines()) + 1))


def test_lines_that_compute_the_same_value_are_beside_each_other():
    before = "func.func @f(%p: i32) {\n  %0 = t.tuple %p\n  %1 = t.slice %0\n  %2 = t.load %1\n  t.use %2\n}"
    after = "func.func @f(%p: i32) {\n  %0 = l.getelementptr %p\n  %1 = l.load %0\n  t.use %1\n}"
    found = rows(Diff.between(before, after, "mlir"))
    (pair,) = [row for row in found if row.left and row.right and "t.load" in row.left.text]
    assert pair.right.text == "  %1 = l.load %0"
    assert pair.left.text.startswith("  %1 = t.load")
