"""A notebook in JupyterLab, as a user has it before them: cells to run, controls by their labels, what is shown."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Locator, Page, expect

SCREENSHOTS = Path(__file__).parents[2] / "build" / "screenshots"
_CELL_TIMEOUT_MS = 180_000

_CONTRAST = (Path(__file__).parent / "contrast.js").read_text()
_LEAST_CONTRAST = 4.5  # level AA

_CELL_AT = """(plot, [row, column]) => {
  const { left, top } = plot.getBoundingClientRect();
  const { xaxis, yaxis } = plot._fullLayout;
  return [left + xaxis._offset + xaxis.d2p(column), top + yaxis._offset + yaxis.d2p(row)];
}"""

_OPEN = """async (path) => {
  const panel = await window.jupyterapp.commands.execute('docmanager:open', { path });
  await panel.context.ready;
  return panel.id;
}"""
_CLOSE = """async (id) => {
  const panel = [...window.jupyterapp.shell.widgets('main')].find((widget) => widget.id === id);
  await panel.sessionContext.shutdown();
  panel.dispose();  // closing it would ask whether to save
}"""


class LabPage:
    """JupyterLab, open in a page of the browser. url: where it is."""

    def __init__(self, page: Page, url: str) -> None:
        self.page = page
        page.goto(url)
        page.wait_for_function("window.jupyterapp !== undefined")
        page.evaluate("window.jupyterapp.restored")
        self._open: list[NotebookPage] = []

    def open(self, path: str) -> NotebookPage:
        """Open a notebook of the server, in front of others."""
        notebook = NotebookPage(self.page, self.page.evaluate(_OPEN, path))
        notebook.cell(0).wait_for()
        self._open.append(notebook)
        return notebook

    def close_all(self) -> None:
        """Close every notebook and end its kernel."""
        for notebook in self._open:
            notebook.close()
        self._open.clear()


class NotebookPage:
    """A notebook that is open. panel_id: of the element that it is in."""

    def __init__(self, page: Page, panel_id: str) -> None:
        self.page = page
        self.panel = page.locator(f'[id="{panel_id}"]')
        self._panel_id = panel_id
        self._is_open = True
        self.theme = "Light"

    def close(self) -> None:
        """Close it without saving, and end its kernel."""
        if self._is_open:
            self.page.evaluate(_CLOSE, self._panel_id)
            self._is_open = False

    def cell(self, index: int) -> Locator:
        """A cell, counted from 0, Markdown included."""
        return self.panel.locator(".jp-Notebook .jp-Cell").nth(index)

    def output(self, index: int) -> Output:
        """The output of a cell."""
        return Output(self.cell(index).locator(".jp-Cell-outputArea"))

    def run(self, index: int) -> Output:
        """Run a cell with Shift+Enter once the kernel is ready, and wait until it has ended."""
        self.wait_until_idle()
        prompt = self.cell(index).locator(".jp-InputPrompt")
        before = prompt.inner_text()
        editor = self.cell(index).locator(".cm-content")
        editor.click()
        editor.press("Shift+Enter")
        expect(prompt).not_to_have_text(before)
        expect(prompt).to_have_text(re.compile(r"\[\d+\]:"), timeout=_CELL_TIMEOUT_MS)
        return self.output(index)

    def wait_until_idle(self) -> None:
        """Wait until the kernel has nothing to do."""
        expect(self.page.get_by_text("Python 3 (ipykernel) | Idle")).to_be_visible()

    def run_all(self, count: int) -> Output:
        """Run the first `count` cells; what the last of them shows."""
        for index in range(count - 1):
            self.run(index)
        return self.run(count - 1)

    def save(self) -> None:
        """Save with the menu's command, and wait until it is on disk."""
        self.page.evaluate("window.jupyterapp.commands.execute('docmanager:save')")
        expect(self.page.locator(".jp-mod-dirty")).to_have_count(0)

    def set_theme(self, name: str) -> None:
        """ "JupyterLab Light" or "JupyterLab Dark"."""
        self.page.evaluate("name => window.jupyterapp.commands.execute('apputils:change-theme', {theme: name})", name)
        self.theme = name.split()[-1]
        expect(self.page.locator(f"body[data-jp-theme-name='{name}']")).to_have_count(1)


