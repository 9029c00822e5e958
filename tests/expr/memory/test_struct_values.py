"""Values of structs in kernels: made, changed, carried through control flow, written to shared memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.errors import ArgumentError
from flydsl.expr import gpu
from tests.launchers import launcher_of
from tests.messages import raises_saying

pytestmark = pytest.mark.slow

LANES = 64
X = torch.arange(LANES, dtype=torch.float32)


@fx.struct
class Best:
    value: fx.Float32
    index: fx.Int32


@fx.struct
class Pair:
    first: Best
    scale: fx.Align[fx.Float32, 16]


@fx.union
class Bits:
    number: fx.Float32
    word: fx.Uint32


@fx.struct
class Scaled:
    """A number, and how often to count it."""

    value: fx.Float32
    n: fx.Constexpr[int]

    def total(self) -> Any:
        """The number, n times."""
        return self.value * self.n


def run(body: Callable[[Any, Any], Any]) -> torch.Tensor:
    """`y[i] = body(x, i)` for one wave."""

    @flyc.kernel
    def kernel(x: fx.Tensor, y: fx.Tensor):
        i = fx.thread_idx.x
        y[i] = body(x, i)

    launch = launcher_of(kernel, grid=(1,), block=(LANES,))
    y = torch.zeros(LANES)
    launch(X, y)
    return y


def test_fields_in_order_and_by_name_have_their_types() -> None:
    def body(x: Any, i: Any) -> Any:
        pair = Pair(Best(x[i], index=i), 2)
        assert pair.scale.dtype is fx.Float32
        assert pair.first.index.dtype is fx.Int32
        pair.first.value = pair.first.value + 1
        return pair.first.value * pair.scale + pair.first.index

    assert torch.equal(run(body), (X + 1) * 2 + X)


def test_carried_through_a_loop_and_a_branch() -> None:
    @flyc.jit
    def best_of(x: Any, count: Any) -> Any:
        best = Best(-1.0, -1)
        for j in range(count):
            key = (x[j] * 7.0) % 13.0
            if key > best.value:
                best = Best(key, j)
        return best

    @flyc.jit
    def changed(x: Any, count: Any) -> Any:
        best = Best(-1.0, -1)
        for j in range(count):
            key = (x[j] * 7.0) % 13.0
            if key > best.value:
                best.value = key
                best.index = j
        return best

    keys = (X * 7) % 13
    expected = torch.tensor([-1, *(int(keys[:n].argmax()) for n in range(1, LANES))], dtype=torch.float32)
    for function in (best_of, changed):
        assert torch.equal(run(lambda x, i, f=function: fx.Float32(f(x, i).index)), expected)


def test_in_shared_memory() -> None:
    def body(x: Any, i: Any) -> Any:
        place = fx.SharedAllocator().allocate(Pair)
        if i == 3:
            place.poke(Pair(Best(x[i], i), 0.5))
        gpu.barrier()
        seen = place.peek()
        return seen.first.value + seen.scale + seen.first.index

    assert torch.equal(run(flyc.jit(body)), torch.full((LANES,), 6.5))


@pytest.mark.parametrize("annotation", [Pair, None])
def test_an_argument_of_a_kernel(annotation: Any) -> None:
    def body(x: fx.Tensor, pair: Any, step: fx.Int32):
        x[fx.thread_idx.x] = pair.first.value * pair.scale + pair.first.index * step

    if annotation is None:
        del body.__annotations__["pair"]
    else:
        body.__annotations__["pair"] = annotation
    kernel = flyc.kernel(body)

    @flyc.jit
    def launch(x: fx.Tensor, n: fx.Int32, f: fx.Float32):
        kernel(x, Pair(Best(f, n), 2.0), 10).launch(grid=(1,), block=(LANES,))

    y = torch.zeros(LANES)
    launch(y, 3, 1.5)
    assert torch.equal(y, torch.full((LANES,), 33.0))
    launch(y, 4, 1.5)
    assert torch.equal(y, torch.full((LANES,), 43.0))


def test_an_argument_of_a_kernel_must_be_of_its_struct() -> None:
    @flyc.kernel
    def kernel(x: fx.Tensor, pair: Pair):
        x[0] = pair.scale

    @flyc.jit
    def launch(x: fx.Tensor):
        kernel(x, Best(1.0, 2)).launch(grid=(1,), block=(LANES,))

    with pytest.raises(ArgumentError, match="pair must be a Pair, got Best"):
        launch(torch.zeros(LANES))


@fx.struct
class Numbers:
    small: fx.Int8
    unsigned: fx.Uint32
    brain: fx.BFloat16
    inner: Best


def test_an_argument_of_a_launcher() -> None:
    @flyc.kernel
    def kernel(y: fx.Tensor, n: Numbers):
        y[0] = n.small.to(fx.Float32)
        y[1] = (n.unsigned >> 1).to(fx.Float32)
        y[2] = n.brain.to(fx.Float32)
        y[3] = n.inner.value + n.inner.index

    @flyc.jit
    def launch(y: fx.Tensor, numbers: Numbers):
        kernel(y, numbers).launch(grid=(1,), block=(1,))

    y = torch.zeros(4)
    launch(y, Numbers(-5, 1 << 31, 1.5, Best(0.25, 7)))
    assert y.tolist() == [-5, float(1 << 30), 1.5, 7.25]
    launch(y, Numbers(6, 4, 2.5, Best(0.5, 8)))
    assert y.tolist() == [6, 2, 2.5, 8.5]
    with pytest.raises(ArgumentError, match="numbers must be a Numbers, got Best"):
        launch(y, Best(1.0, 2))


@flyc.kernel
def number_kernel(y: fx.Tensor, n: fx.Int32) -> None:
    y[0] = n


WRONG_KINDS = {
    "of a kernel's argument": (
        lambda y, x: number_kernel(y, x).launch(grid=1, block=1),
        "n must be Int32, got Float32",
    ),
    "of a field": (lambda y, x: Best(1.0, x), "Best.index must be Int32, got Float32"),
    "of a field that is set": (lambda y, x: setattr(Best(1.0, 2), "index", x), "Best.index must be Int32, got Float32"),
    "of a number": (lambda y, x: Best(1.0, 2.5), "Best.index expects Int32: Int32\\(2.5\\): not an integer"),
}


@pytest.mark.parametrize("wrong", WRONG_KINDS)
def test_a_float_becomes_no_integer_unasked(wrong: str) -> None:
    make, message = WRONG_KINDS[wrong]

    @flyc.jit
    def launch(y: fx.Tensor, x: fx.Float32):
        make(y, x)

    with raises_saying(ArgumentError, message):
        launch(torch.zeros(1, dtype=torch.int32), 1.5)


def test_taken_apart_and_put_together() -> None:
    def body(x: Any, i: Any) -> Any:
        pair = Pair(Best(x[i], i), 3.0)
        values = pair.__extract_to_ir_values__()
        assert [str(value.type) for value in values] == ["f32", "i32", "f32"]
        again = Pair.__construct_from_ir_values__(values)
        return again.first.value * again.scale

    assert torch.equal(run(body), X * 3)


WRONG = {
    "a field too few": (lambda x, i: Best(1.0), ArgumentError, "Best has the fields value, index"),
    "a field too many": (lambda x, i: Best(1.0, 2, 3), ArgumentError, "Best has the fields value, index"),
    "a field twice": (lambda x, i: Best(1.0, 2, value=3), ArgumentError, "Best has the fields value, index"),
    "no such field": (lambda x, i: setattr(Best(1.0, 2), "indx", 3), ArgumentError, "no field 'indx'"),
    "a number for a struct": (lambda x, i: Pair(1.0, 2.0), ArgumentError, "Pair.first must be a Best"),
    "a union": (lambda x, i: Bits(1.0), ArgumentError, "a union is memory that its fields share"),
    "a known field": (lambda x, i: setattr(Scaled(1.0, 2), "n", 3), ArgumentError, "n is known at compile time"),
    "a known field of run time": (lambda x, i: Scaled(1.0, i), ArgumentError, r"n must be Constexpr\[int\]"),
}


@pytest.mark.parametrize("kind", WRONG)
def test_wrong_uses_of_structs_are_errors(kind: str) -> None:
    body, error, message = WRONG[kind]
    with pytest.raises(error, match=message) as caught:
        run(body)
    assert caught.value.at.file == __file__


def test_a_field_that_is_known_when_compiling() -> None:
    def body(x: Any, i: Any) -> Any:
        scaled = Scaled(x[i], 3)
        assert scaled.n == 3
        assert isinstance(scaled, Scaled)
        if i < 32:
            scaled.value = scaled.value + 1.0
        for _ in fx.range_constexpr(scaled.n):
            scaled = scaled.replace(value=scaled.value * 2)
        return scaled.total()

    assert torch.equal(run(flyc.jit(body)), (X + (X < 32)) * 8 * 3)
    assert (fx.is_specializable_struct_type(Scaled), fx.is_specializable_struct_type(Best)) == (True, False)
    assert (type(Scaled(1.0, 2)), type(Scaled(1.0, 2)) is type(Scaled(2.0, 2))) == (type(Scaled(3.0, 2)), True)
    assert type(Scaled(1.0, True)) is not type(Scaled(1.0, 1))


def test_a_known_field_of_an_argument_compiles_anew() -> None:
    @flyc.kernel
    def kernel(y: fx.Tensor, scaled):
        for j in fx.range_constexpr(scaled.n):
            y[j] = scaled.value

    @flyc.jit
    def launch(y: fx.Tensor, scaled: Scaled):
        kernel(y, scaled).launch(grid=1, block=1)

    y = torch.zeros(4)
    launch(y, Scaled(2.0, 3))
    launch(y, Scaled(1.0, 3))
    assert (y.tolist(), launch.cache_info().misses) == ([1, 1, 1, 0], 1)
    launch(y, Scaled(5.0, 4))
    assert (y.tolist(), launch.cache_info().misses) == ([5, 5, 5, 5], 2)


@fx.struct
class Problem:
    x: fx.Tensor
    y: fx.Tensor
    scale: fx.Float32


def test_tensors_are_fields() -> None:
    @flyc.kernel
    def kernel(problem: Problem):
        i = fx.thread_idx.x
        problem.y[i] = problem.x[i] * problem.scale

    launch = launcher_of(kernel, grid=1, block=LANES)
    y = torch.zeros(LANES)
    launch(Problem(X, y, 2.0))
    assert torch.equal(y, X * 2)
    with pytest.raises(ArgumentError, match=r"problem\.x takes a tensor"):
        launch(Problem(3, y, 2.0))


def test_structs_without_a_class() -> None:
    named, ordered = fx.Struct["x" : fx.Float32, "index" : fx.Int32], fx.struct[fx.Float32, fx.Int32]
    assert named is fx.Struct["x" : fx.Float32, "index" : fx.Int32]
    assert fx.is_composite_type(fx.Union["x" : fx.Float32, "i" : fx.Int32])

    def body(x: Any, i: Any) -> Any:
        pair = ordered(x[i], i)
        return named(pair._0, index=pair._1).x + pair._1

    assert torch.equal(run(body), X * 2)


def test_errors_name_the_field_and_what_is_wrong_with_it() -> None:
    wrong: dict[str, Callable[[], Any]] = {
        "missing required field index": lambda: Best(1.0),
        "unexpected field size": lambda: Best(value=1.0, index=2, size=3),
        "index expects Int32": lambda: Best(1.0, object()),
        "no value form": lambda: Bits(1.0),
        "duplicate names": lambda: fx.Struct["a" : fx.Int32, "a" : fx.Float32],
        "must not start with an underscore": lambda: fx.Struct["_a" : fx.Int32],
        "is reserved": lambda: fx.Union["replace" : fx.Int32],
        "must be a power of two": lambda: fx.Align[fx.Int32, 12],
        "must be positive": lambda: fx.Align[fx.Int32, -4],
        "must be an int": lambda: fx.Align[fx.Int32, 8.0],
        "smaller than natural": lambda: fx.Align[fx.Int32, 2],
        "must be a positive Python int, got 0": lambda: fx.Array[fx.Int32, 0],
        "Numeric subclass": lambda: fx.Array[object, 4],
        "sub-byte": lambda: fx.Array[fx.Int4, 4],
    }
    for message, make in wrong.items():
        with raises_saying(ArgumentError, message):
            make()


def test_values_that_are_known_compare_outside_of_a_kernel() -> None:
    @fx.struct
    class Other:
        value: fx.Float32
        index: fx.Int32

    assert Best(1.0, 2) == Best(value=1.0, index=2)
    assert Best(1.0, 2) != Best(1.5, 2)
    assert Best(1.0, 2) != Other(1.0, 2)
    assert tuple(Best.__annotations__) == ("value", "index")
    from flydsl.expr.struct import Storage
    from flydsl.expr.typing import Array

    assert (Storage, Array) == (fx.Storage, fx.Array)


def test_types_say_their_size() -> None:
    sizes = [(kind.__dsl_size_of__(), kind.__dsl_align_of__()) for kind in (fx.Float16, fx.Array[fx.Int32, 3], Pair)]
    assert sizes == [(2, 2), (12, 4), (32, 16)]
    with pytest.raises(ArgumentError, match="sub-byte"):
        fx.Int4.__dsl_size_of__()


class Running:
    """A program's own value, by the protocol of `DslType`: a sum, and of how many."""

    def __init__(self, total: Any, count: Any) -> None:
        self.total, self.count = fx.Float32(total), fx.Int32(count)

    def __extract_to_ir_values__(self) -> list[Any]:
        return [*self.total.__extract_to_ir_values__(), *self.count.__extract_to_ir_values__()]

    @classmethod
    def __construct_from_ir_values__(cls, values: list[Any]) -> Running:
        return cls(*values)

    @classmethod
    def __get_ir_types__(cls) -> list[Any]:
        return [fx.Float32.ir_type, fx.Int32.ir_type]

    def plus(self, value: Any) -> Running:
        """With one more value."""
        return Running(self.total + value, self.count + 1)


