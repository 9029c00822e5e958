"""When a call compiles and when it does not."""

from __future__ import annotations

import dataclasses
import threading
import types
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import torch

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.compiler import jit_function
from flydsl.errors import FlyError, LaunchError
from tests.launchers import launcher_of


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the launchers that were compiled, in order."""
    names: list[str] = []

    class Counted(jit_function.Pipeline):
        def __init__(self, name: str, *rest: Any, **options: Any) -> None:
            names.append(name)
            super().__init__(name, *rest, **options)

    monkeypatch.setattr(jit_function, "Pipeline", Counted)
    return names


def make_fill(step: int = 1) -> flyc.JitFunction:
    @flyc.kernel
    def fill_kernel(A: fx.Tensor, value: fx.Int32):
        A[fx.thread_idx.x] = (value + step).to(A.dtype)

    @flyc.jit
    def fill(A: fx.Tensor, value: fx.Int32, again: fx.Constexpr = 0):
        fill_kernel(A, value).launch(grid=1, block=64)

    return fill


def test_a_second_call_compiles_nothing(compiled: list[str]) -> None:
    fill = make_fill()
    for value in (1, 5, -3):
        A = torch.zeros(64 + value * value)
        fill(A, value)
        assert (A[:64] == value + 1).all()
    assert compiled == ["fill"]


@pytest.mark.parametrize(
    "other",
    [
        lambda: (torch.zeros(64, dtype=torch.float16), 1),
        lambda: (torch.zeros(128)[::2], 1),
        lambda: (torch.zeros(64), 1, 2),
        lambda: (torch.zeros(64), 1, False),
        lambda: (torch.zeros(64), 1, 0.0),
        lambda: (torch.zeros(64), 1, "0"),
    ],
    ids=["dtype", "unit stride", "constexpr", "constexpr bool", "constexpr float", "constexpr str"],
)
def test_what_compiles_again(compiled: list[str], other: Any) -> None:
    fill = make_fill()
    fill(torch.zeros(64), 1)
    fill(*other())
    fill(torch.zeros(64), 1)
    assert compiled == ["fill"] * 2


def test_rank_and_mode_of_unit_stride_compile_again(compiled: list[str]) -> None:
    @flyc.kernel
    def kernel(A: fx.Tensor):
        A[fx.thread_idx.x] = 1

    ones = launcher_of(kernel, grid=1, block=64)
    for A in (torch.zeros(64), torch.zeros(8, 8), torch.zeros(8, 8).T, torch.zeros(16, 4)):
        ones(A)
        assert (A == 1).all()
    assert len(compiled) == 3


@pytest.mark.parametrize(("a", "b"), [((1,), (True,)), (0.0, -0.0), ((1, (2.0,)), (1, (2,)))], ids=str)
def test_constexprs_that_are_equal_in_python_only(compiled: list[str], a: Any, b: Any) -> None:
    fill = make_fill()
    fill(torch.zeros(64), 1, a)
    fill(torch.zeros(64), 1, b)
    fill(torch.zeros(64), 1, a)
    assert compiled == ["fill"] * 2


def test_arch_and_optimization_compile_again(compiled: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COMPILE_ONLY", "1")
    fill, A = make_fill(), torch.zeros(64)
    fill(A, 1)
    monkeypatch.setenv("FLYDSL_COMPILE_OPT_LEVEL", "3")
    fill(A, 1)
    monkeypatch.setenv("ARCH", "gfx950")
    fill(A, 1)
    fill(A, 1)
    assert len(compiled) == 3
    assert not A.any()


# --- surroundings ----------------------------------------------------------------------------------------------------

NOTEBOOK = """
import flydsl.compiler as flyc, flydsl.expr as fx
STEP = 1
TABLE = [1, 2]
NESTED = ([0],)
WIDTHS = {"a": 0}
CHOSEN = set()
class Config:
    step = 1
config = types.SimpleNamespace(step=1, other=0)
def helper(value):
    return value + STEP + TABLE[0] + Config.step + config.step + max(0, 0) + NESTED[0][0] + WIDTHS["a"] + len(CHOSEN)
@flyc.kernel
def kernel(A: fx.Tensor, value: fx.Int32):
    A[fx.thread_idx.x] = helper(value).to(fx.Float32)
@flyc.jit
def fill(A: fx.Tensor, value: fx.Int32):
    kernel(A, value).launch(grid=1, block=64)
