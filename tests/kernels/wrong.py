"""Wrong programs in tables: each gives one error at the marked line, with a caret, what disagrees and what to do."""

from __future__ import annotations

import linecache
from collections.abc import Callable
from typing import Any

import pytest
import torch

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.errors import FlyError

# Name -> the program, and a part of its error's message.
Table = dict[str, tuple[Callable[[], None], str]]


class Programs:
    """A table that fills up as the functions of a module are decorated."""

    def __init__(self) -> None:
        self.table: Table = {}

    def kernel(self, says: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """The body of a kernel of A (64, 8) and C (64, 64) of f32, I (64) of i32, and n, which is 5."""

        def register(body: Callable[..., Any]) -> Callable[..., Any]:
            def run() -> None:
                kernel = flyc.kernel(body)

                @flyc.jit
                def launch(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):  # noqa: E741
                    kernel(A, C, I, n).launch(grid=1, block=64)

                launch(torch.zeros(64, 8), torch.zeros(64, 64), torch.arange(64, dtype=torch.int32), 5)

            self.table[body.__name__] = run, says
            return body

        return register

    def launcher(self, says: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """A launcher of A (64, 8) of f32 and n, which is 5."""

        def register(body: Callable[..., Any]) -> Callable[..., Any]:
            self.table[body.__name__] = lambda: flyc.jit(body)(torch.zeros(64, 8), 5), says
            return body

        return register

    def program(self, says: str) -> Callable[[Callable[[], None]], Callable[[], None]]:
        """A whole program."""

        def register(body: Callable[[], None]) -> Callable[[], None]:
            self.table[body.__name__] = body, says
            return body

        return register


def tile_of(tensor: fx.Tensor, *shape: int) -> fx.Tensor:
    """A row-major tile at the start of a tensor."""
    return fx.make_view(fx.get_iter(tensor), fx.make_ordered_layout(shape, tuple(reversed(range(len(shape))))))


def atom(bits: int = 32) -> Any:
    return fx.make_copy_atom(fx.UniversalCopy(bits), fx.Float32)


def mma() -> Any:
    """A product by one wave."""
    return fx.make_tiled_mma(fx.make_mma_atom(fx.rocdl.MFMA(16, 16, 4, fx.Float32)), fx.make_layout((1, 1, 1)))


def check(run: Callable[[], None], says: str, file: str) -> FlyError:
    """A program's error. It has this text, or its hint has, and it is at a line of the file that is marked `# here`."""
    with pytest.raises(FlyError) as caught:
        run()
    error = caught.value
    assert error.hint
    assert says in error.message or says in error.hint
    assert error.__cause__ is None
    assert error.at is not None
    assert error.at.file == file
    assert error.at.column is not None
    assert "# here" in linecache.getline(file, error.at.line)
    assert any(set(line.strip()) == {"^"} for line in str(error).splitlines())
    return error
