"""The HIP device against a library that records what it is asked for; there is no GPU here."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

import pytest
import torch

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.errors import ArchError, ArgumentError, DeviceError
from flydsl.runtime import device as devices
from flydsl.runtime import hip
from flydsl.runtime.device import device_memory
from flydsl.runtime.device_memory import hipDeviceMallocUncached, hipMemcpyDeviceToHost
from tests.shared_libraries import build_library


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("hip") / "libamdhip64.so"
    source = Path(__file__).with_name("fake_hip.c")
    build_library(source, made)
    return made


@pytest.fixture
def fake(library: Path, monkeypatch: pytest.MonkeyPatch) -> ctypes.CDLL:
    loaded = ctypes.CDLL(str(library))
    loaded.fake_record.restype = ctypes.c_char_p
    loaded.fake_reset()
    monkeypatch.setattr(hip, "hip_library", lambda: loaded)
    monkeypatch.setenv("FLYDSL_GPU_ARCH", "gfx942")
    return loaded


def record(fake: ctypes.CDLL) -> list[str]:
    return list(fake.fake_record().decode().splitlines())


@flyc.kernel
def scale_kernel(A: fx.Tensor, n: fx.Int32, factor: fx.Float32):
    i = fx.thread_idx.x
    A[i] = A[i] * factor + n.to(fx.Float32)


def make_scale() -> flyc.JitFunction:
    @flyc.jit
    def scale(A: fx.Tensor, n: fx.Int32, factor: fx.Float32, smem: fx.Int32, stream: fx.Stream):
        scale_kernel(A, n, factor).launch(grid=(n, 2), block=(64, 1, 2), smem=smem, stream=stream)

    return scale


def test_a_launch(fake: ctypes.CDLL) -> None:
    A = torch.ones(77)
    with devices.use_device(hip.HipDevice()):
        make_scale()(A, 5, 1.5, 256, fx.Stream(0xABC0))
    assert record(fake) == [
        "load 1",
        "function scale_kernel_0 of 1234567812345678",
        "launch grid 5 2 1 block 64 1 2 lds 256 stream abc0 extra 0 handle 1",
        f"params {A.data_ptr():x} 77 5 1.5",
    ]


def test_modules_and_functions_are_looked_up_once(fake: ctypes.CDLL) -> None:
    scale = make_scale()
    with devices.use_device(hip.HipDevice()):
        for n in (1, 2, 3):
            scale(torch.ones(8), n, 1.0, 0, 0)
    words = [line.split()[0] for line in record(fake)]
    assert words == ["load", "function", *["launch", "params"] * 3]


def test_each_device_gets_its_own_module(fake: ctypes.CDLL) -> None:
    """Modules belong to the current device, which is put back after each call."""
    scale, A = make_scale(), torch.ones(8)
    for index in (0, 1):
        with devices.use_device(hip.HipDevice(index)):
            scale(A, 1, 1.0, 0, 0)
    lines = [line for line in record(fake) if not line.startswith("params")]
    assert [line.split()[0] for line in lines[:3]] == ["load", "function", "launch"]
    assert [" ".join(line.split()[:2]) for line in lines[3:]] == [
        "device 1",
        "load 1",
        "device 0",
        "device 1",
        "function scale_kernel_0",
        "launch grid",
        "device 0",
    ]


def test_the_stream_of_torch(fake: ctypes.CDLL, monkeypatch: pytest.MonkeyPatch) -> None:
    class Stream:
        cuda_stream = 0xBEEF0

    asked: list[Any] = []
    monkeypatch.setattr(torch.cuda, "current_stream", lambda index: asked.append(index) or Stream())
    with devices.use_device(hip.HipDevice()):
        make_scale()(torch.ones(8), 1, 1.0, 0, None)
        make_scale()(torch.ones(8), 1, 1.0, 0, Stream())
    assert asked == [0]
    assert sum("stream beef0" in line for line in record(fake)) == 2


@pytest.mark.parametrize("function", ["hipModuleLoadData", "hipModuleGetFunction", "hipModuleLaunchKernel"])
def test_failures_have_hips_words_and_do_not_stick(fake: ctypes.CDLL, function: str) -> None:
    scale = make_scale()
    with devices.use_device(hip.HipDevice()):
        fake.fake_fail(function.encode())
        with pytest.raises(DeviceError, match=rf"{function} failed: invalid device function \(98\)"):
            scale(torch.ones(8), 1, 1.0, 0, 0)
        fake.fake_reset()
        scale(torch.ones(8), 1, 1.0, 0, 0)
    assert record(fake)[-1].startswith("params")


def test_a_launch_that_fails_names_its_line(fake: ctypes.CDLL) -> None:
    with devices.use_device(hip.HipDevice()):
        fake.fake_fail(b"hipModuleLaunchKernel")
        with pytest.raises(DeviceError) as caught:
            make_scale()(torch.ones(8), 1, 1.0, 0, 0)
    assert "scale_kernel(A, n, factor).launch(" in str(caught.value)


def test_clusters_are_refused_at_their_line(fake: ctypes.CDLL, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLYDSL_GPU_ARCH", "gfx1250")

    @flyc.jit
    def scale(A: fx.Tensor, n: fx.Int32, stream: fx.Stream):
        scale_kernel(A, n, 1.0).launch(grid=(2,), block=(64,), cluster=(2, 1, 1), stream=stream)

    with (
        devices.use_device(hip.HipDevice()),
        pytest.raises(DeviceError, match="scale_kernel_0 with clusters") as caught,
    ):
        scale(torch.ones(8), 1, 0)
    assert "cluster=(2, 1, 1)" in str(caught.value)


def test_another_gpu_than_compiled_for(fake: ctypes.CDLL, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARCH", "gfx950")
    with devices.use_device(hip.HipDevice()), pytest.raises(ArchError, match="gfx950, and the GPU is gfx942"):
        make_scale()(torch.ones(8), 1, 1.0, 0, 0)


def test_without_hip(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROCM_PATH", "/nowhere")
    monkeypatch.setattr(hip.ctypes.util, "find_library", lambda name: None)
    monkeypatch.setattr(hip, "_LIBRARY", "libamdhip64_absent.so")
    hip.hip_library.cache_clear()
    with pytest.raises(DeviceError, match="not to be found") as caught:
        hip.hip_library()
    assert "ROCM_PATH" in str(caught.value)


def test_what_is_no_stream() -> None:
    for bad in ("s", True, 1.5, object()):
        with pytest.raises(ArgumentError, match="stream must be"):
            make_scale()(torch.ones(8), 1, 1.0, 0, bad)


@flyc.kernel
def printing_kernel(A: fx.Tensor):
    fx.printf("thread {} has {}", fx.thread_idx.x, A[fx.thread_idx.x])


@flyc.jit
def printing(A: fx.Tensor, stream: fx.Stream):
    printing_kernel(A).launch(grid=(1,), block=(64,), stream=stream)


def test_what_kernels_print_is_read_back_when_their_stream_has_ended(
    fake: ctypes.CDLL, capsys: pytest.CaptureFixture[str]
) -> None:
    records = [(1, 0, 0, 0, 3, 3, 0x3F800000), (1, 0, 0, 0, 1, 1, 0x40000000)]  # of threads 3 and 1: 1.0 and 2.0
    words = [word for record in records for word in record]
    fake.fake_prints((ctypes.c_uint * len(words))(*words), len(words))
    with devices.use_device(hip.HipDevice()):
        printing(torch.ones(64), fx.Stream(0xABC0))
    assert capsys.readouterr().out == "thread 1 has 2.0\nthread 3 has 1.0\n"
    calls = record(fake)
    assert calls.index("wait for abc0") > next(i for i, call in enumerate(calls) if call.startswith("launch"))
    assert calls.count("malloc 8388608") == calls.count("free") == 1
    assert len([call for call in calls if call == "copy kind 2"]) == 2


def test_a_buffer_that_hip_does_not_give(fake: ctypes.CDLL) -> None:
    fake.fake_fail(b"hipMalloc")
    with devices.use_device(hip.HipDevice()), pytest.raises(DeviceError, match="hipMalloc failed"):
        printing(torch.ones(64), fx.Stream(0))


def test_memory_by_its_address(fake: ctypes.CDLL) -> None:
    memory = device_memory("cuda:1")
    address = memory.hipExtMallocWithFlags(64, hipDeviceMallocUncached)
    memory.hipMemset(address, 7, 64)
    content = ctypes.create_string_buffer(4)
    memory.hipMemcpyAsync(ctypes.addressof(content), address, 4, hipMemcpyDeviceToHost, 0xAB)
    assert content.raw == bytes([7] * 4)
    assert memory.hipMemGetAddressRange(0x12345) == (0x12300, 1024)
    memory.hipFree(address)
    calls = [line for line in record(fake) if not line.startswith("device")]
    assert calls == ["malloc 64 flags 3", "copy 4 kind 2 stream ab", "free"]


def test_handles_are_passed_by_value(fake: ctypes.CDLL) -> None:
    memory = device_memory("cuda:0")
    handle = memory.hipIpcGetMemHandle(0x7FFF12345000)
    assert len(handle) == 64
    assert memory.hipIpcOpenMemHandle(handle) == 0x7FFF12345000
    memory.hipIpcCloseMemHandle(0x7FFF12345000)
    assert record(fake) == ["open 1 flags 1", "close 7fff12345000"]
    with pytest.raises(DeviceError, match="a handle of 3 bytes"):
        memory.hipIpcOpenMemHandle(b"abc")
    fake.fake_fail(b"hipIpcOpenMemHandle")
    with pytest.raises(DeviceError, match="hipIpcOpenMemHandle failed"):
        memory.hipIpcOpenMemHandle(handle)
