"""Kinds of launches, each of which has an error of its own."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from flydsl.arch import GFX950, GFX1201
from flydsl.simulator.timing.accuracy import error_percent, kind_of
from flydsl.simulator.timing.trace import Unit


def replay(*, matrix: int = 1000, transcendental: int = 0, memory_part: float = 0.2) -> Any:
    busy = {Unit.MATRIX: matrix, Unit.TRANSCENDENTAL: transcendental}
    return SimpleNamespace(state=SimpleNamespace(busy=busy), memory_part=memory_part, matrix_part=0.5, ends=[1, 2])


def test_products_of_what_a_table_says_are_routed() -> None:
    assert kind_of(replay(), 50.0) == "matrix"
    assert kind_of(replay(), 50.0, routed=True) == "routed"
    assert kind_of(replay(memory_part=0.9), 50.0, routed=True) == "routed"
    assert kind_of(replay(), 5.0, routed=True) == "short"


def test_attention_with_a_table_of_pages_is_no_product() -> None:
    assert kind_of(replay(transcendental=300), 50.0, routed=True) is None


@pytest.mark.parametrize("kind", ["short", "parts", "memory", "matrix", "routed", "latency", "stream", "short vector"])
def test_errors_are_those_of_the_gpus_that_were_compared(kind: str) -> None:
    assert error_percent(GFX950, kind)
    assert error_percent(GFX1201, kind) is None
