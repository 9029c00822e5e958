"""Runtime loops and the values that they carry, on the simulator."""

from __future__ import annotations

import pytest
import torch

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.errors import DeviceAssertion, TraceError
from flydsl.expr import range_constexpr
from flydsl.simulator import checking
from tests.launchers import launcher_of
from tests.pythons import NEEDS_COLUMNS


def test_loops_with_bounds_known_at_run_time() -> None:
    @flyc.kernel
    def kernel(A: fx.Tensor, Out: fx.Tensor, first: fx.Int32, last: fx.Int32, step: fx.Int32):
        i = fx.thread_idx.x
        total, count = fx.Float32(0), fx.Int32(0)
        for j in range(first, last, step):
            total = total + A[i, j]
            for k in range_constexpr(2):
                count += k
        Out[i, 0] = total
        Out[i, 1] = count.to(fx.Float32)

    launch = launcher_of(kernel, grid=1, block=64)
    a = torch.arange(64 * 20, dtype=torch.float32).reshape(64, 20)
    for bounds in [(0, 20, 1), (3, 20, 4), (5, 5, 1), (7, 2, 1)]:
        out = torch.zeros(64, 2)
        launch(a, out, *bounds)
        columns = range(*bounds)
        assert torch.equal(out[:, 0], a[:, list(columns)].sum(1))
        assert (out[:, 1] == len(columns)).all()
    for step in (0, -1, -(2**31)):  # a runtime loop counts upward, or not at all
        launch(a, out, 0, 20, step)
        assert (out == 0).all()


@pytest.mark.slow
@pytest.mark.parametrize("kind", [fx.Int32, fx.Index, fx.Int64])
def test_a_runtime_step_that_does_not_count_upward_is_an_error_where_indices_are_checked(
    kind: type[fx.Numeric],
) -> None:
    @flyc.kernel
    def kernel(out: fx.Tensor, step: fx.Int32):
        for j in range(kind(3), kind(20), step):
            out[fx.Int32(j)] = 1

    launch, out = launcher_of(kernel, grid=1, block=1), torch.zeros(20)
    for step in (-7, 0):
        launch(out, step)
        with (
            checking("index"),
            pytest.raises(DeviceAssertion, match=f"range with step {step}: .* counts upward") as caught,
        ):
            launch(out, step)
        assert getattr(caught.value.at, "file", None) == __file__
    assert not out.any()
    with checking("index"):
        launch(out, 6)
    assert out.nonzero().flatten().tolist() == [3, 9, 15]


def test_registers_written_in_a_loop_keep_their_values() -> None:
    """A register tensor that crosses loop iterations stays memory; its storage is one, not one per iteration."""

    @flyc.kernel
    def kernel(A: fx.Tensor, Out: fx.Tensor, n: fx.Int32):
        i = fx.thread_idx.x
        r = fx.make_rmem_tensor(4, fx.Float32)
        for j in range_constexpr(4):
            r[j] = 0.0
        for j in range(n):
            piece = fx.make_rmem_tensor(4, fx.Float32)
            for k in range_constexpr(4):
                piece[k] = A[i, j * 4 + k]
            r.store(r.load() + piece.load())
            r[j % 4] = r[j % 4] * 2.0
        for j in range_constexpr(4):
            Out[i, j] = r[j]

    launch = launcher_of(kernel, grid=1, block=64)
    a, out = torch.randn(64, 24, generator=torch.manual_seed(0)), torch.zeros(64, 4)
    launch(a, out, 6)
    expected = torch.zeros(64, 4)
    for j in range(6):
        expected += a[:, 4 * j : 4 * j + 4]
        expected[:, j % 4] *= 2
    assert torch.equal(out, expected)


def run(kernel: flyc.KernelFunction, *arguments: object, block: int = 1) -> None:
    """Launch a kernel with (A, B, Out, n)."""

    @flyc.jit
    def launch(A: fx.Tensor, B: fx.Tensor, Out: fx.Tensor, n: fx.Int32):
        kernel(A, B, Out, n).launch(grid=1, block=block)

    launch(*arguments)


