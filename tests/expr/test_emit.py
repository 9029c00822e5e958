"""Operations that are created while a kernel is traced."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from flydsl.errors import TraceError
from flydsl.expr.emit import emit


def test_an_operation_that_mlir_has_not(trace: Callable[..., Any]) -> None:
    with pytest.raises(TraceError, match=r"no operation rocdl\.none") as info:
        trace(lambda A, Out: emit("rocdl.none"))
    assert info.value.at is not None
    assert info.value.at.file == __file__
