"""A value of the DSL and an `ir.Value` are two faces of one thing."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from typing import Any

import pytest
import torch
from flydsl._mlir.dialects._arith_ops_gen import MulFOp

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl._mlir import ir
from flydsl._mlir.dialects import arith, func, llvm, scf, vector
from flydsl._mlir.dialects import math as mlir_math
from flydsl.dialect.context import context
from flydsl.errors import ArgumentError, FlyError, TraceError
from flydsl.expr.typing import T
from tests.launchers import launcher_of
from tests.messages import raises_saying

pytestmark = pytest.mark.slow

LANE = torch.arange(64, dtype=torch.int32)


def test_operations_take_values_of_the_dsl_and_their_results_have_operators(lanes: Callable[..., torch.Tensor]) -> None:
    def body(lane: Any) -> Any:
        product = arith.muli(lane, lane)
        total = arith.AddIOp(product, fx.Int32(1)).result
        return (total * 2 - lane) // 3 + (total > 50).select(fx.Int32(1000), total % 7) + (5 ^ total & 3)

    total = LANE * LANE + 1
    expected = (total * 2 - LANE) // 3 + torch.where(total > 50, 1000, total % 7) + (5 ^ total & 3)
    assert torch.equal(lanes(body), expected)


def test_floats_and_vectors_have_them_too(lanes: Callable[..., torch.Tensor]) -> None:
    def body(lane: Any) -> Any:
        x = MulFOp(lane.to(fx.Float32), fx.Float32(0.5)).result
        pair = vector.from_elements(T.vec(2, T.f32), [x, x + 1])
        root = mlir_math.sqrt(pair * pair)
        return root[0] + root[1] - 1.0 + len(root)

    assert torch.equal(lanes(body, dtype=torch.float32), LANE.float() + 2)


def test_both_faces_are_instances_of_value_and_convert(lanes: Callable[..., torch.Tensor]) -> None:
    seen = []

    def body(lane: Any) -> Any:
        raw = arith.addi(lane, lane)
        seen.extend([isinstance(lane, ir.Value), isinstance(raw, ir.Value), isinstance(fx.Index(3), ir.Value)])
        seen.extend([isinstance(3, ir.Value), isinstance("x", ir.Value)])
        seen.append(ir.Value(lane).type == lane.type == raw.type == T.i32)
        seen.append(raw.owner.name == "arith.addi" and lane.owner.name != "arith.addi")
        seen.append({raw: "found"}[raw] == "found" and raw.result.ir_value() == raw)
        return raw

    assert torch.equal(lanes(body), LANE * 2)
    assert seen == [True, True, True, False, False, True, True, True]


def test_a_result_reads_in_errors_as_the_value_of_the_dsl(lanes: Callable[..., torch.Tensor]) -> None:
    def body(lane: Any) -> Any:
        assert repr(arith.addi(lane, lane)) == repr(lane + lane)
        fx.rocdl.s_waitcnt(arith.addi(lane, lane))

    with pytest.raises(ArgumentError, match=r"s_waitcnt: Int32\(\?\) is part of the instruction"):
        lanes(body)


def test_regions_built_by_hand(lanes: Callable[..., torch.Tensor]) -> None:
    def body(lane: Any) -> Any:
        branch = scf.IfOp(lane < 16, [T.i32], has_else=True)
        with ir.InsertionPoint(branch.then_block):
            scf.YieldOp([lane * 10])
        with ir.InsertionPoint(branch.else_block):
            scf.YieldOp([fx.Int32(7)])
        loop = scf.ForOp(fx.Index(0), fx.Index(4), fx.Index(1), [branch.results[0]])
        with ir.InsertionPoint(loop.body):
            scf.YieldOp([loop.inner_iter_args[0] + fx.Int32(loop.induction_variable)])
        return loop.results[0]

    assert torch.equal(lanes(body), torch.where(LANE < 16, LANE * 10, 7) + 6)


def test_a_while_built_of_blocks(lanes: Callable[..., torch.Tensor]) -> None:
    def body(lane: Any) -> Any:
        loop = scf.WhileOp([T.i32, T.i32], [lane, fx.Int32(0)])
        before = ir.Block.create_at_start(loop.regions[0], [T.i32, T.i32])
        after = ir.Block.create_at_start(loop.regions[1], [T.i32, T.i32])
        with ir.InsertionPoint(before):
            left, steps = before.arguments
            scf.ConditionOp(left > 1, [left, steps])
        with ir.InsertionPoint(after):
            left, steps = after.arguments
            scf.YieldOp([left >> 1, steps + 1])
        return loop.results[1]

    assert torch.equal(lanes(body), torch.tensor([max(int(n).bit_length() - 1, 0) for n in LANE], dtype=torch.int32))


def test_raw_values_cross_python_branches_and_loops(lanes: Callable[..., torch.Tensor]) -> None:
    out = torch.zeros(64, dtype=torch.int32)

    @flyc.kernel
    def kernel(Out: fx.Tensor):
        x = arith.muli(fx.Int32(fx.thread_idx.x), fx.Int32(3))
        if x > 30:
            x = arith.subi(x, fx.Int32(30))
        for _ in range(3):
            x = arith.addi(x, fx.Int32(1))
        Out[fx.thread_idx.x] = x

    launch = launcher_of(kernel, grid=1, block=64)
    launch(out)
    assert torch.equal(out, torch.where(LANE > 10, LANE * 3 - 30, LANE * 3) + 3)


def test_nan_is_not_itself(lanes: Callable[..., torch.Tensor]) -> None:
    def body(lane: Any) -> Any:
        x = llvm.bitcast(T.f32, fx.Int32(0x7FC00000))
        return (x != x).select(fx.Int32(1), fx.Int32(0)) + (x == x).select(fx.Int32(2), fx.Int32(0))

    assert torch.equal(lanes(body), torch.ones(64, dtype=torch.int32))


def test_a_raw_value_decides_no_python_branch(lanes: Callable[..., torch.Tensor]) -> None:
    def body(lane: Any) -> Any:
        return bool(arith.addi(lane, lane))

    with pytest.raises(TraceError, match="bool\\(\\) of a runtime Int32 cannot be traced"):
        lanes(body)


def test_what_is_wrong_with_an_operation_is_said_where_it_is_made(lanes: Callable[..., torch.Tensor]) -> None:
    def body(lane: Any) -> Any:
        return arith.AddIOp(lane, fx.Int64(1)).result

    with pytest.raises(ArgumentError, match="AddIOp") as caught:
        lanes(body)
    assert caught.value.at.file == __file__
    assert caught.value.at.line == body.__code__.co_firstlineno + 1


def test_nothing_is_built_outside_of_a_kernel() -> None:
    with pytest.raises(TraceError, match="outside a kernel"):
        arith.ConstantOp(None, 1)


def test_names_are_those_of_mlir() -> None:
    import mlir.ir
    from mlir.dialects import arith as upstream

    assert ir.F32Type is mlir.ir.F32Type
    assert ir.IntegerType == mlir.ir.IntegerType
    assert isinstance(mlir.ir.Type.parse("i8", context()), ir.IntegerType)
    assert arith.CmpIPredicate is upstream.CmpIPredicate
    assert issubclass(upstream.AddIOp, arith.AddIOp)
    with pytest.raises(AttributeError):
        arith.NoSuchOp  # noqa: B018
    with pytest.raises(ImportError):
        import flydsl._mlir.dialects.nothing  # noqa: F401


def test_operands_that_end_mlir_are_an_error_at_their_line(lanes: Callable[..., torch.Tensor]) -> None:
    """The builder infers its result from a vector type without looking whether it is one: an assertion in C++."""

    def body(lane: Any) -> Any:
        vector.ToElementsOp(lane)
        return lane

    with pytest.raises((TraceError, ArgumentError), match="ToElementsOp") as caught:
        lanes(body)
    assert caught.value.at.line == body.__code__.co_firstlineno + 1


def _erased(lane: Any) -> Any:
    gone = arith.AddIOp(lane, lane)
    gone.operation.erase()
    return gone.result


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (lambda lane: ir.Type.parse("!llvm.no_type"), "unknown LLVM type"),
        (lambda lane: ir.VectorType.get([0], ir.F32Type.get()), "positive constant sizes"),
        (lambda lane: ir.VectorType.get([4], lane), "incompatible function arguments"),
        (lambda lane: ir.VectorType(lane.type), "Cannot cast type"),
        (lambda lane: ir.IntegerType.get_signless(1 << 24), "16777216 bits"),
        (lambda lane: ir.IntegerAttr.get(ir.F32Type.get(), 1), "IntegerAttr of type f32"),
        (lambda lane: ir.Operation.create("no.operation", results=[lane.type]), "unregistered dialect"),
        (lambda lane: ir.Operation.create("arith.addi", results=[lane.type], operands=[lane]), "expected 2 operands"),
        (_erased, "invalidated"),
    ],
)
def test_what_mlir_refuses_is_an_error_at_its_line(
    lanes: Callable[..., torch.Tensor], wrong: Callable[[Any], Any], said: str
) -> None:
    with raises_saying(FlyError, said) as caught:
        lanes(wrong)
    assert caught.value.at is not None
    lines, first = inspect.getsourcelines(wrong)
    assert first <= caught.value.at.line < first + len(lines)


def _used_and_erased(lane: Any) -> Any:
    twice = lane + lane
    lane = twice * 3
    twice.ir_value().owner.erase()
    return lane


def _used_and_detached(lane: Any) -> Any:
    twice = lane + lane
    lane = twice * 3
    twice.ir_value().owner.detach_from_parent()
    return lane


def _made_in_no_block(lane: Any) -> Any:
    one = ir.IntegerAttr.get(lane.type, 1)
    made = ir.Operation.create("arith.constant", results=[lane.type], attributes={"value": one}, ip=False)
    return fx.Int32(made.result) + 1


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (_used_and_erased, "erase: MLIR cannot take"),
        (_used_and_detached, "in no block"),
        (_made_in_no_block, "in no block"),
        (lambda lane: (func.FuncOp("no_function", lane.type), lane)[1], "function"),
    ],
)
def test_an_operation_out_of_its_place(
    lanes: Callable[..., torch.Tensor], wrong: Callable[[Any], Any], said: str
) -> None:
    """MLIR ends the process when an operation goes whose values are used; the last has no function's type."""
    with raises_saying(FlyError, said) as caught:
        lanes(wrong)
    assert caught.value.at is not None


