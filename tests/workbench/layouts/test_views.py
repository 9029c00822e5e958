"""What a notebook shows of layouts and tiled copies."""

from __future__ import annotations

import base64
import json
import re
import struct
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.errors import ArgumentError, LayoutError
from flydsl.layout import Layout, get_shape, make_layout, parse, size
from tests.launchers import launcher_of
from tests.workbench.layouts.outlined import outlined
from workbench.kit.png import png
from workbench.layouts import SHOWN, layout_bundle, layout_view, thread_figure, view_of
from workbench.layouts.static import panels_html


@pytest.fixture
def copy() -> fx.TiledCopy:
    """Four threads, eight values each, in tiles of 4 x 8."""
    atom = fx.make_copy_atom(fx.UniversalCopy128b(), fx.Float32)
    return fx.make_tiled_copy_tv(atom, fx.make_layout((4, 1), (1, 1)), fx.make_layout((1, 8), (1, 1)))


def everything(copy: fx.TiledCopy) -> list[Any]:
    layouts = [parse("((2,2),8):((8,16),1)"), parse("S<2,0,3> o 0 o (8,8):(8,1)"), Layout((32, 32))]
    atom = fx.make_mma_atom(fx.rocdl.MFMA(16, 16, 16, fx.Float16))
    mma = fx.make_tiled_mma(atom, Layout((2, 1, 1)))
    copies = [copy, copy.type.copy, copy.atom, copy.get_slice(2)]
    layouts.append(copy.get_slice(1).partition_S(fx.make_identity_tensor((8, 8))))
    return [*layouts, *copies, atom, atom.type.op, mma, mma.type.mma, mma.get_slice(70)]


def test_every_type_shows_a_picture_html_and_text(copy: fx.TiledCopy, read: Callable[[str], Any]) -> None:
    assert {kind for value in everything(copy) for kind in SHOWN if isinstance(value, kind)} == set(SHOWN)
    for value in everything(copy):
        bundle = layout_bundle(value)
        assert bundle["application/vnd.plotly.v1+json"]["data"]
        assert read(bundle["text/html"]).text.strip()
        assert bundle["text/plain"].startswith(repr(value))
        assert json.dumps(bundle) == json.dumps(layout_bundle(value))


@pytest.mark.parametrize("text", ["(?,4):(4,1)", "(4,?):(1E0,1E1)"])
def test_what_cannot_be_drawn_is_text_with_the_reason(text: str, read: Callable[[str], Any]) -> None:
    bundle = layout_bundle(parse(text))
    assert bundle["text/plain"].startswith(f"{text}\nnot drawn: {text} ")
    assert "not drawn" in read(bundle["text/html"]).text
    assert set(bundle) == {"text/plain", "text/html"}


def test_a_part_of_a_thread_known_at_run_time_is_text(copy: fx.TiledCopy) -> None:
    parts: list[Any] = []

    @flyc.kernel
    def kernel(A: fx.Tensor) -> None:
        parts.append(layout_bundle(copy.get_slice(fx.thread_idx.x))["text/plain"])
        A[0] = 0.0

    launch = launcher_of(kernel, grid=1, block=64)
    launch(torch.zeros(4))
    assert "known at run time only" in parts[0]


def test_a_table_has_every_offset_and_the_tile_borders(read: Callable[[str], Any]) -> None:
    html = view_of(parse("((2,2),4):((1,4),8)")).html()
    assert html.count("border-top") == 4
    cells = re.findall(r">(-?\d+)</td>", html)
    assert sorted(map(int, cells[4:])) == sorted(parse("((2,2),4):((1,4),8)")(i) for i in range(16))


def pixels(html: str) -> Any:
    """The picture in a piece of HTML, as an array height x width x 4."""
    (data,) = re.findall(r"data:image/png;base64,([\w+/=]+)", html)
    picture = base64.b64decode(data)
    width, height = struct.unpack(">II", picture[16:24])
    size_bytes = struct.unpack(">I", picture[33:37])[0]
    rows = np.frombuffer(zlib.decompress(picture[41 : 41 + size_bytes]), np.uint8).reshape(height, 1 + 4 * width)
    assert not rows[:, 0].any()
    return rows[:, 1:].reshape(height, width, 4)


def test_a_large_layout_is_a_picture_that_gets_lighter_with_the_offset(read: Callable[[str], Any]) -> None:
    html = view_of(Layout((128, 128), (128, 1))).html()
    assert "<table" not in html
    assert read(html)
    squares = pixels(html)[::3, ::3]
    assert squares.shape == (128, 128, 4)
    light = squares[..., :3].astype(int).sum(axis=-1)
    assert (np.diff(light[:, 0]) >= 0).all()
    assert light[0, 0] < light[64, 64] < light[127, 127]


