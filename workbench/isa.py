"""The ISA view: the machine code's listing."""

from __future__ import annotations

from workbench.html import details, escape, preformatted


def isa_html(isa: str, *, is_open: bool = False) -> str:
    """An assembly listing, folded; comments (which name source lines) stand back."""
    lines = isa.rstrip().splitlines()
    return details(f"ISA, {len(lines)} lines", preformatted("\n".join(map(_line, lines))), is_open=is_open)


def _line(line: str) -> str:
    code, semicolon, comment = line.partition(";")
    if not semicolon:
        return escape(line)
    return f'{escape(code)}<span style="opacity:0.65">;{escape(comment)}</span>'
