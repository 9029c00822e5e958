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
