"""Walking a module."""

from __future__ import annotations

import signal
from typing import Any

import pytest
from mlir import ir

from flydsl.dialect.context import context
from flydsl.dialect.walk import operations

TEXT = "func.func @f() { scf.execute_region { func.call @f() : () -> () scf.yield } return }"


def test_operations_come_outer_before_inner() -> None:
    with context():
        module = ir.Module.parse(TEXT).operation
        names = [op.name for op in operations(module)]
    assert names == ["func.func", "scf.execute_region", "func.call", "scf.yield", "func.return"]


def test_an_interrupt_on_the_way_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """MLIR turns what is raised in a callback into a RuntimeError."""

    class Interrupting:
        """What the callback returns; asking for it is the moment at which Ctrl-C arrives."""

        @property
        def ADVANCE(self) -> Any:
            signal.raise_signal(signal.SIGINT)
            return None

    with context():
        module = ir.Module.parse(TEXT).operation
        monkeypatch.setattr(ir, "WalkResult", Interrupting())
        with pytest.raises(KeyboardInterrupt):
            operations(module)
