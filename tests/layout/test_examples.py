"""Results that FlyDSL 0.2.2 gave.

layout-examples.json: four cases for each of 33 operations. layout-examples-2.json: tiles of fewer modes than the
layout, modes of size 1, blocks of one mode.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import flydsl.layout
from flydsl.layout import make_layout, make_tile, parse, to_text

HERE = Path(__file__).parent
EXAMPLES = [
    example
    for name in ("layout-examples.json", "layout-examples-2.json")
    for example in json.loads((HERE / name).read_text())
]


def nested(value: Any) -> Any:
    return tuple(map(nested, value)) if isinstance(value, list) else value


def tile_mode(mode: Any) -> Any:
    return make_layout(*map(nested, mode)) if isinstance(mode, list) else mode


def argument(value: Any) -> Any:
    """{"L": [shape, stride]}, {"T": int tuple}, {"tile": modes}, {"CL": text}, or a plain number or list."""
    if not isinstance(value, dict):
        return value
    ((kind, content),) = value.items()
    if kind == "L":
        return make_layout(*map(nested, content))
    if kind == "tile":
        return make_tile(*map(tile_mode, content))
    return parse(content) if kind == "CL" else nested(content)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda e: f"{e['op']}{json.dumps(e['args'])}")
def test_example(example: dict[str, Any]) -> None:
    result = getattr(flydsl.layout, example["op"])(*map(argument, example["args"]))
    expected = example["text"].partition("<")[2].removesuffix(">")
    assert to_text(result) == expected
    assert str(result) == expected
