from __future__ import annotations

import linecache
import pickle

import pytest

from flydsl.errors import ArgumentError, FlyError, LaunchError, SourceLocation


@pytest.fixture
def file() -> str:
    lines = ["def f(a):\n", "    b = a + größe(a, 1)\n", "\n"]
    linecache.cache["<made>"] = (sum(map(len, lines)), None, lines, "<made>")
    return "<made>"


def test_text_is_complete(file: str) -> None:
    error = ArgumentError("a is 3, b is 4", at=SourceLocation(file, 2, 8, 25), hint="make them equal")
    assert str(error).splitlines() == [
        "a is 3, b is 4",
        "  at <made>:2",
        "    b = a + größe(a, 1)",
        "        ^^^^^^^^^^^^^^^",
        "  hint: make them equal",
    ]


@pytest.mark.parametrize(
    ("column", "end", "caret"),
    [
        (12, 25, "        ^^^^^^^^^^^"),
        (12, None, "        ^^^^^^^^^^^"),
        (4, 4, "^"),
        (0, 5, "^"),
        (99, 120, " " * 19 + "^"),
    ],
)
def test_caret_stays_under_the_line(file: str, column: int, end: int | None, caret: str) -> None:
    """Columns count bytes, as Python's do: ö and ß are two each."""
    assert SourceLocation(file, 2, column, end).excerpt()[1] == "    " + caret


def test_without_source_or_columns(file: str) -> None:
    assert SourceLocation("<gone>", 3).excerpt() == []
    assert SourceLocation(file, 2).excerpt() == ["    b = a + größe(a, 1)", "    ^^^^^^^^^^^^^^^^^^^"]
    assert str(FlyError("only this")) == "only this"


@pytest.mark.parametrize("name", ["/tmp/ipykernel_12/3456.py", "<ipython-input-3-abc>"])
def test_a_notebook_cell_is_called_cell(name: str) -> None:
    assert str(SourceLocation(name, 4)) == "cell:4"


def test_the_first_place_is_kept() -> None:
    first, second = SourceLocation("a.py", 1), SourceLocation("b.py", 2)
    assert FlyError("x").located(first).located(second).at == first


def test_notebooks_show_the_text_alone() -> None:
    assert LaunchError("no", hint="yes")._render_traceback_() == ["LaunchError: no", "  hint: yes"]


def test_errors_survive_pickling() -> None:
    error = pickle.loads(pickle.dumps(LaunchError("no", at=SourceLocation("a.py", 1), hint="yes")))
    assert isinstance(error, LaunchError)
    assert (error.message, error.at, error.hint) == ("no", SourceLocation("a.py", 1), "yes")


def test_errors_are_the_python_errors_that_they_resemble() -> None:
    assert issubclass(ArgumentError, TypeError)
    assert issubclass(LaunchError, ValueError)
