"""The run view: what a launch was called with, and what its tensors hold now."""

from __future__ import annotations

from itertools import islice
from typing import Any

from flydsl.compiler import Launch
from workbench.html import code, escape, table

_MAX_VALUE_CHARS = 40
_MAX_ELEMENTS = 8


def run_html(launch: Launch) -> str:
    """A table of the arguments, tensors with their first elements."""
    rows = [
        [code(parameter.name), escape(value_text(value)), escape(_elements(value))]
        for parameter, value in zip(launch.function.signature.parameters, launch.arguments, strict=True)
    ]
    return table(("argument", "value", "first elements now"), rows)


def value_text(value: Any) -> str:
    """A value in a few words; a tensor as its type."""
    if hasattr(value, "dtype") and hasattr(value, "shape"):
        sizes = ", ".join(map(str, value.shape))
        return f"{str(value.dtype).removeprefix('torch.')}[{sizes}]"
    if hasattr(value, "__name__"):
        return str(value.__name__)
    text = repr(value)
    # An address differs from run to run.
    return text if len(text) <= _MAX_VALUE_CHARS and " at 0x" not in text else type(value).__name__


def _elements(value: Any) -> str:
    """The first elements of a tensor, along its rows."""
    if not (hasattr(value, "numel") and hasattr(value, "flatten")):
        return ""
    first = ", ".join(f"{element:.6g}" for element in islice(value.flatten()[:_MAX_ELEMENTS].tolist(), _MAX_ELEMENTS))
    return f"{first}, …" if value.numel() > _MAX_ELEMENTS else first
