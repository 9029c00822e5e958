"""Bad input gets an error of the right type, with the values that disagree, at the user's line.

Whole programs that are wrong in one line are in tests/kernels/test_wrong_*.py.
"""

from __future__ import annotations

import linecache
import sys
import traceback
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.compiler import jit_argument, user_error
from flydsl.compiler.arguments.argument import tensor_argument
from flydsl.errors import ArchError, ArgumentError, FlyError, LaunchError, LayoutError, TraceError
from tests.launchers import launcher_of
from tests.pythons import NEEDS_COLUMNS


@flyc.kernel
def nothing(A: fx.Tensor):
    A[0] = A[1]


@flyc.jit
def launch(A: fx.Tensor, n: fx.Int32 = 1, f: fx.Float32 = 1.0, h: fx.Float16 = 1.0, c: fx.Constexpr[int] = 1):
    nothing(A).launch(grid=1, block=64)


def caught(error: type[FlyError], call: Callable[[], Any]) -> FlyError:
    with pytest.raises(error) as info:
        call()
    assert type(info.value) is error
    return info.value


def assert_at(error: FlyError, mark: str) -> None:
    """The error's line is the one of this file that ends with the comment `# mark`."""
    assert error.at.file == __file__
    line = linecache.getline(__file__, error.at.line)
    assert line.rstrip().endswith(f"# {mark}"), line
    if sys.version_info >= (3, 11):
        assert "^" in str(error)


# --- arguments -------------------------------------------------------------------------------------------------------

A = torch.zeros(64)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: launch(), ["launch misses A"]),  # here
        (lambda: launch(A, 1, 1.0, 1.0, 1, 2), ["takes 5 arguments, got 6"]),  # here
        (lambda: launch(A, m=1), ["no parameter 'm'", "(A, n, f, h, c)"]),  # here
        (lambda: launch(A, A=A), ["'A' twice"]),  # here
        (lambda: launch(3), ["A takes a tensor", "3 (int)"]),  # here
        (lambda: launch(None), ["A takes a tensor", "None"]),  # here
        (lambda: launch([1.0, 2.0]), ["A takes a tensor", "list"]),  # here
        (lambda: launch(A, 1.5), ["n must be Int32", "1.5 (float)"]),  # here
        (lambda: launch(A, "1"), ["n must be Int32", "'1' (str)"]),  # here
        (lambda: launch(A, 1 << 40), ["n must be Int32, from -2147483648 to 2147483647, got 1099511627776"]),  # here
        (lambda: launch(A, 3_000_000_000), ["n must be Int32", "got 3000000000", "unsigned", "mask"]),  # here
        (lambda: launch(A, A), ["n must be Int32", "Tensor"]),  # here
        (lambda: launch(A, fx.Int64(1)), ["n must be Int32", "Int64(1)"]),  # here
        (lambda: launch(A, 1, "x"), ["f must be Float32", "'x'"]),  # here
        (lambda: launch(A, c=1.0), ["c must be Constexpr[int]", "1.0 (float)"]),  # here
        (lambda: launch(torch.zeros(8, dtype=torch.complex64)), ["torch.complex64"]),  # here
        (lambda: launch(torch.zeros(1).expand(1 << 32)), ["A: dimension 0 must have", "got 4294967296"]),  # here
        (lambda: launch(torch.tensor(1.0)), ["A: a tensor without dimensions", "(1,)"]),  # here
        (lambda: launch(torch.zeros(8).to_sparse()), ["A:", "sparse"]),  # here
        (lambda: launch(torch.zeros(8, device="meta")), ["A:", "meta"]),  # here
        (lambda: launch(torch._neg_view(A)), ["A:", "negated"]),  # here
        (lambda: flyc.from_dlpack(3), ["from_dlpack of int"]),  # here
        (lambda: flyc.from_dlpack(np.zeros((2, 64))[:, ::-1]), ["strides (512, -8)", "copy()"]),  # here
        (lambda: flyc.from_dlpack(np.zeros(64, ">f4")), ["from_dlpack of ndarray", "byte order"]),  # here
    ],
)  # fmt: skip
def test_arguments_that_do_not_fit_are_refused_at_the_line_of_the_call(
    call: Callable[[], Any], says: list[str]
) -> None:
    launch(A)
    error = caught(ArgumentError, call)
    assert [part for part in says if part not in str(error)] == []
    assert_at(error, "here")


