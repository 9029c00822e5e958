"""Operation classes and functions of `flydsl._mlir` on operands of every sort, in kernels that are lowered to LLVM IR.

A builder makes an operation or raises an error of this package that names the line; so does the compilation. Nothing
ends the process.
"""

from __future__ import annotations

import importlib
import inspect
import random
from typing import Any

import torch

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl._mlir import ir
from flydsl._mlir.dialects import func, scf
from flydsl.errors import FlyError
from flydsl.expr.tracing.builder import MlirBuilder
from flydsl.expr.typing import T
from tests.fuzz.workers import run_trials

DIALECTS = (
    "arith", "builtin", "cf", "func", "gpu", "llvm", "math", "memref", "rocdl", "scf", "vector", "fly", "fly_rocdl",
)  # fmt: skip
MOST_CALLS = 4
# What ends a block or begins another program is not an operation in the middle of a kernel.
_NOT_CALLED = ("Adaptor", "register_", "_Dialect")
TYPES = (
    "i1", "i8", "i32", "i64", "index", "f16", "bf16", "f32", "f64", "vector<4xf32>", "vector<2xi32>", "vector<1xi1>",
    "vector<2x2xf32>", "vector<8xbf16>", "!llvm.ptr", "!llvm.ptr<1>", "!llvm.ptr<3>", "!llvm.struct<(i32, i32)>",
    "memref<4xf32>", "memref<?xi32, 3>", "none", "tuple<i32>", "!gpu.async.token", "i128", "f8E4M3FNUZ",
    "tensor<4xf32>",
    "vector<[4]xf32>", "!llvm.array<4 x i32>", "!llvm.void", "(i32) -> i32", "ui8", "si32",
)  # fmt: skip
ATTRIBUTES = (
    "1 : i32", "-1 : i64", "true", '"text"', "@symbol", "array<i64: 0>", "array<i32: 1, 2>", "unit", "[1, 2]", "f32",
    "#arith.fastmath<fast>", "#gpu<dim x>", "{a = 1}", "1.5 : f32", "dense<1> : vector<2xi32>",
    "affine_map<(d0) -> (d0)>",
)  # fmt: skip
JUNK = (None, -1, 2**40, 1.5, float("nan"), "x", "slt", b"4", object(), {}, [], (), [None], ["x"], [[1]], len, True)


def builders() -> dict[str, Any]:
    """Everything of the dialects that makes operations, by name."""
    found = {}
    for dialect in DIALECTS:
        module = importlib.import_module(f"flydsl._mlir.dialects.{dialect}")
        for name in dir(module):
            if not name.startswith("_") and not name.endswith(_NOT_CALLED) and not name.startswith(_NOT_CALLED):
                value = getattr(module, name, None)
                if isinstance(value, MlirBuilder):
                    found[f"{dialect}.{name}"] = value
    return found


BUILDERS = builders()


class Operands:
    """Operands of every sort, most of them values."""

    def __init__(self, numbers: random.Random, tensor: Any) -> None:
        self.random = numbers
        lane = fx.thread_idx.x
        self.values: list[Any] = [
            fx.Int32(lane), fx.Index(lane), fx.Float32(1.5), lane < 3, fx.Int64(7), fx.Float16(2.0), tensor,
            fx.get_iter(tensor),
            fx.Vector.filled(4, 1.0, fx.Float32), fx.Vector.filled(2, 3, fx.Int32), fx.Int8(lane.to(fx.Int8)),
        ]  # fmt: skip

    def stray(self) -> Any:
        """A value that no operation of the kernel may take: of no block, of a region that it is not in, of none."""
        return self.random.choice([_detached, _of_a_region, _of_a_detached_block, _of_another_module, _erased])()

    def any(self) -> Any:
        makers = [self.value] * 10 + [self.kind] * 4 + [self.list_of_values] * 3 + [self.attribute] * 2
        return self.random.choice([*makers, self.junk, self.number, self.types, self.stray])()

    def value(self) -> Any:
        return self.random.choice(self.values)

    def kind(self) -> Any:
        return self.random.choice([lambda: ir.Type.parse(self.random.choice(TYPES)), lambda: self.value().type])()

    def types(self) -> Any:
        return [self.kind() for _ in range(self.random.randint(0, 2))]

    def attribute(self) -> Any:
        return ir.Attribute.parse(self.random.choice(ATTRIBUTES))

    def list_of_values(self) -> Any:
        return [self.any() if self.random.random() < 0.1 else self.value() for _ in range(self.random.randint(0, 3))]

    def number(self) -> Any:
        return self.random.choice([0, 1, 2, 3, 4, 8, 16])

    def junk(self) -> Any:
        return self.random.choice(JUNK)


def _constant(ip: Any = None) -> ir.Operation:
    one = ir.IntegerAttr.get(T.i32, 1)
    return ir.Operation.create("arith.constant", results=[T.i32], attributes={"value": one}, ip=ip)


def _detached() -> Any:
    return _constant(ip=False).result


def _of_a_region() -> Any:
    branch = scf.IfOp(fx.thread_idx.x < 3)
    with ir.InsertionPoint(branch.then_block):
        inner = _constant().result
        scf.YieldOp([])
    return inner


def _of_a_detached_block() -> Any:
    return func.FuncOp("aside", ([T.i32], []), ip=False).add_entry_block().arguments[0]


_modules: list[ir.Module] = []  # whose values live on


def _of_another_module() -> Any:
    module = ir.Module.parse("%0 = arith.constant 1 : i32")
    _modules.append(module)
    return module.body.operations[0].result


def _erased() -> Any:
    made = _constant()
    value = made.result
    made.erase()
    return value


def _call(operands: Operands, name: str) -> None:
    """Call a builder; what it makes is an operand of later calls."""
    try:
        parameters = inspect.signature(BUILDERS[name]._target).parameters.values()
    except (AttributeError, TypeError, ValueError):
        parameters = ()
    needed = [p for p in parameters if p.default is p.empty and p.kind == p.POSITIONAL_OR_KEYWORD and p.name != "self"]
    count = len(needed) if needed else operands.random.randint(0, 3)
    given = [operands.any() for _ in range(count)]
    optional = [p.name for p in parameters if p.default is not p.empty and p.name not in ("loc", "ip")]
    chosen = {n: operands.any() for n in optional if operands.random.random() < 0.1}
    made = BUILDERS[name](*given, **chosen)
    results = made if isinstance(made, list | tuple) else list(getattr(made, "results", [made]))
    operands.values += [value for value in results if isinstance(value, ir.Value)]


def trial(numbers: random.Random) -> None:
    """A kernel of some calls, and its way to LLVM IR."""
    names = [numbers.choice(list(BUILDERS)) for _ in range(numbers.randint(1, MOST_CALLS))]

    @flyc.kernel
    def kernel(A: fx.Tensor):
        operands = Operands(numbers, A)
        for name in names:
            try:
                _call(operands, name)
            except FlyError as error:
                assert error.at is not None, f"{name}: {error!r} has no place"  # noqa: PT017
        A[fx.thread_idx.x] = 1.0

    @flyc.jit
    def launch(A: fx.Tensor):
        kernel(A).launch(grid=1, block=64)

    assert T.f32 is not None
    try:
        launch.lower(torch.zeros(64)).run(until="reconcile-unrealized-casts")
    except FlyError:
        pass
    except Exception as error:
        raise AssertionError(f"{names}: {type(error).__name__}: {error}") from error


def run(seed: int, count: int) -> None:
    """Make trials in child processes."""
    run_trials(trial, seed, count)
