"""Arguments of a program's own classes, tuples of values, and pointers by address."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest
import torch

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.compiler import protocol
from flydsl.compiler.protocol import DslType, JitArgument, construct_from_ir_values, extract_to_ir_values, get_ir_types
from flydsl.errors import ArgumentError
from flydsl.expr.typing import T
from flydsl.simulator.errors import MemoryFault
from tests.launchers import launcher_of


@dataclass
class Line:
    """y = slope * x + start, outside."""

    slope: float
    start: int


class DslLine:
    """The same inside a kernel."""

    def __init__(self, slope: Any, start: Any) -> None:
        self.slope, self.start = slope, start

    @classmethod
    def __construct_from_ir_values__(cls, values: list[Any]) -> DslLine:
        return cls(fx.Float32(values[0]), fx.Int32(values[1]))

    def __extract_to_ir_values__(self) -> list[Any]:
        return [self.slope.ir_value(), self.start.ir_value()]


class LineArgument:
    def __init__(self, line: Line) -> None:
        self.numbers = (ctypes.c_float(line.slope), ctypes.c_int32(line.start))

    def __get_ir_types__(self) -> list[Any]:
        return [T.f32, T.i32]

    def __get_c_pointers__(self) -> list[Any]:
        return [ctypes.cast(ctypes.pointer(n), ctypes.c_void_p) for n in self.numbers]


class OldLineArgument(LineArgument):
    __ir_types__ = LineArgument.__get_ir_types__
    __c_pointers__ = LineArgument.__get_c_pointers__
    __get_ir_types__ = None  # type: ignore[assignment]


@flyc.kernel
def line_kernel(Out: fx.Tensor, line):
    i = fx.thread_idx.x
    Out[i] = line.slope * i.to(fx.Float32) + line.start.to(fx.Float32)


draw = launcher_of(line_kernel, grid=1, block=64)


def test_an_argument_of_a_registered_class() -> None:
    assert flyc.JitArgumentRegistry.register(Line, dsl_type=DslLine)(LineArgument) is LineArgument
    assert isinstance(DslLine(1, 2), DslType)
    assert isinstance(LineArgument(Line(1.0, 2)), JitArgument)
    out = torch.zeros(64)
    for line in (Line(0.5, 3), Line(2.0, -7)):
        draw(out, line)
        assert torch.equal(out, line.slope * torch.arange(64) + line.start)


def number_argument(kind: Any, slot: Any, types: str, pointers: str) -> type:
    """A class of launchers' arguments, as the documents have them, whose one number lies in a `slot` of ctypes."""

    def __init__(self: Any, given: Any) -> None:
        self.slot = slot(given.value)

    methods = {
        "__init__": __init__,
        types: lambda self: [kind.ir_type],
        pointers: lambda self: [ctypes.cast(ctypes.pointer(self.slot), ctypes.c_void_p)],
    }
    return type("NumberArgument", (), methods)


@pytest.mark.parametrize(
    ("types", "pointers"), [("__get_ir_types__", "__get_c_pointers__"), ("__ir_types__", "__c_pointers__")]
)
@pytest.mark.parametrize(
    ("kind", "slot", "number"),
    [
        (fx.Int32, ctypes.c_int32, -7),
        (fx.Uint32, ctypes.c_uint32, 0xFFFF_FFF0),
        (fx.Int64, ctypes.c_int64, 1 << 40),
        (fx.Float32, ctypes.c_float, 0.5),
    ],
)
def test_a_registered_class_is_a_number_inside(kind: Any, slot: Any, number: float, types: str, pointers: str) -> None:
    class Given:
        value = number

    seen = []

    @flyc.kernel
    def kernel(Out: fx.Tensor, value):
        Out[fx.thread_idx.x] = value.to(fx.Float64)

    @flyc.jit
    def launch(Out: fx.Tensor, value):
        seen.append(value.dtype)
        kernel(Out, value).launch(grid=1, block=4)

    flyc.JitArgumentRegistry.register(Given, dsl_type=kind)(number_argument(kind, slot, types, pointers))
    out = torch.zeros(4, dtype=torch.float64)
    launch(out, Given())
    assert seen == [kind]
    assert out.tolist() == [number] * 4


def test_a_registered_class_says_the_type_that_it_is_inside() -> None:
    class Given:
        value = 1

    wrong = number_argument(fx.Int64, ctypes.c_int64, "__get_ir_types__", "__get_c_pointers__")
    flyc.JitArgumentRegistry.register(Given, dsl_type=fx.Int32)(wrong)
    with pytest.raises(ArgumentError, match="the type of NumberArgument is i64, that of its dsl_type Int32 is i32"):
        draw(torch.zeros(64), Given())


