"""Habits from Python, CUDA, HIP, Triton and torch: each is answered by what to write instead."""

# Wrong on purpose, in all the ways in which linters and type checkers would say so, too.
# mypy: ignore-errors
# ruff: noqa

from __future__ import annotations

import dataclasses
import sys
import functools
import inspect
import itertools
import math
import re
from string import Template

import numpy as np
import pytest
import torch

import flydsl.compiler as flyc
import flydsl.expr as fx
import workbench
from flydsl.errors import FlyError
from flydsl.expr.flydsl_names.other_names import OTHER_NAMES
from flydsl.simulator import limited
from tests.kernels.wrong import Programs, check

programs = Programs()
HINTS: dict[str, str] = {}
WEIGHTS = torch.ones(4)
TABLE = np.ones(4)


def habit(says: str, hint: str):
    """A kernel with a habit: a part of its error's message, and of the hint."""

    def register(body):
        HINTS[body.__name__] = hint
        return programs.kernel(says)(body)

    return register


# --- Python's statements ---------------------------------------------------------------------------------------------


@habit("`try` in a runtime `if`", "check the operands with an `if`")
def try_under_a_condition(A, C, I, n):
    if n > 3:
        try:  # here
            I[0] = 12 // n
        except ValueError:
            I[0] = 0


@habit("`except ZeroDivisionError`", "the device raises nothing")
def except_of_a_division(A, C, I, n):
    try:
        I[0] = 5 // (n - 5)
    except ZeroDivisionError:  # here
        I[0] = 42


@habit("cannot decide a Python branch", "assign on the line before")
def walrus_behind_and(A, C, I, n):
    if n > 3 and (k := n * 2) > 8:  # here
        I[0] = k


@habit("comparing lists or tuples", "compare their elements")
def tuples_compared(A, C, I, n):
    I[0] = 1 if (n, 1) == (5, 1) else 2  # here


@habit("Python's index() of a runtime Boolean", "compare with each element")
def index_in_a_list(A, C, I, n):
    I[0] = [1, 5, 3].index(n)  # here


@habit("Python's filter() of a runtime Boolean", "write a loop")
def filtered_list(A, C, I, n):
    I[0] = len(list(filter(lambda x: x > 3, (n, 1))))  # here


@habit("Ellipsis", "None keeps a whole mode")
def ellipsis_in_an_index(A, C, I, n):
    C[0, 0] = A[..., 0][0]  # here


@habit("`match` on a runtime Boolean", "elif")
def match_of_a_tuple(A, C, I, n):
    match (n, 1):
        case (3, 1):  # here
            I[0] = 1


@habit("`in` on a runtime Boolean", "write (n == 1) | (n == 2)")
def in_a_tuple(A, C, I, n):
    if n in (1, 2):  # here
        I[0] = 1


@habit("`in` on a runtime Boolean", "(n != 1) & (n != 2)")
def not_in_a_list(A, C, I, n):
    if n not in [1, 2]:  # here
        I[0] = 1


@habit("`in` on a runtime Int32", "(n == 1) | (n == 2)")
def in_a_set(A, C, I, n):
    if n in {1, 2}:  # here
        I[0] = 1


@habit("`in` on a runtime Int32", "compare")
def in_a_dict(A, C, I, n):
    found = n in dict.fromkeys(range(9))  # here


@habit("Python's get() of a runtime Int32", "compare with each key")
def get_of_a_dict(A, C, I, n):
    I[0] = {1: 2, 3: 4}.get(n, 5)  # here


@habit("a set with a runtime Int32", "compare with ==")
def set_of_values(A, C, I, n):
    I[0] = len({n, 5})  # here


@habit("Python's set() of a runtime Float32", "count in a tensor")
def set_made_of_a_list(A, C, I, n):
    I[0] = len(set([A[0, 0], A[1, 0]]))  # here


@habit("a runtime Int32 as a key of a dict", "compare with ==")
def dict_by_value(A, C, I, n):
    I[0] = {n: 7, n + 1: 8}[5]  # here


