"""Errors whose own words are checked, without the line of the test that they quote."""

from __future__ import annotations

import re
from typing import Any

import pytest

from flydsl.errors import FlyError


def raises_saying(error: type[Exception], says: str) -> pytest.RaisesExc[Any]:
    """`pytest.raises(error, match=says)` for a test whose call and `says` stand in one line.

    The error quotes that line, so `match` would find `says` there, whatever the message is.
    """
    return pytest.raises(error, check=lambda raised: re.search(says, words_of(raised)) is not None)


def words_of(raised: BaseException) -> str:
    """The message and the hint of an error."""
    return f"{raised.message}\n{raised.hint}" if isinstance(raised, FlyError) else str(raised)
