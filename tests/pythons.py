"""What the supported versions of Python do not have in common."""

from __future__ import annotations

import sys

import pytest

NEEDS_COLUMNS = pytest.mark.skipif(
    sys.version_info < (3, 11), reason="Python 3.10 says which line an instruction is from, and not which columns"
)