@habit("a runtime Int32 as a key of a dict", "count in a tensor")
def histogram_in_a_dict(A, C, I, n):
    counts = {}
    for value in (n, n, n + 1):
        counts[value] = counts.get(value, 0) + 1  # here
    I[0] = counts[5]


@habit("Python's hash() of a runtime Int32", "known at compile time")
def hash_of_a_value(A, C, I, n):
    I[0] = hash(n) & 63  # here


@habit("the text of a runtime value", "compare the value itself")
def text_with_the_value_in_it(A, C, I, n):
    if f"n is {n:{''}}, no more" == "n is 3, no more":  # here
        I[0] = 1


@habit("the text of a runtime value", "compare the value itself")
def text_by_percent(A, C, I, n):
    if "%s of %d" % (n, 4) == "3 of 4":  # here
        I[0] = 1


@habit("the text of a runtime value", "compare the value itself")
def text_by_a_named_format(A, C, I, n):
    pattern = "%s"
    I[0] = 1 if pattern % n == "3" else 2  # here


@habit("the text of a runtime value", "compare the value itself")
def text_for_a_programmer(A, C, I, n):
    I[0] = 1 if repr(n) == "3" else 2  # here


@habit("the text of a runtime value", "compare the value itself")
def text_for_a_programmer_in_a_list(A, C, I, n):
    I[0] = 1 if f"{[n, 4]!r}" == "[3, 4]" else 2  # here


@habit("the text of a runtime value", "compare the value itself")
def text_by_format(A, C, I, n):
    I[0] = 1 if "n={}".format(n).startswith("n=3") else 2  # here


@habit("the text of a runtime value", "compare the value itself")
def texts_joined(A, C, I, n):
    if ", ".join(["n", str(n)]) in ("n, 3",):  # here
        I[0] = 1


@habit("the text of a runtime value", "compare the value itself")
def text_compared(A, C, I, n):
    digits = str(n)
    if digits == "5":  # here
        I[0] = 1


@habit("the text of a runtime value", "compare the value itself")
def joined_text_compared(A, C, I, n):
    if "n=" + str(n) + ";" == "n=5;":  # here
        I[0] = 1


@habit("the text of a runtime value", "compare the value itself")
def text_aligned(A, C, I, n):
    I[0] = 1 if str(n).ljust(3) == "5  " else 2  # here


@habit("the text of a runtime value", "compare the value itself")
def text_as_bytes(A, C, I, n):
    I[0] = 1 if str(n).encode() == b"5" else 2  # here


@habit("the text of a runtime value", "compare the value itself")
def text_formatted_in_place(A, C, I, n):
    text = "%s"
    text %= n
    I[0] = 1 if text == "5" else 2  # here


@habit("the text of a runtime value", "compare the value itself")
def text_of_a_template(A, C, I, n):
    I[0] = 1 if Template("$n").substitute(n=n) == "5" else 2  # here


@dataclasses.dataclass
class Point:
    x: object


@habit("comparing objects", "compare their parts")
def dataclasses_compared(A, C, I, n):
    I[0] = 1 if Point(n) == Point(5) else 2  # here


@habit("comparing objects", "compare their parts")
def dicts_compared(A, C, I, n):
    I[0] = 1 if {"x": n} == {"x": 5} else 2  # here


@habit("cannot decide what Python does", "a loop of this function")
def taken_while(A, C, I, n):
    for i in itertools.takewhile(lambda i: i < n, range(9)):  # here
        I[i] = 1


@habit("the text of a runtime value", "fx.printf")
def length_of_a_text(A, C, I, n):
    I[0] = len(f"{n}")  # here


@habit("`in` on a runtime Boolean", "0 <= n < 10")
def in_a_range(A, C, I, n):
    if n in range(10):  # here
        I[0] = 1


@habit("'x' is [i32] in one branch of a runtime `if` and [i32, i32] in the other", "known at compile time")
def pop_under_a_condition(A, C, I, n):
    x = [1, 2]
    if n > 3:
        x.pop()  # here
    I[0] = x[0]


