"""A page that opens from disk: it fetches nothing, and needs no server."""

from __future__ import annotations

from workbench.kit import line_list
from workbench.kit.html import escape

_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy"
 content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data: blob:">
<meta name="viewport" content="width=device-width">
<title>{title}</title>
<style>
:root {{ color-scheme: light dark; }}
body {{ font-family: system-ui, sans-serif; font-size: 14px; margin: 16px; }}
h1 {{ font-size: 20px; overflow-wrap: anywhere; }} h2 {{ font-size: 17px; }}
img {{ max-width: 100%; }}
@media print {{
  :root {{ print-color-adjust: exact; color-scheme: light; }}
  th, td {{ padding: 1px 3px !important; font-size: 90%; }}
  pre, div {{ max-height: none !important; }} pre {{ white-space: pre-wrap !important; overflow: visible !important; }}
}}
{style}
</style>
</head>
<body>
{body}
</body>
</html>
"""


def static_page(title: str, body: str, style: str = "") -> str:
    """The text of a page. title: text. body: HTML. style: further CSS."""
    return _PAGE.format(title=escape(title), body=body, style=line_list.style() + style)
