from __future__ import annotations

import signal

import pytest

from flydsl.dialect import definition
from flydsl.dialect.context import lock


def test_an_operation_is_defined_once_though_ctrl_c_is_pressed(monkeypatch: pytest.MonkeyPatch) -> None:
    """MLIR ends the process when it is told of an operation again."""
    texts: list[str] = []

    def extend(text: str) -> None:
        texts.append(text)
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(definition, "extend", extend)
    monkeypatch.setattr(definition, "_known", set())
    previous = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with lock, pytest.raises(KeyboardInterrupt):
            definition.define_operations([("anything", 1, 1)])
        with lock:
            definition.define_operations([("anything", 1, 1)])
    finally:
        signal.signal(signal.SIGINT, previous)
    assert len(texts) == 1
