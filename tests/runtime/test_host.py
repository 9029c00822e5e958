"""The compiled launcher and the devices that it reaches."""

from __future__ import annotations

import ctypes
import gc
import sys
import weakref
from typing import Any

import pytest
import torch

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.codegen import CodeObject
from flydsl.runtime import compiled_launcher, host
from flydsl.runtime.device import use_device
from flydsl.runtime.interface import Device, LoadedCode


class Recorder(Device, LoadedCode):
    """A device that keeps what it is asked for. Two of them have the same name."""

    name = "recorder"

    def __init__(self) -> None:
        self.launches: list[tuple[Any, ...]] = []
        self.loads = 0
        self.fails: BaseException | None = None

    def address(self, name: str, tensor: Any, session: Any) -> int:
        return int(tensor.data_ptr())

    def stream_handle(self, stream: Any) -> int:
        return 0 if stream is None else int(stream)

    def load(self, code: CodeObject) -> LoadedCode:
        self.loads += 1
        return self

    def launch(self, kernel: str, grid: Any, block: Any, lds: int, stream: int, params: Any, session: Any) -> None:
        self.launches.append((kernel, grid, block, lds, stream))
        if self.fails is not None:
            raise self.fails


@flyc.kernel
def kernel(A: fx.Tensor, n: fx.Int32):
    A[0] = n.to(fx.Float32)


def make_launch() -> flyc.JitFunction:
    @flyc.jit
    def launch(A: fx.Tensor, n: fx.Int32, stream: fx.Stream = fx.Stream(None)):
        kernel(A, n).launch(grid=((n + 63) // 64, 2), block=(64, 2), smem=16, stream=stream)
        kernel(A, 2).launch(grid=A.shape[0], block=1)

    return launch


def test_grid_block_and_stream() -> None:
    with use_device(Recorder()) as device:
        make_launch()(torch.zeros(5), 130, 77)
    assert device.launches == [("kernel_0", (3, 2, 1), (64, 2, 1), 16, 77), ("kernel_1", (5, 1, 1), (1, 1, 1), 0, 77)]


def test_devices_are_told_apart_and_load_once() -> None:
    launch, first, second = make_launch(), Recorder(), Recorder()
    for device in (first, second, first):
        with use_device(device):
            launch(torch.zeros(5), 1)
    assert (first.loads, second.loads) == (1, 1)
    assert (len(first.launches), len(second.launches)) == (4, 2)


@pytest.mark.parametrize("error", [KeyboardInterrupt(), ValueError("of the device")], ids=repr)
def test_what_a_device_raises_comes_out_and_ends_the_launcher(error: BaseException) -> None:
    launch = make_launch()
    with use_device(Recorder()) as device:
        device.fails = error
        with pytest.raises(type(error)):
            launch(torch.zeros(5), 1)
        assert len(device.launches) == 1
        device.fails = None
        launch(torch.zeros(5), 1)
        assert len(device.launches) == 3


def test_a_device_may_call_a_launcher() -> None:
    """As one that checks results with another kernel would."""

    class Nested(Recorder):
        def launch(self, *arguments: Any) -> None:
            super().launch(*arguments)
            given.append(ctypes.cast(arguments[5][2], ctypes.POINTER(ctypes.c_int32))[0])
            if len(self.launches) == 1:
                with use_device(inner):
                    launch(torch.zeros(9), 640)

    given: list[int] = []
    launch, inner = make_launch(), Recorder()
    with use_device(Nested()) as outer:
        launch(torch.zeros(5), 64)
    assert given == [64, 2]
    assert [grid for _, grid, *_ in inner.launches] == [(10, 2, 1), (9, 1, 1)]
    assert [grid for _, grid, *_ in outer.launches] == [(1, 2, 1), (5, 1, 1)]


def make_compiled_launch() -> flyc.JitFunction:
    """A launcher that computes with floats, which no plan does."""

    @flyc.jit
    def launch(A: fx.Tensor, n: fx.Int32, x: fx.Float32):
        kernel(A, (x * 2.0).to(fx.Int32)).launch(grid=n, block=1)

    return launch


def test_an_interrupt_between_compiled_code_and_python_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(method: Any) -> Any:
        raise KeyboardInterrupt

    launch = make_compiled_launch()
    with use_device(Recorder()) as device:
        launch(torch.zeros(5), 1, 1.0)
        monkeypatch.setattr(compiled_launcher, "_alive", interrupt)
        hook = sys.unraisablehook
        with pytest.raises(KeyboardInterrupt):
            launch(torch.zeros(5), 1, 1.0)
        assert sys.unraisablehook is hook
        monkeypatch.undo()
        launch(torch.zeros(5), 1, 1.0)
    assert len(device.launches) == 2


@pytest.mark.parametrize("error", [KeyboardInterrupt(), ValueError("of the device")], ids=repr)
def test_what_a_device_raises_comes_out_of_compiled_code(error: BaseException) -> None:
    launch = make_compiled_launch()
    with use_device(Recorder()) as device:
        device.fails = error
        with pytest.raises(type(error)):
            launch(torch.zeros(5), 1, 1.0)
        device.fails = None
        launch(torch.zeros(5), 3, 1.0)
    assert [grid for _, grid, *_ in device.launches] == [(1, 1, 1), (3, 1, 1)]


@pytest.mark.slow
def test_a_launcher_that_nobody_has_any_more_is_freed(monkeypatch: pytest.MonkeyPatch) -> None:
    programs, engines = weakref.WeakSet[host.HostProgram](), []

    class Engine(compiled_launcher.ExecutionEngine):  # type: ignore[misc]
        def __del__(self) -> None:
            engines.append("freed")

    monkeypatch.setattr(compiled_launcher, "ExecutionEngine", Engine)
    run = host.HostProgram.run
    monkeypatch.setattr(host.HostProgram, "run", lambda self, *given: (programs.add(self), run(self, *given)))
    with use_device(Recorder()):
        make_launch()(torch.zeros(5), 1)
        make_compiled_launch()(torch.zeros(5), 1, 1.0)
        gc.collect()
    assert engines == ["freed"]
    assert not programs
