"""Pages of the repository as the documentation site shows them: chapters that quote the README, and links.

In a page of `docs/guide`, `<!-- README: A kernel -->` stands for the text of that section, up to the next heading, so
that each sentence is written once. The heading above it is the chapter's own. Links are rewritten: to another section,
to the chapter that quotes it; to a file, to its place in the repository, which is where the site's pages are counted
from.
"""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
GUIDE = ROOT / "docs" / "guide"
FIRST = "start.md"

_README_LINK = re.compile(r"\]\((?:\.\./)+README\.md(?:#([\w-]+))?\)")
_MARKER = re.compile(r"^<!-- README: (.+) -->$", re.MULTILINE)
_HEADING = re.compile(r"^#{1,3} (.+)$", re.MULTILINE)
_FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_WHOLE_LINK = re.compile(r"(?<!!)\[([^\]]+)\]\(([^)\s]+)\)")
_LINKED_HEADING = re.compile(r"^(#+ )\[([^\]]+)\]\([^)\s]+\)", re.MULTILINE)


def sections(text: str) -> dict[str, str]:
    """The text under each heading of a page, up to the next heading."""
    code = [range(*match.span()) for match in _FENCED.finditer(text)]
    headings = [m for m in _HEADING.finditer(text) if not any(m.start() in block for block in code)]
    ends = [*(m.start() for m in headings[1:]), len(text)]
    return {m[1]: text[m.end() : end].strip() for m, end in zip(headings, ends, strict=True)}


def anchor(heading: str) -> str:
    """The name under which a heading is linked to, as GitHub and MyST make it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def quoted(chapter: str) -> dict[str, str]:
    """The README's sections that a chapter quotes, each with the heading that it stands under."""
    return {name: heading for heading, text in sections(chapter).items() for name in _MARKER.findall(text)}


def places() -> dict[str, str]:
    """Of each section of the README that is quoted, by its anchor: the page and heading, as a link from the root."""
    return {
        anchor(name): f"/docs/guide/{page.name}#{anchor(heading)}"
        for page in sorted(GUIDE.glob("*.md"))
        for name, heading in quoted(page.read_text()).items()
    }


def expanded(chapter: str, readme: str) -> str:
    """A chapter with what it quotes. Raises LookupError for a section that the README does not have."""
    known, elsewhere = sections(readme), places()
    return _MARKER.sub(lambda match: _LINK.sub(lambda link: _rewritten(link[1], elsewhere), known[match[1]]), chapter)


def linkable(text: str, folder: Path) -> str:
    """A page of a folder as the site links it: to the chapters in place of the README, not to folders, not in headings.

    text: also a notebook's, which is JSON.
    """
    elsewhere = {None: f"/docs/guide/{FIRST}", **places()}
    text = _README_LINK.sub(lambda link: f"]({elsewhere[link[1]]})", text)
    text = _LINKED_HEADING.sub(r"\1\2", text)
    return _WHOLE_LINK.sub(lambda link: link[1] if (folder / link[2]).is_dir() else link[0], text)


def _rewritten(target: str, elsewhere: dict[str, str]) -> str:
    if target.startswith("#"):
        return f"]({elsewhere[target[1:]]})"
    return f"]({target})" if "://" in target else f"](/{target})"
