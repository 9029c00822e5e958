"""Python objects where a runtime value decides: none changes once for all, is compared by identity, or never ends."""

# Wrong on purpose, in all the ways in which linters and type checkers would say so, too.
# mypy: ignore-errors
# ruff: noqa

from __future__ import annotations

import array
import dataclasses
import enum
import itertools
from collections import defaultdict, deque

import numpy as np
import pytest
import torch

import flydsl
import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl import env
from flydsl.errors import ArgumentError
from tests.kernels.wrong import Programs, check

programs = Programs()
FIVE = 5


# --- changed where a runtime condition or loop decides --------------------------------------------------------------


@programs.kernel("q is changed inside a runtime loop")
def deque_in_a_loop(A, C, I, n):
    q = deque([0, 0])
    for i in range(n):
        q.append(i)  # here
        q.popleft()
    I[0] = q[0]


@programs.kernel("Class is changed inside a runtime loop")
def class_in_a_loop(A, C, I, n):
    class Class:
        value = 0

    for i in range(n):  # here
        Class.value = Class.value + 1
    I[0] = Class.value


@programs.kernel("the host's object globals() is changed in a runtime `if`")
def global_by_its_name(A, C, I, n):
    if n > 8:
        globals()["FIVE"] = 6  # here


@programs.kernel("'q' is [i32, i32, i32] in one branch of a runtime `if` and [i32, i32] in the other")
def deque_in_a_branch(A, C, I, n):
    q = deque([n, 1])
    if n > 8:
        q.append(7)  # here
    I[0] = len(q)


@programs.kernel("q is changed in a runtime `if`, but it is an array of the host")
def numpy_array_in_a_branch(A, C, I, n):
    q = np.zeros(4, dtype=np.int32)
    if n > 8:  # here
        q[0] = 9
    I[0] = int(q[0])


@programs.kernel("q is changed in a runtime loop, but it is an array of the host")
def torch_tensor_in_a_loop(A, C, I, n):
    q = torch.zeros(4)
    for i in range(n):
        q.add_(1)  # here
    A[0, 0] = q[0].item()


@programs.kernel("q[1] is changed in a runtime `if`, but it is an array of the host")
def bytes_in_a_branch(A, C, I, n):
    q = [bytearray(4), array.array("i", [1])]
    if n > 8:  # here
        q[1][0] = 2
    I[0] = q[1][0]


@programs.kernel("next(q) in a runtime loop")
def iterator_in_a_loop(A, C, I, n):
    q = itertools.count()
    for i in range(n):
        I[i] = next(q)  # here


@programs.kernel("next(q) in a runtime `if`")
def generator_in_a_branch(A, C, I, n):
    q = (x for x in [1, 2, 3])
    if n > 8:
        next(q)  # here
    I[0] = next(q)


@programs.kernel("'d' is {} before the loop and {a: i32} after an iteration")
def key_made_in_a_loop(A, C, I, n):
    d = defaultdict(int)
    for i in range(n):  # here
        d["a"] += i
    I[0] = d["a"]


# --- identity, truth, text -------------------------------------------------------------------------------------------


@programs.kernel("`is` asks whether a runtime value is the same object as 5")
def number_is_not_five(A, C, I, n):
    if FIVE is not n:  # here
        I[0] = 1


@programs.kernel("`is` asks whether Float32 is the same object as torch.float32")
def type_is_torchs(A, C, I, n):
    I[0] = 1 if A.dtype is torch.float32 else 2  # here


@programs.kernel("a store of i1 to a tensor of i32")
def either_of_two_types(A, C, I, n):
    I[0] = n or 2.5  # here


@programs.kernel("the text of a runtime value")
def joined_text(A, C, I, n):
    if ",".join([str(n), str(n)]) == "5,5":  # here
        I[0] = 1


@programs.kernel("the text of a runtime value")
def text_as_a_key(A, C, I, n):
    I[0] = {"v5": 3}[f"v{n}"]  # here


@programs.kernel("the text that printf prints has a runtime value in it")
def printed_text(A, C, I, n):
    fx.printf(f"n={n}")  # here


@programs.kernel("sort() asks Python for a runtime Boolean")
def sorted_in_place(A, C, I, n):
    x = [n, 1]
    x.sort()  # here


@programs.kernel("where() asks Python for a runtime Boolean")
def chosen_by_numpy(A, C, I, n):
    A[0, 0] = np.where(A[0, 1] > 0, 1.0, 0.0)  # here


@programs.kernel("Could not infer dtype of Int32")
def tensor_of_values(A, C, I, n):
    torch.tensor([n, 1])  # here


# --- without an end --------------------------------------------------------------------------------------------------


@programs.kernel("operations are traced, and this loop has not ended")
def while_true(A, C, I, n):
    k = 0
    while True:  # here
        k += 1


@programs.kernel("operations are traced, and this loop has not ended")
def endless_iterator(A, C, I, n):
    for i in itertools.count():  # here
        pass


# --- arguments -------------------------------------------------------------------------------------------------------