def test_numbers_of_other_libraries() -> None:
    launch(A, np.int64(3), np.float32(2.5), 2, 1)
    launch(A, torch.tensor(3), 2)


def test_constexpr_must_be_hashable() -> None:
    @flyc.jit
    def takes_anything(A: fx.Tensor, c: fx.Constexpr):
        nothing(A).launch(grid=1, block=64)

    error = caught(ArgumentError, lambda: takes_anything(A, [1, 2]))  # here
    assert "c is a compile-time value" in str(error)
    assert_at(error, "here")


def test_tensors_on_two_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    """There is no GPU here: an adaptor says that the second tensor is on one."""

    class OnGpu:
        pass

    key = tensor_argument("f32", jit_argument.dynamic_layout(1, 0), "cuda:0")
    monkeypatch.setitem(jit_argument._ADAPTORS, OnGpu, lambda parameter, value: (key, value))

    @flyc.jit
    def two(X: fx.Tensor, Y: fx.Tensor):
        nothing(X).launch(grid=1, block=64)

    error = caught(ArgumentError, lambda: two(A, OnGpu()))  # here
    assert "X is on cpu, Y is on cuda:0" in str(error)
    assert_at(error, "here")


def test_unknown_arch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARCH", "gfx000")
    error = caught(ArchError, lambda: launch(A))  # here
    assert_at(error, "here")
    assert "gfx000" in str(error)
    assert "gfx942" in str(error)
    monkeypatch.delenv("ARCH")
    assert "nonsense" in str(caught(ArchError, lambda: launch.lower(A, arch="nonsense")))


def test_a_type_that_a_launcher_cannot_take() -> None:
    @flyc.jit
    def takes_float8(A: fx.Tensor, x: fx.Float8E4M3FN):
        nothing(A).launch(grid=1, block=64)

    error = caught(ArgumentError, lambda: takes_float8(A, 1.0))  # here
    assert "Float8E4M3FN" in str(error)
    assert_at(error, "here")


# --- launches --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ((0, 64, 0), "grid must be at least 1 in every dimension, got (0, 1, 1)"),
        ((-3, 64, 0), "grid must be at least 1 in every dimension, got (-3, 1, 1)"),
        ((1, 1025, 0), "1025 threads"),
        ((1, 0, 0), "block must be at least 1 in every dimension, got (0, 1, 1)"),
        ((1 << 30, 64, 0), "a dimension has at most"),
        ((1, 64, 1 << 20), "1048576 bytes of LDS"),
        ((1, 64, -4), "smem=-4"),
    ],
)
def test_launch_configurations_at_run_time(values: tuple[int, int, int], says: str) -> None:
    @flyc.jit
    def configured(A: fx.Tensor, grid: fx.Int32, block: fx.Int32, smem: fx.Int32):
        nothing(A).launch(grid=grid, block=block, smem=smem)  # here

    error = caught(LaunchError, lambda: configured(A, *values))
    assert says in str(error)
    assert_at(error, "here")
    configured(A, 1, 64, 16)


def test_kernels_in_the_wrong_place() -> None:
    error = caught(TraceError, lambda: nothing(A))  # outside
    assert "outside a @flyc.jit function" in str(error)
    assert_at(error, "outside")

    @flyc.kernel
    def calls_a_kernel(A: fx.Tensor):
        nothing(A)  # inside

    @flyc.jit
    def nested(A: fx.Tensor):
        calls_a_kernel(A).launch(grid=1, block=64)

    error = caught(TraceError, lambda: nested(A))
    assert "called inside a kernel" in str(error)
    assert_at(error, "inside")


