"""A live view in a tab of its own."""

from __future__ import annotations

import re

import pytest

import workbench
from flydsl.layout import parse
from tests.stages import STAGE_COUNT
from workbench.kit.download import Download
from workbench.kit.room import Room


def sent(widget, monkeypatch, content: dict) -> dict:
    """What a widget answers to a message from the page."""
    answers: list[dict] = []
    monkeypatch.setattr(widget, "send", answers.append)
    widget._handle_custom_msg(content, [])
    (answer,) = answers
    return answer


@pytest.fixture(params=["compilation", "layout"])
def view(request, launcher, tensors):
    if request.param == "layout":
        return workbench.explore(parse("(4,8):(8,1)"))
    return workbench.explore(launcher.lower(*tensors, 128).run())


def test_the_page_needs_nothing_from_elsewhere(view, monkeypatch):
    text = sent(Room(view.page), monkeypatch, {"page": True})["page"]
    assert text.startswith("<!DOCTYPE html>")
    assert "default-src 'none'" in text
    assert not re.search(r"https?://", text.replace("http://www.w3.org/2000/svg", ""))
    assert "4,8):(8,1" in text or f"{STAGE_COUNT} of {STAGE_COUNT} stages done" in text


def test_a_view_is_shown_with_its_buttons_and_inside_of_another_without(view):
    bundle = view._repr_mimebundle_()
    shown = bundle["application/vnd.jupyter.widget-view+json"]["model_id"]
    assert shown != view.model_id
    assert view._repr_mimebundle_()["application/vnd.jupyter.widget-view+json"]["model_id"] == shown


def test_the_picture_to_download_is_drawn_when_it_is_asked_for(monkeypatch):
    drawn: list[int] = []
    widget = Download(lambda: f"<svg>{drawn.append(1) or ''}</svg>", "layout")
    assert not drawn
    assert sent(widget, monkeypatch, {"picture": True}) == {"svg": "<svg></svg>"}
