"""FlyDSL's names of parameters as keywords."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from mlir import ir

import flydsl.expr as fx


def test_a_keyword_of_either_name() -> None:
    layout = fx.make_layout((4, 8), (1, 4))
    assert fx.complement(fx.make_layout(3, 1), codomain_size=12) == fx.make_layout(4, 3)
    assert fx.logical_divide(layout=fx.make_layout(16, 1), divisor=fx.make_layout(4, 1)) == fx.make_layout((4, 4))
    assert fx.size(int_tuple=layout) == 32
    assert fx.tile_to_shape(fx.make_layout(2, 1), trg_shape=8, ord_shape=0) == fx.make_layout((2, 4), (1, 2))
    with pytest.raises(TypeError, match="nonsense"):
        fx.size(layout, nonsense=1)


def test_the_place_of_an_operation(trace: Callable[..., Any]) -> None:
    """`ip` says where an operation goes; its location stays the user's line, whatever `loc` says."""

    def body(A: Any, Out: Any) -> list[str]:
        here = ir.InsertionPoint.current
        first = fx.get_scalar(fx.size(Out))
        marker = ir.InsertionPoint(first.value.owner)
        before = fx.size(A, ip=marker, loc=ir.Location.unknown())
        operations = [op.operation.name for op in here.block.operations]
        assert operations.index("fly.size") < operations.index("fly.get_scalar")
        assert "test_keywords" in str(before.value.owner.location)
        return operations

    operations = trace(body)
    assert operations.count("fly.size") == 2
