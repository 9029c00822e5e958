"""Several posed GPUs: each has its memory, its streams, and a clock that runs beside the others'."""

# mypy: ignore-errors

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

import flydsl.gpu
from flydsl.gpu.streams import CLOCK
from kernels.vector_add import vector_add


@pytest.fixture(autouse=True)
def posing() -> Iterator[None]:
    with flydsl.gpu.pose("mi300x", count=2):
        flydsl.gpu.watch()
        yield


def events(count: int) -> list[torch.cuda.Event]:
    return [torch.cuda.Event(enable_timing=True) for _ in range(count)]


@pytest.mark.parametrize(
    "use",
    [
        lambda: torch.ones(1, device="cuda:2"),
        lambda: torch.ones(1).cuda(5),
        lambda: torch.ones(1).to("cuda:2"),
        lambda: torch.ones(1, device="cuda").to(2),
        lambda: torch.cuda.set_device(2),
        lambda: torch.cuda.Stream(device="cuda:2"),
    ],
)
def test_a_gpu_that_is_not_among_them(use) -> None:
    with pytest.raises(RuntimeError, match=r"HIP error: invalid device ordinal: [25]; there are 2 GPUs"):
        use()


def test_a_stream_brings_its_gpu_along() -> None:
    stream = torch.cuda.Stream(device="cuda:1")
    with torch.cuda.stream(stream):
        assert torch.cuda.current_device() == 1
        assert torch.ones(1, device="cuda").device == torch.device("cuda:1")
    assert torch.cuda.current_device() == 0
    assert (torch.cuda.current_stream(1), torch.cuda.default_stream(1).device) == (
        torch.cuda.default_stream(1),
        torch.device("cuda:1"),
    )
    torch.cuda.set_stream(stream)
    assert (torch.cuda.current_device(), torch.cuda.current_stream()) == (1, stream)
    assert torch.cuda.current_stream(0) == torch.cuda.default_stream(0)


def test_gpus_work_beside_each_other() -> None:
    near, far = (torch.ones(1 << 18, device=f"cuda:{gpu}") for gpu in range(2))
    torch.cuda.synchronize(0)
    torch.cuda.synchronize(1)
    start, end, after = events(3)
    start.record()
    near.mul_(2)
    end.record()
    before_us = CLOCK.of_gpu(1).time_us
    far.mul_(2).mul_(2)
    assert CLOCK.of_gpu(1).time_us - before_us == pytest.approx(2000 * start.elapsed_time(end))
    after.record()
    assert end.elapsed_time(after) == 0


def test_synchronize_waits_for_all_streams_of_a_gpu() -> None:
    x, stream = torch.ones(1 << 18, device="cuda"), torch.cuda.Stream()
    with torch.cuda.stream(stream):
        x.mul_(2)
    assert not stream.query()
    torch.cuda.synchronize(1)
    assert not stream.query()
    torch.cuda.synchronize()
    assert stream.query()


def test_a_launch_goes_to_the_stream_that_it_names() -> None:
    x, stream = torch.ones(1000, device="cuda"), torch.cuda.Stream()
    vector_add(x, x, torch.empty_like(x), stream=stream)
    start, end = events(2)
    torch.cuda.synchronize()
    start.record(stream)
    vector_add(x, x, torch.empty_like(x), stream=stream)
    end.record(stream)
    assert 0.0005 < start.elapsed_time(end) < 0.1
    torch.cuda.current_stream().wait_event(end)
    assert torch.cuda.current_stream().time_us == stream.time_us