def test_an_operation_by_name_takes_values_of_the_dsl(lanes: Callable[..., torch.Tensor]) -> None:
    def doubled(lane: Any) -> Any:
        return ir.Operation.create("arith.addi", results=[lane.type], operands=[lane, fx.Int32(lane)]).result

    assert lanes(doubled).tolist() == [2 * lane for lane in range(64)]


def test_an_operation_behind_the_end_of_its_block(lanes: Callable[..., torch.Tensor]) -> None:
    def body(lane: Any) -> Any:
        scf.YieldOp([])
        return lane + 1

    with pytest.raises(TraceError, match="after an operation that ends its block"):
        lanes(body)


def test_a_branch_is_traced_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The operations that the compiler itself takes out end no process, so they need no trace in a copy of it."""

    @flyc.kernel
    def kernel(Out: fx.Tensor):
        lane = fx.thread_idx.x
        if lane < 3:
            Out[lane] = fx.Int32(1)

    monkeypatch.setattr(os, "fork", lambda: pytest.fail("traced in a copy"))
    assert "scf.if" in launcher_of(kernel, grid=1, block=64).lower(torch.zeros(64, dtype=torch.int32)).text_after(0)


def test_a_program_prints_once(lanes: Callable[..., torch.Tensor], capfd: pytest.CaptureFixture[str]) -> None:
    """The trace in a copy of the process, which looks for what would end it, leaves nothing behind."""
    seen = []

    def body(lane: Any) -> Any:
        x = arith.addi(lane, lane)
        print("traced", flush=True)
        seen.append(x)
        return x

    lanes(body)
    assert (capfd.readouterr().out, len(seen)) == ("traced\n", 1)


def test_a_trace_comes_to_the_call_that_would_end_the_process(lanes: Callable[..., torch.Tensor]) -> None:
    seen = []

    def body(lane: Any) -> Any:
        seen.append(arith.addi(lane, lane))
        return _used_and_erased(lane)

    with raises_saying(FlyError, "erase: MLIR cannot take"):
        lanes(body)
    assert len(seen) == 1


def test_an_interrupted_trace_leaves_no_copy_behind(
    lanes: Callable[..., torch.Tensor], monkeypatch: pytest.MonkeyPatch
) -> None:
    here, fork, copies = os.getpid(), os.fork, []

    def body(lane: Any) -> Any:
        x = arith.addi(lane, lane)
        if os.getpid() == here:
            raise KeyboardInterrupt
        return arith.addi(x, x)

    monkeypatch.setattr(os, "fork", lambda: copies.append(pid := fork()) or pid)
    with pytest.raises(KeyboardInterrupt):
        lanes(body)
    assert len(copies) == 1
    with pytest.raises(ProcessLookupError):
        os.kill(copies[0], 0)
