"""The saved notebooks: they read well without being run, on any machine; and a failing cell stops one."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.notebooks import NOTEBOOKS

if TYPE_CHECKING:
    from nbformat import NotebookNode

EVERY_NOTEBOOK = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
MACHINE_PATH = re.compile(r"(?<![\w/])/(home|root|tmp|work|usr|Users|private|opt|mnt)/|ipykernel_\d|site-packages")


def notebook_of(path: Path) -> NotebookNode:
    import nbformat  # takes seconds, also of processes that collect these tests and run others

    return nbformat.read(path, as_version=4)


def outputs(path: Path) -> list[tuple[NotebookNode, NotebookNode]]:
    cells = notebook_of(path).cells
    return [(cell, output) for cell in cells if cell.cell_type == "code" for output in cell.outputs]


@EVERY_NOTEBOOK
def test_it_is_saved_as_run_from_top_to_bottom(path):
    import nbformat

    notebook = notebook_of(path)
    nbformat.validate(notebook)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    assert any(cell.outputs for cell in code)
    assert notebook.metadata.kernelspec.name == "python3"
    assert path.stat().st_size < 2_000_000


@EVERY_NOTEBOOK
def test_errors_in_it_are_announced(path):
    failed = [cell for cell, output in outputs(path) if output.output_type == "error"]
    assert [cell.source for cell in failed if "raises-exception" not in cell.metadata.get("tags", [])] == []


@EVERY_NOTEBOOK
def test_nothing_in_it_names_the_machine(path):
    assert MACHINE_PATH.findall(path.read_text()) == []


@EVERY_NOTEBOOK
def test_its_views_survive_the_sanitizer(path, read):
    for _, output in outputs(path):
        if "text/html" in output.get("data", {}):
            html = output.data["text/html"]
            assert read(html).text.strip() or html.startswith('<img alt="')  # a picture says in words what it shows
            assert output.data["text/plain"].strip()


def test_a_failing_cell_stops_the_notebook():
    import nbformat
    from nbclient import NotebookClient
    from nbclient.exceptions import CellExecutionError

    cells = ["%load_ext workbench", "%%flykernel\nx = 1\nx / 0", "print('not reached')"]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in cells])
    with pytest.raises(CellExecutionError, match="ZeroDivisionError"):
        NotebookClient(notebook, kernel_name="python3", timeout=120).execute()
    (error,) = notebook.cells[1].outputs
    assert (error.output_type, error.ename, error.evalue) == ("error", "ZeroDivisionError", "division by zero")
    assert not notebook.cells[2].outputs
