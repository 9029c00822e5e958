"""Control flow on runtime integers computes what plain Python computes: each body also runs as it is, on lists."""

from __future__ import annotations

import linecache
import random
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.compiler.rewrite import rewrite
from flydsl.errors import TraceError
from flydsl.expr import const_expr, range_constexpr
from tests.launchers import launcher_of

# Every body takes a list of N numbers to read, one to write, and two numbers.
N = 16


def collatz(A: Any, B: Any, a: Any, b: Any):
    n, steps = a * a + 1, 0
    while n != 1:
        if n % 2 == 0:
            n = n // 2
        else:
            n = 3 * n + 1
            B[1] = n
        steps += 1
    B[0] = steps


def guards(A: Any, B: Any, a: Any, b: Any):
    if a < 0:
        return
    if b < 0:
        B[1] = 5
        return
    if b == 3:
        B[2] = 1
    B[0] = a + b


def elif_chain(A: Any, B: Any, a: Any, b: Any):
    x = 0
    if a < 2:
        x = 1
    elif a < 4:
        x = b
    elif a == 5 and b > 2:
        x = 3
    else:
        x = 4
        only_here = 5
        B[1] = only_here
    B[0] = x


def guarded_loads(A: Any, B: Any, a: Any, b: Any):
    """The simulator refuses a load outside of A."""
    total = 0
    for i in range(-10, 30):
        if 0 <= i < N and A[i] > 2:
            total += A[i]
        if not (0 <= i < N) or A[i] == 0:
            total += 100
    B[0] = total
    B[1] = A[a] if 0 <= a < N else -1


def list_elements(A: Any, B: Any, a: Any, b: Any):
    accs = [0, 0, 0]
    for i in range(a):
        for j in range_constexpr(3):
            if (i + j) % 2 == 0:
                accs[j] = accs[j] + A[i]
            else:
                accs[j] += 1
    for j in range_constexpr(3):
        B[j] = accs[j]


def aliases(A: Any, B: Any, a: Any, b: Any):
    accs = [0, 0]
    other = accs

    def bump(j: Any, value: Any) -> None:
        accs[j] = accs[j] + value

    for i in range(a):
        bump(0, i)
        other[1] = other[1] + accs[0]
    if b > 2:
        bump(1, 5)
    flags = [0, 0]

    def note(limit: Any) -> None:
        if b > limit:
            flags[0] = 1
        else:
            flags[1] = 1

    note(3)
    note(6)
    B[2] = flags[0]
    B[3] = flags[1]
    B[0] = accs[0]
    B[1] = other[1]


def objects(A: Any, B: Any, a: Any, b: Any):
    state = SimpleNamespace(total=0, pair={"x": 0, "y": a})
    for i in range(b):
        state.total = state.total + i
        state.pair["x"] += state.pair["y"]
        if i > 2:
            state.pair["y"] += 1
    B[0] = state.total
    B[1] = state.pair["x"]
    B[2] = state.pair["y"]


def nonlocals(A: Any, B: Any, a: Any, b: Any):
    total = 0

    def add(value: Any) -> None:
        nonlocal total
        total = total + value

    for i in range(a):
        add(i)
        if i > b:
            add(10)
    B[0] = total


def closures_see_carried_values(A: Any, B: Any, a: Any, b: Any):
    total = 0

    def twice() -> Any:
        return total * 2

    for i in range(a):
        total = twice() + i
    if b > 3:
        total = twice()
    B[0] = twice()


def expressions(A: Any, B: Any, a: Any, b: Any):
    B[0] = a if a > b else b
    B[1] = a and b
    B[2] = a or b
    B[3] = 1 if not a else 2
    B[4] = (a > 2 and b > 2 and A[3] > 0) + 0
    B[5] = (a > 2 or b > 2 or a == b) + 0
    B[6] = 1 if a > 0 else (2 if b > 0 else 3)
    B[7] = (-1 < a <= b < 9) + 0
    B[8] = (1 < 2 < a) + 0
    B[9] = (None or a) + ((3 and b) if const_expr(True) else 0)


