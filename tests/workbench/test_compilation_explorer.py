"""The live views: what each control does to what is shown."""

from __future__ import annotations

import re

import ipywidgets
import pytest

import workbench
from flydsl.arch import Usage, get_arch
from flydsl.errors import ArgumentError, CompileError
from tests.stages import STAGE_COUNT
from tests.workbench.widgets import control, text
from workbench.compilation_explorer import Explorer
from workbench.machine_code.isa_widget import IsaExplorer
from workbench.resources.what_if import WhatIf
from workbench.stages.comparers import LevelComparer, StageComparer
from workbench.stages.diff_widget import DiffWidget
from workbench.stages.linked_widget import LinkedCode


def tab(explorer: Explorer, title: str):
    """The content of a tab, opened."""
    (tabs,) = [child for child in explorer.children if isinstance(child, ipywidgets.Tab)]
    tabs.selected_index = tabs.titles.index(title)
    return tabs.children[tabs.selected_index].children[0]


@pytest.fixture
def explorer(launcher, tensors):
    return workbench.explore(launcher, *tensors, 128)


def test_a_launcher_is_compiled_and_explored(explorer, tensors):
    assert explorer.pipeline.finished
    assert not tensors[2].any()  # nothing was launched
    (tabs,) = explorer.children
    assert list(tabs.titles) == ["Pipeline", "Lines", "Compare", "ISA", "Occupancy", "Layouts"]


def test_an_argument_that_is_missing_is_the_users_line(launcher):
    with pytest.raises(ArgumentError, match="misses") as missing:
        workbench.explore(launcher)
    assert missing.value.at.file == __file__


def test_every_tab_opens(explorer, read):
    (tabs,) = explorer.children
    for title in tabs.titles:
        opened = tab(explorer, title)
        assert isinstance(opened, LinkedCode) or text(opened, read).strip()


def test_stepping_through(launcher, tensors, read):
    pipeline = launcher.lower(*tensors, 128)
    explorer = workbench.explore(pipeline)
    assert f"0 of {STAGE_COUNT} stages done" in text(tab(explorer, "Pipeline"), read)
    control(tab(explorer, "Pipeline"), "Run next stage").click()
    assert f"1 of {STAGE_COUNT} stages done" in text(tab(explorer, "Pipeline"), read)
    control(tab(explorer, "Pipeline"), "Run all stages").click()
    assert pipeline.finished
    assert text(tab(explorer, "ISA"), read)
    assert control(tab(explorer, "Pipeline"), "Run next stage").disabled


def test_a_stage_that_fails_is_shown(launcher, tensors, read, monkeypatch):
    from flydsl.passes import fly_layout_lowering

    def fail(module, arch):
        raise CompileError("this went wrong")

    monkeypatch.setattr(fly_layout_lowering, "apply", fail)
    explorer = workbench.explore(launcher, *tensors, 128)
    shown = text(tab(explorer, "Pipeline"), read)
    assert "this went wrong" in shown
    assert f"2 of {STAGE_COUNT} stages done" in shown


def test_the_diff_of_any_two_levels(explorer, read):
    compare = tab(explorer, "Compare")
    control(compare, "From").value = "traced"
    control(compare, "To").value = "8 convert-fly-to-rocdl"
    shown = text(compare, read)
    assert "traced → 8 convert-fly-to-rocdl" in shown
    (diff,) = [part for part in compare.children if isinstance(part, DiffWidget)]
    assert any(row[0] == "+" and "%" in row[4] for row in diff.rows)
    stores = [row[5] for row in diff.rows if "store" in (row[4] or row[3] or "")]
    assert {diff.origins[origin].rpartition(":")[2] for origin in stores} == {"8"}  # the line of the kernel that stores
    control(compare, "From").value = control(compare, "To").value = "ISA"
    assert "no change" in text(compare, read)


def test_searching_for_an_operation(explorer, read):
    compare = tab(explorer, "Compare")
    control(compare, "Find operation").value = "fly.ptr.load"
    assert "in 3 fly-layout-lowering: appears (2)in 8 convert-fly-to-rocdl: gone (there were 2)" in text(compare, read)
    control(compare, "Find operation").value = "<b>"
    assert "No operation is called <b>" in text(compare, read)
    control(compare, "Find operation").value = ""
    assert "No operation" not in text(compare, read)


def test_the_machine_code(explorer, read):
    isa = tab(explorer, "ISA")
    assert isinstance(isa, IsaExplorer)
    assert "vector registers are in use at once" in text(isa, read)
    code = isa.children[-1]
    assert any("s_endpgm" in line["html"] for line in code.content["lines"])
    assert "s_endpgm" in read(isa.static_html()).text


