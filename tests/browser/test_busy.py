"""A busy machine: scripts of views load late, and cells take long."""

from __future__ import annotations

import json

import pytest

from tests.browser.test_compilation_views import CELLS

# anywidget gives up on a script that has not loaded after two seconds: here, after a thousandth of one.
_LATE = (
    "const timeout = AbortSignal.timeout; AbortSignal.timeout = (ms) => timeout.call(AbortSignal, ms === 2000 ? 1 : ms)"
)
_LONG = """\
import time
from flydsl.progress import Task
print("before")
with Task("sum on the simulator", 8, "workgroups", done=lambda: 3):
    while not Path("go").exists():
        time.sleep(0.1)
print("after")"""


@pytest.fixture
def notebook(lab, browser):
    from tests.browser.conftest import TIMEOUT_MS
    from tests.browser.notebook_page import LabPage

    context = browser.new_context(viewport={"width": 1500, "height": 1000})
    context.set_default_timeout(TIMEOUT_MS)
    context.add_init_script(_LATE)
    # A workspace of its own: what is open, and how wide, is kept for the other tests' page.
    page = LabPage(context.new_page(), lab.url.replace("/lab?", "/lab/workspaces/busy?"))
    yield page.open(lab.write("busy.ipynb", [f"{CELLS[0]}\nfrom pathlib import Path", CELLS[1], _LONG]))
    page.close_all()
    context.close()


def test_views_hear_the_kernel_and_progress_leaves_nothing(lab, notebook) -> None:
    from playwright.sync_api import expect

    tab = notebook.run_all(2).open_tab("Pipeline")
    tab.area.get_by_role("option", name="3 fly-layout-lowering").click()
    tab.shows("3 fly-layout-lowering (phase A)", "change 1 of ")
    editor = notebook.cell(2).locator(".cm-content")
    editor.click()
    editor.press("Shift+Enter")
    line = notebook.page.get_by_text("sum on the simulator: 3 of 8 workgroups done")
    expect(line).to_be_visible()
    (lab.notebooks / "go").touch()
    expect(line).to_have_count(0)
    notebook.output(2).shows("before\nafter")
    notebook.save()
    cells = json.loads((lab.notebooks / "busy.ipynb").read_text())["cells"]
    assert [output["output_type"] for output in cells[2]["outputs"]] == ["stream"]
