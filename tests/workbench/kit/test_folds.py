"""Long types are folded; their text stays in the page."""

from __future__ import annotations

import re
from html import unescape

import pytest

from workbench.kit.highlight import highlight
from workbench.kit.line_list import TAGS
from workbench.stages.diff import Change, Diff

STRUCT = "!llvm.struct<packed (struct<packed (i32)>, struct<packed ()>)>"


@pytest.mark.parametrize(
    ("line", "count"),
    [
        (f"%0 = llvm.extractvalue %arg1[0, 0] : {STRUCT}", 1),
        (f"func.func @f(%a: {STRUCT}, %b: {STRUCT}) -> ()", 2),
        ("%0 = t.a : (!llvm.ptr<1>) -> !llvm.ptr<1>", 0),
        ("%0 = t.a : !fly.memref<f32, global, (4,?):(1,4)>", 0),  # the layout is what it is read for
        (f'llvm.data_layout = "{"e-p:64:64-" * 8}"', 1),
        (f"%0 = t.a : {STRUCT[:-3]}", 1),  # cut off
    ],
)
def test_long_types_are_folded_and_nothing_is_lost(line, count):
    html = highlight(line, "mlir", TAGS)
    assert html.count('class="fold"') == count
    assert html.count("<span") == html.count("</span>")
    assert unescape(re.sub(r"<[^>]*>", "", html)) == line
    assert "fold" not in highlight(line, "mlir")


def test_a_changed_word_is_not_folded_away():
    old, new = f"%0 = t.a : {STRUCT}", f"%0 = t.b : {STRUCT.replace('i32', 'i64')}"
    diff = Diff((Change("-", old, new), Change("+", new, old)), "mlir")
    html = diff.line_html(diff.changes[0], TAGS)
    assert "<u>i32</u>" in html
    assert "fold" not in html
    same = Diff((Change("-", old, old.replace("t.a", "t.b")),), "mlir")
    assert 'class="fold"' in same.line_html(same.changes[0], TAGS)
