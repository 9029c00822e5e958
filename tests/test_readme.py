"""The README's Python runs as it stands."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

README = Path(__file__).parents[1] / "README.md"


def test_code_blocks_run(tmp_path: Path) -> None:
    """In order, as one program, in a process of its own: a kernel's source must be in a file."""
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    assert len(blocks) >= 2
    program = tmp_path / "readme.py"
    program.write_text("\n".join(blocks))
    ran = subprocess.run(
        [sys.executable, program], capture_output=True, text=True, timeout=300, check=False, cwd=tmp_path
    )
    assert ran.returncode == 0, ran.stderr
    assert "fly-layout-lowering" in ran.stdout


def test_pictures_are_there_and_small() -> None:
    pictures = [README.parent / path for path in re.findall(r"!\[[^\]]+\]\(([^)]+)\)", README.read_text())]
    assert len(pictures) >= 2
    assert all(picture.stat().st_size < 200_000 for picture in pictures)


def test_where_things_are_is_the_tree() -> None:
    """Every path of the table exists, and no folder or module of `flydsl` and folder of the rest is left out."""
    root = README.parent
    table = README.read_text().partition("## Where things are")[2].partition("\nThe path of a kernel")[0]
    cells = [re.findall(r"`([^`]+)`", row.split("|")[1]) for row in table.splitlines() if row.startswith("| `")]
    listed = {name for names in cells for name in names}
    listed = {name if "/" in name or (root / name).exists() else f"flydsl/simulator/{name}" for name in listed}
    assert not [name for name in listed if not (root / name).exists()]
    places = [*(root / "flydsl").iterdir(), *(root / "workbench").iterdir()]
    expected = {
        place for place in places if (place.is_dir() and any(place.glob("*.py"))) or place.parent.name == "flydsl"
    }
    names = {str(place.relative_to(root)) for place in expected if not place.name.startswith(("__", "."))}
    assert not names - listed


def test_where_to_start_is_there() -> None:
    """Every path that the development section sends a newcomer to."""
    table = README.read_text().partition("\nWhere to start:\n")[2]
    paths = re.findall(r"`((?:flydsl|workbench|kernels|tests|notebooks)/[\w/.]+)`", table)
    assert len(paths) > 10
    assert not [path for path in paths if not (README.parent / path).exists()]
