"""`%%flykernel --live` in a browser: every control does what its label says."""

from __future__ import annotations

import pytest

from tests.stages import STAGE_COUNT

IN_SIGHT = """(line) => {
  const list = line.closest('.fly-diff').getBoundingClientRect();
  const at = line.getBoundingClientRect();
  return at.height > 0 && at.top >= list.top && at.bottom <= list.bottom;
}"""

CELLS = [
    """\
%load_ext workbench
import torch
import flydsl.compiler as flyc
import flydsl.expr as fx

@flyc.kernel
def add(A: fx.Tensor, B: fx.Tensor, C: fx.Tensor):
    tile = fx.make_layout((4, 2), (2, 1))
    tA = fx.logical_divide(A, tile)
    i = fx.block_idx.x * 64 + fx.thread_idx.x
    C[i] = A[i] + B[i]

@flyc.jit
def launch(A: fx.Tensor, B: fx.Tensor, C: fx.Tensor, n: fx.Int32):
    add(A, B, C).launch(grid=n // 64, block=64)

A, B, C = torch.ones(128), torch.ones(128), torch.zeros(128)""",
    "%%flykernel --live --show layout,pipeline,isa,occupancy,run\nlaunch(A, B, C, 128)",
    "%%flykernel --live --step --name p\nlaunch(A, B, C, 128)",
    "import workbench\nworkbench.compare(launch.lower(A, B, C, 128).run(), p.run()).explore()",
    "launch.simulate(A[:64], B[:64], C[:64], 64).explore()",
]


@pytest.fixture(scope="module")
def notebook(lab, open_notebook):
    notebook = open_notebook(lab.write("compilation.ipynb", CELLS))
    notebook.run_all(3)
    return notebook


@pytest.fixture
def view(notebook):
    """A compilation that is finished."""
    return notebook.output(1)


@pytest.fixture
def what_if(view):
    """The occupancy tab, as it is after Reset."""
    tab = view.open_tab("Occupancy")
    tab.press("Reset")
    tab.shows("8 of 8 waves per SIMD")
    return tab


def test_the_stages_and_what_they_changed(notebook, view):
    tab = view.open_tab("Pipeline")
    tab.shows(f"{STAGE_COUNT} of {STAGE_COUNT} stages done", "1 fly-rewrite-func-signature (phase A)")
    tab.unfold("All stages as a table")
    tab.shows("fly-layout-lowering", "6 to 7")
    strip, keyboard = tab.area.get_by_role("listbox", name="Stages"), view.page.keyboard
    strip.get_by_role("option", name="3 fly-layout-lowering").click()
    tab.shows("3 fly-layout-lowering (phase A)", "change 1 of ")
    view.screenshot("pipeline")
    keyboard.press("ArrowRight")
    tab.shows("4 fly-int-swizzle-simplify (phase A)", "This stage changed nothing.")
    keyboard.press("ArrowLeft")
    tab.shows("3 fly-layout-lowering (phase A)")
    keyboard.press("n")
    tab.shows("change 2 of ")
    notebook.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    tab.press("Copy diff")
    tab.shows("Copied")
    copied = notebook.page.evaluate("navigator.clipboard.readText()").splitlines()
    assert [line[0] for line in copied].count("+") == 8
    assert [line[0] for line in copied].count("-") == 13
    diff = tab.area.get_by_role("region", name="What the stage changed")
    for way in ("unified", "side by side"):
        current = diff.locator(".current").first
        assert current.evaluate(IN_SIGHT), way
        tab.press("Side by side")
        keyboard.press("n")


def test_a_renumbered_value_is_no_change(view):
    """Beside each other both sides of an equal line read the same."""
    tab = view.open_tab("Pipeline")
    tab.area.get_by_role("option", name="3 fly-layout-lowering").click()
    tab.shows("3 fly-layout-lowering (phase A)")
    if tab.button("Side by side").get_attribute("aria-pressed") == "false":
        tab.press("Side by side")
    rows = tab.area.locator(".fly-diff .row:has(.equal)")
    assert rows.count() > 5
    for row in rows.all():
        left, right = row.locator(".text").all_inner_texts()
        assert left == right
    removed = tab.area.locator(".fly-diff .gone").all_inner_texts()
    assert any("_old = fly." in line for line in removed)  # what is gone does not take a name that is there


def test_the_whole_window_and_a_tab_of_its_own(notebook, view):
    from playwright.sync_api import expect

    view.open_tab("Lines").line("Source lines", "C[i] = ").wait_for()
    view.press("Full window")
    framed = view.area.locator(".fly-framed")
    size = notebook.page.viewport_size
    assert framed.bounding_box() == {"x": 0, "y": 0, "width": size["width"], "height": size["height"]}
    notebook.page.keyboard.press("Escape")
    expect(framed).not_to_have_class("fly-full")
    assert framed.bounding_box()["width"] < size["width"]
    with notebook.page.context.expect_page() as opened:
        view.press("Own tab")
    expect(opened.value.get_by_role("heading", name="launch for gfx942")).to_be_visible()
    expect(opened.value.get_by_role("listbox", name="Source lines").first).to_contain_text("C[i] = A[i] + B[i]")
    opened.value.close()


