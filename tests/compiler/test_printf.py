"""`fx.printf`: every line that a kernel prints, in order, whatever runs the kernel."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.errors import ArgumentError, LaunchError, SimulatorError, TraceError
from flydsl.simulator import checking, counting
from tests.launchers import launcher_of

pytestmark = pytest.mark.slow

X = torch.arange(128, dtype=torch.int32)


@flyc.kernel
def two_lines_kernel(x: fx.Tensor, n: fx.Int32):
    i = fx.block_idx.x * 64 + fx.thread_idx.x
    if i % n == 0:
        fx.printf("{}: {}", i, x[i])
        fx.printf("and twice {}", x[i] * 2)


two_lines = launcher_of(two_lines_kernel, grid=(2,), block=(64,))


EXPECTED = [line for i in range(0, 128, 13) for line in (f"{i}: {i}", f"and twice {2 * i}")]


def test_lines_are_in_the_order_of_workgroup_thread_and_time(capsys: pytest.CaptureFixture[str]) -> None:
    two_lines(X, 13)
    assert capsys.readouterr().out.splitlines() == EXPECTED


@pytest.mark.parametrize("backend", ["native", "lockstep"])
def test_of_threads_in_three_dimensions(
    backend: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FLYDSL_SIMULATOR_BACKEND", backend)

    @flyc.kernel
    def kernel(x: fx.Tensor):
        fx.printf("{} {}", (fx.block_idx.x, fx.block_idx.y, fx.block_idx.z), tuple(fx.thread_idx))

    launch = launcher_of(kernel, grid=(2, 3, 2), block=(3, 7, 5))
    launch(X)
    threads = [(x, y, z) for z in range(5) for y in range(7) for x in range(3)]
    groups = [(x, y, z) for z in range(2) for y in range(3) for x in range(2)]
    assert capsys.readouterr().out.splitlines() == [f"{g} {t}" for g in groups for t in threads]


def test_under_checks_and_while_counting(capsys: pytest.CaptureFixture[str]) -> None:
    with checking() as found:
        two_lines(X, 13)
    assert capsys.readouterr().out.splitlines() == EXPECTED
    assert str(found) == ""
    with counting() as counters:
        two_lines(X, 13)
    assert capsys.readouterr().out.splitlines() == EXPECTED
    assert len(counters.launches) == 1


def test_of_a_simulation_when_its_kernel_has_ended(capsys: pytest.CaptureFixture[str]) -> None:
    first, second = (two_lines.simulate(X, n, workgroup=(1, 0, 0)) for n in (13, 100))
    first.step(20)
    second.run()
    assert capsys.readouterr().out.splitlines() == ["0: 0", "and twice 0", "100: 100", "and twice 200"]
    first.run()
    assert capsys.readouterr().out.splitlines() == EXPECTED


def test_each_launch_prints_before_the_next(capsys: pytest.CaptureFixture[str]) -> None:
    @flyc.jit
    def launch(x: fx.Tensor):
        two_lines_kernel(x, 64).launch(grid=(1,), block=(64,))
        two_lines_kernel(x, 40).launch(grid=(1,), block=(64,))

    launch(X)
    expected = ["0: 0", "and twice 0", "0: 0", "and twice 0", "40: 40", "and twice 80"]
    assert capsys.readouterr().out.splitlines() == expected


def printed(capsys: pytest.CaptureFixture[str], *values: Any) -> str:
    """What one thread prints for values that are made from its number, which is 0."""

    @flyc.kernel
    def kernel(x: fx.Tensor):
        zero = x[0]
        fx.printf(*[value(zero) if callable(value) and not isinstance(value, type) else value for value in values])

    launch = launcher_of(kernel, grid=(1,), block=(1,))
    launch(X)
    return capsys.readouterr().out


VALUES = {
    "an integer": (lambda zero: zero - 5, "-5"),
    "a small one": (lambda zero: (zero - 5).to(fx.Int8), "-5"),
    "an unsigned one": (lambda zero: (zero - 5).to(fx.Uint32), "4294967291"),
    "a small unsigned one": (lambda zero: (zero - 5).to(fx.Uint8), "251"),
    "a large one": (lambda zero: zero.to(fx.Int64) - (1 << 40), str(-(1 << 40))),
    "a large unsigned one": (lambda zero: (zero.to(fx.Int64) - 1).to(fx.Uint64), str((1 << 64) - 1)),
    "an index": (lambda zero: zero.to(fx.Index) + 7, "7"),
    "a boolean": (lambda zero: zero == 0, "True"),
    "a float": (lambda zero: zero.to(fx.Float32) + 0.1, "0.1"),
    "a whole float": (lambda zero: zero.to(fx.Float32) + 16777216.0, "16777216.0"),
    "a half": (lambda zero: zero.to(fx.Float16) + fx.Float16(0.5), "0.5"),
    "a bfloat": (lambda zero: zero.to(fx.BFloat16) + fx.BFloat16(1.5), "1.5"),
    "a double": (lambda zero: zero.to(fx.Float64) + 0.1, "0.1"),
    "infinity": (lambda zero: 1.0 / zero.to(fx.Float32), "inf"),
    "a vector": (lambda zero: fx.Vector.from_elements([zero, zero + 1]), "[0, 1]"),
    "a tuple": (lambda zero: (zero, (1, [zero + 2])), "(0, (1, [2]))"),
    "an integer tuple": (lambda zero: fx.make_shape(zero + 3, 4), "(3, 4)"),
    "a layout": (lambda zero: fx.make_layout((zero + 3, (2, 4)), (1, (zero, 8))), "(3,(2,4)):(1,(0,8))"),
    "a static layout": (lambda zero: fx.make_layout((3, 4), (1, 3)), "(3,4):(1,3)"),
    "a type": (fx.Float16, "Float16"),
    "Python's": (None, "None"),
}


@pytest.mark.parametrize("kind", VALUES)
def test_each_kind_of_value_is_printed_as_python_would(kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    value, expected = VALUES[kind]
    assert printed(capsys, "it is {}", value) == f"it is {expected}\n"


def test_format_specifications_are_those_of_python(capsys: pytest.CaptureFixture[str]) -> None:
    half = lambda zero: zero.to(fx.Float32) + 0.5  # noqa: E731
    assert printed(capsys, "{1:.3f} {0:>4x} {{}} {1}\n", lambda zero: zero + 255, half) == "0.500   ff {} 0.5\n"
    assert printed(capsys, "nothing") == "nothing\n"
    assert printed(capsys, lambda zero: zero, 3, half) == "0 3 0.5\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [("{}", "1 places for 2 values"), ("{} {} {}", "3 places"), ("{} {:d}", "format code"), ("{} {", "printf"),
     ("{0} {}", "numbering"), ("{a} {b}", "a")],
)  # fmt: skip
def test_a_format_that_does_not_fit_is_an_error_at_its_line(
    text: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(ArgumentError, match=message) as caught:
        printed(capsys, text, lambda zero: zero, lambda zero: zero.to(fx.Float32))
    assert "fx.printf(" in (caught.value.at.source_line or "")


def test_what_cannot_be_printed(capsys: pytest.CaptureFixture[str]) -> None:
    @flyc.kernel
    def kernel(x: fx.Tensor):
        fx.printf("{}", x)

    launch = launcher_of(kernel, grid=(1,), block=(1,))
    with pytest.raises(ArgumentError, match="printf cannot print Tensor"):
        launch(X)


def test_launchers_print_when_they_run(capsys: pytest.CaptureFixture[str]) -> None:
    @flyc.kernel
    def kernel(x: fx.Tensor):
        if fx.thread_idx.x == 0:
            fx.printf("the kernel: {}", x[0])

    @flyc.jit
    def launch(x: fx.Tensor, n: fx.Int32, scale: fx.Float32, loud: fx.Constexpr[bool]):
        fx.printf("> n={}, blocks={}, scale={:.2f}, {}", n, (n + 63) // 64, scale, "text")
        if n > 100:
            fx.printf("many")
        for _ in range(2):
            fx.printf("{}", fx.Int64(n) << 32)
        if fx.const_expr(loud):
            kernel(x).launch(grid=1, block=64)

    head = "> n=130, blocks=3, scale=0.50, text\nmany\n" + 2 * f"{130 << 32}\n"
    launch(X, 130, 0.5, False)
    assert capsys.readouterr().out == head
    launch(X, 130, 0.5, True)
    assert capsys.readouterr().out == head + f"the kernel: {X[0]}\n"
    launch(X, 7, 0.5, True)
    assert "many" not in capsys.readouterr().out


def test_a_full_buffer_says_how_much_is_missing(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FLYDSL_PRINTF_BUFFER_BYTES", "1024")
    two_lines(X, 1)
    lines = capsys.readouterr().out.splitlines()
    assert 256 - (len(lines) - 1) == int(lines[-1].split()[2])
    assert set(lines[:-1]) < {line for i in range(128) for line in (f"{i}: {i}", f"and twice {2 * i}")}
    assert len(set(lines[:-1])) == len(lines) - 1 > 20
    monkeypatch.setenv("FLYDSL_PRINTF_BUFFER_BYTES", "12")
    with pytest.raises(ArgumentError, match="FLYDSL_PRINTF_BUFFER_BYTES"):
        two_lines(X, 1)


def test_what_was_printed_before_a_failure_is_seen(capsys: pytest.CaptureFixture[str]) -> None:
    @flyc.kernel
    def kernel(x: fx.Tensor, at: fx.Int32):
        fx.printf("before")
        x[at] = 1
        fx.printf("after")

    launch = launcher_of(kernel, grid=(1,), block=(1,))
    with pytest.raises((SimulatorError, LaunchError)):
        launch(X.clone(), 1 << 20)
    assert capsys.readouterr().out == "before\n"


def test_kernels_that_print_nothing_are_as_before() -> None:
    def kernels(debug: bool) -> Any:
        @flyc.kernel
        def quiet(x: fx.Tensor):
            x[fx.thread_idx.x] = 1

        @flyc.kernel
        def loud(x: fx.Tensor):
            fx.printf("here")

        @flyc.jit
        def launch(x: fx.Tensor):
            quiet(x).launch(grid=(1,), block=(64,))
            if fx.const_expr(debug):
                loud(x).launch(grid=(1,), block=(64,))

        return launch.lower(X.clone()).artifact.kernels[0]

    plain, beside = kernels(False), kernels(True)
    assert plain.info.args == beside.info.args
    assert plain.resources == beside.resources


def test_prints_that_nothing_reaches_are_gone(capsys: pytest.CaptureFixture[str]) -> None:
    """LLVM may take a loop without an end for one that is never entered."""

    @flyc.kernel
    def kernel(x: fx.Tensor, n: fx.Int32):
        i = fx.Int32(0)
        while i < n:
            i = i + 0
            if i > 1:
                fx.printf("{}", i)
        x[fx.thread_idx.x] = 7

    @flyc.jit
    def launch(x: fx.Tensor, n: fx.Int32):
        kernel(x, n).launch(grid=1, block=64)

    x = X.clone()
    launch(x, 0)
    assert x[:64].tolist() == [7] * 64
    assert not capsys.readouterr().out


def test_in_loops_and_functions(capsys: pytest.CaptureFixture[str]) -> None:
    @flyc.jit
    def show(i: Any) -> None:
        if i > 1:
            fx.printf("in {}", i)

    @flyc.kernel
    def kernel(x: fx.Tensor, n: fx.Int32):
        for i in range(n):
            show(i)

    launch = launcher_of(kernel, grid=(1,), block=(1,))
    launch(X, 4)
    assert capsys.readouterr().out == "in 2\nin 3\n"


@flyc.jit
def pairs(x: fx.Tensor, n: fx.Int32) -> None:
    if n % 2 != 0:
        fx.refuse("{} numbers of {}", n, x.shape, hint="an even number")
    fx.printf("{} pairs", n // 2)
    two_lines_kernel(x, 13).launch(grid=(2,), block=(64,))


def test_a_launcher_refuses_a_call_and_the_next_one_runs(capsys: pytest.CaptureFixture[str]) -> None:
    compiled = flyc.compile(pairs, X, 4)
    for launch in (pairs, compiled):
        capsys.readouterr()
        with pytest.raises(ArgumentError, match=r"^7 numbers of \(128,\)") as raised:
            launch(X, 7)
        assert raised.value.hint == "an even number"
        assert raised.value.at.source_line == "            launch(X, 7)"
        assert capsys.readouterr().out == ""
        launch(X, 6)
        assert capsys.readouterr().out.splitlines() == ["3 pairs", *EXPECTED]


def test_a_kernel_cannot_refuse() -> None:
    @flyc.kernel
    def kernel(x: fx.Tensor):
        fx.refuse("no")

    launch = launcher_of(kernel, grid=1, block=1)
    with pytest.raises(TraceError, match="the device cannot stop"):
        launch(X)