@habit("x is changed inside a runtime loop", "register tensor")
def append_in_a_while(A, C, I, n):
    x = []
    while n > 0:
        x.append(n)  # here
        n = n - 1


@habit("fib calls itself without end", "write a loop")
def recursion(A, C, I, n):
    def fib(k):
        if k < 2:
            return k
        return fib(k - 1) + fib(k - 2)  # here

    I[0] = fib(n)


def factorial(k):
    if k <= 1:  # here
        return 1
    return k * factorial(k - 1)


@habit("cannot decide a Python branch", "factorial calls itself")
def recursion_of_a_helper(A, C, I, n):
    I[0] = factorial(n)


def sign(x):
    return 1 if x > 0 else -1  # here


@habit("cannot decide a Python branch", "sign needs @flyc.jit above it")
def branch_of_a_helper(A, C, I, n):
    I[0] = sign(n)


def total(I, n):
    for i in range(n):  # here
        I[0] = i


@habit("range of a runtime Int32 cannot be a Python loop", "total needs @flyc.jit above it")
def loop_of_a_helper(A, C, I, n):
    total(I, n)


@habit("the index into w, which Python looks up while tracing", "range_constexpr")
def list_in_a_loop(A, C, I, n):
    w = [0.25, 0.5, 0.25]
    for i in range(3):
        A[i, 0] = w[i]  # here


@habit("the index into w", "fx.make_rmem_tensor")
def list_written_in_a_loop(A, C, I, n):
    w = [0, 0, 0]
    for i in range(3):
        w[i] = n  # here


@habit("valid indices", "pass the tensor to the kernel")
def host_tensor_indexed(A, C, I, n):
    A[0, 0] = WEIGHTS[n]  # here


@habit("valid indices", "pass the tensor to the kernel")
def array_indexed(A, C, I, n):
    A[0, 0] = TABLE[n]  # here


@habit("can't assign a Float32 to a torch.FloatTensor", "fx.make_rmem_tensor")
def host_tensor_written(A, C, I, n):
    x = torch.zeros(4)
    x[0] = A[0, 0]  # here


@habit("range of a runtime Int32 in a comprehension", "is a loop on the device")
def sum_of_a_generator(A, C, I, n):
    A[0, 0] = sum(A[i, 0] for i in range(n))  # here


@habit("int() of a runtime Int32", ".to(fx.Int32) converts")
def int_of_a_value(A, C, I, n):
    I[int(n)] = 1  # here


@habit("Python's max() of a runtime Boolean", "fx.max(a, b)")
def max_of_values(A, C, I, n):
    I[0] = max(n, 3)  # here


@habit("Python's bool() of a runtime Int32", "n != 0")
def bool_of_a_value(A, C, I, n):
    if bool(n):  # here
        I[0] = 1


@habit("is not a Python float", "fx.math")
def math_sqrt(A, C, I, n):
    A[0, 0] = math.sqrt(A[0, 0])  # here


@habit("a runtime Int32 as text", 'fx.printf("{:d}", x)')
def formatted(A, C, I, n):
    print(f"n is {n:d}")  # here


# --- a value assigned in one branch ----------------------------------------------------------------------------------

ONE_BRANCH = "'y' is assigned in one branch of a runtime `if` only, so it has no value after it"


@pytest.mark.parametrize(
    "use",
    [
        lambda y, I, n: fx.exp(y),
        lambda y, I, n: fx.printf("{}", y),
        lambda y, I, n: print(y),
        lambda y, I, n: f"{y}",
        lambda y, I, n: y == 3,
        lambda y, I, n: y**2,
        lambda y, I, n: round(y),
        lambda y, I, n: fx.copy(y, I, I),
        lambda y, I, n: fx.rocdl.readlane(y, 0),
        lambda y, I, n: n.select(y, 2),
        lambda y, I, n: I[y],
    ],
    ids=range(11),
)
def test_a_value_assigned_in_one_branch_is_the_whole_error(use) -> None:
    @flyc.kernel
    def kernel(I: fx.Tensor, n: fx.Int32):
        if n > 3:
            y = 1
        use(y, I, n)

    @flyc.jit
    def launch(I: fx.Tensor, n: fx.Int32):
        kernel(I, n).launch(grid=1, block=64)

    with pytest.raises(FlyError) as caught:
        launch(torch.zeros(8, dtype=torch.int32), 5)
    assert caught.value.message == ONE_BRANCH
    assert caught.value.hint == "assign y before the `if`, or in both branches"


