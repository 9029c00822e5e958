"""`workbench new my-kernels`: a project with a kernel, its tests, and what runs them in CI."""

from __future__ import annotations

import keyword
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

from flydsl.errors import ArgumentError

TEMPLATE = Path(__file__).parent / "template"
_NAME = re.compile(r"[a-z][a-z0-9]*(?:[-_][a-z0-9]+)*")


def write_project(folder: Path) -> list[Path]:
    """Write the template into a folder that is new or empty, whose name becomes the project's; return its files.

    Raises ArgumentError for a name that no package can have, and if something lies in the folder.
    """
    name = folder.resolve().name
    package = name.replace("-", "_")
    if not _NAME.fullmatch(name) or keyword.iskeyword(package):
        raise ArgumentError(
            f"a project cannot be named {name!r}", hint="use small letters, digits and hyphens, such as my-kernels"
        )
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ArgumentError(f"{folder} is there already, and not empty", hint="name a new folder")
    return [_write(file, folder, name, package) for file in sorted(TEMPLATE.rglob("*")) if _is_of_template(file)]


def _is_of_template(file: Path) -> bool:
    return file.is_file() and "__pycache__" not in file.parts


def _write(file: Path, folder: Path, name: str, package: str) -> Path:
    def named(text: str) -> str:
        return text.replace("my_kernels", package).replace("my-kernels", name)

    written = folder / named(str(file.relative_to(TEMPLATE)))
    try:
        written.parent.mkdir(parents=True, exist_ok=True)
        written.write_text(named(file.read_text(encoding="utf-8")), encoding="utf-8")
    except OSError as error:
        raise ArgumentError(f"{written} cannot be written: {error.strerror}", hint="name another folder") from None
    return written


def can_write_figures() -> bool:
    """True if pytest is installed, which runs the project's tests."""
    return find_spec("pytest") is not None


def write_figures(folder: Path) -> bool:
    """Run the project's tests and keep the figures that they measure. Return False if a test fails."""
    command = [sys.executable, "-m", "pytest", "-q", "--update-figures"]
    return subprocess.run(command, cwd=folder, check=False).returncode == 0
