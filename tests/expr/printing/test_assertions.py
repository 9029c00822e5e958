"""Assertions of kernels and launchers, and those that `checking("index")` adds."""

from __future__ import annotations

import linecache

import pytest
import torch

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.compiler.hints import compile_hints
from flydsl.errors import ArgumentError, DeviceAssertion, TraceError
from flydsl.simulator import checking
from tests.launchers import launcher_of

BLOCK = 64


def assert_at(error: DeviceAssertion, mark: str) -> None:
    assert error.at is not None
    assert linecache.getline(error.at.file, error.at.line).rstrip().endswith(f"# {mark}")


@flyc.kernel
def asserts(x: fx.Tensor, n: fx.Int32):
    i = fx.block_idx.x * BLOCK + fx.thread_idx.x
    fx.device_assert(x[i] < n, "x[{}] = {:.1f}, not below {}", i, x[i], n)  # device_assert
    x[i] = x[i] + 1


@flyc.jit
def run_asserts(x: fx.Tensor, n: fx.Int32):
    asserts(x, n).launch(grid=2, block=BLOCK)


def test_an_assertion_that_holds_changes_nothing() -> None:
    x = torch.zeros(2 * BLOCK)
    run_asserts(x, 1)
    assert torch.equal(x, torch.ones(2 * BLOCK))