@habit(ONE_BRANCH, "in both branches")
def chosen_from_one_branch(A, C, I, n):
    if n > 3:
        y = 1
    I[0] = y if n > 2 else 3  # here


@habit(ONE_BRANCH, "in both branches")
def compared_from_one_branch(A, C, I, n):
    if n > 3:
        y = 1
    I[0] = y == 3  # here


# --- values as what they are not -------------------------------------------------------------------------------------


@habit("shuffle of 4294967295, which all lanes have", "fx.shuffle_down(value, 1, 64)")
def mask_before_the_value(A, C, I, n):
    fx.shuffle_down(0xFFFFFFFF, n, 1)  # here


@habit("no len()", "tensor.shape")
def len_of_a_tensor(A, C, I, n):
    I[0] = len(A)  # here


@habit("no attribute 'size'", "tensor.shape")
def size_of_a_tensor(A, C, I, n):
    I[0] = A.size(0)  # here


@habit("is not a number", "fx.thread_idx.x")
def index_of_three(A, C, I, n):
    I[fx.thread_idx] = 1  # here


@habit("is not a number", "tensor.shape[0]")
def range_of_a_shape(A, C, I, n):
    for i in range(A.shape):  # here
        I[i] = 0


@habit("no attribute 'w'", "x, y and z")
def fourth_of_three(A, C, I, n):
    I[fx.thread_idx.w] = 1  # here


@habit("which is the place of an array", ".peek()[i]")
def shared_array_indexed(A, C, I, n):
    s = fx.SharedAllocator().allocate(fx.Array[fx.Float32, 64])
    s[fx.thread_idx.x] = 1.0  # here


@habit("2 indices into <Array", ".view(")
def shared_array_of_two_modes(A, C, I, n):
    s = fx.SharedAllocator().allocate(fx.Array[fx.Float32, 64]).peek()
    s[0, fx.thread_idx.x] = 1.0  # here


@habit("unsupported operand type(s) for @", "fx.gemm")
def product_of_numbers(A, C, I, n):
    C[0, 0] = A[0, 0] @ A[0, 1]  # here


@habit("WEIGHTS is an array of the host", "pass it as an argument")
def host_tensor_changed(A, C, I, n):
    WEIGHTS[0] = 2.0  # here


@habit("fx.barrier is a function", "fx.barrier() does")
def function_not_called(A, C, I, n):
    fx.barrier  # here


@habit("'Vector' object does not support item assignment", "tensor.store(v)")
def vector_element_assigned(A, C, I, n):
    fx.full((4,), 1.0, fx.Float32)[0] = 2.0  # here


@habit("vector<4xf32> and vector<8xf32>", "vectors need one shape")
def vectors_of_two_shapes(A, C, I, n):
    fx.full((4,), 1.0, fx.Float32) + fx.full((8,), 1.0, fx.Float32)  # here


@habit("needs 4 elements, which is 2", "BlockReduce[Float32, 256].SharedStorage")
def storage_of_another_block(A, C, I, n):
    memory = fx.SharedAllocator().allocate(fx.BlockReduce[fx.Float32, 128].SharedStorage)
    fx.BlockReduce[fx.Float32, 256].reduce(1.0, "add", memory)  # here


@habit("cannot be deleted", "x[i] = value")
def deleted_element(A, C, I, n):
    del A[0, 0]  # here


@habit("has a `yield`", "write results to a tensor")
def generator(A, C, I, n):  # here
    yield n


# --- launches --------------------------------------------------------------------------------------------------------


def uses_shared(A: fx.Tensor):
    shared = fx.make_view(fx.get_dyn_shared(fx.Float32), fx.make_layout(64))
    shared[fx.thread_idx.x] = 1.0  # here
    fx.barrier()
    A[0] = shared[0]


