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


def test_methods_take_keywords(trace: Callable[..., Any]) -> None:
    """A thread's part of a copy and of a product, vectors and types."""

    def body(A: Any, Out: Any) -> None:
        atom = fx.make_copy_atom(fx.UniversalCopy(bit_size=32), elem_type=fx.Float32)
        copy = fx.make_tiled_copy(atom, fx.make_layout((64, 1), (1, 1)), fx.make_tile(64, 1)).get_slice(
            thr_idx=fx.thread_idx.x
        )
        tile = fx.zipped_divide(A, fx.make_tile(64, 8))[None, 0]
        copy.retile(t=fx.make_fragment_like(copy.partition_S(src=tile)))
        assert str(copy.partition_D(dst=tile).type) == str(copy.partition_S(tile).type)
        mma = fx.make_tiled_mma(fx.make_mma_atom(fx.UniversalFMA(ty=fx.Float32)), fx.make_layout((8, 8, 1), (1, 8, 0)))
        part = mma.thr_slice(thr_idx=fx.thread_idx.x)
        for keyword in ("a", "b", "c"):
            partition, fragment = (
                getattr(part, f"{name}_{keyword.upper()}") for name in ("partition", "make_fragment")
            )
            partition(**{keyword: tile})
            fragment(**{keyword: tile})
        filled = fx.Vector.filled(shape=4, fill_value=1.0, dtype=fx.Float32)
        assert fx.Vector.filled_like(template=filled, fill_value=2).broadcast_to(target_shape=(2, 4)).shape == (2, 4)
        assert fx.T.vec(n=4, elem=fx.T.f32) == filled.type
        assert fx.arith.constant_vector(element_value=0.0, vector_type=filled.type).type == filled.type
        fx.vector.fma(lhs=filled, rhs=filled, acc=filled)
        fx.arith.int_to_fp(src=Out[0], signed=True, res_elem_type=fx.T.f32)
        assert fx.arith.unwrap(val=3, type=fx.T.i64).type == fx.T.i64
        assert fx.arith.unwrap(Out[0], type=fx.T.i64).type == fx.T.i32

    trace(body)


def test_the_counters_of_cdna3_by_position(trace: Callable[..., Any]) -> None:
    def body(A: Any, Out: Any) -> list[str]:
        fx.rocdl.cdna3.s_waitcnt(3, 1)
        fx.rocdl.s_waitcnt(vmcnt=3, lgkmcnt=1)
        return [str(op) for op in ir.InsertionPoint.current.block.operations if op.operation.name == "rocdl.s.waitcnt"]

    positional, named = trace(body)
    assert positional == named