def test_a_line_lights_its_origin_at_every_level(view):
    tab = view.open_tab("Lines")
    tab.choose("Left level", "traced")
    tab.choose("Right level", "ISA")
    tab.line("Source lines", "C[i] = A[i] + B[i]").click()
    tab.shows("cell:11 at every level:", "global_store_dword")
    assert tab.lit_lines("Source lines") == ["    C[i] = A[i] + B[i]"]
    assert any("store" in line for line in tab.lit_lines("Left lines"))
    assert any("global_store_dword" in line for line in tab.lit_lines("Right lines"))
    tab.line("Source lines", "i = fx.block_idx.x").click()
    tab.shows("cell:10 at every level:")
    assert tab.lit_lines("Right lines")
    assert not any("global_store_dword" in line for line in tab.lit_lines("Right lines"))
    view.screenshot("lines")
    tab.area.get_by_role("button", name="5 canonicalize: ").click()
    tab.shows("arith.muli")


def test_where_an_operation_is(view):
    for name in ("Lines", "Compare"):
        tab = view.open_tab(name)
        tab.enter("Find operation", "fly.ptr.load")
        tab.shows("in 3 fly-layout-lowering: appears (2)", "in 8 convert-fly-to-rocdl: gone (there were 2)")
        tab.enter("Find operation", "<b>none</b>")
        tab.shows("No operation is called <b>none</b> at any level.")
        tab.enter("Find operation", "")
        tab.shows_no("No operation")


def test_an_operation_is_marked_and_scrolled_to(view):
    from playwright.sync_api import expect

    tab = view.open_tab("Compare")
    tab.choose("From", "traced")
    tab.choose("To", "ISA")
    tab.enter("Find operation", "s_endpgm")
    tab.shows("1 of 1 in the lines below")
    marked = tab.area.locator("mark.fly-current")
    expect(marked).to_have_text("s_endpgm")
    expect(marked).to_be_in_viewport()
    tab.enter("Find operation", "fly.ptr.load")
    tab.shows("not in the lines below")
    tab.enter("Find operation", "")
    expect(tab.area.locator("mark.fly-found")).to_have_count(0)


def test_any_two_levels(view):
    tab = view.open_tab("Compare")
    tab.choose("From", "traced")
    tab.choose("To", "8 convert-fly-to-rocdl")
    tab.shows("traced → 8 convert-fly-to-rocdl: +", "llvm.load")
    tab.choose("From", "8 convert-fly-to-rocdl")
    tab.shows("8 convert-fly-to-rocdl → 8 convert-fly-to-rocdl: no change")


def test_help_for_the_instruction_under_the_pointer_and_under_the_cursor(view):
    tab = view.open_tab("ISA")
    code = tab.area.get_by_role("listbox", name="Machine code of add_0")
    code.get_by_role("option").filter(has_text="global_store_dword").hover()
    tab.shows(
        "4 bytes of global memory at the lane's address = data.", "unit: vector memory", "executed by the simulator"
    )
    view.page.mouse.move(0, 0)
    tab.shows("Rest the pointer on an instruction")
    code.focus()
    view.page.keyboard.press("End")
    tab.shows("Ends the wave.")


def test_where_a_register_is_in_use(view):
    tab = view.open_tab("ISA")
    tab.shows("Bars: registers in use, VGPR of")
    code = tab.area.get_by_role("listbox", name="Machine code of add_0")
    code.locator(".type", has_text="v0").first.click()
    tab.shows("v0: in use at")
    lines = code.get_by_role("option").all_inner_texts()
    uses = [line for line in lines if line.split()[2:3] in (["r"], ["w"], ["rw"])]
    assert uses
    assert all("v0" in line or "v[0:" in line for line in uses)
    assert any(line.split()[2:3] == ["│"] for line in lines)
    tab.enter("Registers", "s[0:1]")
    tab.shows("s[0:1]: in use at")
    view.page.keyboard.press("Tab")
    code.focus()
    view.page.keyboard.press("Home")
    view.page.keyboard.press("ArrowDown")
    view.page.keyboard.press("ArrowRight")
    tab.shows_no("s[0:1]: in use at")
    view.screenshot("isa")


def test_bytes_of_instructions(view):
    tab = view.open_tab("ISA")
    code = tab.area.get_by_role("listbox", name="Machine code of add_0")
    tab.shows_no("bf810000")
    tab.check("Encoding")
    tab.shows("bf810000")
    tab.check("Encoding", on=False)
    tab.shows_no("bf810000")
    assert code.get_by_role("option").count()