class Output:
    """A part of the page with what a cell shows: text, and controls by the labels that a user reads."""

    def __init__(self, area: Locator) -> None:
        self.area = area

    @property
    def page(self) -> Page:
        """The page that it is on."""
        return self.area.page

    def shows(self, *texts: str) -> None:
        """Wait until all of the texts can be seen somewhere in it."""
        for text in texts:
            expect(self.area).to_contain_text(text, use_inner_text=True)

    def shows_no(self, *texts: str) -> None:
        """Wait until none of the texts can be seen in it."""
        for text in texts:
            expect(self.area).not_to_contain_text(text, use_inner_text=True)

    def open_tab(self, title: str) -> Output:
        """Choose a tab; its panel."""
        self.area.get_by_role("tab", name=title, exact=True).click()
        return self.shown_tab()

    def shown_tab(self) -> Output:
        """The panel of the tab that is open."""
        return Output(self.area.locator(".widget-tab-contents > :not(.lm-mod-hidden)"))

    def press(self, label: str) -> None:
        """Press a button."""
        self.button(label).click()

    def button(self, label: str) -> Locator:
        """A button."""
        return self.area.get_by_role("button", name=label, exact=True)

    def unfold(self, summary: str) -> None:
        """Open a part that is folded."""
        self.area.locator("summary", has_text=summary).click()

    def line(self, listing: str, text: str) -> Locator:
        """The first line of a listing that has a text in it."""
        return self.area.get_by_role("listbox", name=listing).get_by_role("option").filter(has_text=text).first

    def lit_lines(self, listing: str) -> list[str]:
        """The lines of a listing that are lit."""
        return self.area.get_by_role("listbox", name=listing).get_by_role("option", selected=True).all_inner_texts()

    def choose(self, label: str, option: str) -> None:
        """Choose from a list."""
        self.area.get_by_label(label, exact=True).select_option(label=option)

    def enter(self, label: str, text: str) -> None:
        """Put a text into a field, in place of what is there."""
        field = self.area.get_by_label(label, exact=True)
        field.fill(text)
        field.press("Enter")

    def check(self, label: str, *, on: bool = True) -> None:
        """Check a box or clear it."""
        self.area.locator("label", has_text=label).locator("input[type=checkbox]").set_checked(on)

    def slider(self, label: str) -> Locator:
        """A slider."""
        return self.area.get_by_role("slider", name=label, exact=True)

    def slide(self, label: str, value: int) -> None:
        """Put a slider to a value, by the number beside it."""
        number = self.area.get_by_role("spinbutton", name=f"{label}, as a number", exact=True)
        number.fill(str(value))
        number.press("Enter")
        expect(self.slider(label)).to_have_value(str(value))

    @property
    def picture(self) -> Locator:
        """A plotly figure, drawn."""
        return self.area.locator(".js-plotly-plot .main-svg").first

    def shows_picture_titled(self, title: str) -> None:
        """Wait until the figure has a text in its title."""
        expect(self.area.locator(".js-plotly-plot .gtitle")).to_contain_text(title)

    def shows_in_picture(self, text: str) -> None:
        """Wait until the figure has a text somewhere."""
        expect(self.area.locator(".js-plotly-plot")).to_contain_text(text)

    def cell_of_picture(self, row: int, column: int) -> tuple[float, float]:
        """The position on the page of a cell of the figure's first panel."""
        plot = self.area.locator(".js-plotly-plot")
        plot.scroll_into_view_if_needed()
        drawn = "plot => plot._fullLayout?.yaxis?._offset"
        self.page.wait_for_function(drawn, arg=plot.element_handle())
        x, y = plot.evaluate(_CELL_AT, [row, column])
        return x, y

    @contextmanager
    def redraws(self) -> Iterator[None]:
        """Wait until the actions in the `with` block have changed the figure."""
        plot = self.area.locator(".js-plotly-plot").element_handle()
        before = plot.evaluate("plot => JSON.stringify(plot.data)")
        yield
        self.page.wait_for_function("([plot, before]) => JSON.stringify(plot.data) !== before", arg=[plot, before])

    def hard_to_read(self) -> list[str]:
        """Texts that have less contrast with what is behind them than WCAG 2 asks for, and how much it is."""
        expect(self.area).to_contain_text(re.compile(r"\S"), use_inner_text=True)
        self.page.mouse.move(0, 0)  # what the mouse is on may look different
        found = self.area.evaluate(f"(root) => ({_CONTRAST})(root, {_LEAST_CONTRAST})")
        assert found["seen"], "there is no text"
        return list(found["hard"])

    def screenshot(self, name: str) -> None:
        """Keep a picture of it."""
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        self.area.screenshot(path=SCREENSHOTS / f"{name}.png")
