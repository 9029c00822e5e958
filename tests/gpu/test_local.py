"""`--gpu local`, against a library that records what HIP is asked for, and events that are 20 us apart."""

# mypy: ignore-errors

from __future__ import annotations

import argparse
import ctypes
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

import flydsl.gpu
from flydsl.errors import ArgumentError, DeviceError
from flydsl.gpu.__main__ import run_program
from flydsl.runtime import hip
from flydsl.runtime.device import use_device
from flydsl.simulator import tracing
from kernels.vector_add import vector_add
from tests.shared_libraries import build_library
from workbench.program_report import write_program_report


class Event:
    """One that another follows after 20 us."""

    def __init__(self, enable_timing: bool) -> None:
        assert enable_timing

    def record(self, stream) -> None:
        recorded.append(stream)

    def elapsed_time(self, other) -> float:
        return 0.02


recorded: list[object] = []


@pytest.fixture
def gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made, source = tmp_path / "libamdhip64.so", Path(__file__).parents[1] / "runtime" / "fake_hip.c"
    build_library(source, made)
    library = ctypes.CDLL(str(made))
    monkeypatch.setattr(hip, "hip_library", lambda: library)
    monkeypatch.setenv("FLYDSL_GPU_ARCH", "gfx942")
    for name, value in {
        "is_available": lambda: True, "get_device_name": lambda: "AMD Instinct MI308X OAM", "Event": Event,
        "get_device_properties": lambda index: SimpleNamespace(gcnArchName="gfx942:sramecc+:xnack-"),
        "synchronize": lambda: None, "current_stream": lambda *index: SimpleNamespace(cuda_stream=0),
    }.items():  # fmt: skip
        monkeypatch.setattr(torch.cuda, name, value)
    monkeypatch.setattr(torch.version, "hip", "7.1")
    recorded.clear()


@pytest.mark.slow
def test_launches_are_measured_and_estimated(gpu: None) -> None:
    sizes = (1 << 16, 1 << 16, 1 << 12)
    with flydsl.gpu.local(), use_device(hip.HipDevice()):
        for size in sizes:
            x = torch.arange(size, dtype=torch.float32)
            vector_add(x, x + 1, torch.empty_like(x))
        found = flydsl.gpu.summary()
        assert "measured, and simulated: 3 launches, 60 us" in flydsl.gpu.report()
    vector_add(x, x, y := torch.empty_like(x))  # on the simulator, and not seen
    assert torch.equal(y, 2 * x)
    assert len(recorded) == 2 * len(sizes)
    assert found.product.name == "AMD Instinct MI308X"
    assert [(time.launches, time.measured_us) for time in found.kernels] == [(2, 20), (1, 20)]
    with tracing(gpu="mi308x") as traced:
        for size in sizes[1:]:
            x = torch.arange(size, dtype=torch.float32)
            vector_add(x, x + 1, torch.empty_like(x))
    large, small = (launch.time_us for launch in traced.launches)
    assert [time.estimate.time_us for time in found.kernels] == [large, small]
    assert f"20 us, the model has {large / 20:.2f} of it" in str(found)


def test_the_page_of_a_program(gpu: None, tmp_path: Path) -> None:
    file, page = tmp_path / "program.py", tmp_path / "report.html"
    file.write_text(
        "import torch\n"
        "from flydsl.runtime import device, hip\n"
        "from kernels.vector_add import vector_add\n"
        "with device.use_device(hip.HipDevice()):\n"
        "    vector_add(torch.ones(64), torch.ones(64), torch.empty(64))\n"
    )
    options = argparse.Namespace(
        gpu="local", count=1, check=None, report=str(page), trace=None, is_module=False, program=str(file), arguments=[]
    )
    assert run_program(options, write_program_report) == 0
    assert "20 us, the model has" in page.read_text("utf-8")
    options.check = "races"
    with pytest.raises(ArgumentError, match=r"--check and --trace need the simulator"):
        run_program(options, write_program_report)


def test_there_must_be_a_gpu() -> None:
    with pytest.raises(DeviceError, match=r"torch has no AMD GPU here"), flydsl.gpu.local():
        pass
