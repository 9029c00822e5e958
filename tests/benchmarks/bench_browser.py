"""What a user waits for in JupyterLab: from a move of a slider to the picture that it changes, kernel and all."""

from __future__ import annotations

import statistics
import tempfile
from pathlib import Path
from typing import Any

from tests.browser.lab import Lab, find_chromium

TILE = "fx.make_layout((16, 64), (64, 1)).explore()"
_MOVES = (1, 2, 3, 2, 1, 0, 1, 2, 3, 2, 1, 0)

# Milliseconds from the event that the browser sends when a slider is moved, until plotly has drawn.
_MOVE = """([slider, plot, value]) => new Promise((resolve) => {
  let start = 0;
  plot.once('plotly_afterplot', () => resolve(performance.now() - start));
  start = performance.now();
  slider.value = value;
  slider.dispatchEvent(new Event('input', { bubbles: true }));
})"""


def run() -> list[dict[str, Any]]:
    """Each result: name, value, unit, target. Without a browser there is none."""
    if find_chromium() is None:
        print("no slider in the browser: no Chromium is installed; make browser installs Debian's")
        return []
    return [{"name": "slider, in the browser, tile of 16 x 64", "value": slider_ms(), "unit": "ms", "target": 100}]


def slider_ms() -> float:
    """The median time of a move of the swizzle slider."""
    from playwright.sync_api import sync_playwright

    from tests.browser.notebook_page import LabPage

    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=find_chromium(), chromium_sandbox=False)
        lab = Lab(Path(folder))
        try:
            notebook = LabPage(browser.new_page(), lab.url).open(
                lab.write("slider.ipynb", ["%load_ext workbench\nimport flydsl.expr as fx", TILE])
            )
            view = notebook.run_all(2)
            view.picture.wait_for()
            slider = view.slider("Swizzle bits").element_handle()
            plot = view.area.locator(".js-plotly-plot").element_handle()
            times = []
            for value in _MOVES:
                notebook.wait_until_idle()
                times.append(float(notebook.page.evaluate(_MOVE, [slider, plot, value])))
        finally:
            browser.close()
            lab.stop()
    return statistics.median(times[2:])  # the first moves compile scripts


if __name__ == "__main__":
    for row in run():
        print(row)
