"""Modules that a program builds without a launcher: the DSL's operations in a function of MLIR's."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

import flydsl.expr as fx
from flydsl._mlir import ir
from flydsl._mlir.dialects import arith, fly, func, gpu, llvm, memref, vector
from flydsl._mlir.passmanager import PassManager
from flydsl.compiler.ast_rewriter import CanonicalizeWhile, InsertEmptyYieldForSCFFor, ReplaceIfWithDispatch
from flydsl.compiler.trace import CompilationContext
from flydsl.errors import FlyError

pytestmark = pytest.mark.slow


def built(body: Callable[..., Sequence[Any] | None], *kinds: Any) -> ir.Module:
    """A module with one function of these scalar types; it returns the numbers that `body` does."""
    with ir.Context() as ctx, ir.Location.unknown(ctx):
        module = ir.Module.create()
        with ir.InsertionPoint(module.body):
            function = func.FuncOp("f", ir.FunctionType.get([kind.ir_type for kind in kinds], []))
            block = function.add_entry_block()
            with ir.InsertionPoint(block):
                results = body(*(kind(value) for kind, value in zip(kinds, block.arguments, strict=True))) or []
                func.ReturnOp([result.ir_value() for result in results])
            types = [result.dtype.ir_type for result in results]
            signature = ir.FunctionType.get([kind.ir_type for kind in kinds], types)
            function.attributes["function_type"] = ir.TypeAttr.get(signature)
        assert module.operation.verify()
    return module


def constant(kind: Any, value: int) -> Any:
    return kind(arith.ConstantOp(kind.ir_type, value).result)


def test_every_context_is_the_one_that_types_belong_to() -> None:
    assert "arith.addi %arg0, %arg1 : i32" in str(built(lambda a, b: [a + b], fx.Int32, fx.Int32))
    with ir.Context() as outer, ir.Context() as inner:
        assert outer is inner
        assert isinstance(outer, ir.Context)


@pytest.mark.parametrize("kind", [fx.Int8, fx.Uint8, fx.Int16, fx.Uint16])
def test_small_integers_keep_their_type(kind: Any) -> None:
    text = str(built(lambda a, b: [a * b, a + 1], kind, kind))
    assert f"arith.muli %arg0, %arg1 : {kind.ir_type}" in text
    assert f"return %0, %{text.split('return %0, %')[1].split(':')[0].strip()} : {kind.ir_type}, i32" in text


def test_a_branch_of_functions() -> None:
    def body(condition: Any, x: Any) -> Any:
        kept = ReplaceIfWithDispatch.scf_if_dispatch(
            condition,
            lambda x, pair: {"x": x + 1, "pair": [x, pair[0]]},
            lambda x, pair: {"x": 7},
            state_names=("x", "pair"),
            state_values=(x, [x, x]),
        )
        assert isinstance(kept, tuple)
        return [kept[0], *kept[1]]

    text = str(built(body, fx.Boolean, fx.Int32))
    assert text.count("scf.if") == 1
    assert "-> (i32" in text


def test_a_branch_that_is_known_when_compiling_leaves_no_trace() -> None:
    def body(x: Any) -> Any:
        taken = ReplaceIfWithDispatch.scf_if_dispatch(
            3 > 2, lambda names, x: {"x": x + 1}, result_names=("x",), result_values=(x,)
        )
        left = ReplaceIfWithDispatch.scf_if_dispatch(False, lambda x: {"x": 0}, state_names=("x",), state_values=(x,))
        assert left is x
        return [taken]

    assert "scf" not in str(built(body, fx.Int32))


def test_loops_of_functions() -> None:
    def body(n: Any) -> Any:
        total, steps = InsertEmptyYieldForSCFFor.scf_for_dispatch(
            0,
            n,
            2,
            lambda i, names, total, steps: {"total": total + i, "steps": steps + 1},
            result_names=("total", "steps"),
            result_values=(constant(fx.Int32, 0), fx.Int32(0)),
        )
        halved = CanonicalizeWhile.scf_while_dispatch(
            lambda n: n > 1, lambda n: {"n": n // 2}, result_names=("n",), result_values=(total,)
        )
        return [halved, steps]

    text = str(built(body, fx.Int32))
    assert "scf.for" in text
    assert "scf.while" in text
    assert "-> (i32, i32)" in text


def test_a_loop_whose_body_the_caller_ends() -> None:
    from flydsl._mlir.dialects import scf

    def body(n: Any) -> Any:
        for i, (total,) in InsertEmptyYieldForSCFFor.scf_range(n, init=[fx.Int32(0)]):
            scf.YieldOp([fx.Int32(total) + fx.Int32(fx.Index(i))])

    assert "iter_args" in str(built(body, fx.Int32))


@pytest.mark.parametrize(
    ("dispatch", "said"),
    [
        (lambda c, x: ReplaceIfWithDispatch.scf_ifexp_dispatch(c, lambda: x, lambda: constant(fx.Int64, 2)), "Int64"),
        (
            lambda c, x: ReplaceIfWithDispatch.scf_if_dispatch(
                c, lambda x: {"x": constant(fx.Int64, 2)}, state_names=("x",), state_values=(x,)
            ),
            "type mismatch: 'x'",
        ),
        (
            lambda c, x: ReplaceIfWithDispatch.scf_if_dispatch(
                c, lambda x: {"x": [x, x]}, state_names=("x",), state_values=([x],)
            ),
            "type mismatch: 'x' is .* changed container shape",
        ),
        (
            lambda c, x: ReplaceIfWithDispatch.scf_if_dispatch(
                c, lambda x: {"x": 1}, state_names=("x",), state_values=(None,)
            ),
            "x is None before a runtime `if`",
        ),
        (
            lambda c, x: InsertEmptyYieldForSCFFor.scf_for_dispatch(
                0, 4, 1, lambda i, names, x: {"x": constant(fx.Int64, 1)}, result_names=("x",), result_values=(x,)
            ),
            "type mismatch: 'x' is i32 before the loop",
        ),
    ],
)
def test_values_of_two_types(dispatch: Callable[[Any, Any], Any], said: str) -> None:
    def body(condition: Any, x: Any) -> None:
        with pytest.raises(TypeError, match=said):
            dispatch(condition, x)

    with contextlib.suppress(ir.MLIRError):  # half a branch is left in the module
        built(body, fx.Boolean, fx.Int32)


def test_a_pass_manager_runs_fly_passes_and_mlirs() -> None:
    def body(n: Any) -> Any:
        layout = fx.make_layout((n, 8), (1, n))
        return [fx.get_scalar(fx.size(fly.coalesce(layout))), n + 0]

    module = built(body, fx.Int32)
    assert "fly.size" in str(module)
    manager = PassManager.parse("builtin.module(fly-canonicalize,fly-layout-lowering)")
    manager.enable_verifier(True)
    manager.add("canonicalize")
    assert repr(manager) == "PassManager(fly-canonicalize, fly-layout-lowering, canonicalize)"
    manager.run(module.operation)
    assert "fly." not in str(module)
    with pytest.raises(ValueError, match="fly-nothing"):
        PassManager.parse("builtin.module(fly-nothing)")


@pytest.mark.parametrize(
    "wrong",
    [
        lambda x: arith.AddIOp(x, fx.Float32(1.0)),
        lambda x: arith.AddFOp(x, x),
        lambda x: arith.ConstantOp(fx.Int32, None),
        lambda x: arith.CmpIOp(99, x, x),
        lambda x: llvm.LoadOp(x.ir_value().type, x),
        lambda x: llvm.GEPOp(x.ir_value().type, x, [], [], ir.F32Type.get()),
        lambda x: arith.SelectOp(x, x, None),
        lambda x: vector.extract(x, [], [0, 1, 2]),
        lambda x: memref.load(x, [x]),
        lambda x: gpu.ThreadIdOp(7),
    ],
)
def test_an_operation_that_mlir_cannot_take_never_ends_the_process(wrong: Callable[[Any], Any]) -> None:
    caught: list[FlyError] = []

    def body(x: Any) -> None:
        with pytest.raises(FlyError) as error:
            wrong(x)
        caught.append(error.value)

    with contextlib.suppress(ir.MLIRError):
        built(body, fx.Int32)
    assert "test_modules_by_hand.py" in str(caught[0])


def test_a_refused_expression_leaves_nothing_in_the_module() -> None:
    def body(condition: Any, x: Any) -> Any:
        with pytest.raises(FlyError, match="type mismatch"):
            ReplaceIfWithDispatch.scf_ifexp_dispatch(condition, lambda: x + 1, lambda: constant(fx.Int64, 2))
        return [x]

    assert "scf" not in str(built(body, fx.Boolean, fx.Int32))


@pytest.mark.parametrize(("aligned", "said"), [(32, True), (8, False)])
def test_atomics_say_how_a_pointer_is_aligned(aligned: int, said: bool) -> None:
    with ir.Context() as ctx, ir.Location.unknown(ctx):
        module = ir.Module.create()
        kind = fx.PointerType.get(fx.Int64.ir_type, fx.AddressSpace.Global, aligned)
        with ir.InsertionPoint(module.body):
            function = func.FuncOp("f", ir.FunctionType.get([kind], []))
            with ir.InsertionPoint(function.add_entry_block()):
                fx.atomic_add(function.entry_block.arguments[0], fx.Int64(1))
                fx.atomic_cas(function.entry_block.arguments[0], fx.Int64(1), fx.Int64(2))
                func.ReturnOp([])
        assert str(module).count(f"alignment = {aligned}") == 2 * said


def test_what_follows_a_trace_by_hand_happens_once(tmp_path: Path) -> None:
    """The copy of the process that traces ahead ends with the trace."""
    with CompilationContext.create():
        three = arith.ConstantOp(fx.Int32.ir_type, 3).result
        arith.addi(three, three)
    with open(tmp_path / "done", "a") as file:
        file.write("once\n")
    assert (tmp_path / "done").read_text() == "once\n"
