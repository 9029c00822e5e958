"""The arguments of launches, in a few words."""

from __future__ import annotations

from typing import Any

_MAX_VALUE_CHARS = 40


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