def test_amounts_of_resources(what_if):
    what_if.slide("VGPRs", 100)
    what_if.shows("4 of 8 waves per SIMD, limited by VGPR")
    what_if.slide("Workgroup size", 256)
    what_if.slide("LDS bytes", 48 * 1024)
    what_if.shows("1 of 8 waves per SIMD, limited by LDS")
    what_if.choose("Architecture", "gfx950")
    what_if.shows("3 of 8 waves per SIMD, limited by LDS")
    what_if.slide("AGPRs", 100)
    what_if.shows("2 of 8 waves per SIMD, limited by VGPR")
    what_if.slide("SGPRs", 108)
    what_if.shows("SGPR\t108")
    what_if.screenshot("occupancy")


def test_more_than_there_is(what_if):
    what_if.slide("VGPRs", 1000)
    what_if.shows("on gfx942, got 1000")
    what_if.press("Reset")
    what_if.shows("8 of 8 waves per SIMD, the maximum")


def test_layouts(view):
    tab = view.open_tab("Layouts")
    tab.unfold("(4,2):(2,1) cell:9")
    assert tab.area.locator("table, img").count()


def test_the_run(view):
    view.open_tab("Run").shows("first elements now", "float32[128]", "2, 2, 2, 2, 2, 2, 2, 2, …")


def test_stepping_through(notebook):
    view = notebook.output(2)
    view.shows(f"0 of {STAGE_COUNT} stages done")
    view.press("Run next stage")
    view.shows(f"1 of {STAGE_COUNT} stages done")
    view.press("Run all stages")
    view.shows(f"{STAGE_COUNT} of {STAGE_COUNT} stages done")
    assert view.button("Run next stage").is_disabled()
    view.open_tab("ISA").shows("s_endpgm")


def test_a_stage_of_two_compilations(notebook):
    view = notebook.run(3)
    view.choose("Stage", "3 fly-layout-lowering")
    view.shows("no change")


def test_with_the_keyboard_alone(notebook, what_if):
    """From the tabs to a slider, and from the source to the machine code."""
    keyboard, view = notebook.page.keyboard, notebook.output(1)
    what_if.slider("VGPRs").focus()
    keyboard.press("End")
    what_if.shows("on gfx942, got 1024")
    keyboard.press("Home")
    what_if.shows("8 of 8 waves per SIMD, the maximum")

    view.area.get_by_role("tab", name="Occupancy").focus()
    for _ in range(3):
        keyboard.press("ArrowLeft")
    keyboard.press("Enter")
    tab = view.shown_tab()
    tab.line("Source lines", "C[i] = ").wait_for()
    tab.area.get_by_role("listbox", name="Source lines").focus()
    keyboard.press("End")
    for _ in range(5):
        keyboard.press("ArrowUp")
    keyboard.press("Enter")
    lit = tab.lit_lines("Source lines")
    assert len(lit) == 1
    tab.shows("at every level:" if lit[0].startswith("    ") else "That line has no line of the source.")


def test_the_stepper(notebook):
    view = notebook.run(4)
    view.shows("workgroup (0, 0, 0)")
    view.press("Step")
    view.shows("changed in wave 0")
    view.enter("Line", "11")
    view.press("Run to line")
    view.shows("at cell:11")
    (at,) = view.lit_lines("Source")
    assert at.split() == ["▶011", "C[i]", "=", "A[i]", "+", "B[i]"]
    view.choose("Wave", "0")
    view.press("Run to barrier")
    view.shows("everything has run")
    assert view.button("Continue").is_disabled()
    view.screenshot("stepper")


def test_breakpoints_and_back(notebook):
    from playwright.sync_api import expect

    view = notebook.output(4)
    view.press("Restart")
    view.line("Machine code", "global_store_dword").click()
    expect(view.line("Machine code", "global_store_dword")).to_contain_text("●")
    expect(view.line("Source", "C[i] = ")).to_contain_text("●")
    view.press("Continue")
    expect(view.line("Machine code", "global_store_dword")).to_contain_text("▶0")
    current = view.area.get_by_role("listbox", name="Machine code").locator(".lit")
    expect(current).to_contain_text("global_store_dword")
    view.press("Back")
    expect(current).not_to_contain_text("global_store_dword")
    view.slide("Position", 0)
    expect(view.line("Machine code", "s_load_dwordx2")).to_contain_text("▶0")
    code = view.area.get_by_role("listbox", name="Machine code")
    code.focus()
    notebook.page.keyboard.press("End")
    notebook.page.keyboard.press("Enter")
    expect(view.line("Machine code", "s_endpgm")).to_contain_text("●")