def test_loops_and_branches_carry_tensors() -> None:
    @flyc.kernel
    def kernel(A: fx.Tensor, B: fx.Tensor, Out: fx.Tensor, n: fx.Int32):
        i = fx.thread_idx.x
        row, total = fx.slice(A, (0, None)), fx.Float32(0)
        for j in range(n):
            total += row[i]
            row = fx.slice(A, (j, None))
        Out[0, i] = total
        if i % 2 == 0:
            source = fx.slice(A, (n, None))
        else:
            source = fx.slice(B, (n, None))
            total = total + 1.0
        Out[1, i] = source[i]
        k = n
        row = fx.slice(A, (k, None))
        while k > 0:
            k -= 1
            if row[i] > 20.0:
                row = fx.slice(A, (k, None))
        Out[2, i] = row[i]
        x, y = A, B
        for _ in range(n):
            x, y = y, x
        Out[3, i] = (x if n > 3 else y)[0, i]

    n, a, out = 7, torch.arange(160.0).reshape(10, 16), torch.zeros(4, 16)
    b = 1000 - a
    run(kernel, a, b, out, n, block=16)
    assert torch.equal(out[0], a[[0, *range(n - 1)]].sum(0))
    assert torch.equal(out[1], torch.where(torch.arange(16) % 2 == 0, a[n], b[n]))
    for i in range(16):
        k = row = n
        while k > 0:
            k -= 1
            row = k if a[row, i] > 20 else row
        assert out[2, i] == a[row, i]
    assert torch.equal(out[3], b[0])


def test_layouts_and_int_tuples_are_carried() -> None:
    @flyc.kernel
    def kernel(A: fx.Tensor, B: fx.Tensor, Out: fx.Tensor, n: fx.Int32):
        coordinate, layout = fx.make_coord(n, n), fx.make_layout((n, 4), (1, n))
        for i in range(n):
            coordinate = fx.make_coord(coordinate[1], i)
            layout = fx.make_layout((i, 4), (1, n + i))
        Out[0] = A[coordinate]
        Out[1] = layout(1, 1).to(fx.Float32)

    a, out = torch.arange(100.0).reshape(10, 10), torch.zeros(2)
    run(kernel, a, a, out, 5)
    assert out.tolist() == [a[3, 4], 1 + 5 + 4]


def test_registers_written_in_branches_and_while_loops() -> None:
    @flyc.kernel
    def kernel(A: fx.Tensor, B: fx.Tensor, Out: fx.Tensor, n: fx.Int32):
        i = fx.thread_idx.x
        r, q = fx.make_rmem_tensor(4, fx.Float32), fx.make_rmem_tensor(4, fx.Float32)
        for j in range_constexpr(4):
            r[j] = 0.0
            q[j] = 100.0
        for j in range(n):
            if j % 2 == 0:
                r[j % 4] = r[j % 4] + A[j, i]
            else:
                r.store(r.load() * 2.0)
            p = r if j > 2 else q
            p[0] = p[0] + 1.0
        if i > 3:
            r[3] = 5.0
        k = n
        while k > 2 and r[1] < 1e6:
            r[1] = r[1] + 1.0
            k -= 1
        for j in range_constexpr(4):
            Out[j, i] = r[j]
        Out[4, i] = q[0]

    a, out, n = torch.arange(160.0).reshape(10, 16), torch.zeros(5, 16), 7
    run(kernel, a, a, out, n, block=16)
    for i in range(16):
        r, q = [0.0] * 4, [100.0] * 4
        for j in range(n):
            if j % 2 == 0:
                r[j % 4] += a[j, i].item()
            else:
                r = [x * 2 for x in r]
            (r if j > 2 else q)[0] += 1
        r[3] = 5.0 if i > 3 else r[3]
        r[1] += n - 2
        assert out[:, i].tolist() == [*r, q[0]]


