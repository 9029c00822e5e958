"""Python functions that are told what launches do."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
import torch

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.errors import ArgumentError, LaunchError
from flydsl.simulator import Observer, checking, observing
from flydsl.simulator.arrays import Array
from flydsl.simulator.observers import ObservedAccess, ObservedInstruction, ObservedLaunch
from tests.launchers import launcher_of


@flyc.kernel
def halve_kernel(x: fx.Tensor, y: fx.Tensor):
    tid = fx.thread_idx.x
    shared = fx.SharedAllocator().allocate(fx.Array[fx.Float32, 128]).peek()
    shared[tid] = x[tid]
    fx.barrier()
    if tid < 100:
        y[tid] = shared[127 - tid] * 0.5


halve = launcher_of(halve_kernel, grid=1, block=128)


class Everything(Observer):
    classes = ("VALU",)

    def __init__(self) -> None:
        self.launches: list[ObservedLaunch] = []
        self.stored: Counter[int] = Counter()
        self.names: set[tuple[str, str | None, bool]] = set()
        self.products: list[Array] = []
        self.barriers = 0

    def launch(self, launch: ObservedLaunch) -> None:
        self.launches.append(launch)

    def instruction(self, executed: ObservedInstruction) -> None:
        assert executed.instruction.mnemonic.startswith("v_")
        if executed.instruction.listed.text.startswith("v_mul_f32"):
            self.products.append(executed.results[0].view(np.float32)[executed.active])

    def access(self, access: ObservedAccess) -> None:
        self.names.add((access.space, access.buffer, access.is_write))
        if access.space == "lds":
            assert access.addresses.max() < 512
        if access.is_write and access.space == "global" and access.elements is not None:
            self.stored.update(access.elements.tolist())
            assert (access.lanes == access.elements % 64).all()
            assert (access.waves == access.elements // 64).all()

    def barrier(self, workgroups: Array) -> None:
        self.barriers += len(workgroups)


def test_an_observer_is_told_of_everything() -> None:
    x, y = torch.arange(128.0), torch.zeros(128)
    with observing(Everything()) as found:
        halve(x, y)
    assert torch.equal(y[:100], x.flip(0)[:100] / 2)
    (launch,) = found.launches
    assert (launch.grid, launch.block) == ((1, 1, 1), (128, 1, 1))
    assert found.stored == Counter(range(100))
    assert {("lds", None, True), ("lds", None, False), ("global", "y", True)} <= found.names
    assert sorted(np.concatenate(found.products).tolist()) == sorted(y[:100].tolist())
    assert found.barriers == 1


def test_observers_see_what_other_launches_do_not() -> None:
    x, y = torch.arange(128.0), torch.zeros(128)
    with observing(Everything()) as found:
        pass
    halve(x, y)
    assert not found.launches


def test_an_exception_of_an_observer_ends_the_launch() -> None:
    class Stop(Observer):
        def access(self, access: ObservedAccess) -> None:
            raise KeyError(access.buffer)

    with observing(Stop()), pytest.raises(KeyError, match="kernarg"):
        halve(torch.zeros(128), torch.zeros(128))


def test_observers_go_alone() -> None:
    with observing(Everything()), checking("races"), pytest.raises(LaunchError, match="cannot be observed and checked"):
        halve(torch.zeros(128), torch.zeros(128))


def test_what_is_no_observer() -> None:
    class Other(Observer):
        classes = ("VALUE",)

    with pytest.raises(ArgumentError, match="no class 'VALUE'"), observing(Other()):
        pass
    with pytest.raises(ArgumentError, match="must be an Observer, got a function"), observing(lambda: None):  # type: ignore[type-var]
        pass
