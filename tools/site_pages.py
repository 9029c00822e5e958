"""Pages of the repository as the documentation site shows them: quotes of the README, and links.

In a page of `docs`, `<!-- README: A kernel -->` stands for the text of that section, up to the next heading, so that it
is written once. Its links are counted from the root of the repository, where the README is.
"""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"

_README_LINK = re.compile(r"\]\((?:\.\./)+README\.md(?:#[\w-]+)?\)")
_MARKER = re.compile(r"^<!-- README: (.+) -->$", re.MULTILINE)
_COMMENT = re.compile(r"^<!-- [^\n]* -->\n", re.MULTILINE)
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


def expanded(page: str, readme: str) -> str:
    """A page with what it quotes. Raises KeyError for a section that the README does not have."""
    known = sections(readme)
    return _MARKER.sub(lambda marker: _LINK.sub(_from_root, _COMMENT.sub("", known[marker[1]])), page)


def linkable(text: str, folder: Path) -> str:
    """A page of a folder as the site links it: to the front page for the README, not to folders, not in headings.

    text: also a notebook's, which is JSON.
    """
    text = _README_LINK.sub("](/docs/index.md)", text)
    text = _LINKED_HEADING.sub(r"\1\2", text)
    return _WHOLE_LINK.sub(lambda link: link[1] if (folder / link[2]).is_dir() else link[0], text)


def indexed(page: str) -> str:
    """A page of `docs/fx` with an entry of the index for every name, by which the site's search finds it first."""
    entries = {m.start(): _entries(m[1]) for m in _HEADING.finditer(page) if m[1].startswith("fx.")}
    for start, entry in sorted(entries.items(), reverse=True):
        page = f"{page[:start]}{entry}{page[start:]}"
    return page


def _entries(heading: str) -> str:
    return f"```{{index}} {', '.join(f'! {name}' for name in heading.split(', '))}\n```\n"


def _from_root(link: re.Match[str]) -> str:
    target = link[1]
    return link[0] if "://" in target or target.startswith("#") else f"](/{target})"
