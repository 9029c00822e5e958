"""Every view is for everyone: it is used with the keyboard alone, and read in JupyterLab's light and dark theme.

Every control is reached with Tab, in the order in which it stands, seen to have the focus, and works. All text has the
contrast of WCAG 2, level AA.
"""

from __future__ import annotations

import pytest

CELLS = [
    """\
%load_ext workbench
import torch
import workbench
import flydsl.compiler as flyc
import flydsl.expr as fx

@flyc.kernel
def add(A: fx.Tensor, B: fx.Tensor):
    i = fx.block_idx.x * 64 + fx.thread_idx.x  # a comment
    B[i] = A[i] + 1.0

@flyc.jit
def launch(A: fx.Tensor, B: fx.Tensor, n: fx.Int32):
    add(A, B).launch(grid=n // 64, block=64)

A, B = torch.ones(128), torch.zeros(128)
p, q = (launch.lower(A, B, 128, arch=arch).run() for arch in ("gfx942", "gfx950"))
tile, layout_tv = fx.make_layout_tv(fx.make_layout((4, 1), (1, 1)), fx.make_layout((1, 8), (1, 1)))
copy = fx.make_tiled_copy(fx.make_copy_atom(fx.UniversalCopy128b(), fx.Float32), layout_tv, tile)""",
    "%%flykernel --show layout,pipeline,isa,occupancy,run\nlaunch(A, B, 128)",
    "%%flykernel --live --show layout,pipeline,isa,occupancy,run\nlaunch(A, B, 128)",
    "%flydiff p q",
    "p[3]",
    'workbench.find(p, "fly.ptr.load")',
    "launch.lower(A, B, 128)",
    "fx.make_layout((4, 8), (8, 1))",
    "fx.make_layout((16, 64), (64, 1)).explore()",
    "copy.explore()",
    "launch.simulate(A[:64], B[:64], 64).explore()",
    "workbench.occupancy_figure(p.artifact.kernels[0])",
]
ROOM, DOWNLOADS = ["Full window", "Own tab"], ["Download SVG", "Download PNG"]
LIVE, VISUALIZER, THREADS, STEPPER = 2, 8, 9, 10
_REACHABLE = "a[href], button, input, select, textarea, summary, [tabindex]"
# The control with the focus: its name as a screen reader has it, and whether the focus can be seen. Plotly's
# tool bar and what can only be scrolled are passed by.
_FOCUSED = """([root, reachable]) => {
  const control = document.activeElement;
  if (!root.contains(control)) return null;
  const name = control.ariaLabel || control.labels?.[0]?.innerText || control.innerText;
  const look = () => {
    const { outline, boxShadow, border, backgroundColor } = getComputedStyle(control);
    return JSON.stringify([outline, boxShadow, border, backgroundColor]);
  };
  const focused = look();
  control.blur();
  const seen = look() !== focused;
  control.focus();
  const isOther = Boolean(control.closest('.modebar')) || !control.matches(reachable);
  return { name: name.trim(), seen, isOther };
}"""


@pytest.fixture(scope="module")
def opened(lab, open_notebook):
    notebook = open_notebook(lab.write("readable.ipynb", CELLS))
    notebook.run_all(len(CELLS))
    return notebook


@pytest.fixture(scope="module", params=["JupyterLab Light", "JupyterLab Dark"])
def themed(request, opened):
    opened.set_theme(request.param)
    yield opened
    opened.set_theme("JupyterLab Light")


def walk(view) -> list[dict]:
    """The elements that Tab reaches in a view, from its first control on."""
    first = view.area.locator(_REACHABLE).locator("visible=true").and_(view.area.locator(":not([tabindex='-1'])")).first
    first.focus()
    found = []
    root = view.area.element_handle()
    while (at := view.page.evaluate(_FOCUSED, [root, _REACHABLE])) is not None:
        found.append(at)
        view.page.keyboard.press("Tab")
    return [at for at in found if not at["isOther"]]


def check(view, names: list[str]) -> None:
    found = walk(view)
    assert [at["name"] for at in found] == names
    assert [at["name"] for at in found if not at["seen"]] == []


def with_numbers(*sliders: str) -> list[str]:
    return [name for slider in sliders for name in (slider, f"{slider}, as a number")]


