"""The pages of the documentation site, without building it: examples run, links and lists of contents are whole."""

from __future__ import annotations

import doctest
import json
import re
from pathlib import Path

import pytest

import flydsl.expr as fx
from tests.notebooks import NOTEBOOKS
from tools import site_pages
from tools.docstring_markup import as_rst

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
README = (ROOT / "README.md").read_text()
FX = DOCS / "fx.md"

PAGES = sorted(DOCS.rglob("*.md"))
ALONGSIDE = [ROOT / "kernels/README.md", *sorted((ROOT / "flydsl/simulator").rglob("[A-Z]*.md"))]
SITE = [*PAGES, *NOTEBOOKS, *ALONGSIDE]

CODE = re.compile(r"^```.*?^```$|`[^`\n]+`(?!\])", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)\s]+)\)")
TOCTREE = re.compile(r"```\{toctree\}\n(.*?)```", re.DOTALL)
EVERY_PAGE = pytest.mark.parametrize("page", SITE, ids=lambda page: str(page.relative_to(ROOT)))


def text_of(page: Path) -> str:
    """A page as the site shows it, of a notebook its texts."""
    if page.suffix == ".ipynb":
        cells = json.loads(page.read_text())["cells"]
        text = "\n\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
    else:
        text = page.read_text()
    if page.parent == site_pages.GUIDE:
        text = site_pages.expanded(text, README)
    return site_pages.linkable(text, page.parent)


def anchors(page: Path) -> set[str]:
    return {site_pages.anchor(heading) for heading in site_pages.sections(text_of(page))}


def target_of(link: str, page: Path) -> Path:
    return ROOT / link[1:] if link.startswith("/") else (page.parent / link).resolve()


def listed(page: Path) -> set[Path]:
    """The pages in a page's lists of contents."""
    lines = [line for block in TOCTREE.findall(page.read_text()) for line in block.splitlines()]
    return {path for line in lines if line and line[0] != ":" for path in page.parent.glob(f"{line.strip()}.*")} | {
        path for line in lines if line.endswith("/*") for path in (page.parent / line[:-2]).glob("*.ipynb")
    }


@EVERY_PAGE
def test_links_have_targets(page: Path) -> None:
    links = [link for link in LINK.findall(CODE.sub("", text_of(page))) if "://" not in link]
    for link in links:
        path, _, name = link.partition("#")
        target = target_of(path, page) if path else page
        assert target.is_file(), link
        assert not name or name in anchors(target), link


def test_every_page_is_in_a_list_of_contents() -> None:
    contents = {path.resolve() for page in PAGES for path in listed(page)}
    assert contents >= {page for page in SITE if page.name != "index.md"}


def test_the_guide_quotes_the_whole_readme_once() -> None:
    quoted = [name for page in sorted(site_pages.GUIDE.glob("*.md")) for name in site_pages.quoted(page.read_text())]
    assert sorted(quoted) == sorted(site_pages.sections(README))


def test_a_section_that_the_readme_lost_is_an_error() -> None:
    with pytest.raises(KeyError, match="No such"):
        site_pages.expanded("# A page\n\n<!-- README: No such -->\n", README)


def test_links_of_a_quoted_section_lead_to_chapters_and_files() -> None:
    readme = "# One\n\nsee [two](#the-simulator), [file](flydsl/env.py) and [web](https://x.org)\n"
    page = site_pages.expanded("<!-- README: One -->", readme)
    assert page == (
        "see [two](/docs/guide/simulator.md#the-simulator), [file](/flydsl/env.py) and [web](https://x.org)"
    )


def test_docstrings_become_restructured_text() -> None:
    given = ["One *of* `x`.", "", "    code(a, *b)", "", "- item of", "  two lines", "", ">>> f(*a)", "1"]
    assert as_rst(given) == [
        "One \\*of\\* ``x``.", "", "::", "", "    code(a, *b)", "", "- item of", "  two lines", "", ">>> f(*a)", "1",
    ]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("page", [p for p in PAGES if "```pycon" in p.read_text()], ids=lambda page: page.stem)
def test_examples_run(page: Path) -> None:
    blocks = re.findall(r"```pycon\n(.*?)```", page.read_text(), re.DOTALL)
    examples = doctest.DocTestParser().get_doctest("\n".join(blocks), {}, page.stem, str(page), 0)
    report: list[str] = []
    failed, tried = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(examples, out=report.append)
    assert not failed, "".join(report)
    assert tried > 5


def test_fx_by_task_is_complete() -> None:
    named = set(re.findall(r"\bfx\.(\w+)", FX.read_text())) - {"md"}  # which is this page's link to another
    assert named == set(dir(fx)) | {"Vector", "rocdl"}


def test_what_is_not_of_the_mlir_level_has_an_example() -> None:
    tasks, _, _ = FX.read_text().partition("(mlir-level-names)=")
    code = " ".join(re.findall(r"```pycon\n(.*?)```", tasks, re.DOTALL))
    used = set(re.findall(r"\bfx\.(\w+)", code)) | set(re.findall(r"[a-z_0-9]{3,}", code))
    named = set(re.findall(r"`fx\.(\w+)", tasks))
    assert sorted(named - used) == []
