"""The layouts that a kernel works with: every static one in the module as traced, each drawn once."""

from __future__ import annotations

import re
from collections.abc import Iterator

from flydsl.compiler import Pipeline
from flydsl.layout import ComposedLayout, Layout, parse
from workbench.kit.html import code, details, escape, title
from workbench.layouts import layout_bundle
from workbench.stages.levels import Level, mlir_level, place_key

_LAYOUT = re.compile(r"!fly\.(?:composed_)?layout<(.*)>")
_KNOWN_AT_RUN_TIME = ("?", "*")


def layouts_of(traced: Level) -> Iterator[tuple[Layout | ComposedLayout, str]]:
    """Each layout that an operation of a module makes, once, with the line that makes it."""
    seen: set[str] = set()
    for line, place in zip(traced.lines, traced.places, strict=True):
        found = _LAYOUT.fullmatch(_last_type(line))
        if found is None or found[1] in seen or any(sign in found[1] for sign in _KNOWN_AT_RUN_TIME):
            continue
        seen.add(found[1])
        layout = parse(found[1])
        if isinstance(layout, Layout | ComposedLayout):
            yield layout, "" if place is None else place_key(place)


def _last_type(line: str) -> str:
    """The type at the end of an operation's line, which is its result's; a layout may stand in it, as in an atom's.

    >>> _last_type("%1 = fly.f(%0) : (i32) -> !fly.tiled_mma<!fly.mma_atom<x>, !fly.layout<1:0>>")
    '!fly.tiled_mma<!fly.mma_atom<x>, !fly.layout<1:0>>'
    """
    line = line.rstrip()
    open_brackets = 0
    for position in range(len(line) - 1, -1, -1):
        open_brackets += (line[position] == ">" and line[position - 1] != "-") - (line[position] == "<")
        if not open_brackets:
            start = line.rfind("!", 0, position + 1)
            return line[start:] if start >= 0 else ""
    return ""


def layouts_html(pipeline: Pipeline) -> str:
    """The layouts of a compilation, folded."""
    parts = []
    for layout, place in layouts_of(mlir_level("traced", pipeline, 0)):
        bundle = layout_bundle(layout)
        content = bundle.get("text/html") or title(escape(bundle["text/plain"]))
        parts.append(details(f"{code(str(layout))} {escape(place)}", content))
    return "".join(parts) or title("The kernel makes no layout that is known at compile time.")