@pytest.mark.parametrize("arch", ["gfx942", "gfx90a", "gfx1201", "gfx1250"])
def test_the_first_thread_whose_assertion_fails_is_named(arch: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLYDSL_GPU_ARCH", arch)
    x = torch.zeros(2 * BLOCK)
    x[[70, 75, 101]] = 7.5
    with pytest.raises(DeviceAssertion) as info:
        run_asserts(x, 7)
    assert "x[70] = 7.5, not below 7: workgroup (1, 0, 0), thread (6, 0, 0), and 2 more" in str(info.value)
    assert info.value.threads == 3
    assert_at(info.value, "device_assert")
    assert isinstance(info.value, AssertionError)


def test_an_assertion_comes_before_what_it_guards_against() -> None:
    @flyc.kernel
    def kernel(x: fx.Tensor, n: fx.Int32):
        i = fx.thread_idx.x + 1
        assert i < n, f"{i} of {n:3d}, {{}}"  # assert
        x[i] = 0.0
        fx.barrier()

    with pytest.raises(DeviceAssertion, match=r"64 of  64, \{\}: workgroup \(0, 0, 0\), thread \(63, 0, 0\)") as info:
        launcher_of(kernel, grid=1, block=BLOCK)(torch.zeros(BLOCK), BLOCK)
    assert_at(info.value, "assert")


def test_what_is_known_when_compiling() -> None:
    def compile_with(known: int) -> None:
        @flyc.kernel
        def kernel(x: fx.Tensor):
            assert known > 1, f"known is {known}"
            fx.device_assert(known > 2, "known is {}", known)
            x[0] = 1.0

        launcher_of(kernel, grid=1, block=1)(torch.zeros(1))

    compile_with(3)
    with pytest.raises(AssertionError, match="known is 1"):
        compile_with(1)
    with pytest.raises(TraceError, match="an assertion is false when compiling"):
        compile_with(2)


def test_an_assertion_of_a_launcher_refuses_the_call() -> None:
    @flyc.kernel
    def kernel(x: fx.Tensor):
        x[0] = 1.0

    @flyc.jit
    def launch(x: fx.Tensor, n: fx.Int32):
        assert n % 4 == 0, f"n = {n} is no multiple of 4"
        kernel(x).launch(grid=1, block=1)

    x = torch.zeros(1)
    with pytest.raises(ArgumentError, match="n = 6 is no multiple of 4"):
        launch(x, 6)
    assert x[0] == 0
    launch(x, 8)
    assert x[0] == 1


def test_assertions_of_no_truth_value_or_format_are_refused() -> None:
    @flyc.kernel
    def vector(x: fx.Tensor):
        fx.device_assert(fx.Vector.from_elements([x[0], x[1]]) > 0)

    @flyc.kernel
    def format_(x: fx.Tensor):
        fx.device_assert(x[0] > 0, "{} {}", x[0])

    for kernel, says in ((vector, "not one truth value"), (format_, "device_assert")):
        with pytest.raises(ArgumentError, match=says):
            launcher_of(kernel, grid=1, block=1)(torch.zeros(2))
    with pytest.raises(TraceError, match="outside a kernel"):
        fx.device_assert(True)


# --- indices ---------------------------------------------------------------------------------------------------------


@flyc.kernel
def shifts(x: fx.Tensor, y: fx.Tensor, by: fx.Int32):
    r, c = fx.block_idx.x, fx.thread_idx.x
    y[r, c] = x[r, c + by]  # shift


@flyc.jit
def run_shifts(x: fx.Tensor, y: fx.Tensor, by: fx.Int32):
    shifts(x, y, by).launch(grid=4, block=BLOCK)


@pytest.mark.parametrize("checks", [(), ("index",), ("index", "races")])
def test_an_index_past_its_mode(checks: tuple[str, ...]) -> None:
    x, y = torch.randn(5, BLOCK), torch.zeros(4, BLOCK)
    with checking(*checks):
        run_shifts(x, y, 0)
    assert torch.equal(y, x[:4])
    run_shifts(x, y, 1)  # which the memory has
    y.zero_()
    with (
        pytest.raises(DeviceAssertion, match="index 64 of mode 1, which has 64 elements") as info,
        checking(*checks),
    ):
        run_shifts(x, y, 1)
    assert_at(info.value, "shift")
    if len(checks) != 1:
        assert not y.any()  # the launch itself never ran
    with pytest.raises(DeviceAssertion, match="index -1 of mode 1"), checking(*checks):
        run_shifts(x, y, -1)


def test_other_checks_do_not_look_at_indices() -> None:
    x, y = torch.randn(5, BLOCK), torch.zeros(4, BLOCK)
    with checking("races"):
        run_shifts(x, y, 1)
    assert torch.equal(y, x.flatten()[1 : 4 * BLOCK + 1].reshape(4, BLOCK))


def test_an_array_of_lds_ends_where_the_next_begins() -> None:
    @fx.struct
    class Shared:
        a: fx.Array[fx.Float32, BLOCK]
        b: fx.Array[fx.Float32, BLOCK]

    @flyc.kernel
    def kernel(x: fx.Tensor, by: fx.Int32):
        shared = fx.SharedAllocator().allocate(Shared).peek()
        i = fx.thread_idx.x
        shared.b[i] = x[i]
        fx.barrier()
        shared.a[i + by] = 0.0  # lds
        fx.barrier()
        x[i] = shared.b[i]

    launch = launcher_of(kernel, grid=1, block=BLOCK)
    with checking():
        launch(torch.ones(BLOCK), 0)
    with pytest.raises(DeviceAssertion, match="index 64 of a tensor of 64 elements") as info, checking():
        launch(torch.ones(BLOCK), 1)
    assert_at(info.value, "lds")


def test_nested_and_flat_coordinates() -> None:
    @flyc.kernel
    def kernel(x: fx.Tensor, i: fx.Int32, j: fx.Int32):
        view = fx.make_view(fx.get_iter(x), fx.make_layout(((2, 4), 8), ((1, 2), 8)))
        view[(i, j), 3] = 1.0
        view[j] = 1.0
        view[i + 2, j] = 1.0

    launch = launcher_of(kernel, grid=1, block=1)
    with checking("index"):
        launch(torch.zeros(128), 1, 3)
    with pytest.raises(DeviceAssertion, match="index 2 of mode 0, which has 2 elements"), checking("index"):
        launch(torch.zeros(128), 2, 3)
    with pytest.raises(DeviceAssertion, match="index 4 of mode 1, which has 4 elements"), checking("index"):
        launch(torch.zeros(128), 1, 4)


def test_a_predicate_is_no_access() -> None:
    @flyc.kernel
    def kernel(x: fx.Tensor, n: fx.Int32):
        i = fx.thread_idx.x
        if i < n and x[i] > 0:
            x[i] = 0.0

    x = torch.ones(40)
    with checking():
        launcher_of(kernel, grid=1, block=BLOCK)(x, 40)
    assert not x.any()


def test_a_rehearsed_launch_prints_once(capsys: pytest.CaptureFixture[str]) -> None:
    @flyc.kernel
    def kernel(x: fx.Tensor):
        x[0] = x[0] + 1
        fx.printf("x = {}", x[0])

    x = torch.zeros(1)
    with checking():
        launcher_of(kernel, grid=1, block=1)(x)
    assert (x.item(), capsys.readouterr().out) == (1.0, "x = 1.0\n")


def test_the_hint_alone_asserts() -> None:
    with compile_hints({"check_indices": True}), pytest.raises(DeviceAssertion):
        run_shifts(torch.randn(5, BLOCK), torch.zeros(4, BLOCK), 2)