def test_lines_are_sent_when_asked_for(explorer, monkeypatch):
    lines = tab(explorer, "Lines")
    sent = []
    monkeypatch.setattr(lines, "send", sent.append)
    last = len(lines.meta["levels"]) - 1
    lines._handle_custom_msg({"level": last}, [])
    assert sent[0]["level"] == last
    assert len(sent[0]["lines"]) == lines.meta["levels"][last]["size"]
    for wrong in ({"level": last + 1}, {"level": -1}, {"level": "x"}, {}):
        lines._handle_custom_msg(wrong, [])
    assert len(sent) == 1


def test_what_if(read):
    what_if = WhatIf(Usage(get_arch("gfx942"), 64, 0, 50, 0, 256, 64))
    assert "8 of 8 waves per SIMD" in text(what_if, read)
    control(what_if, "VGPRs").value = 100
    assert "4 of 8 waves per SIMD, limited by VGPR" in text(what_if, read)
    control(what_if, "LDS bytes").value = 48 * 1024
    assert "1 of 8 waves per SIMD, limited by LDS" in text(what_if, read)
    control(what_if, "Architecture").value = "gfx950"
    assert "3 of 8 waves per SIMD, limited by LDS" in text(what_if, read)
    control(what_if, "VGPRs").value = 300
    assert "on gfx950, got 300" in text(what_if, read)
    control(what_if, "Reset").click()
    assert "8 of 8 waves per SIMD" in text(what_if, read)
    assert control(what_if, "Architecture").value == "gfx942"
    control(what_if, "Architecture").value = "gfx1250"
    assert "of 16 waves per SIMD" in text(what_if, read)


def test_objects_explore_themselves_once_the_extension_is_loaded(notebook):
    notebook.run("p = launch.lower(A, B, C, 128); k = p.artifact")
    kinds = {
        "p": Explorer,
        "k": Explorer,
        "p[3]": LevelComparer,
        "k.kernels[0]": WhatIf,
        "__import__('workbench').compare(p, p)": StageComparer,
    }
    for expression, kind in kinds.items():
        notebook.run(f"found = {expression}.explore()")
        assert type(notebook.shell.user_ns["found"]) is kind
    notebook.run("found = launch.explore(A, B, C, 128)")
    assert type(notebook.shell.user_ns["found"]) is Explorer


def test_comparing_a_stage_of_two_compilations(launcher, tensors, read):
    one, other = (launcher.lower(*tensors, 128, scale).run() for scale in (2, 3))
    compare = workbench.explore(workbench.compare(one, other))
    control(compare, "Stage").value = "3 fly-layout-lowering"
    (diff,) = [part for part in compare.children if isinstance(part, DiffWidget)]
    (scaled,) = [row for row in diff.rows if row[0] in "+*" and "3.000000e+00" in re.sub("<[^>]*>", "", row[4])]
    assert diff.origins[scaled[5]].rpartition(":")[2] == "8"


def test_what_has_no_live_view():
    with pytest.raises(ArgumentError, match="a int has no live view"):
        workbench.explore(3)


def test_without_widgets_the_static_form_is_there(explorer, read):
    bundle = explorer._repr_mimebundle_()
    assert f"{STAGE_COUNT} of {STAGE_COUNT} stages done" in read(bundle["text/html"]).text
    assert f"{STAGE_COUNT} of {STAGE_COUNT} stages done" in bundle["text/plain"]


def test_a_page_without_the_kernel_shows_what_each_live_view_showed(pipeline, launcher, tensors, read):
    other = launcher.lower(*tensors, 128, arch="gfx950").run()
    pipeline.run()
    kernel = pipeline.artifact.kernels[0]
    comparison = workbench.compare(pipeline, other)
    for value, expected in [
        (pipeline, f"{STAGE_COUNT} of {STAGE_COUNT} stages done"),
        (pipeline[3], "before → after: +"),
        (kernel, "waves per SIMD"),
        (comparison, "launch for gfx950"),
    ]:
        bundle = workbench.explore(value)._repr_mimebundle_()
        assert "application/vnd.jupyter.widget-view+json" in bundle
        assert expected in read(bundle["text/html"]).text
        assert "children=" not in bundle["text/plain"]
        assert len(bundle["text/plain"]) > len("WhatIf()")


def test_a_saved_what_if_says_what_was_asked(pipeline, read):
    what_if = workbench.explore(pipeline.artifact.kernels[0])
    control(what_if, "VGPRs").value = 200
    bundle = what_if._repr_mimebundle_()
    assert "VGPRs 200" in read(bundle["text/html"]).text
    assert bundle["text/plain"].startswith("2 of 8 waves per SIMD")