def reads(A: fx.Tensor):
    nothing(A).launch(grid=A[0].to(fx.Int32), block=64)  # host


def waits(A: fx.Tensor):
    fx.barrier()  # host
    nothing(A).launch(grid=1, block=64)


@pytest.mark.parametrize("body", [reads, waits])
def test_launchers_that_do_what_only_a_kernel_can(body: Callable[..., Any]) -> None:
    error = caught(TraceError, lambda: flyc.jit(body)(torch.ones(64)))
    assert "in a launcher" in str(error)
    assert_at(error, "host")


# --- Python that cannot be traced ------------------------------------------------------------------------------------


def trace(body: Callable[..., Any]) -> None:
    kernel = flyc.kernel(body)

    @flyc.jit
    def traced(A: fx.Tensor, n: fx.Int32):
        kernel(A, n).launch(grid=1, block=64)

    traced(A, 3)


def breaks(A: fx.Tensor, n: fx.Int32):
    for _ in range(n):
        with open(__file__):
            break  # here


def continues(A: fx.Tensor, n: fx.Int32):
    for _ in range(n):
        if n > 3:
            with open(__file__):
                continue  # here
        A[0] = 1.0


def returns(A: fx.Tensor, n: fx.Int32):
    for _ in range(n):
        return  # here


def returns_values_of_two_types(A: fx.Tensor, n: fx.Int32):
    def helper() -> Any:
        if n > 3:  # here
            return n
        return A[0]

    A[0] = helper()


def yields(A: fx.Tensor, n: fx.Int32):
    for _ in range(n):
        yield n  # here


def yields_too_early(A: fx.Tensor, n: fx.Int32):
    for _, (x,) in range(0, n, 1, init=[A[0]]):
        yield [x]  # here
        A[0] = x


def yields_nothing(A: fx.Tensor, n: fx.Int32):
    for _, (x,) in range(0, n, 1, init=[A[0]]):  # here
        A[0] = x


def yields_another_type(A: fx.Tensor, n: fx.Int32):
    for i, _ in range(0, n, 1, init=[A[0]]):  # here
        yield [i]


def asks_range_for_more(A: fx.Tensor, n: fx.Int32):
    for _ in range(n, vectorize=True):  # here
        pass


def becomes_another_type(A: fx.Tensor, n: fx.Int32):
    x = 1
    for i in range(n):
        x = A[i]
    A[0] = x + 1.0  # here


def changes_structure(A: fx.Tensor, n: fx.Int32):
    x = (1,)
    for _ in range(n):  # here
        x = (*x, 2)


def changes_type_in_a_branch(A: fx.Tensor, n: fx.Int32):
    x = A[0]
    if n > 3:  # here
        x = n
    A[0] = x


def differs_between_branches(A: fx.Tensor, n: fx.Int32):
    if n > 3:  # here
        A[1] = 1.0
        x = fx.Float32(1)
    else:
        x = fx.Float16(1)
    A[0] = x


def stores_what_one_branch_assigns(A: fx.Tensor, n: fx.Int32):
    if n > 3:
        x = A[1]
    A[0] = x  # here


def layouts_of_two_branches(A: fx.Tensor, n: fx.Int32):
    if n > 3:
        A[1] = 1.0
        layout = fx.make_layout(4, 1)
    else:
        layout = fx.make_layout(8, 1)
    A[0] = layout(1)  # here


def changes_type_in_a_while(A: fx.Tensor, n: fx.Int32):
    x = A[0]
    while n > 3:  # here
        x = n
        n = n - 1
    A[0] = x


class Counter:
    """Hides a runtime value where the source does not show it."""

    value: Any = None

    @classmethod
    def read(cls) -> Any:
        return cls.value


