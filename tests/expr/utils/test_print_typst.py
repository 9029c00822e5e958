"""Pictures as Typst markup."""

from __future__ import annotations

from pathlib import Path

import pytest

import flydsl.expr as fx
from flydsl.errors import ArgumentError


def test_a_layout_is_a_grid_of_its_indices(capsys: pytest.CaptureFixture[str]) -> None:
    fx.utils.print_typst(fx.make_layout((2, 3), (3, 1)), color=lambda index: f"#00000{index}")
    text = capsys.readouterr().out
    assert "columns: 3" in text
    assert "(2,3):(3,1)" in text
    assert [f'rgb("#00000{n}"))[{n}]' in text for n in range(6)] == [True] * 6
    assert text.index("[3]") > text.index("[2]") > text.index("[1]")


def test_each_call_adds_a_page(tmp_path: Path) -> None:
    file = tmp_path / "picture.typ"
    atom = fx.make_mma_atom(fx.rocdl.MFMA(16, 16, 16, fx.Float16))
    tiled = fx.make_tiled_mma(atom, fx.make_layout((1, 2, 1), (0, 1, 0)))
    copy = fx.make_tiled_copy_A(fx.make_copy_atom(fx.UniversalCopy64b(), fx.Float16), tiled)
    for value in (atom, tiled, copy, fx.make_composed_layout(fx.Swizzle(3, 0, 3), fx.make_layout((8, 8), (8, 1)))):
        fx.utils.print_typst(value, file=str(file))
    pages = file.read_text().split("#pagebreak()")
    assert len(pages) == 4
    assert file.read_text().count("#set page") == 1
    assert pages[0].count("[T63 V3]") == 3  # A, B and C of 16x16x16: 64 lanes with 4 values each
    assert pages[2].count("[T") == 16 * 16
    assert "S<3,0,3>" in pages[3]


def test_what_has_no_picture_is_refused() -> None:
    with pytest.raises(ArgumentError, match="print_typst of 3"):
        fx.utils.print_typst(3)
