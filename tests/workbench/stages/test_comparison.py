"""Two compilations, stages or texts compared."""

from __future__ import annotations

import pytest

import workbench
from flydsl.errors import ArgumentError
from tests.workbench.widgets import text


def test_two_targets(launcher, tensors, read):
    one, other = (launcher.lower(*tensors, 128, arch=arch).run() for arch in ("gfx942", "gfx90a"))
    found = workbench.compare(one, other)
    stages = dict(found.stages())
    assert next(iter(stages)) == "traced"
    assert list(stages)[-1] == "ISA"
    assert len(stages) == len(one) + 2
    # The target is in the module's attributes; the kernel itself is the same until there is machine code.
    assert stages["3 fly-layout-lowering"].summary == "+1 -1"
    assert stages["ISA"].counts["+"] > 1
    page = read(found._repr_html_()).text
    for shown in ("launch for gfx942", "launch for gfx90a", "fly-layout-lowering", "VGPR", "ISA"):
        assert shown in page
        assert shown in repr(found) or shown == "VGPR"


def test_two_compilations_are_told_apart(launcher, tensors, read):
    """By the values that are compiled in, defaults too; where those are the same, by the arguments that are not."""
    doubles = [tensor.double() for tensor in tensors]
    plain, other, double = (
        launcher.lower(*given, 128, *scale).run() for given, scale in ((tensors, ()), (tensors, (3,)), (doubles, ()))
    )
    found = workbench.compare(plain, other)
    shown = [read(found._repr_html_()).text, repr(found), text(workbench.explore(found), read)]
    assert all("launch(scale=1) for gfx942" in page and "launch(scale=3) for gfx942" in page for page in shown)
    names = workbench.compare(plain, double).names
    assert "A=a cpu tensor" in names[0]
    assert "f32" in names[0]
    assert "f64" in names[1]
    assert "n=" not in names[0]


def test_the_same_compilation_twice_is_no_change(launcher, tensors):
    one, other = (launcher.lower(*tensors, 128).run() for _ in range(2))
    assert all(diff.is_empty for _, diff in workbench.compare(one, other).stages())
    assert "no change" in repr(workbench.compare(one.artifact, other.artifact))


def test_they_are_compared_as_far_as_both_have_run(launcher, tensors):
    one, other = (launcher.lower(*tensors, 128, scale) for scale in (2, 3))
    one.run(until=3)
    other.run(until=2)
    stages = dict(workbench.compare(one, other).stages())
    assert list(stages) == ["traced", "1 fly-rewrite-func-signature", "2 fly-canonicalize"]
    # A constant is its value: the lines that it stands in change, and the one that uses it.
    assert stages["traced"].counts["+"] == stages["traced"].counts["-"] > 0


def test_a_stage_of_two_pipelines(launcher, tensors, read):
    one, other = (launcher.lower(*tensors, 128, scale).run(until=3) for scale in (2, 3))
    found = workbench.compare(one, other, "fly-layout-lowering")
    assert repr(found) == repr(workbench.compare(one[3], other[3]))
    page = read(found._repr_html_()).text
    assert "2.000000e+00 : f32" in page
    assert "3.000000e+00 : f32" in page


def test_two_stages_of_one_pipeline(launcher, tensors):
    pipeline = launcher.lower(*tensors, 128).run(until=3)
    found = workbench.compare(pipeline[1], pipeline[3])
    assert (found.before, found.after) == ("after 1 fly-rewrite-func-signature", "after 3 fly-layout-lowering")
    assert not found.diff.is_empty
    assert workbench.compare(pipeline[3], pipeline[3]).diff.is_empty


def test_two_texts(read):
    assert workbench.compare("%0 = a.b", "%1 = a.b").diff.is_empty
    assert "<b>" in read(workbench.compare("<b>", "c")._repr_html_()).text


@pytest.mark.parametrize("pair", [(1, 2), ("a", None)])
def test_what_cannot_be_compared(pair):
    with pytest.raises(ArgumentError, match="cannot be compared"):
        workbench.compare(*pair)


def test_a_stage_of_texts():
    with pytest.raises(ArgumentError, match="a stage of a str"):
        workbench.compare("a", "b", "canonicalize")


def test_a_stage_that_has_not_run(launcher, tensors):
    one, other = (launcher.lower(*tensors, 128) for _ in range(2))
    with pytest.raises(Exception, match="has not run yet"):
        workbench.compare(one, other, 1)
