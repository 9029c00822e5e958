"""On paper nothing is cut off: what scrolls on the screen is there as a whole."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import nbformat
import pytest
import torch
from nbconvert import HTMLExporter

import workbench
from flydsl.compiler import Pipeline
from kernels.vector_add import vector_add
from workbench.display import artifact_html
from workbench.kit.html import ON_PAPER
from workbench.stages.pipeline import pipeline_html

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

WIDTH_PX = 718  # of A4, without margins
# Text that is shown and is cut off: by something around it that scrolls, or by the edge of the paper.
_CUT = """(paper) => [...document.body.querySelectorAll('*')].filter((element) => {
  if (!element.checkVisibility() || !element.clientHeight || !element.innerText?.trim()) return false;
  const scrolls = ['auto', 'scroll', 'hidden'].includes(getComputedStyle(element).overflowY);
  const isLarger = element.scrollHeight > element.clientHeight + 3 || element.scrollWidth > element.clientWidth + 3;
  return (scrolls && isLarger) || element.getBoundingClientRect().right > paper;
}).map((element) => `${element.tagName}.${element.className}: ${element.innerText.slice(0, 60)}`)"""


@pytest.fixture(scope="module")
def pipeline() -> Pipeline:
    A, B, C = torch.ones(4096), torch.ones(4096), torch.zeros(4096)
    return vector_add.lower(A, B, C).run()


@pytest.fixture
def paper(browser: Browser) -> Iterator[Page]:
    context = browser.new_context(offline=True, color_scheme="dark", viewport={"width": WIDTH_PX, "height": 1040})
    page = context.new_page()
    page.emulate_media(media="print")
    yield page
    context.close()


def test_an_exported_page(pipeline: Pipeline, paper: Page, tmp_path: Path) -> None:
    paper.goto(workbench.export(pipeline, tmp_path / "out.html").as_uri(), wait_until="load")
    paper.get_by_role("listbox", name="Machine code of").get_by_text("s_endpgm").wait_for()
    assert paper.evaluate(_CUT, WIDTH_PX) == []


def test_a_notebook_as_nbconvert_shows_it(pipeline: Pipeline, paper: Page, tmp_path: Path) -> None:
    shown = pipeline_html(pipeline) + artifact_html(pipeline.artifact)
    cells = [
        nbformat.v4.new_code_cell("p", outputs=[nbformat.v4.new_output("display_data", {"text/html": html})])
        for html in (shown, shown + ON_PAPER)
    ]
    for cell, is_whole in zip(cells, (False, True), strict=True):
        page, _ = HTMLExporter().from_notebook_node(nbformat.v4.new_notebook(cells=[cell]))
        (tmp_path / "page.html").write_text(page, "utf-8")
        paper.goto((tmp_path / "page.html").as_uri(), wait_until="load")
        assert (paper.evaluate(_CUT, WIDTH_PX) == []) is is_whole
