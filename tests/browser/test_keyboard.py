"""Every control can be reached with Tab, in the order in which it stands, seen to have the focus, and used."""

from __future__ import annotations

import pytest

from tests.browser.test_readable import CELLS as READABLE

CELLS = [
    READABLE[0],
    "fx.make_layout((16, 64), (64, 1)).explore()",
    "copy.explore()",
    "p.explore()",
    "launch.simulate(A[:64], B[:64], 64).explore()",
]
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
def notebook(lab, open_notebook):
    notebook = open_notebook(lab.write("keyboard.ipynb", CELLS))
    notebook.run_all(len(CELLS))
    return notebook


def walk(view) -> list[dict]:
    """What Tab goes to in a view, from its first control on."""
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


def test_the_layout_visualizer(notebook):
    view = notebook.output(1)
    view.picture.wait_for()
    names = ["Shape", "Stride", "Operation", "Operand"]
    names += with_numbers("Swizzle bits", "Swizzle base", "Swizzle shift", "Padding (elements)")
    names += ["Colour by", "Banks of", "Element bits", "LDS access", "Lanes go", "Light the slowest phase"]
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


def test_the_thread_explorer(notebook):
    view = notebook.output(2)
    view.picture.wait_for()
    check(view, ["Light one thread", *with_numbers("Thread"), "Colour by", "Banks of"])
    view.slider("Thread").focus()
    view.page.keyboard.press("End")
    view.shows("T3\tcoordinate\toffset")


def test_the_stepper(notebook):
    view = notebook.output(4)
    check(view, ["Step", "Run to line", "Run to barrier", "Run to the end", "Line", "Wave"])
    view.button("Step").focus()
    view.page.keyboard.press("Space")
    view.shows("changed in wave 0")


def test_tabs_and_lines(notebook):
    view, keyboard = notebook.output(3), notebook.page.keyboard
    view.area.get_by_role("tab", name="Pipeline").focus()
    keyboard.press("ArrowRight")
    keyboard.press("Enter")
    tab = view.shown_tab()
    tab.line("Source lines", "B[i] = ").wait_for()
    lists = [f"{name} {part}" for name in ("Source", "Left", "Right") for part in ("level", "lines")]
    check(tab, ["Find operation", *lists])
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


def test_what_is_folded(notebook):
    view, keyboard = notebook.output(3), notebook.page.keyboard
    tab = view.open_tab("Pipeline")
    tab.area.locator("summary", has_text="What changed").focus()
    keyboard.press("Enter")
    tab.shows("fly-layout-lowering +")
