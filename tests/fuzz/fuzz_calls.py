"""Functions, methods and operators of `fx` on operands of every sort, in kernels that are compiled to machine code.

A call either works or raises one error that names its line, with a caret; so does the compilation. Nothing else is
raised, nothing takes long, nothing ends the process.
"""

from __future__ import annotations

import inspect
import operator
import random
from collections.abc import Callable
from enum import Enum
from typing import Any

import numpy as np
import torch

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.compiler.user_error import shown_to_user
from flydsl.dialect.types import FlyType
from flydsl.errors import FlyError
from flydsl.expr.layouts.coord_tensor import CoordTensor
from flydsl.expr.numbers.arith_value import ArithValue
from flydsl.expr.numeric import Numeric
from flydsl.expr.tracing.operands import FlyValue, StaticFlyValue
from tests.fuzz.workers import run_trials

MOST_CALLS = 4
MODULES = (fx, fx.arith, fx.math, fx.gpu, fx.rocdl, fx.buffer_ops, fx.vector, fx.coop, fx.tdm_ops)
# Of the architecture that the kernels are compiled for there is one matrix instruction of each family, so that there is
# room for other functions.
_FAMILIES = ("mfma_", "smfmac_", "wmma_", "swmmac_", "cvt_scale", "tensor_", "cluster_")
_LEFT_OUT = {
    "unknown_name", "add_methods",  # not the user's
    "range", "printf",  # of rewritten source; and the latter is a launch's
    "MlirBuilder", "by_thread", "from_body", "parse_body", "from_text", "element_of", "wrapped_to_width",  # our own
    "fits", "of", "load_op", "as_submodules",
}  # fmt: skip
OPERATORS = (
    operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod, operator.pow,
    operator.lshift, operator.rshift, operator.and_, operator.or_, operator.xor, operator.lt, operator.ge, operator.eq,
    operator.matmul, operator.getitem, operator.contains, divmod,
)  # fmt: skip
UNARY = (
    operator.neg, operator.pos, operator.invert, operator.abs, operator.index, bool, int, float, len, list, round, hash,
    str, repr, iter, complex,
)  # fmt: skip
JUNK = (
    None, -1, 2**40, 1.5, float("nan"), float("inf"), "x", "", b"4", object(), {}, [], (), [None], ["x"], [[1]], len,
    True, 1j, torch.float32, torch.zeros(4), np.float32(2), np.arange(3), fx, fx.Float32, fx.Int32, int, slice(None),
    Ellipsis, 10**30, -(2**63), range(3), {1, 2}, {"a": 1}, fx.Constexpr, fx.Tensor, "cpu", ...,
)  # fmt: skip


def functions() -> dict[str, Any]:
    """Everything of the modules that a kernel may call, by name."""
    found: dict[str, Any] = {}
    families: set[tuple[str, str]] = set()
    for module in MODULES:
        for name, value in sorted(vars(module).items()):
            here = getattr(value, "__module__", "").startswith(("flydsl.expr", "flydsl.atoms", "flydsl.layout"))
            if name.startswith("_") or name in _LEFT_OUT or not callable(value) or not here or is_internal(value):
                continue
            if module is not fx and (value.__module__ != module.__name__ and module is not fx.rocdl):
                continue
            family = next((f for f in _FAMILIES if name.startswith(f)), None)
            if family and (module.__name__, family) in families and "16x16x16f16" not in name:
                continue
            families.add((module.__name__, family or name))
            found[f"{module.__name__.removeprefix('flydsl.expr').removeprefix('.')}.{name}".lstrip(".")] = value
    return found


def is_internal(value: Any) -> bool:
    """True for classes whose instances functions make or raise."""
    return (
        isinstance(value, type)
        and issubclass(value, (BaseException, Enum, FlyType, FlyValue, StaticFlyValue, CoordTensor, ArithValue))
        and not (issubclass(value, Numeric) and hasattr(value, "mlir_name"))
    )


FUNCTIONS = functions()


