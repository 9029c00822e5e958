"""`workbench tour`: a copy of the notebooks that keeps what the reader changed, opened in JupyterLab."""

from __future__ import annotations

import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.notebooks import NOTEBOOKS
from workbench import tour
from workbench.__main__ import main


def test_copies_every_notebook_and_keeps_what_is_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "new" / "tour"
    assert main(["tour", str(folder), "--copy-only"]) == 0
    assert sorted(path.name for path in folder.iterdir()) == [path.name for path in NOTEBOOKS]
    (folder / "00_tour.ipynb").write_text("mine")
    (folder / "01_layouts.ipynb").unlink()
    assert main(["tour", str(folder), "--copy-only"]) == 0
    assert (folder / "00_tour.ipynb").read_text() == "mine"
    assert (
        capsys.readouterr().out.splitlines()[-1]
        == f"{folder}: 1 notebooks copied, {len(NOTEBOOKS) - 1} kept as they were"
    )


def test_a_folder_that_cannot_be_made(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").touch()
    assert main(["tour", str(tmp_path / "file" / "tour"), "--copy-only"]) == 1
    assert "workbench tour FOLDER" in capsys.readouterr().err


@pytest.mark.parametrize("flags", [[], ["--no-browser"]])
def test_opens_the_first_one_in_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flags: list[str]) -> None:
    started: dict[str, Any] = {}

    def run(command: list[str], **options: Any) -> Any:
        started.update(options, command=command)
        return SimpleNamespace(returncode=3)

    monkeypatch.setattr(subprocess, "run", run)
    assert main(["tour", str(tmp_path), *flags]) == 3
    assert started["command"][1:] == ["-m", "jupyterlab", "00_tour.ipynb", *flags]
    assert started["cwd"] == tmp_path


def test_says_how_to_install_jupyterlab(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(tour, "find_spec", lambda name: None)
    assert main(["tour", str(tmp_path)]) == 1
    assert "pip install 'flydsl-workbench[notebook]'" in capsys.readouterr().err