def test_a_registered_class_has_a_pointer_for_each_type() -> None:
    class Broken(LineArgument):
        def __get_c_pointers__(self) -> list[Any]:
            return []

    class Other(Line):
        pass

    flyc.JitArgumentRegistry.register(Other, dsl_type=DslLine)(Broken)
    with pytest.raises(ArgumentError, match="2 types and 0 pointers"):
        draw(torch.zeros(64), Other(1.0, 1))
    with pytest.raises(ArgumentError, match="JitArgumentRegistry"):
        flyc.JitArgumentRegistry.register(Line, dsl_type=int)


def test_containers_are_kernel_arguments() -> None:
    @flyc.kernel
    def kernel(Out: fx.Tensor, pair, named):
        i = fx.thread_idx.x
        Out[i] = pair[0] * i + pair[1][0] + named.n + named.static

    @flyc.jit
    def launch(Out: fx.Tensor, n: fx.Int32):
        kernel(Out, (n, [n + 1]), SimpleNamespace(n=n * 2, static=100)).launch(grid=1, block=64)

    out = torch.zeros(64, dtype=torch.int32)
    launch(out, 5)
    assert torch.equal(out, torch.arange(64, dtype=torch.int32) * 5 + 6 + 10 + 100)


@flyc.kernel
def weighted_kernel(out, pair, weights):
    i = fx.thread_idx.x
    out[i] = pair[0][i] * weights.a + pair[1][i] * weights.b


@flyc.jit
def weighted(out: fx.Tensor, pair: tuple[fx.Tensor, fx.Tensor], weights: SimpleNamespace, name):
    assert name[0] in ("sum", "other")
    weighted_kernel(out, pair, weights).launch(grid=1, block=64)


def test_containers_are_launcher_arguments() -> None:
    out, x, y = torch.zeros(64), torch.randn(64), torch.randn(64)
    for a, b in ((2.0, 3.0), (0.5, -1.0)):
        weighted(out, (x, y), SimpleNamespace(a=a, b=b), ["sum"])
        assert torch.equal(out, x * a + y * b)
    before = weighted.cache_info().misses
    weighted(out, (y, x), SimpleNamespace(a=1.0, b=0.0), ["sum"])
    assert torch.equal(out, y)
    assert weighted.cache_info().misses == before
    weighted(out, (y, x), SimpleNamespace(a=1.0, b=0.0), ["other"])
    weighted(out, (y, x), SimpleNamespace(b=0.0, a=1.0), ["other"])
    assert weighted.cache_info().misses == before + 2


@pytest.mark.parametrize(
    ("pair", "says"),
    [
        ((torch.zeros(64), object()), r"pair\[1\] takes a tensor or a number"),
        ((torch.zeros(64),), "pair must be a tuple of 2, got 1 parts"),
        ((torch.zeros(64), fx.Stream(None)), r"pair\[1\] is a stream"),
        ((torch.zeros(64), torch.zeros(64, device="meta")), r"pair\[1\]: a tensor that is on device meta"),
    ],
)
def test_containers_of_other_things(pair: Any, says: str) -> None:
    with pytest.raises(ArgumentError, match=says):
        weighted(torch.zeros(64), pair, SimpleNamespace(a=1.0, b=0.0), ["sum"])


def test_annotations_of_parts_are_the_types_of_the_numbers() -> None:
    @flyc.kernel
    def kernel(Out: fx.Tensor, numbers: tuple[fx.Float64, fx.Float64, fx.Constexpr[int]]):
        Out[0] = numbers[0]
        Out[1] = numbers[1]
        assert type(numbers[2]) is int

    @flyc.jit
    def launch(Out: fx.Tensor, numbers: dict[str, list[fx.Float64]], count: tuple[fx.Constexpr[int], ...]):
        kernel(Out, (numbers["a"][0], fx.Float32(0.5), count[0])).launch(grid=1, block=1)

    out = torch.zeros(2, dtype=torch.float64)
    launch(out, {"a": [0.1]}, (3,))
    assert out.tolist() == [0.1, 0.5]
    with pytest.raises(ArgumentError, match=r"count\[0\] must be Constexpr\[int\], got 'x'"):
        launch(out, {"a": [0.1]}, ("x",))
    with pytest.raises(ArgumentError, match=r"numbers\['a'\]\[0\] must be Float64, got 'x'"):
        launch(out, {"a": ["x"]}, (3,))


