"""The layouts that a kernel works with: every static one in the module as traced, each drawn once."""

from __future__ import annotations

import re
from collections.abc import Iterator

from flydsl.compiler import Pipeline
from flydsl.layout import ComposedLayout, Layout, parse
from workbench.kit.html import code, details, escape, title
from workbench.layouts import layout_bundle
from workbench.stages.levels import Level, mlir_level, place_key

# The result of an operation; "?" and "*" stand in layouts that are known at run time only.
_STATIC_LAYOUT = re.compile(r"!fly\.(?:composed_)?layout<([^?*!]*)>\s*$")


def layouts_of(traced: Level) -> Iterator[tuple[Layout | ComposedLayout, str]]:
    """Each layout that an operation of a module makes, once, with the line that makes it."""
    seen: set[str] = set()
    for line, place in zip(traced.lines, traced.places, strict=True):
        found = _STATIC_LAYOUT.search(line)
        if found is None or found[1] in seen:
            continue
        seen.add(found[1])
        layout = parse(found[1])
        if isinstance(layout, Layout | ComposedLayout):
            yield layout, "" if place is None else place_key(place)


def layouts_html(pipeline: Pipeline) -> str:
    """The layouts of a compilation, folded."""
    parts = []
    for layout, place in layouts_of(mlir_level("traced", pipeline, 0)):
        bundle = layout_bundle(layout)
        content = bundle.get("text/html") or title(escape(bundle["text/plain"]))
        parts.append(details(f"{code(str(layout))} {escape(place)}", content))
    return "".join(parts) or title("The kernel makes no layout that is known when compiling.")