def hides_a_runtime_condition(A: fx.Tensor, n: fx.Int32):
    k, Counter.value = 1, n
    while k < Counter.read():  # here
        k += 1


def changes_an_object_in_an_expression(A: fx.Tensor, n: fx.Int32):
    found = [A[0]]
    A[0] = found.pop() if n > 3 else A[1]  # here


def changes_a_variable_in_an_expression(A: fx.Tensor, n: fx.Int32):
    count = 0

    def counts():
        nonlocal count
        count += 1
        return 1.0

    def decides():
        return counts() if n > 3 else 2.0  # here

    A[0] = decides() + count


def put(values: list[Any]) -> None:
    values[0] = values[0] + 1


def changes_a_list_of_the_function_around(A: fx.Tensor, n: fx.Int32):
    values = [0]

    def repeats():
        for _ in range(n):  # here
            put(values)

    repeats()
    A[0] = values[0]


def changes_a_list_in_a_function_that_it_is_given(A: fx.Tensor, n: fx.Int32):
    values = [0]

    def repeats(change):
        for _ in range(n):  # here
            change()

    repeats(lambda: put(values))
    A[0] = values[0]


class Total:
    def __init__(self) -> None:
        self.value = 0

    def put(self) -> None:
        self.value += 1


def changes_an_object_by_a_bound_method(A: fx.Tensor, n: fx.Int32):
    add = Total().put
    for _ in range(n):  # here
        add()
    A[0] = add.__self__.value


LAST = 0


def assigns_a_global_in_a_function(A: fx.Tensor, n: fx.Int32):
    def assigns(i):
        global LAST
        LAST = i  # here

    if n > 3:
        assigns(4)
    A[0] = LAST


@flyc.jit
def assigns_last(i: Any) -> None:
    global LAST
    LAST = i  # here


def assigns_a_global_in_a_function_outside(A: fx.Tensor, n: fx.Int32):
    if n > 3:
        assigns_last(4)
    A[0] = LAST


def loops_over_what_is_left_of_an_iterator(A: fx.Tensor, n: fx.Int32):
    left, total = iter([1, 2, 3]), 0
    for _ in range(n):
        for item in left:  # here
            total += item
    A[0] = total


def takes_the_next_in_a_function(A: fx.Tensor, n: fx.Int32):
    left = iter([1, 2, 3])

    def following():
        return next(left)  # here

    A[0] = following() if n > 3 else 2


def keeps_a_value_of_a_branch(A: fx.Tensor, n: fx.Int32):
    known = {}

    def twice(i):
        if i not in known:
            known[i] = A[i] * 2.0
        return known[i]

    if n > 3:
        A[2] = twice(1)
    A[3] = twice(1)  # here


def chooses_between_types(A: fx.Tensor, n: fx.Int32):
    A[0] = A[1] if n > 3 else n  # here


def decides_with_a_vector(A: fx.Tensor, n: fx.Int32):
    r = fx.make_rmem_tensor(4, fx.Float32)
    if r.load() > 0:  # here
        A[0] = 1.0


def compares_a_tensor(A: fx.Tensor, n: fx.Int32):
    if A == 0:  # here
        A[0] = 1.0


def compares_tensors(A: fx.Tensor, n: fx.Int32):
    B = fx.make_view(fx.get_iter(A), fx.make_layout(4, 1))
    A[0] = 1.0 if A != B else 0.0  # here


def vector_as_a_truth_value(A: fx.Tensor, n: fx.Int32):
    r = fx.make_rmem_tensor(4, fx.Float32)
    bool(r.load())  # here


def catches_an_exception(A: fx.Tensor, n: fx.Int32):
    try:
        if n > 3:  # here
            A[0] = {}["missing"]
    except KeyError:
        A[1] = 1.0


def catches_an_exception_inside(A: fx.Tensor, n: fx.Int32):
    for i in range(n):
        try:  # here
            A[i] = {}["missing"] if n > 4 else 1.0
        except KeyError:
            A[1] = 2.0


