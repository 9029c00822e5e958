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
FX = sorted((DOCS / "fx").glob("*.md"))
FX_INDEX = DOCS / "fx" / "index.md"

PAGES = sorted(DOCS.rglob("*.md"))
ALONGSIDE = [
    ROOT / "CONTRIBUTING.md",
    ROOT / "CHANGELOG.md",
    ROOT / "kernels/README.md",
    *sorted((ROOT / "flydsl/simulator").rglob("[A-Z]*.md")),
]
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
    if page.is_relative_to(DOCS):
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


def test_a_section_that_the_readme_lost_is_an_error() -> None:
    with pytest.raises(KeyError, match="No such"):
        site_pages.expanded("# A page\n\n<!-- README: No such -->\n", README)


def test_links_of_a_quoted_section_are_counted_from_the_root() -> None:
    readme = "# One\n\n<!-- Written by a tool. -->\nsee [file](flydsl/env.py) and [web](https://x.org)\n"
    page = site_pages.expanded("<!-- README: One -->", readme)
    assert page == "see [file](/flydsl/env.py) and [web](https://x.org)"


def test_docstrings_become_restructured_text() -> None:
    given = ["One *of* `x`.", "", "    code(a, *b)", "", "- item of", "  two lines", "", ">>> f(*a)", "1"]
    assert as_rst(given) == [
        "One \\*of\\* ``x``.", "", "::", "", "    code(a, *b)", "", "- item of", "  two lines", "", ">>> f(*a)", "1",
    ]  # fmt: skip


def examples_of(page: Path) -> str:
    """The examples of a page; those of `docs/fx` share the set-up of its first page."""
    shared = [FX_INDEX] if page in FX and page != FX_INDEX else []
    text = "\n".join(each.read_text() for each in (*shared, page))
    return "\n".join(re.findall(r"```pycon\n(.*?)```", text, re.DOTALL))


@pytest.mark.slow
@pytest.mark.parametrize("page", [p for p in PAGES if "```pycon" in p.read_text()], ids=lambda page: page.stem)
def test_examples_run(page: Path) -> None:
    examples = doctest.DocTestParser().get_doctest(examples_of(page), {}, page.stem, str(page), 0)
    report: list[str] = []
    failed, tried = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(examples, out=report.append)
    assert not failed, "".join(report)
    assert tried > 3


def fx_headings() -> dict[str, str]:
    """The headings of `docs/fx` that are names, each with the text under it."""
    found = [item for page in FX for item in site_pages.sections(page.read_text()).items()]
    return {heading: text for heading, text in found if heading.startswith("fx.")}


def names_in(heading: str) -> list[str]:
    return [name.removeprefix("fx.") for name in heading.split(", ")]


def test_every_name_of_fx_has_a_heading() -> None:
    """Names of the MLIR level are listed on a page of their own."""
    named = [name for heading in fx_headings() for name in names_in(heading)]
    assert len(named) == len(set(named))
    listed = set(re.findall(r"\bfx\.(\w+)", (DOCS / "fx" / "mlir.md").read_text()))
    documented = {name.partition(".")[0] for name in named} | listed
    assert documented == set(dir(fx)) | {"Vector", "rocdl"}


def test_every_name_that_has_a_heading_has_an_example_under_it() -> None:
    without = []
    for heading, text in fx_headings().items():
        code = " ".join(re.findall(r"```pycon\n(.*?)```", text, re.DOTALL))
        used = set(re.findall(r"\w+", code))
        without += [name for name in names_in(heading) if not used.issuperset(name.split("."))]
    assert without == []


def test_every_name_that_has_a_heading_is_in_the_index() -> None:
    page = site_pages.indexed("# A page\n\n## fx.copy, fx.gemm\n\ntext\n\n## Other\n")
    assert page == "# A page\n\n```{index} ! fx.copy, ! fx.gemm\n```\n## fx.copy, fx.gemm\n\ntext\n\n## Other\n"
