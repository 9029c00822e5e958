"""The Python of the README and of the guide runs as it stands, and the README's table is that of `flydsl.arch`."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.processes import run_python
from tools import arch_table

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
GUIDE = sorted((ROOT / "docs" / "guide").glob("*.md"))

# Each page goes on from the README's kernel, which is a program of its own. A kernel's source must be in a file.
RUN_PAGES = """
import runpy, sys

readme, *pages = sys.argv[1:]
names = runpy.run_path(readme)
for page in pages:
    runpy.run_path(page, init_globals={name: names[name] for name in names if not name.startswith("__")})
    print("ran", page)
"""


def python_of(page: Path) -> str:
    """The blocks of Python in a page, as one program."""
    return "\n".join(re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL))


def test_code_blocks_run(tmp_path: Path) -> None:
    """All pages in one process, which loads torch once."""
    with_code = [README, *(page for page in GUIDE if python_of(page) and page.stem != "coming_from_triton")]
    assert len(with_code) >= 7
    programs = [tmp_path / f"{page.stem}.py" for page in with_code]
    for page, program in zip(with_code, programs, strict=True):
        program.write_text(python_of(page))
    ran = run_python("-c", RUN_PAGES, *programs, cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert "fly-layout-lowering" in ran.stdout
    assert ran.stdout.count("ran ") == len(programs) - 1


def test_pictures_are_there_and_small() -> None:
    shown = [
        (page, path) for page in (README, *GUIDE) for path in re.findall(r"!\[[^\]]+\]\(([^)]+)\)", page.read_text())
    ]
    pictures = [page.parent / path for page, path in shown]
    assert [page for page, _ in shown].count(README) >= 2
    assert all(picture.stat().st_size < 200_000 for picture in pictures)


def test_the_readme_is_short_and_begins_with_a_picture() -> None:
    lines = README.read_text().splitlines()
    assert len(lines) <= 150
    assert any(line.startswith("![") for line in lines[:15])


def test_the_table_of_gpus_is_current() -> None:
    """Written anew by `python -m tools.arch_table`."""
    assert arch_table.with_table(README.read_text()) == README.read_text()
    assert arch_table.table() in README.read_text()
