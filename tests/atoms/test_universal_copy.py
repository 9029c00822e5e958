"""The plain copy: its widths, and its text."""

from __future__ import annotations

import pytest

from flydsl.atoms import UniversalCopy, parse_copy_op
from flydsl.errors import ArgumentError


@pytest.mark.parametrize("bits", UniversalCopy.widths)
def test_the_text_reads_back(bits: int) -> None:
    assert parse_copy_op(str(UniversalCopy(bits))) == UniversalCopy(bits)


@pytest.mark.parametrize("bits", [0, -32, 24, 256, 32.0, "32", None, True])
def test_other_widths_do_not_exist(bits: object) -> None:
    with pytest.raises(ArgumentError, match="bits does not exist"):
        UniversalCopy(bits)  # type: ignore[arg-type]


@pytest.mark.parametrize("text", ["", "!fly.universal_copy", "!fly.universal_copy<>", "!fly.other<32>", "32"])
def test_other_text_is_refused(text: str) -> None:
    with pytest.raises(ArgumentError, match="not a copy instruction"):
        parse_copy_op(text)
