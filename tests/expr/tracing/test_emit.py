"""Operations that are created while a kernel is traced."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.errors import TraceError
from flydsl.expr.tracing.emit import emit, target_name


def test_an_operation_that_mlir_has_not(trace: Callable[..., Any]) -> None:
    with pytest.raises(TraceError, match=r"no operation rocdl\.none") as info:
        trace(lambda A, Out: emit("rocdl.none"))
    assert info.value.at.file == __file__


@pytest.mark.parametrize("arch", ["gfx942", "gfx950"])
def test_target_is_known_in_kernels_and_launchers(arch: str) -> None:
    found = []

    @flyc.kernel
    def empty() -> None:
        found.append(target_name())

    @flyc.jit
    def launch(n: fx.Int32) -> None:
        found.append(target_name())
        empty().launch(grid=1, block=64)

    assert launch.lower(1, arch=arch).artifact.kernels
    assert found == [arch, arch]
    assert target_name() is None