"""


@pytest.fixture
def cell() -> dict[str, Any]:
    namespace: dict[str, Any] = {"__name__": "__main__", "types": types}
    exec(NOTEBOOK, namespace)
    return namespace


def filled(cell: dict[str, Any]) -> float:
    A = torch.zeros(64)
    cell["fill"](A, 0)
    return float(A[0])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "result"),
    [
        ("STEP = 10", 13),
        ("STEP = True; STEP += 1", 5),
        ("TABLE[0] = 7", 10),
        ("NESTED[0][0] = 2", 6),
        ("WIDTHS['a'] = 3", 7),
        ("CHOSEN.add(1)", 5),
        ("Config.step = 5", 8),
        ("config.step = 6", 9),
        ("def helper(value): return value + 20", 20),
        ("max = lambda *a: 30", 34),
        ("@flyc.kernel\ndef kernel(A: fx.Tensor, value: fx.Int32): A[fx.thread_idx.x] = 40.0", 40),
    ],
)
def test_a_change_of_what_is_read_compiles_again(
    cell: dict[str, Any], compiled: list[str], change: str, result: float
) -> None:
    assert filled(cell) == 4
    exec(change, cell)
    assert filled(cell) == result
    assert filled(cell) == result
    assert len(compiled) == 2


SURROUNDINGS = """
import array, collections, dataclasses, os, sys
import numpy as np, torch
import flydsl.compiler as flyc, flydsl.expr as fx
config = types.ModuleType("config"); config.BLOCK = 1; sys.modules["surrounding_config"] = config
STEP = 1
TABLE = np.array([1, 2]); RAW = bytearray(b"\x01"); QUEUE = collections.deque([1]); TYPED = array.array("i", [1])
SCALAR = torch.tensor(1); LARGE = torch.ones(5000)
class Hidden:
    def __init__(self): self._value = 1
    def compute(self): return self._value
    @property
    def value(self): return self.compute()
    def __call__(self, x): return x + self._value
class Slotted:
    __slots__ = ("value",)
    def __init__(self): self.value = 1
@dataclasses.dataclass(slots=True)
class Data: value: int = 1
hidden, slotted, data, nested = Hidden(), Slotted(), Data(), [Data()]
def read(holder): return holder.value
"""
LAUNCHER = """
@flyc.kernel
def kernel(A: fx.Tensor):
    A[fx.thread_idx.x] = fx.Float32(0) + ({expression})
@flyc.jit
def fill(A: fx.Tensor):
    kernel(A).launch(grid=1, block=64)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("expression", "change"),
    [
        ("config.BLOCK", "config.BLOCK = 2"),
        ("getattr(config, 'BLOCK')", "config.BLOCK = 2"),
        ("sys.modules['surrounding_config'].BLOCK", "config.BLOCK = 2"),
        ("globals()['STEP']", "STEP = 2"),
        ("int(TABLE[0])", "TABLE[0] = 2"),
        ("RAW[0]", "RAW[0] = 2"),
        ("QUEUE[0]", "QUEUE[0] = 2"),
        ("TYPED[0]", "TYPED[0] = 2"),
        ("int(SCALAR)", "SCALAR.fill_(2)"),
        ("int(LARGE[4000])", "LARGE[4000] = 2"),
        ("hidden.value", "hidden._value = 2"),
        ("hidden(0)", "hidden._value = 2"),
        ("read(hidden)", "hidden._value = 2"),
        ("slotted.value", "slotted.value = 2"),
        ("data.value", "data.value = 2"),
        ("read(nested[0])", "nested[0].value = 2"),
        ("int(os.environ.get('SURROUNDING_STEP', '1'))", "os.environ['SURROUNDING_STEP'] = '2'"),
        ("int(os.getenv('SURROUNDING_STEP', '1'))", "os.environ['SURROUNDING_STEP'] = '2'"),
    ],
)
def test_a_change_is_seen_wherever_it_is(
    monkeypatch: pytest.MonkeyPatch, compiled: list[str], expression: str, change: str
) -> None:
    monkeypatch.delenv("SURROUNDING_STEP", raising=False)
    namespace: dict[str, Any] = {"__name__": "__main__", "types": types}
    exec(SURROUNDINGS + LAUNCHER.format(expression=expression), namespace)
    assert filled_alone(namespace) == filled_alone(namespace) == 1
    exec(change, namespace)
    assert filled_alone(namespace) == filled_alone(namespace) == 2
    assert len(compiled) == 2
    monkeypatch.setenv("SURROUNDING_STEP", "")  # so that it is gone afterwards


def filled_alone(namespace: dict[str, Any]) -> float:
    A = torch.zeros(64)
    namespace["fill"](A)
    return float(A[0])


