"""Running a cooperative operation by one block, on every family of GPUs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import flydsl.compiler as flyc
import flydsl.expr as fx
from tests.launchers import launcher_of

GPUS = [
    "gfx942",
    "gfx1201",
    *(pytest.param(name, marks=pytest.mark.sweep) for name in ("gfx90a", "gfx950", "gfx1100", "gfx1250")),
]
LANES = {"gfx1100": 32, "gfx1201": 32, "gfx1250": 32}


def memory(kind: Any) -> Any:
    """The shared memory of an operation."""
    return fx.SharedAllocator().allocate(kind.SharedStorage).peek()


@pytest.fixture(params=GPUS)
def target(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """A GPU that is compiled for and simulated."""
    monkeypatch.setenv("ARCH", request.param)
    return str(request.param)


Run = Callable[..., list[np.ndarray]]


@pytest.fixture
def run() -> Run:
    """`run(body, inputs, shapes, block=64)`: what `body(thread, inputs, outputs)` writes to outputs of these shapes."""

    def runs(
        body: Callable[..., None], inputs: list[Any], outputs: list[Any], block: int | tuple[int, int, int] = 64
    ) -> list[np.ndarray]:
        given = [torch.from_numpy(np.ascontiguousarray(a)) for a in inputs]
        made = [torch.from_numpy(np.full_like(o, 77)) for o in outputs]

        @flyc.kernel
        def kernel(tensors: list):
            x, y, z = fx.thread_idx
            sizes = block if isinstance(block, tuple) else (block, 1, 1)
            thread = x + y * sizes[0] + z * (sizes[0] * sizes[1])
            body(thread, tensors[: len(given)], tensors[len(given) :])

        launcher_of(kernel, grid=1, block=block)([*given, *made])
        return [m.numpy() for m in made]

    return runs


def items_at(tensor: Any, places: list[Any]) -> Any:
    """Elements as a thread's items."""
    return fx.Vector.from_elements([tensor[place] for place in places])


def put(tensor: Any, places: list[Any], items: Any) -> None:
    """Write a thread's items."""
    for i, place in enumerate(places):
        tensor[place] = items[i].to(tensor.dtype)
