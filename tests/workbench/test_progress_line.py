"""The line that shows how far something is."""

from __future__ import annotations

import threading

from flydsl.progress import Task
from workbench.progress_line import Line


def test_a_line_comes_and_goes(monkeypatch) -> None:
    from workbench.kit.progress_strip import ProgressStrip

    said: list[tuple[str, float]] = []

    def new_strip() -> ProgressStrip:
        strip = ProgressStrip()
        strip.observe(lambda _change: said.append((strip.text, strip.share)), "text")
        return strip

    monkeypatch.setattr("workbench.progress_line._new_strip", new_strip)
    line = Line()
    line.show(None)
    assert said == []  # nothing for what is quick
    line.show(Task("add", 8, "workgroups", done=lambda: 2))
    line.show(Task("link"))
    line.show(None)
    line.show(None)
    assert said == [("add: 2 of 8 workgroups done, 0 s", 0.25), ("link: under way, 0 s", -1.0), ("", -1.0)]


def test_it_is_no_output_of_the_cell(notebook, monkeypatch) -> None:
    monkeypatch.setattr("workbench.progress_line.SECONDS_BEFORE", 0.0)
    monkeypatch.setattr("workbench.progress_line._SECONDS_BETWEEN", 0.001)
    shown, show = threading.Event(), Line.show

    def show_and_say(line: Line, task: Task | None) -> None:
        show(line, task)
        if task is not None:
            shown.set()

    monkeypatch.setattr(Line, "show", show_and_say)
    notebook.shell.user_ns["shown"] = shown
    cell = "from flydsl.progress import Task\nprint(1)\nwith Task('add', 8):\n    print(shown.wait(30))"
    outcome = notebook.run(cell)
    assert (outcome.error, outcome.text, outcome.shown) == (None, "1\nTrue\n", [])


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
