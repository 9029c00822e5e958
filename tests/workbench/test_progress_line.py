"""The line that shows how far something is."""

from __future__ import annotations

from flydsl.progress import Task
from workbench.progress_line import Line, line_html


class Display:
    """What is displayed, in place of IPython's display."""

    def __init__(self) -> None:
        self.contents: list[dict[str, str]] = []

    def __call__(self, content, **_options):
        self.contents.append(content)
        return self

    def update(self, content, **_options) -> None:
        self.contents.append(content)


def test_a_line_comes_and_goes(monkeypatch) -> None:
    shown = Display()
    monkeypatch.setattr("workbench.progress_line.display", shown)
    line = Line()
    line.show(None)
    assert shown.contents == []  # nothing for what is quick
    line.show(Task("add", 8, "workgroups", done=lambda: 3))
    line.show(None)
    line.show(None)
    first, text, last = shown.contents
    assert (first, last) == ({}, {})  # which no saved notebook shows
    assert text["text/plain"] == "add: 3 of 8 workgroups done"


def test_it_is_escaped(read) -> None:
    assert "<b>: 3 of 8 parts done" in read(line_html(Task("<b>", 8, "parts", done=lambda: 3))).text


def test_the_extension_watches_cells_once(notebook) -> None:
    notebook.run("%reload_ext workbench")
    watching = [
        callback
        for callback in notebook.shell.events.callbacks["pre_run_cell"]
        if "progress_line" in getattr(callback, "__module__", "")
    ]
    assert len(watching) == 1


def test_an_extension_that_is_unloaded_leaves_nothing(notebook) -> None:
    assert "flykernel" in notebook.shell.magics_manager.magics["cell"]
    notebook.run("%unload_ext workbench")
    assert "flykernel" not in notebook.shell.magics_manager.magics["cell"]
    watching = notebook.shell.events.callbacks["pre_run_cell"]
    assert not any("progress_line" in getattr(callback, "__module__", "") for callback in watching)
    outcome = notebook.run("import flydsl; table = flydsl.sweep(launch, arguments=lambda: (A, B, C, 128))")
    assert (outcome.error, outcome.text, outcome.shown) == (None, "", [])
