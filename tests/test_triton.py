"""Triton's kernels on the simulator. Triton is an extra: where it is not installed, these tests are skipped."""

# mypy: ignore-errors

from __future__ import annotations

import pytest
import torch

import flydsl.gpu
import flydsl.triton
from flydsl.binary import capture_binary_launches
from flydsl.errors import FlyError, SimulatorError

triton = pytest.importorskip("triton", "3.7", reason="Triton is an extra that is not installed: pip install triton")
tl = pytest.importorskip("triton.language")

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore:TRITON_DEFAULT_FP_FUSION")]


@triton.jit
def scaled_sum(x, y, out, n, factor, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    tl.store(out + i, tl.load(x + i, mask=mask) * factor + tl.load(y + i, mask=mask), mask=mask)


@triton.jit
def unmasked(x, out):
    i = tl.program_id(0) * 64 + tl.arange(0, 64)
    tl.store(out + i, tl.load(x + i))  # here


@triton.jit
def product(a, b, c, N, K, BLOCK: tl.constexpr):
    rows, columns = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK), tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inner = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK, BLOCK), tl.float32)
    for k in range(0, K, BLOCK):
        left = tl.load(a + rows[:, None] * K + (k + inner)[None, :])
        total += tl.dot(left, tl.load(b + (k + inner)[:, None] * N + columns[None, :]))
    tl.store(c + rows[:, None] * N + columns[None, :], total)


@pytest.fixture(autouse=True)
def _on_the_simulator():
    with flydsl.triton.active():
        yield


def sums(n: int = 300) -> tuple[torch.Tensor, ...]:
    return torch.randn(n), torch.randn(n), torch.zeros(n)


def test_a_kernel_computes_what_torch_does() -> None:
    x, y, out = sums()
    scaled_sum[(2,)](x, y, out, 300, 2.5, BLOCK=256)
    torch.testing.assert_close(out, x * 2.5 + y)


def test_a_matrix_product_uses_matrix_instructions() -> None:
    a, b, c = torch.randn(64, 64).half(), torch.randn(64, 64).half(), torch.zeros(64, 64)
    with capture_binary_launches(counted=True) as launches:
        product[(2, 2)](a, b, c, 64, 64, BLOCK=32)
    torch.testing.assert_close(c, a.float() @ b.float(), atol=1e-2, rtol=1e-2)
    assert launches[0].counters[0].totals.mfma_cycles > 0


def test_its_module_has_every_level() -> None:
    x, y, out = sums()
    module = flydsl.triton.module_of(scaled_sum[(2,)](x, y, out, 300, 1.0, BLOCK=256))
    assert list(module.texts) == ["ttir", "ttgir", "llir"]
    assert module.scaled_sum.resources.resources.vgprs > 0
    assert [p.name for p in module.scaled_sum.parameters][:5] == ["x", "y", "out", "n", "factor"]
    assert "s_endpgm" in module.isa


def test_an_access_outside_of_a_tensor_is_an_error_at_the_kernels_line() -> None:
    with pytest.raises(SimulatorError, match=r"outside of .*\(float32\[100\]") as caught:
        unmasked[(2,)](torch.zeros(100), torch.zeros(128))
    assert caught.value.at.source_line.endswith("# here")


def test_an_argument_that_does_not_fit_is_an_error_at_the_call() -> None:
    x, y, out = sums()
    with pytest.raises(FlyError, match="out is on meta") as caught:
        scaled_sum[(2,)](x, y, out.to("meta"), 300, 1.0, BLOCK=256)
    assert caught.value.at.file == __file__


def test_an_empty_grid_launches_nothing() -> None:
    x, y, out = sums()
    with capture_binary_launches() as launches:
        scaled_sum[(0,)](x, y, out, 0, 1.0, BLOCK=256)
    assert launches == []


def test_the_autotuner_chooses_by_the_estimate() -> None:
    configs = [triton.Config({"BLOCK": size}) for size in (64, 256)]
    tuned = triton.autotune(configs, key=["n"])(scaled_sum)
    x, y, out = sums()
    tuned[lambda meta: (triton.cdiv(300, meta["BLOCK"]),)](x, y, out, 300, 2.0)
    torch.testing.assert_close(out, x * 2 + y)


def test_what_is_no_kernel() -> None:
    with pytest.raises(FlyError, match="a compiled kernel is needed"):
        flydsl.triton.module_of(scaled_sum)


def test_each_architecture_has_code_of_its_own(monkeypatch) -> None:
    for arch in ("gfx942", "gfx1201", "gfx1100", "gfx942"):
        monkeypatch.setenv("FLYDSL_GPU_ARCH", arch)
        x, y, out = sums()
        assert scaled_sum[(2,)](x, y, out, 300, 2.0, BLOCK=256).metadata.target.arch == arch
        assert torch.allclose(out, 2 * x + y)


def test_a_gpu_that_poses_needs_no_activation() -> None:
    flydsl.triton.deactivate()
    with flydsl.gpu.pose("mi355x"):
        x, y = torch.randn(300, device="cuda"), torch.randn(300, device="cuda")
        out = torch.empty_like(x)
        assert triton.runtime.driver.active.get_active_torch_device() == x.device
        kernel = scaled_sum[(2,)](x, y, out, 300, 2.0, BLOCK=256)
        assert torch.allclose(out, 2 * x + y)
        assert kernel.metadata.target.arch == "gfx950"
        time_ms = triton.testing.do_bench(lambda: scaled_sum[(2,)](x, y, out, 300, 2.0, BLOCK=256))
        assert 0.0005 < time_ms < 0.1