def test_cells_of_nobody_are_clear_in_a_picture() -> None:
    view = view_of(Layout((64, 64)))
    light = np.zeros((64, 64), bool)
    light[3, 5] = True
    clear = pixels(panels_html(view.panels, "", color_by="offset", lit=[light]))[::6, ::6, 3] == 0
    assert (clear == ~light).all()


def test_png_is_what_the_standard_says() -> None:
    picture = png(np.zeros((2, 3, 4), np.uint8))
    assert picture.startswith(b"\x89PNG\r\n\x1a\n\x00\x00\x00\x0dIHDR")
    assert picture.endswith(b"IEND" + struct.pack(">I", zlib.crc32(b"IEND")))


def test_a_view_shows_itself_and_is_checked_when_made(read: Callable[[str], Any]) -> None:
    view = layout_view(Layout((4, 8)), color_by="bank", element_bits=64, title="<b>")
    bundle = view._repr_mimebundle_()
    assert bundle["text/plain"] == "<b>"
    assert "<b>" in read(bundle["text/html"]).text
    assert bundle["application/vnd.plotly.v1+json"]["data"]
    with pytest.raises(ArgumentError, match="no thread to colour by"):
        layout_view(Layout((4, 8)), color_by="thread")


# --- threads ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tensor", ["(8,24):(24,1)", "(4,8):(1,4)", "(8,16,2):(16,1,128)"])
def test_a_copy_between_tensors_holds_every_element_once(copy: fx.TiledCopy, tensor: str) -> None:
    layout = parse(tensor)
    (panel,) = view_of(copy, layout).panels
    assert panel.name == "source"
    assert [len(held) for held in panel.holders] == [1] * size(layout)
    parts = copy.type.copy.partition(layout)
    for element, ((thread, value),) in enumerate(panel.holders):
        assert parts(thread + panel.threads * value) == layout(element)


def test_a_thread_lights_its_values_in_source_and_destination(copy: fx.TiledCopy) -> None:
    source, destination = parse("(8,8):(8,1)"), parse("S<1,0,3> o 0 o (8,8):(1,8)")
    figure = thread_figure(copy, source, destination, thread=1)
    cells = [figure.data[i] for i in (0, 5)]
    outlines = [figure.data[i] for i in (4, 9)]
    for shown, outline in zip(cells, outlines, strict=True):
        lit = outlined(outline, (8, 8))
        assert lit.sum() == 16
        assert all(("T1<br>" in shown.text[r][c]) == lit[r, c] for r in range(8) for c in range(8))
    for axis, name in (("xaxis", "source"), ("xaxis2", "destination")):
        assert f"<b>{name}</b>" in figure.layout[axis].title.text


def test_a_part_of_one_thread_lights_it(copy: fx.TiledCopy) -> None:
    bundle = layout_bundle(copy.get_slice(2))
    assert [line for line in bundle["text/plain"].splitlines()[1:] if "T2" in line] == [
        "T2 V0  T2 V1  T2 V2  T2 V3  T2 V4  T2 V5  T2 V6  T2 V7"
    ]
    assert "T1" not in bundle["text/plain"]
    assert bundle["text/html"].count("background-color") == 8


@pytest.mark.parametrize("thread", [-1, 4])
def test_threads_there_are_none_of_are_refused(copy: fx.TiledCopy, thread: int) -> None:
    with pytest.raises(ArgumentError, match="threads are 0 to 3"):
        thread_figure(copy, thread=thread)


def test_what_has_no_threads_is_refused(copy: fx.TiledCopy) -> None:
    with pytest.raises(ArgumentError, match="a str is not drawn"):
        thread_figure("copy")
    with pytest.raises(ArgumentError, match="3 tensors for a picture that has source and destination"):
        thread_figure(copy, Layout((8, 8)), Layout((8, 8)), Layout((8, 8)))
    with pytest.raises(ArgumentError, match="1 tensors for a picture that has none"):
        thread_figure(copy.atom, Layout((8, 8)))
    with pytest.raises(LayoutError, match="divide"):
        thread_figure(copy, make_layout((6, 8)))


def test_several_holders_are_told_apart(read: Callable[[str], Any]) -> None:
    view = layout_view(Layout(4, 1), layout_tv=parse("((4,2),1):((1,0),0)"), color_by="thread")
    assert view.text().split("  ")[1] == "T1 V0, T5 V0"
    assert "T1 V0, T5 V0" in read(view.html()).text.replace("\u00a0", " ")


def test_an_atom_is_one_thread_with_the_values_of_one_call(copy: fx.TiledCopy) -> None:
    (panel,) = view_of(copy.atom).panels
    assert panel.holders == [[(0, value)] for value in range(4)]
    assert get_shape(panel.layout) == 4
