"""What `make lab` does to notebooks that are saved."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.notebooks import NOTEBOOKS

if TYPE_CHECKING:
    from jupyter_server.services.contents.filemanager import FileContentsManager

pytestmark = pytest.mark.slow

# What JupyterLab writes when a kernel has started.
_OF_A_KERNEL = {
    "kernelspec": {"name": "python3", "display_name": "Python 3 (ipykernel)", "language": "python"},
    "language_info": {"name": "python", "version": "3.99.0", "pygments_lexer": "ipython3"},
}


@pytest.fixture
def contents(tmp_path: Path) -> FileContentsManager:
    # Takes seconds, which processes that collect these tests and run others need not spend.
    from jupyter_server.services.contents.filemanager import FileContentsManager

    return FileContentsManager(root_dir=str(tmp_path), pre_save_hook="tools.lab.keep_kernel_metadata")


def save_with_another_kernel(contents: FileContentsManager, name: str) -> None:
    model = contents.get(name)
    model["content"]["metadata"].update(_OF_A_KERNEL)
    contents.save(model, name)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_that_was_only_opened_is_saved_as_it_was(path, contents, tmp_path):
    copy = Path(shutil.copy(path, tmp_path))
    save_with_another_kernel(contents, path.name)
    assert copy.read_bytes() == path.read_bytes()


def test_what_is_changed_is_saved(contents, tmp_path):
    name = NOTEBOOKS[0].name
    shutil.copy(NOTEBOOKS[0], tmp_path)
    model = contents.get(name)
    model["content"]["cells"][0]["source"] = "changed"
    contents.save(model, name)
    assert contents.get(name)["content"]["cells"][0]["source"] == "changed"


def test_a_new_notebook_has_its_kernel(contents, tmp_path):
    shutil.copy(NOTEBOOKS[0], tmp_path / "one.ipynb")
    model = contents.get("one.ipynb")
    model["content"]["metadata"] = dict(_OF_A_KERNEL)
    (tmp_path / "broken.ipynb").write_text("{")
    for name in ("new.ipynb", "broken.ipynb"):
        contents.save(model, name)
        assert json.loads((tmp_path / name).read_text())["metadata"] == _OF_A_KERNEL