def indexes(A: fx.Tensor, n: fx.Int32):
    A[0] = [1.0, 2.0][n]  # here


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (breaks, "`break` in a runtime loop"),
        (continues, "`continue` in a runtime `if`"),
        (returns, "`return` in a runtime loop"),
        (yields, "`yield` in a runtime loop"),
        (returns_values_of_two_types, "what is returned is i32 in one branch of a runtime `if` and f32 in the other"),
        (yields_too_early, "`yield` in a runtime loop"),
        (yields_nothing, "yields nothing"),
        (yields_another_type, "'init' is [f32] before the loop and [i32]"),
        (asks_range_for_more, "range with vectorize="),
        (changes_type_in_a_branch, "'x' is i32 in one branch of a runtime `if` and f32 in the other"),
        (differs_between_branches, "'x' is f32 in one branch of a runtime `if` and f16 in the other"),
        (stores_what_one_branch_assigns, "'x' is assigned in one branch of a runtime `if` only"),
        (layouts_of_two_branches, "'layout' is 4:1 in one branch of a runtime `if` and 8:1 in the other"),
        (changes_type_in_a_while, "'x' is f32 before the loop and i32"),
        (hides_a_runtime_condition, "is a runtime value, but nothing that it names is"),
        (changes_an_object_in_an_expression, "found is changed inside an expression"),
        (changes_a_variable_in_an_expression, "count is changed inside an expression"),
        (changes_a_list_of_the_function_around, "values is changed inside a runtime loop"),
        (changes_a_list_in_a_function_that_it_is_given, "values is changed inside a runtime loop"),
        (changes_an_object_by_a_bound_method, "add is changed inside a runtime loop"),
        (assigns_a_global_in_a_function, "the global variable LAST is assigned in a runtime `if`"),
        (assigns_a_global_in_a_function_outside, "the global variable LAST is assigned in a runtime `if`"),
        (loops_over_what_is_left_of_an_iterator, "a loop over left in a runtime loop"),
        (takes_the_next_in_a_function, "next(left) in a runtime expression"),
        (keeps_a_value_of_a_branch, "a value of a runtime branch or loop is used outside of it"),
        (chooses_between_types, "f32 where the condition holds and i32 where it does not"),
        (decides_with_a_vector, "as a condition: it has one truth value per element"),
        (compares_a_tensor, "a comparison of a tensor"),
        (compares_tensors, "a comparison of a tensor"),
        (vector_as_a_truth_value, "as a condition: it has one truth value per element"),
        (catches_an_exception, "left by an exception"),
        (catches_an_exception_inside, "`try` in a runtime loop"),
        (becomes_another_type, "'x' is i32 before a runtime loop and f32 after an iteration"),
        (changes_structure, "'x' is"),
        pytest.param(indexes, "is the index into [1.0, 2.0]", marks=NEEDS_COLUMNS, id="indexes"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_what_cannot_be_traced(body: Callable[..., Any], says: str) -> None:
    with pytest.raises(FlyError) as info:
        trace(body)
    assert says in str(info.value)
    assert_at(info.value, "here")


# --- errors of the user's own ----------------------------------------------------------------------------------------


def frames(error: BaseException) -> list[str]:
    """The functions in an error's traceback, from this file on. Python 3.10 adds the one that raises it to the user."""
    names, step = [], error.__traceback__
    while step is not None:
        names.append(step.tb_frame.f_code.co_name)
        step = step.tb_next
    return [name for name in names if name != "called" or sys.version_info >= (3, 11)]


def misspells(A: fx.Tensor, n: fx.Int32):
    for i in range(n):
        A[i] = undefined_name  # type: ignore[name-defined]  # noqa: F821


def divides(A: fx.Tensor, n: fx.Int32):
    A[0] = 1 / 0


def asks_for_what_is_not_there(A: fx.Tensor, n: fx.Int32):
    A[0] = fx.no_such_name(A[0])


@pytest.mark.parametrize(
    ("body", "error"),
    [(misspells, NameError), (divides, ZeroDivisionError), (asks_for_what_is_not_there, AttributeError)],
)
def test_the_users_own_errors_keep_type_and_line(body: Callable[..., Any], error: type[Exception]) -> None:
    with pytest.raises(error) as info:
        trace(body)
    names = frames(info.value)
    assert len(names) <= 6
    assert body.__name__ in names
    step = info.value.__traceback__
    while step is not None and step.tb_next is not None:
        step = step.tb_next
    assert step is not None
    assert step.tb_frame.f_code.co_filename == __file__


def checks_what_is_known(A: fx.Tensor, n: fx.Int32):
    for _ in range(n):
        if len([1, 2]) != 3:
            raise ValueError("three are needed")


def test_a_check_of_what_is_known_when_compiling_is_the_users_in_a_runtime_loop_too() -> None:
    with pytest.raises(ValueError, match=r"^three are needed$") as info:
        trace(checks_what_is_known)
    assert not isinstance(info.value, FlyError)


@flyc.jit
def power(x: Any, exponent: int) -> Any:
    if exponent == 0:
        return fx.Float32(1)
    return x * power(x, exponent - 1)


def calls_itself(A: fx.Tensor, n: fx.Int32):
    A[0] = power(A[1], 3)


def test_recursion_ends_where_compile_time_values_decide() -> None:
    trace(calls_itself)


def test_our_errors_have_short_tracebacks() -> None:
    with pytest.raises(TraceError) as info:
        trace(indexes)
    assert frames(info.value)[1:] == ["trace", "traced", "indexes"]
    assert info.value.__context__ is None or info.value.__suppress_context__


def test_an_error_that_ends_a_program_is_shown_with_the_users_frames_only() -> None:
    with pytest.raises(LayoutError) as info:
        fx.make_layout((4, -8))
    shown: list[Any] = []
    user_error._uncaught(info.type, info.value, info.tb, show=lambda *given: shown.append(given))
    assert {step.filename for step in traceback.extract_tb(shown[0][1].__traceback__)} == {__file__}


def test_parameters_that_cannot_be_are_named_where_they_stand() -> None:
    def wrong(
        A: fx.Tensor,
        B: torch.Tensor,  # here
    ):
        pass

    def several(A: fx.Tensor, *rest):  # here
        pass

    def named(A: fx.Tensor, **rest):  # here
        pass

    for function, says in ((wrong, "parameter B is annotated"), (several, "*args"), (named, "**kwargs")):
        error = caught(TraceError, lambda: trace(function))  # noqa: B023 - called at once
        assert says in str(error)
        assert_at(error, "here")


def _resized(tensor: torch.Tensor, size_bytes: int) -> torch.Tensor:
    tensor.untyped_storage().resize_(size_bytes)
    return tensor


WITHOUT_MEMORY: dict[str, Callable[[Callable[..., Any]], Any]] = {
    "released": lambda launch: launch(_resized(torch.ones(64), 0)),
    "with memory for half of it": lambda launch: launch(_resized(torch.ones(64), 128)),
    "functionalize": lambda launch: torch.func.functionalize(launch)(torch.ones(64)),
    "vmap": lambda launch: torch.func.vmap(launch)(torch.ones(2, 64)),
    "grad": lambda launch: torch.func.grad(launch)(torch.ones(64)),
}


@pytest.mark.parametrize("tensor", WITHOUT_MEMORY)
def test_a_tensor_whose_memory_is_not_there(tensor: str) -> None:
    @flyc.kernel
    def kernel(A: fx.Tensor) -> None:
        A[fx.thread_idx.x] = 2.0

    with pytest.raises(ArgumentError, match="A: a tensor whose memory is not there"):
        WITHOUT_MEMORY[tensor](launcher_of(kernel, grid=1, block=64))