def continues(A: Any, B: Any, a: Any, b: Any):
    total = 0
    for i in range(a):
        if i == b:
            continue
        if i % 3 == 0:
            total += 1
        else:
            if i > 7:
                continue
            total += 3
        total += 10
    k = 0
    while k < a:
        k += 1
        if k == 2:
            continue
        total += k
    for j in range_constexpr(4):
        if A[j] == b:
            continue
        if j == 2:
            continue
        total += 1000
    B[0] = total


def breaks(A: Any, B: Any, a: Any, b: Any):
    total, i = 0, 77
    for i in range(1, a, 2):
        if A[i] == b:
            break
        total += 1
        if total > 3:
            B[3] = 1
            break
        if total == 2:
            continue
        total += A[i]
    B[0] = total
    B[1] = i
    for j in range_constexpr(5):
        if j == 4:
            break
        if A[j] > a:
            break
        B[2] = B[2] + 1
    k = a * 0
    while True:
        k += 1
        if k > b:
            break
        if k == 7:
            break
    B[4] = k
    while k > 0:
        k -= 1
        for _ in range(3):
            if k == 4:
                break
            B[5] = B[5] + 1


def returns_from_helpers(A: Any, B: Any, a: Any, b: Any):
    def simple(x: Any, y: Any) -> Any:
        if x < y:
            return x * 2
        if x == y:
            return 7
        return y - 1

    def partial(x: Any, y: Any) -> Any:
        if x > 0:
            if y > 2:
                return 10
            x = x + 1
        elif x == -1:
            y = y * 2
            if y == 4:
                return 3
        if y == 0:
            return x
        return x * y

    def known(x: Any) -> Any:
        if N == 3:
            return 0
        for j in range_constexpr(4):
            if j == 2:
                return x + j
        return 99

    B[0] = simple(a, b)
    B[1] = simple(b, a)
    B[2] = partial(a, b)
    B[3] = known(a)


def returns_from_loops(A: Any, B: Any, a: Any, b: Any):
    def find(x: Any) -> Any:
        for i in range(N):
            if A[i] == x:
                return i
        return -1

    def pair(x: Any) -> Any:
        count = 0
        for i in range(a):
            if i > 9:
                return (i, 100)
            for j in range(i):
                count += 1
                if i * j == x:
                    B[5] = B[5] + 1
                    return (i, j)
                if j > 5:
                    break
            if count > 20:
                continue
            B[6] = B[6] + count
        return (count, -1)

    def halves(x: Any) -> Any:
        steps = 0
        while x > 0:
            x = x // 2
            steps += 1
            if steps == 3:
                return x
        if steps == 0:
            return 77
        return steps

    def counts_until(x: Any) -> Any:
        k = x - x
        while True:
            k += 1
            if k * k > x:
                return k

    def known(x: Any) -> Any:
        for j in range_constexpr(4):
            if j == x:
                return j * 10
            if j > x + 2:
                return j
        return 99

    def in_a_branch(x: Any) -> Any:
        if x > 2:
            for i in range(x):
                if A[i] == b:
                    return i
            y = x * 3
        else:
            y = 4
        return y + 1

    B[0] = find(b)
    B[1], B[2] = pair(b)
    B[3] = halves(a)
    B[4] = counts_until(b)
    B[7] = known(b)
    B[8] = in_a_branch(a)
    for k in range(a):
        if k == b:
            return
        B[9] = k
    B[10] = 1


def nested_loops(A: Any, B: Any, a: Any, b: Any):
    i, total = 0, 0
    while i < a:
        j = 0
        while j < i and total < 50:
            total = total + j
            j += 1
        for k in range(j):
            if k > b:
                total += A[k]
        i += 1
    B[0] = total
    B[1] = i


def known_conditions(A: Any, B: Any, a: Any, b: Any):
    k = 1
    while k < 8:
        B[k] = a + k
        k *= 2
    while True:
        k -= 1
        if k < 5:
            break
    B[k] = 9
    if k == 4:
        shape = (2, 3)
        B[5] = 1
    else:
        shape = None
    for m in range_constexpr(*shape):
        B[m] = 5


