"""`workbench tour`: a copy of the tutorial's notebooks to read, run and change, opened in JupyterLab."""

from __future__ import annotations

import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

from flydsl.errors import ArgumentError, MissingImport

NOTEBOOKS = Path(__file__).parent / "notebooks"
FIRST = "00_tour.ipynb"
_INSTALL = "pip install 'flydsl-workbench[notebook]'"


def copy_notebooks(folder: Path) -> tuple[int, int]:
    """Copy the notebooks to a folder, which is made if needed; return how many were copied and how many were kept.

    A file of the same name stays as it is: it may be the reader's. Raises ArgumentError if the folder cannot
    be written.
    """
    copied = kept = 0
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for notebook in sorted(NOTEBOOKS.glob("[0-9][0-9]_*.ipynb")):
            target = folder / notebook.name
            if target.exists():
                kept += 1
            else:
                shutil.copyfile(notebook, target)
                copied += 1
    except OSError as error:
        raise ArgumentError(
            f"{folder} cannot hold the notebooks: {error.strerror}", hint="name another folder: workbench tour FOLDER"
        ) from None
    return copied, kept


def open_lab(folder: Path, *, browser: bool) -> int:
    """Serve a folder with JupyterLab until it is stopped, opened on the tour; return its exit status.

    browser: whether a browser opens, too. Raises MissingImport if JupyterLab is not installed.
    """
    if find_spec("jupyterlab") is None:
        raise MissingImport(f"the tour needs JupyterLab, which is not installed: {_INSTALL}")
    command = [sys.executable, "-m", "jupyterlab", FIRST, *([] if browser else ["--no-browser"])]
    try:
        return subprocess.run(command, cwd=folder, check=False).returncode
    except KeyboardInterrupt:  # it has taken the same Ctrl-C
        return 0