def test_a_loop_with_initial_state_and_yield() -> None:
    @flyc.kernel
    def kernel(A: fx.Tensor, B: fx.Tensor, Out: fx.Tensor, n: fx.Int32):
        extra = fx.Float32(0)
        for i, state in range(0, n, 1, init=[A[0], fx.Int32(0)]):
            total, count = state
            extra += 2.0
            results = yield [total + A[i], count + 1]
        Out[0] = results[0]
        Out[1] = results[1].to(fx.Float32)
        Out[2] = extra
        for _, (total,) in range(fx.Int64(0), fx.Int64(n), fx.Int64(2), init=[A[1]]):
            last = yield [total * 2.0]
        Out[3] = last

    a, out = torch.arange(1.0, 9.0), torch.zeros(4)
    run(kernel, a, a, out, 5)
    assert out.tolist() == [16.0, 5.0, 10.0, 16.0]


def test_a_loop_says_how_often_its_body_is_repeated() -> None:
    def compiled(count: int, whole: bool = False) -> flyc.CompiledArtifact:
        @flyc.kernel
        def power(out: fx.Tensor, n: fx.Int32) -> None:
            value = fx.Int32(3)
            for _ in range(0, n, 1, unroll=count, unroll_full=whole):
                value = value * value
            out[0] = value

        launch = launcher_of(power, grid=(1, 1, 1), block=(64, 1, 1))
        return flyc.compile(launch, torch.zeros(1, dtype=torch.int32), 8)

    once, more = (len(compiled(count).mnemonics("s_mul_i32")) for count in (1, 3))
    assert once == 1
    assert more >= 3
    assert "full = true" in compiled(-1, True).source_ir
    with pytest.raises(ValueError, match="mutually exclusive"):
        compiled(4, True)
    with pytest.raises(TypeError, match=r"unroll of range must be a positive Python int.*, got 0(?s:.*)for _ in range"):
        compiled(0)


def test_vectors_differ_between_branches() -> None:
    @flyc.kernel
    def kernel(A: fx.Tensor, B: fx.Tensor, Out: fx.Tensor, n: fx.Int32):
        r = fx.make_rmem_tensor(4, fx.Float32)
        for j in range_constexpr(4):
            r[j] = A[j]
        v = r.load()
        if n > 2:
            v = v * 2.0
        w = v + 1.0 if n > 3 else v
        for j in range_constexpr(4):
            Out[j] = w[j]

    a, out = torch.arange(4.0), torch.zeros(4)
    for n, expected in [(2, a), (3, a * 2), (4, a * 2 + 1)]:
        run(kernel, a, a, out, n)
        assert torch.equal(out, expected)


def test_operands_are_evaluated_once_and_when_asked_for() -> None:
    calls: list[str] = []

    def seen(name: str, value: object) -> object:
        calls.append(name)
        return value

    @flyc.kernel
    def kernel(A: fx.Tensor, B: fx.Tensor, Out: fx.Tensor, n: fx.Int32):
        if seen("a", n > 1) and seen("b", n > 2) and seen("c", n > 3):
            Out[0] = 1.0
        if seen("d", False) and seen("never", n > 3):
            Out[0] = 2.0
        if 0 < seen("e", n) < seen("f", n + 1) or seen("g", n > 9):
            Out[1] = 1.0
        if seen("h", not seen("i", n > 3)):
            Out[2] = 1.0

    run(kernel, torch.zeros(4), torch.zeros(4), torch.zeros(4), 3)
    assert calls == list("abcdefgih")


def test_simple_choices_need_no_branch() -> None:
    @flyc.kernel
    def kernel(A: fx.Tensor, B: fx.Tensor, Out: fx.Tensor, n: fx.Int32):
        i = fx.thread_idx.x
        Out[0] = 1.0 if n > 3 and i < n else 2.0

    @flyc.jit
    def launch(A: fx.Tensor, n: fx.Int32):
        kernel(A, A, A, n).launch(grid=1, block=64)

    pipeline = launch.lower(torch.zeros(4), 3)
    pipeline.step()
    text = pipeline["fly-rewrite-func-signature"].before
    assert "arith.select" in text
    assert "scf.if" not in text