def test_constexpr_objects_with_equal_attributes_of_other_types_compile_again(compiled: list[str]) -> None:
    @dataclasses.dataclass(frozen=True)
    class Config:
        step: Any

    fill = make_fill()
    for step in (1, True, 1.0, 1):
        fill(torch.zeros(64), 1, Config(step))
    assert compiled == ["fill"] * 3


@pytest.mark.parametrize("change", ["STEP = 1", "TABLE = [1, 2]", "config.other = 3", "x = 5", "unrelated = 1"])
def test_a_change_of_what_is_not_read_compiles_nothing(cell: dict[str, Any], compiled: list[str], change: str) -> None:
    """`x` is an attribute in `fx.thread_idx.x`, and no global."""
    exec("x = 4", cell)
    assert filled(cell) == 4
    exec(change, cell)
    assert filled(cell) == 4
    assert len(compiled) == 1


def test_a_closure_cell_that_changes_compiles_again(compiled: list[str]) -> None:
    step = 1

    @flyc.kernel
    def kernel(A: fx.Tensor):
        A[fx.thread_idx.x] = float(step)

    fill = launcher_of(kernel, grid=1, block=64)
    A = torch.zeros(64)
    for step in (1, 2, 2, 3):
        fill(A)
        assert (step == A).all()
    assert len(compiled) == 3


def test_a_function_given_as_constexpr_brings_its_surroundings(compiled: list[str]) -> None:
    scale = 2.0

    def times(value: Any) -> Any:
        return value * scale

    @flyc.kernel
    def kernel(A: fx.Tensor, op: fx.Constexpr):
        A[fx.thread_idx.x] = op(A[fx.thread_idx.x])

    apply = launcher_of(kernel, grid=1, block=64)
    A = torch.ones(64)
    apply(A, times)
    scale = 3.0
    apply(A, times)
    assert (A == 6).all()
    assert len(compiled) == 2


# --- threads, nesting, failure ---------------------------------------------------------------------------------------


def test_threads_that_call_at_once(compiled: list[str]) -> None:
    fill, start = make_fill(), threading.Barrier(4)

    def call(value: int) -> bool:
        A = torch.zeros(64)
        start.wait()
        for _ in range(5):
            fill(A, value)
        return bool((value + 1 == A).all())

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(call, range(4)))
    assert compiled == ["fill"]


def test_launchers_and_kernels_compose(compiled: list[str]) -> None:
    """A launcher in a launcher, one kernel twice, two kernels of one name, a launch in a runtime loop."""
    first, second = make_fill(1), make_fill(2)

    @flyc.jit
    def both(A: fx.Tensor, B: fx.Tensor, C: fx.Tensor, n: fx.Int32):
        first(A, 10)
        second(B, 10)
        for i in range(n):
            first(C, i)

    A, B, C = (torch.zeros(64) for _ in range(3))
    both(A, B, C, 4)
    assert (A[0], B[0], C[0]) == (11, 12, 4)
    assert compiled == ["both"]
    with flyc.capture_launches() as launches:
        both(A, B, C, 2)
    assert [launch.function for launch in launches] == [both]
    assert C[0] == 2


def test_a_failed_call_leaves_the_next_one_working() -> None:
    @flyc.kernel
    def kernel(A: fx.Tensor):
        A[fx.thread_idx.x + fx.block_idx.x * 64] = 1

    @flyc.jit
    def ones(A: fx.Tensor, blocks: fx.Int32):
        kernel(A).launch(grid=blocks, block=64)

    A = torch.zeros(128)
    with pytest.raises(LaunchError):
        ones(A, 0)
    with pytest.raises(FlyError):
        ones(A, 3)
    A.zero_()
    ones(A, 2)
    assert A.all()


def test_a_failed_trace_leaves_the_next_one_working() -> None:
    state: dict[str, Any] = {"value": None}

    @flyc.kernel
    def kernel(A: fx.Tensor):
        A[fx.thread_idx.x] = state["value"]

    fill = launcher_of(kernel, grid=1, block=64)
    A = torch.zeros(64)
    with pytest.raises((FlyError, TypeError)):
        fill(A)
    state["value"] = 2.0
    fill(A)
    assert (A == 2).all()


class Says:
    """An object that is compiled in, and says what for."""

    def __init__(self, factor: int, note: str) -> None:
        self.factor, self.note = factor, note

    def __cache_signature__(self) -> tuple[int]:
        return (self.factor,)


def test_what_an_object_does_not_name_compiles_nothing_new(compiled: list[str]) -> None:
    fill = make_fill()
    a = torch.zeros(64, dtype=torch.int32)
    for says in (Says(1, "a"), Says(1, "b"), Says(2, "a"), Says(1, "c")):
        fill(a, 7, says)
    assert compiled == ["fill"] * 2