def test_values_are_taken_apart_and_put_together() -> None:
    @flyc.kernel
    def kernel(Out: fx.Tensor):
        i = fx.thread_idx.x
        whole = {"line": DslLine(fx.Float32(i), fx.Int32(4)), "pair": (i, fx.Vector.filled(2, 1.5, fx.Float32))}
        values = extract_to_ir_values(whole)
        assert get_ir_types(whole) == [value.type for value in values] == [T.f32, T.i32, i.type, T.f32x2]
        assert i.__extract_to_ir_values__() == [i.ir_value()]
        assert Out.__extract_to_ir_values__() == [Out.value]
        again = construct_from_ir_values(dict, whole, values)
        assert isinstance(again["line"], DslLine)
        Out[i] = again["line"].slope + again["line"].start.to(fx.Float32) + again["pair"][1][0]
        with pytest.raises(ArgumentError, match="consists of"):
            construct_from_ir_values(dict, whole, values[:-1])
        with pytest.raises(ArgumentError, match="5 values"):
            construct_from_ir_values(dict, whole, [*values, values[0]])
        with pytest.raises(ArgumentError, match="not a value of the program"):
            extract_to_ir_values([object()])

    launch = launcher_of(kernel, grid=1, block=64)
    out = torch.zeros(64)
    launch(out)
    assert torch.equal(out, torch.arange(64) + 5.5)


@flyc.kernel
def copy_kernel(Out: fx.Tensor, P: fx.Pointer, n: fx.Int32):
    i = fx.thread_idx.x
    if i < n:
        Out[i] = P[i]


copy_from = launcher_of(copy_kernel, grid=1, block=64)


def test_a_pointer_by_its_address() -> None:
    memory, out = torch.arange(80, dtype=torch.float32), torch.zeros(64)
    copy_from(out, flyc.from_c_void_p(fx.Float32, memory[16:].data_ptr()), 64)
    assert torch.equal(out, memory[16:])
    copy_from(out, flyc.from_c_void_p(fx.Float32, ctypes.c_void_p(memory.data_ptr()), assumed_align=16), 64)
    assert torch.equal(out, memory[:64])


def test_the_memory_at_an_address_ends_where_its_tensor_does() -> None:
    memory, out = torch.arange(32, dtype=torch.float32), torch.zeros(64)
    with pytest.raises(MemoryFault):
        copy_from(out, flyc.from_c_void_p(fx.Float32, memory.data_ptr()), 64)
    copy_from(out, flyc.from_c_void_p(fx.Float32, None), 0)
    with pytest.raises(MemoryFault):
        copy_from(out, flyc.from_c_void_p(fx.Float32, 0), 1)


@pytest.mark.slow
@pytest.mark.parametrize(("address", "says"), [(4096, "no tensor has memory"), (-1, "an int"), ("x", "an int")])
def test_addresses_of_no_memory(address: Any, says: str) -> None:
    with pytest.raises(ArgumentError, match=says):
        flyc.from_c_void_p(fx.Float32, address)


def test_the_protocols_earlier_names() -> None:
    assert protocol.fly_values is protocol.extract_to_ir_values
    assert protocol.fly_types is protocol.get_ir_types


def test_the_addresses_of_an_arguments_numbers() -> None:
    @fx.struct
    class Pair:
        first: fx.Int32
        second: fx.Float32

    def numbers(value: Any, *types: Any) -> list[Any]:
        pointers = protocol.get_c_pointers(value)
        return [kind.from_address(p.value).value for kind, p in zip(types, pointers, strict=True)]

    assert numbers(Pair(first=7, second=2.5), ctypes.c_int32, ctypes.c_float) == [7, 2.5]
    assert numbers(LineArgument(Line(0.5, 3)), ctypes.c_float, ctypes.c_int32) == [0.5, 3]


@dataclass
class Plan:
    """Not hashable, as dataclasses are that compare; `note` does not change what is compiled."""

    factor: int
    note: list[str] = field(default_factory=list)

    def __cache_signature__(self) -> Any:
        return "v1", self.factor


@flyc.kernel
def scale_by_plan(A: fx.Tensor, plan: fx.Constexpr[Plan]):
    A[fx.thread_idx.x] = A[fx.thread_idx.x] * float(plan.factor)


@flyc.jit
def annotated_as_constexpr(A: fx.Tensor, plan: fx.Constexpr[Plan]):
    scale_by_plan(A, plan).launch(grid=1, block=4)


@flyc.jit
def annotated_by_its_class(A: fx.Tensor, plan: Plan):
    scale_by_plan(A, plan).launch(grid=1, block=4)


@flyc.jit
def not_annotated(A: fx.Tensor, plan):
    scale_by_plan(A, plan).launch(grid=1, block=4)


@pytest.mark.parametrize("launch", [annotated_as_constexpr, annotated_by_its_class, not_annotated])
def test_an_object_says_what_it_is_compiled_for(launch: Any) -> None:
    a, plan = torch.ones(4), Plan(3)
    launch(a, plan)
    plan.factor = 5
    launch(a, plan)
    assert a.tolist() == [15.0] * 4