def test_branches_in_a_launcher_and_in_its_helpers() -> None:
    @flyc.kernel
    def fill(A: fx.Tensor, value: fx.Float32):
        A[fx.thread_idx.x] = value

    @flyc.jit
    def helper(A: fx.Tensor, n: fx.Int32):
        @flyc.jit
        def small():
            if n > 1:
                fill(A, 2.0).launch(grid=1, block=64)

        if n > 5:
            return
        small()

    @flyc.jit
    def launch(A: fx.Tensor, n: fx.Int32):
        if n > 3:
            fill(A, 1.0).launch(grid=1, block=64)
        helper(A, n)

    for n, expected in [(0, 0.0), (2, 2.0), (4, 2.0), (7, 1.0)]:
        A = torch.zeros(64)
        launch(A, n)
        assert (expected == A).all()


def test_a_value_kept_by_an_object_out_of_sight() -> None:
    kept: dict[str, object] = {}

    class Outside:
        keep = staticmethod(lambda value: kept.setdefault("value", value))

    @flyc.kernel
    def kernel(A: fx.Tensor, B: fx.Tensor, Out: fx.Tensor, n: fx.Int32):
        x = A[0]
        for _ in range(n):
            Outside.keep(x)
            x = x * 2.0
        Out[0] = x + kept["value"]

    with pytest.raises(
        TraceError, match=r"a value that a loop carries is used outside of it|kept is changed"
    ) as caught:
        run(kernel, torch.zeros(4), torch.zeros(4), torch.zeros(4), 3)
    assert caught.value.at is not None


def test_a_name_may_be_something_else_inside_a_loop() -> None:
    @flyc.kernel
    def kernel(A: fx.Tensor, B: fx.Tensor, Out: fx.Tensor, n: fx.Int32):
        for i in range_constexpr(3):
            Out[i] = A[i]
        row = fx.slice(A, (None,))
        for i in range(fx.Index(n)):
            row = fx.logical_divide(A, fx.make_layout(4, 1))
            for k in range_constexpr(2):
                Out[3] = Out[3] + row[(k, 0)] + A[i]
        for k in range_constexpr(2):
            Out[4] = Out[4] + k

    a, out = torch.arange(8.0), torch.zeros(5)
    run(kernel, a, a, out, 3)
    assert out.tolist() == [0, 1, 2, 3 * (0 + 1) + 0 + 2 * (1 + 2), 1]


def test_ids_outside_a_kernel_say_so() -> None:
    with pytest.raises(TraceError, match=r"gpu.thread_id outside a kernel"):
        _ = fx.thread_idx.x


@NEEDS_COLUMNS
def test_a_helper_with_a_runtime_loop_is_told_what_it_needs() -> None:
    def helper(n: object) -> object:
        total = fx.Int32(0)
        for i in range(n):
            total = total + i
        return total

    @flyc.kernel
    def kernel(Out: fx.Tensor, n: fx.Int32):
        Out[0] = helper(n)

    launch = launcher_of(kernel, grid=1, block=1)
    with pytest.raises(TraceError, match=r"needs @flyc.jit"):
        launch(torch.zeros(1, dtype=torch.int32), 3)


def test_a_runtime_value_is_neither_false_nor_none() -> None:
    @flyc.kernel
    def kernel(Out: fx.Tensor):
        lane = fx.thread_idx.x
        flag = lane < 3
        Out[lane] = 0
        if flag is not False and flag is not None:
            Out[lane] = 1
        if flag is True:
            Out[lane] = 2

    out = torch.zeros(64, dtype=torch.int32)
    with pytest.warns(UserWarning, match="never the same object as True") as said:
        launcher_of(kernel, grid=1, block=64)(out)
    assert said[0].filename == __file__
    assert (out == 1).all()
