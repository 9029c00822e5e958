"""Running and compiling what a snippet shows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

import flydsl
import flydsl.compiler as flyc
import flydsl.expr as fx

FOLDER_IS_SLOW = True  # they run what the documents show

LANES = 64


@pytest.fixture(autouse=True, params=["0.2.2", "0.4.2"])
def _language(request: pytest.FixtureRequest) -> Iterator[None]:
    """The documents are of FlyDSL 0.2.2, and their programs run as programs of today's, too."""
    with flydsl.language(request.param):
        yield


@pytest.fixture
def launched() -> Callable[..., None]:
    """`run(body, A, B, Out, block=64)` launches a kernel of one workgroup that calls `body(A, B, Out)`."""

    def run(body: Callable[..., Any], *tensors: torch.Tensor, block: int = LANES) -> None:
        launcher(body, block)(*fill(tensors))

    return run


@pytest.fixture
def assembly() -> Callable[..., str]:
    """`compile(body, A, B, Out, arch=)`: the machine code, as text, of a kernel that calls `body(A, B, Out)`."""

    def compile_for(body: Callable[..., Any], *tensors: torch.Tensor, arch: str = "gfx942") -> str:
        return launcher(body, LANES).lower(*fill(tensors), arch=arch).artifact.isa

    return compile_for


def fill(tensors: tuple[torch.Tensor, ...]) -> list[torch.Tensor]:
    return [*tensors, *[torch.zeros(1)] * (3 - len(tensors))]


def launcher(body: Callable[..., Any], block: int) -> flyc.JitFunction:
    count = body.__code__.co_argcount

    @flyc.kernel
    def kernel(A: fx.Tensor, B: fx.Tensor, C: fx.Tensor):
        body(*[A, B, C][:count])

    @flyc.jit
    def launch(A: fx.Tensor, B: fx.Tensor, C: fx.Tensor):
        kernel(A, B, C).launch(grid=1, block=block)

    return launch
