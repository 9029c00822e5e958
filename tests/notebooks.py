"""The notebooks that the guide lists: whatever else is in their folder belongs to the user."""

from __future__ import annotations

import re
from pathlib import Path

_ROOT = Path(__file__).parents[1]
_LISTED = re.findall(r"notebooks/\w+\.ipynb", (_ROOT / "docs" / "guide" / "notebooks.md").read_text())

NOTEBOOKS = [_ROOT / name for name in sorted(set(_LISTED))]