class Operands:
    """Operands of every sort, most of them values of the program."""

    def __init__(self, numbers: random.Random, tensor: Any, integers: Any, n: Any) -> None:
        self.random = numbers
        lane = fx.thread_idx.x
        f32 = fx.make_copy_atom(fx.UniversalCopy(32), fx.Float32)
        mma_atom = fx.make_mma_atom(fx.rocdl.MFMA(16, 16, 4, fx.Float32))
        mma = fx.make_tiled_mma(mma_atom, fx.make_layout((1, 1, 1)))
        copy = fx.make_tiled_copy(f32, fx.make_layout((64, 1)), (8, 8))
        row_major = fx.make_ordered_layout((16, 16), (1, 0))
        shared = fx.make_view(fx.get_dyn_shared(fx.Float32), row_major)
        tile = fx.make_view(fx.get_iter(tensor), row_major)
        self.values: list[Any] = [
            n, fx.Int32(lane), fx.Index(lane), fx.Float32(1.5), lane < 3, fx.Int64(7), fx.Float16(2.0), tensor,
            integers, fx.get_iter(tensor), fx.get_dyn_shared(fx.Float32), fx.Uint8(3), fx.BFloat16(1.0),
            fx.Float64(2.5),
            fx.Vector.filled(4, 1.0, fx.Float32), fx.Vector.filled(2, 3, fx.Int32),
            fx.Int8(lane.to(fx.Int8)),
            fx.Vector.filled(4, 1.0, fx.Float16), fx.Vector.from_elements([n, n]), tensor[0, 0], integers[0],
            fx.make_layout(4), row_major, fx.make_layout((n, 4)), fx.make_layout(((2, 2), 4), ((1, 8), 2)),
            fx.make_composed_layout(fx.Swizzle(2, 2, 3), row_major), fx.Swizzle(3, 3, 3), fx.make_tile(4, 4),
            fx.make_rmem_tensor(4, fx.Float32), fx.make_rmem_tensor((2, 2), fx.Int32), shared, tile,
            fx.rocdl.make_buffer_tensor(tensor), fx.make_identity_tensor((4, 4)), f32, mma_atom, mma, copy,
            copy.get_slice(lane), mma.get_slice(lane), mma.get_slice(lane).make_fragment_A(tile),
            mma.get_slice(lane).make_fragment_C(tile), copy.get_slice(lane).partition_S(tile), fx.UniversalCopy(32),
            fx.rocdl.MFMA(16, 16, 4, fx.Float32), fx.E(0), fx.make_int_tuple((n, 2)), fx.thread_idx,
            fx.buffer_ops.create_buffer_resource(tensor), fx.AddressSpace.Shared, fx.SharedAllocator(),
            fx.ReductionOp.ADD, tensor.layout, tensor.shape,
        ]  # fmt: skip

    def any(self) -> Any:
        return self.random.choice([*[self.value] * 10, *[self.number] * 3, *[self.tuple] * 3, self.junk, self.kind])()

    def value(self) -> Any:
        return self.random.choice(self.values)

    def number(self) -> Any:
        return self.random.choice([0, 1, 2, 3, 4, 8, 16, 32, 64, 128, -1, 5, 0.5])

    def kind(self) -> Any:
        return self.random.choice([fx.Float32, fx.Float16, fx.Int32, fx.Int8, fx.Float8E4M3FNUZ, fx.Int64, fx.Index])

    def tuple(self) -> Any:
        given = tuple(self.any() if self.random.random() < 0.2 else self.number() for _ in range(self._few()))
        return self.random.choice((tuple, list))(given)

    def junk(self) -> Any:
        return self.random.choice(JUNK)

    def arguments(self, function: Any) -> tuple[list[Any], dict[str, Any]]:
        """Mostly as many as the function takes."""
        try:
            parameters = list(inspect.signature(function).parameters.values())
        except (TypeError, ValueError):
            return [self.any() for _ in range(self._few())], {}
        needed = [
            p for p in parameters if p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
        ]
        given = [self.any() for _ in needed]
        if any(p.kind == p.VAR_POSITIONAL for p in parameters):
            given += [self.any() for _ in range(self._few())]
        chance = self.random.random()
        given = given[:-1] if chance < 0.03 else [*given, self.any()] if chance < 0.06 else given
        optional = [p.name for p in parameters if p.default is not p.empty]
        return given, {name: self.any() for name in optional if self.random.random() < 0.2}

    def _few(self) -> int:
        return self.random.randint(0, 3)