@fx.struct
class State:
    running: Running
    pair: fx.Float32x2
    scale: fx.Float32


def test_objects_of_a_program_are_carried_through_loops_and_branches() -> None:
    def body(x: Any, i: Any) -> Any:
        kept = [Running(0.0, 0), {"all": Running(x[i], 1)}]
        for step in range(i % 4):
            kept[0] = kept[0].plus(fx.Float32(step))
            kept[1]["all"] = kept[1]["all"].plus(1.0)
        last = Running(1.0, 0)
        if i > 32:
            last = last.plus(x[i])
        return last.total * 1000 + kept[0].total + kept[1]["all"].total * 100 + kept[1]["all"].count.to(fx.Float32)

    steps = torch.arange(LANES) % 4
    sums = (steps * (steps - 1) // 2).float()
    last = torch.where(torch.arange(LANES) > 32, 1 + X, torch.ones(LANES))
    assert torch.equal(run(flyc.jit(body)), last * 1000 + sums + (X + steps) * 100 + 1 + steps)


def test_objects_of_a_program_are_fields_and_arguments() -> None:
    @flyc.kernel
    def kernel(y: fx.Tensor, state: State, more: tuple[Running, int]):
        total = state.running.plus(more[0].total).total
        y[fx.thread_idx.x] = (total + state.pair[1]) * state.scale + more[1]

    @flyc.jit
    def launch(y: fx.Tensor, start: fx.Float32):
        state = State(Running(start, 1), fx.Vector.from_elements([start, start + 1]), 2.0)
        kernel(y, state, (Running(start, 0), 7)).launch(grid=(1,), block=(LANES,))

    y = torch.zeros(LANES)
    launch(y, 3.0)
    assert torch.equal(y, torch.full((LANES,), (3.0 + 3.0 + 4.0) * 2 + 7))