def test_the_layout_visualizer(opened):
    view = opened.output(VISUALIZER)
    view.picture.wait_for()
    names = [*ROOM, "Shape", "Stride", "Operation", "Operand"]
    names += with_numbers("Swizzle bits", "Swizzle base", "Swizzle shift", "Padding (elements)")
    names += ["Colour by", "Banks of", "Element bits", "LDS access", "Lanes go", "Light the slowest phase"]
    names += ["Numbers on all cells", *DOWNLOADS]
    check(view, names)
    view.slider("Swizzle bits").focus()
    for _ in range(3):
        view.page.keyboard.press("ArrowRight")
    view.shows_picture_titled("S<3,3,3>")
    view.page.keyboard.press("Home")
    view.shows_picture_titled("(16,64):(64,1)")
    view.area.get_by_label("Light the slowest phase").focus()
    with view.redraws():
        view.page.keyboard.press("Space")


def test_the_thread_explorer(opened):
    view = opened.output(THREADS)
    view.picture.wait_for()
    check(view, [*ROOM, "Light one thread", *with_numbers("Thread"), "Colour by", "Banks of", *DOWNLOADS])
    view.slider("Thread").focus()
    view.page.keyboard.press("End")
    view.shows("T3\tcoordinate\toffset")


def test_the_stepper(opened):
    view = opened.output(STEPPER)
    view.button("Step").focus()
    view.page.keyboard.press("Space")
    view.shows("changed in wave 0")
    going = ["Restart", "Back", "Step", "Run to line", "Run to barrier", "Continue", "Line", *with_numbers("Position")]
    looking = ["Wave", "Registers", "Lanes", "Values as", "LDS as", "LDS layout", "LDS from byte"]
    check(view, [*ROOM, *going, "Source", "Machine code", *looking])


def test_tabs_and_lines(opened):
    view, keyboard = opened.output(LIVE), opened.page.keyboard
    view.area.get_by_role("tab", name="Pipeline").focus()
    keyboard.press("ArrowRight")
    keyboard.press("Enter")
    tab = view.shown_tab()
    tab.line("Source lines", "B[i] = ").wait_for()
    panes = ["Source", "Left", "Right"]
    lists = [part for name in panes for part in (f"Width of {name}", f"{name} level", f"{name} lines")]
    check(tab, ["Find operation", *panes, "Colours", "Wrap", "Fold types", *lists[1:]])
    tab.area.get_by_role("listbox", name="Source lines").focus()
    keyboard.press("Home")
    for _ in range(3):
        keyboard.press("ArrowDown")
    keyboard.press("Enter")
    tab.shows("B[i] = A[i] + 1.0", "at every level:")
    (lit,) = tab.area.get_by_role("listbox", name="Source lines").get_by_role("option", selected=True).all()
    pointed_at = tab.area.get_by_role("listbox", name="Source lines").get_attribute("aria-activedescendant")
    assert lit.get_attribute("id") == pointed_at
    buttons = tab.area.locator(".status button")
    buttons.first.focus()
    keyboard.press("Enter")
    assert (
        buttons.first.inner_text().split(":")[0]
        in tab.area.get_by_label("Right level").locator("option:checked").inner_text()
    )


def test_what_is_folded(opened):
    view, keyboard = opened.output(LIVE), opened.page.keyboard
    tab = view.open_tab("Pipeline")
    tab.area.locator("summary", has_text="All stages as a table").focus()
    keyboard.press("Enter")
    tab.shows("fly-layout-lowering")


def test_everything_shown_at_once(themed):
    for index in range(1, len(CELLS)):
        for summary in themed.output(index).area.locator("details:not([open]) > summary").all():
            if summary.is_visible():
                summary.click()
        assert themed.output(index).hard_to_read() == [], CELLS[index]


def test_every_tab(themed):
    view = themed.output(LIVE)
    for title in ("Layouts", "Pipeline", "Lines", "Compare", "ISA", "Occupancy", "Run"):
        tab = view.open_tab(title)
        if title == "Lines":
            tab.line("Source lines", "B[i] = A[i]").click()
            tab.shows("at every level:")
        if title == "ISA":
            tab.enter("Registers", "v0 s0")
        assert tab.hard_to_read() == [], title
        view.screenshot(f"{title}-{themed.theme}".lower())


def test_messages(themed):
    visualizer = themed.output(VISUALIZER)
    visualizer.enter("Shape", "(16,")
    visualizer.shows("The picture is that of the last layout that could be drawn.")
    assert visualizer.hard_to_read() == []
    visualizer.enter("Shape", "(16,64)")
    visualizer.choose("Operation", "coalesce")
    visualizer.shows("result")
    assert visualizer.hard_to_read() == []
    visualizer.choose("Operation", "none")