@programs.program("takes a tensor, got <class 'torch.Tensor'>")
def class_for_a_tensor():
    tuned(torch.Tensor, 1, 2)  # here


@programs.program("a tensor without strides")
def nested_tensor():
    tuned(torch.nested.as_nested_tensor([torch.zeros(4)]), 1, 2)  # here


@programs.launcher("an annotation cannot be read: module 'flydsl.expr' has no attribute 'Tensr'")
def misspelt_type(A, n):
    @flyc.kernel
    def kernel(A: fx.Tensr):  # here
        A[0] = 1.0

    kernel(A).launch(grid=1, block=1)


@pytest.mark.parametrize("name", programs.table)
@pytest.mark.filterwarnings("ignore")
def test_one_error_at_the_line_that_is_wrong(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLYDSL_COMPILE_MAX_TRACED_OPS", "2000")
    check(*programs.table[name], __file__)


# --- what Python does, and the device does too -----------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Pair:
    x: fx.Int32
    y: fx.Int32


class Slots:
    __slots__ = ("v",)


def test_objects_that_hold_values_may_change_with_a_condition() -> None:
    @flyc.kernel
    def kernel(I: fx.Tensor, n: fx.Int32):
        pair, kept, queue = Pair(fx.Int32(1), n), Slots(), deque([n, 1])
        kept.v = fx.Int32(1)
        if n > 3:
            pair = dataclasses.replace(pair, x=n)
            kept.v = n
            queue[0] = n + 1
        for i in range(n):
            pair = Pair(pair.x + 1, pair.y)
        for i, j in zip([3, 4], [5, 6]):
            I[i] = j
        I[0], I[1], I[2] = pair.x, kept.v, queue[0]

    launch = flyc.jit(lambda I, n: kernel(I, n).launch(grid=1, block=1))
    for n, expected in ((5, [10, 5, 6, 5, 6]), (2, [3, 1, 2, 5, 6])):
        I = torch.zeros(5, dtype=torch.int32)
        launch(I, n)
        assert I.tolist() == expected


def test_attributes_of_functions_classes_and_members_change_with_a_condition() -> None:
    @flyc.kernel
    def kernel(I: fx.Tensor, n: fx.Int32):
        def function(seen=[1]):
            return seen

        class Class:
            value = 1

        class Member(enum.Enum):
            X = 1

        function.value = 1
        if n > 3:
            function.value = 2
            Class.value = 2
            Member.X._value_ = 2
            function()[0] = 2
        I[0], I[1], I[2], I[3] = function.value, Class.value, Member.X.value, function()[0]

    launch = flyc.jit(lambda I, n: kernel(I, n).launch(grid=1, block=1))
    for n, expected in ((5, 2), (2, 1)):
        I = torch.zeros(4, dtype=torch.int32)
        launch(I, n)
        assert I.tolist() == 4 * [expected]


# --- searches --------------------------------------------------------------------------------------------------------


@flyc.jit
def tuned(A: fx.Tensor, n: fx.Int32, block: fx.Constexpr[int]): ...


@pytest.mark.parametrize(
    ("run", "says", "hint"),
    [
        (lambda: flydsl.Config({"block": 64}), "takes the launcher's parameters by name", "Config(block=64"),
        (lambda: swept(configs={"blok": [64]}), "unexpected keyword argument 'blok'", "did you mean block?"),
        (lambda: swept(shapes=[{"m": 1}]), "argument", "parameters are n"),
        (lambda: swept(arguments=None), "missing a required argument: 'A'", "A, n, block"),
        (lambda: swept(arguments=[1]), "arguments must be a function, got [1]", "shape's values"),
        (lambda: flydsl.sweep(None), "a launcher must be a function, got None", "@flyc.jit"),
    ],
)
def test_a_search_with_names_that_nothing_has_is_one_error(run, says: str, hint: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        run()
    assert says in caught.value.message
    assert hint in caught.value.hint


def swept(configs={"block": [64]}, shapes=[{"n": 8}], arguments=lambda n: {"A": torch.ones(n), "n": n}):
    return flydsl.sweep(tuned, configs, shapes, arguments=arguments, progress=lambda table: None)


def test_a_misspelt_environment_variable_is_warned_of_once(monkeypatch: pytest.MonkeyPatch) -> None:
    @flyc.kernel
    def kernel(I: fx.Tensor):
        I[0] = 1

    monkeypatch.setenv("FLYDSL_COMPILE_OPT_LEVL", "3")
    monkeypatch.setattr(env, "_unknown", set())  # of which this process has warned
    monkeypatch.setenv("FLYDSL_EXTRA_SOURCE_DIRS", "kernels")  # which aiter sets for FlyDSL
    with pytest.warns(UserWarning, match="FLYDSL_COMPILE_OPT_LEVL.*did you mean FLYDSL_COMPILE_OPT_LEVEL") as caught:
        flyc.jit(lambda I: kernel(I).launch(grid=1, block=1))(torch.zeros(1, dtype=torch.int32))
    assert not any("FLYDSL_EXTRA_SOURCE_DIRS" in str(warning.message) for warning in caught)