def assigns_in_a_condition(A: Any, B: Any, a: Any, b: Any):
    i, total = a - a, 0
    while (value := A[i]) < 6 and i < 10:
        total += value
        i += 1
    if (doubled := a * 2) > b:
        total += doubled
    B[0] = total
    B[1] = value
    B[2] = i


def names_of_one_branch(A: Any, B: Any, a: Any, b: Any):
    if a > 0:
        first = 5
        B[0] = first
    for i in range(a):
        second = i
        B[1] = second
        del second
    third = 1 if b > 0 else 2
    if b > 1:
        fourth = third
        B[3] = 1
    else:
        fourth = 8
    B[2] = fourth


def unlucky_names(A: Any, B: Any, a: Any, b: Any):
    TEST = BODY = 0
    for VALUE in range(a):
        if b < VALUE:
            TEST = TEST + 1
        else:
            BODY += 2
    B[0] = TEST
    B[1] = BODY


BODIES = [
    collatz, guards, elif_chain, guarded_loads, list_elements, aliases, objects, nonlocals, closures_see_carried_values,
    expressions, continues, breaks, returns_from_helpers, returns_from_loops, nested_loops, known_conditions,
    assigns_in_a_condition, names_of_one_branch, unlucky_names,
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("body", BODIES, ids=lambda f: f.__name__)
def test_runtime_control_flow_is_pythons(body: Callable[..., None]) -> None:
    def typed(A: fx.Tensor, B: fx.Tensor, a: fx.Int32, b: fx.Int32):
        rewrite(body)(A, B, a, b)

    kernel = flyc.kernel(typed)

    @flyc.jit
    def launch(A: fx.Tensor, B: fx.Tensor, a: fx.Int32, b: fx.Int32):
        kernel(A, B, a, b).launch(grid=1, block=1)

    A = (torch.arange(N) * 3 % 7).to(torch.int32)
    choose = random.Random(body.__name__)
    for a, b in [(choose.randrange(-3, 13), choose.randrange(-3, 13)) for _ in range(12)]:
        B, expected = torch.zeros(N, dtype=torch.int32), [0] * N
        launch(A, B, a, b)
        body(A.tolist(), expected, a, b)
        assert B.tolist() == expected, (a, b)


# --- objects of the host ---------------------------------------------------------------------------------------------


class Settings:
    value = 1


SETTINGS, TABLE, COUNT = Settings(), {"value": 1}, 1
SEEN, MEMBERS, ARRAY, TORCH = [1], {1}, np.ones(2, np.int32), torch.ones(2, dtype=torch.int32)
SETTINGS.value = 1


@flyc.jit
def set_attribute(A, n):
    if n > 3:
        SETTINGS.value = 5  # here


@flyc.jit
def set_element(A, n):
    if n > 3:
        TABLE["value"] = 5  # here


@flyc.jit
def append(A, n):
    if n > 3:
        n = n + 1
        SEEN.append(1)  # here


@flyc.jit
def add_to_a_set(A, n):
    if n > 3:
        MEMBERS.add(5)  # here


@flyc.jit
def update_a_dict(A, n):
    for _ in range(n):
        if n > 4:
            TABLE.update(value=5)  # here


@flyc.jit
def use_setattr(A, n):
    if n > 3:
        setattr(SETTINGS, "value", 5)  # here # noqa: B010


@flyc.jit
def set_element_of_an_array(A, n):
    if n > 3:
        ARRAY[0] = 5  # here


@flyc.jit
def set_element_of_a_torch_tensor(A, n):
    for i in range(n):
        TORCH[0] += i  # here


@flyc.jit
def fill_a_torch_tensor(A, n):
    if n > 3:
        TORCH.fill_(5)  # here


@flyc.jit
def delete_an_element(A, n):
    if n > 3:
        del TABLE["value"]  # here


@flyc.jit
def set_global(A, n):
    global COUNT
    if n > 3:  # here
        COUNT = 5


@pytest.mark.parametrize(
    ("body", "path"),
    [
        (set_attribute, "host's object SETTINGS"),
        (set_element, "host's object TABLE"),
        (append, "host's object SEEN"),
        (add_to_a_set, "host's object MEMBERS"),
        (update_a_dict, "host's object TABLE"),
        (use_setattr, "host's object SETTINGS"),
        (set_element_of_an_array, "host's object ARRAY"),
        (set_element_of_a_torch_tensor, "host's object TORCH"),
        (fill_a_torch_tensor, "host's object TORCH"),
        (delete_an_element, "host's object TABLE"),
        (set_global, "global variable COUNT"),
    ],
    ids=lambda value: getattr(getattr(value, "function", None), "__name__", ""),
)
def test_a_runtime_branch_does_not_change_the_host(body: Any, path: str) -> None:
    @flyc.kernel
    def kernel(A: fx.Tensor, n: fx.Int32):
        body(A, n)

    launch = launcher_of(kernel, grid=1, block=64)
    with pytest.raises(TraceError, match=path) as caught:
        launch(torch.zeros(64), 0)
    assert caught.value.at.file == __file__
    assert "# here" in (caught.value.at.source_line or "")
    assert (SETTINGS.value, TABLE["value"], COUNT) == (1, 1, 1)
    assert (SEEN, MEMBERS, ARRAY.tolist(), TORCH.tolist()) == ([1], {1}, [1, 1], [1, 1])


def test_a_loop_with_init_in_other_loops() -> None:
    """Each yield belongs to the innermost loop that it ends."""

    @flyc.kernel
    def kernel(Out: fx.Tensor, n: fx.Int32):
        total = fx.Int32(0)
        for j in range(n):
            for i, state in fx.range(0, 4, 1, init=[total]):
                last = yield [state[0] + i]
            total = last + j
        for _, outer in range(0, n, 1, init=[total]):
            for _, inner in range(0, 2, 1, init=[outer[0], fx.Int32(1)]):
                both = yield [inner[0] + inner[1], inner[1] * 2]
            whole = yield [both[0]]
        Out[fx.thread_idx.x] = whole

    launch = launcher_of(kernel, grid=1, block=64)
    out = torch.zeros(64, dtype=torch.int32)
    launch(out, 3)
    assert (out == 3 * 6 + 3 + 3 * 3).all()


def test_a_while_on_the_length_of_a_list_runs_while_tracing() -> None:
    """Only the number of the list's values decides, though they are of run time."""

    @flyc.kernel
    def kernel(A: fx.Tensor, Out: fx.Tensor):
        i = fx.thread_idx.x
        parts = [A[i + j] for j in range(6)]
        while len(parts) > 1:
            half = len(parts) // 2
            parts = [parts[j] + parts[j + half] for j in range(half)] + parts[2 * half :]
        Out[i] = parts[0]

    @flyc.jit
    def launch(A: fx.Tensor, Out: fx.Tensor):
        kernel(A, Out).launch(grid=1, block=64)

    a, out = torch.arange(69.0), torch.zeros(64)
    launch(a, out)
    assert torch.equal(out, a.unfold(0, 6, 1).sum(1))


# --- handlers of exceptions ------------------------------------------------------------------------------------------


def run_once(body: Callable[[Any], None]) -> None:
    @flyc.kernel
    def kernel(A: fx.Tensor):
        rewrite(body)(A)

    launcher_of(kernel, grid=1, block=1)(torch.zeros(4))


def test_a_handler_of_what_the_device_never_raises_is_warned_of() -> None:
    def body(A: Any) -> None:
        try:
            A[0] = A[1] / 0.0
        except Exception:  # noqa: BLE001 - here
            A[0] = 1.0

    with pytest.warns(UserWarning, match=r"`except Exception` catches what tracing raises") as found:
        run_once(body)
    assert linecache.getline(found[0].filename, found[0].lineno).rstrip().endswith("- here")


@pytest.mark.filterwarnings("error")
def test_handlers_of_what_tracing_raises_are_silent() -> None:
    def body(A: Any) -> None:
        try:
            A[0] = fx.no_such_name(A[1])
        except (AttributeError, ImportError):
            A[0] = 1.0
        try:
            known = int("7")
        except ValueError:
            known = 8
        A[1] = float(known)

    run_once(body)