def chosen_call(operands: Operands) -> tuple[str, Callable[[], Any]]:
    """A call, and what it is, for who reads of a finding."""
    kind = operands.random.choice(("function", "function", "method", "operator", "unary", "store"))
    if kind == "function":
        name = operands.random.choice(list(FUNCTIONS))
        function = FUNCTIONS[name]
    elif kind == "method":
        owner = operands.value()
        names = [n for n in dir(owner) if not n.startswith("_") and n not in _LEFT_OUT]
        if not names:
            return chosen_call(operands)
        name = operands.random.choice(names)
        function, name = (lambda owner=owner, name=name: getattr(owner, name)), f"{said(owner)}.{name}"
        try:
            bound = function()
        except FlyError:
            return name, function
        if not callable(bound):
            return name, function
        function = bound
    elif kind == "store":
        target, index, value = operands.value(), operands.any(), operands.any()
        return f"{said(target)}[{said(index)}] = {said(value)}", lambda: operator.setitem(target, index, value)
    else:
        function = operands.random.choice(OPERATORS if kind == "operator" else UNARY)
        values = [operands.value(), operands.any()][: 2 if kind == "operator" else 1]
        operands.random.shuffle(values)
        return f"{function.__name__}({', '.join(map(said, values))})", lambda: function(*values)
    given, keywords = operands.arguments(function)
    shown = ", ".join([*map(said, given), *(f"{key}={said(value)}" for key, value in keywords.items())])
    return f"{name}({shown})", lambda: function(*given, **keywords)


def said(value: Any) -> str:
    """A value as a message shows it, short."""
    text = repr(value)
    return text if len(text) < 80 else f"{text[:77]}..."


def check_error(error: Exception, what: str) -> None:
    """AssertionError if a user could not work with an error: its kind, its place, its caret, its message."""
    if not isinstance(error, FlyError):
        error.__cause__ = None
        raise error
    text = str(error)
    assert error.at is not None, f"{what}: no place\n{text}"
    assert error.at.file == __file__, f"{what}: at another file\n{text}"
    assert "^" in text, f"{what}: no caret\n{text}"
    assert len(error.message) > 8, f"{what}: says nothing\n{text}"
    assert error.hint, f"{what}: no hint\n{text}"
    assert error.__cause__ is None, f"{what}: of another error\n{text}"
    assert len(text) < 6000, f"{what}: a message of {len(text)} characters\n{text}"
    seen(error)


def seen(error: FlyError) -> None:
    """Called with every error, for who wants to read them."""


def trial(numbers: random.Random) -> None:
    """A kernel of some calls, and its way to machine code."""
    calls: list[str] = []

    @flyc.kernel
    def kernel(A: fx.Tensor, I: fx.Tensor, n: fx.Int32):  # noqa: E741
        operands = Operands(numbers, A, I, n)
        make_calls(operands, calls)

    @flyc.jit
    def launch(A: fx.Tensor, I: fx.Tensor, n: fx.Int32):  # noqa: E741
        kernel(A, I, n).launch(grid=1, block=64, smem=4096)

    try:
        launch.lower(torch.zeros(16, 16), torch.arange(64, dtype=torch.int32), 5).run()
    except Exception as error:
        if not isinstance(error, FlyError):
            raise AssertionError(f"{calls}: {type(error).__name__}: {error}") from error
        check_error(error, str(calls))


def make_calls(operands: Operands, calls: list[str]) -> None:
    """Some calls; what they give are operands of later ones."""
    for _ in range(operands.random.randint(1, MOST_CALLS)):
        what, call = chosen_call(operands)
        calls.append(what)
        try:
            made = call()
        except Exception as error:  # noqa: BLE001 - whatever it is, it is looked at
            error = shown_to_user(error)
            calls[-1] += "  # refused"
            check_error(error, what)
        else:
            operands.values.append(made)


def run(seed: int, count: int) -> None:
    """Make trials in child processes."""
    run_trials(trial, seed, count)
