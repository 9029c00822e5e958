"""The tests of what lowering makes of programs: they compile and launch them."""

from __future__ import annotations

FOLDER_IS_SLOW = True
