"""The documentation site: `make docs`. Pages are counted from the root of the repository, whose links they use."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.notebooks import NOTEBOOKS  # noqa: E402
from tools.docstring_markup import as_rst  # noqa: E402
from tools.site_pages import expanded, indexed, linkable  # noqa: E402

project = "FlyDSL Workbench"
author = "the authors of FlyDSL Workbench"
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.viewcode"]

root_doc = "docs/index"
include_patterns = [
    "docs/**.md",
    *(str(path.relative_to(ROOT)) for path in NOTEBOOKS),
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "kernels/README.md",
    "flydsl/simulator/COVERAGE.md",
    "flydsl/simulator/timing/ACCURACY.md",
]
exclude_patterns = [".venv", "build", "dist", "scratch", "**/.*"]

html_theme = "furo"
html_title = "FlyDSL Workbench"
html_show_copyright = False
html_extra_path = ["front"]
html_static_path = ["static"]
html_css_files = ["site.css"]

# Notebooks are shown as they were saved: they are run by the tests.
nb_execution_mode = "off"
myst_heading_anchors = 4
suppress_warnings = [
    "mystnb.unknown_mime_type",  # plotly's: what is shown beside it is the picture in words
    "misc.highlighting_failure",  # magics are not Python
    "ref.python",  # `type[...]` in an annotation is Python's, and not an attribute of that name
]

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
nitpicky = True
# Annotations name types of other packages and groups of types, which have no page.
nitpick_ignore_regex = [("py:.*", ".*")]


def read_source(app: Any, name: str, source: list[str]) -> None:
    """Put into a page what it quotes, and make its links those of the site."""
    if name.startswith("docs/"):
        source[0] = expanded(source[0], (ROOT / "README.md").read_text("utf-8"))
    if name.startswith("docs/fx/"):
        source[0] = indexed(source[0])
    source[0] = linkable(source[0], (ROOT / name).parent)


def read_docstring(app: Any, what: str, name: str, subject: Any, options: Any, lines: list[str]) -> None:
    """Turn a docstring's markup into Sphinx's."""
    lines[:] = as_rst(lines)


def setup(app: Any) -> None:
    """Called by Sphinx."""
    app.connect("source-read", read_source)
    app.connect("autodoc-process-docstring", read_docstring)