def launched(body, size=64, **options):
    kernel = flyc.kernel(body)

    @flyc.jit
    def launch(A: fx.Tensor):
        kernel(A).launch(grid=(A.shape[0] + 63) // 64, block=64, **options)  # here

    launch(torch.zeros(size))


@programs.program("uses dynamic shared memory, and its launch has smem=0")
def forgotten_smem() -> None:
    launched(uses_shared)


@programs.program("outside of LDS (64 bytes per workgroup)")
def short_smem() -> None:
    launched(uses_shared, smem=64)


@programs.program("grid must be at least 1 in every dimension, got (0, 1, 1)")
def empty_launch() -> None:
    def body(A: fx.Tensor):
        A[fx.thread_idx.x] = 1.0

    launched(body, size=0)


@programs.program("'NoneType' object has no attribute 'launch'")
def forgotten_decorator() -> None:
    def body(A):
        A[0] = 1.0

    @flyc.jit
    def launch(A: fx.Tensor):
        body(A).launch(grid=1, block=64)  # here

    launch(torch.zeros(64))


@programs.program("@flyc.jit has no option 'arch'")
def target_of_a_launcher() -> None:
    flyc.jit(arch="gfx950")  # here


@programs.program("@flyc.kernel has no option 'num_warps'")
def warps_of_a_kernel() -> None:
    flyc.kernel(num_warps=4)  # here


@programs.program("differs from known_block_size (64, 1, 1)")
def another_block() -> None:
    kernel = flyc.kernel(known_block_size=[64, 1, 1])(lambda A: None)
    flyc.jit(lambda A: kernel(A).launch(grid=1, block=128))(torch.zeros(64))  # here


def write_tile(A: fx.Tensor, *threads):
    """A tile of 128 elements, dealt out to 128 threads, by the numbers of these."""
    word = fx.make_copy_atom(fx.UniversalCopy32b(), fx.Float32)
    copy = fx.make_tiled_copy_tv(word, fx.make_layout((128, 1)), fx.make_layout((1, 1)))
    tile = fx.make_view(fx.get_iter(A), fx.make_layout((128, 1)))
    for thread in threads:
        copy.get_slice(thread).partition_D(tile)[0] = 1.0


@programs.program("launched with block=(64, 1, 1), and the tiled copy (128,1):(1,0) in it is for 128 threads")
def tile_of_more_threads_than_the_block() -> None:
    launched(lambda A: write_tile(A, fx.thread_idx.x))


def test_a_tile_of_more_threads_than_the_block_may_be_dealt_out_by_several_slices() -> None:
    kernel = flyc.kernel(lambda A: write_tile(A, fx.thread_idx.x, fx.thread_idx.x + 64))
    A = torch.zeros(128)
    flyc.jit(lambda A: kernel(A).launch(grid=1, block=64))(A)
    assert bool((A == 1).all())


@programs.program("a wave executed more than 3000 instructions")
def loop_that_never_ends() -> None:
    @flyc.kernel
    def kernel(A: fx.Tensor, n: fx.Int32):
        while n > 0:  # here
            A[0] = 1.0

    with limited(instructions=3000):
        flyc.jit(lambda A, n: kernel(A, n).launch(grid=1, block=64))(torch.zeros(64), 5)


@programs.program("has a `yield`, which makes it a generator")
def launcher_that_yields() -> None:
    @flyc.jit
    def launch(A: fx.Tensor):  # here
        yield A

    launch(torch.zeros(64))


@programs.program("kernel is `async`")
def kernel_that_is_async() -> None:
    @flyc.kernel
    async def kernel(A: fx.Tensor): ...  # here


class Wrapper(torch.Tensor):
    @staticmethod
    def __new__(cls, shape):
        return torch.Tensor._make_wrapper_subclass(cls, shape, dtype=torch.float32)

    __torch_dispatch__ = classmethod(lambda cls, *arguments: NotImplemented)


@programs.program("A: a Wrapper, which has no memory of its own")
def tensor_without_memory() -> None:
    @flyc.jit
    def launch(A: fx.Tensor): ...

    launch(Wrapper((64,)))  # here


HINTS |= {
    "tile_of_more_threads_than_the_block": "launch(block=128)",
    "loop_that_never_ends": "limited(",
    "launcher_that_yields": "write results to a tensor",
    "kernel_that_is_async": "write `def kernel`",
    "tensor_without_memory": "pass the tensor that it stands for",
    "target_of_a_launcher": "flyc.compile(launcher, ..., arch=",
    "warps_of_a_kernel": ".launch(grid=",
    "another_block": "change known_block_size",
    "forgotten_smem": "smem=256",
    "short_smem": "smem=256",
    "empty_launch": "`if n > 0:`",
    "forgotten_decorator": "@flyc.kernel",
}


@pytest.mark.parametrize("name", programs.table)
def test_one_error_that_says_what_to_write(name: str) -> None:
    run, says = programs.table[name]
    assert HINTS[name] in check(run, says, __file__).hint


# --- tracing that a user can see -------------------------------------------------------------------------------------


def test_print_of_a_runtime_value_says_that_it_is_traced(capsys) -> None:
    @flyc.kernel
    def kernel(A: fx.Tensor, n: fx.Int32):
        print(n, fx.Int32(3))
        print(f"{A[0]}")
        print(A, fx.Vector.filled(4, n, fx.Int32))

    @flyc.jit
    def launch(A: fx.Tensor, n: fx.Int32):
        kernel(A, n).launch(grid=1, block=64)

    launch(torch.zeros(8), 5)
    printed = capsys.readouterr().out.splitlines()
    assert all("of the trace; fx.printf prints" in line for line in printed)
    assert printed[0].endswith("Int32(3)")


def test_a_function_that_remembers_its_results_may_be_given_runtime_values() -> None:
    @flyc.kernel
    def kernel(I: fx.Tensor, n: fx.Int32):
        twice = functools.cache(lambda value: value + value)
        I[0] = twice(n) + twice(n)

    I = torch.zeros(1, dtype=torch.int32)
    flyc.jit(lambda I, n: kernel(I, n).launch(grid=1, block=1))(I, 5)
    assert I[0] == 20


# --- names -----------------------------------------------------------------------------------------------------------


def said_of(name: str) -> str:
    with pytest.raises(AttributeError) as caught:
        getattr(fx, name)
    return str(caught.value)


def test_a_name_of_another_language_gets_the_word_of_this_one() -> None:
    for name in OTHER_NAMES:
        assert hasattr(fx, name) or said_of(name).endswith(OTHER_NAMES[name])


def test_what_is_suggested_exists() -> None:
    for hint in OTHER_NAMES.values():
        for path in re.findall(r"\bfx((?:\.\w+)+)", re.sub(r"(_idx|_dim)\.[xyz]\b", r"\1", hint)):
            found = fx
            for name in path.split(".")[1:]:
                found = getattr(found, name)


def test_neither_modules_nor_what_is_missing_is_suggested() -> None:
    for name in ("lerpp", "coordtensor", "memery", "numerc", "gathr", "scattr", "cachepolicies", "primitives"):
        suggested = re.findall(r"\w+", said_of(name).partition("close to it:")[2])
        assert all(word in dir(fx) for word in suggested)


def test_dir_shows_the_api() -> None:
    assert {"make_layout", "thread_idx", "Float32", "printf", "math", "rocdl"} <= set(dir(fx))
    assert not {"algebra", "emit", "builder", "unknown_name", "names", "Any", "annotations"} & set(dir(fx))
    assert dir(workbench) == sorted(workbench.__all__)
    assert dir(flyc) == sorted(flyc.__all__)


def test_signatures_say_what_operands_are() -> None:
    functions = [getattr(fx, name) for name in dir(fx) if inspect.isfunction(getattr(fx, name))]
    assert len(functions) > 200
    assert [f.__name__ for f in functions if re.search(r"\bAny\b", str(inspect.signature(f)))] == []
