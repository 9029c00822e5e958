"""What holds of every pass."""

from __future__ import annotations

import contextlib
import re

import pytest
import torch

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.compiler.fly_opt import run
from flydsl.errors import CompileError
from flydsl.passes import PASSES


@pytest.fixture(scope="module")
def traced() -> str:
    """A kernel with a tensor of every kind, as traced."""

    @flyc.kernel
    def kernel(A: fx.Tensor, B: fx.Tensor, n: fx.Int32):
        i = fx.thread_idx.x
        piece = fx.slice(fx.logical_divide(fx.slice(A, (i, None)), fx.make_layout(4, 1)), (None, 0))
        r = fx.make_rmem_tensor(4, fx.Float32)
        fx.copy_atom_call(fx.make_copy_atom(fx.UniversalCopy128b(), fx.Float32), piece, r)
        total = fx.Float32(0)
        for j in range(n):
            total = total + r[j]
        B[i] = total

    @flyc.jit
    def launch(A: fx.Tensor, B: fx.Tensor, n: fx.Int32):
        kernel(A, B, n).launch(grid=A.shape[0] // 64, block=64)

    return launch.lower(torch.zeros(64, 8), torch.zeros(64), 4).origin


def operations(text: str) -> list[str]:
    """The operations, in whatever order they stand and values are numbered."""
    return sorted(re.sub(r"%\w+", "%", line) for line in text.splitlines())


def test_a_pass_is_named_like_its_file() -> None:
    for name, module in PASSES.items():
        assert module.__name__ == f"flydsl.passes.{name.replace('-', '_')}"
        assert (module.__doc__ or "").startswith(f"{name}: ")


@pytest.mark.slow
@pytest.mark.parametrize("name", PASSES)
def test_a_pass_does_what_its_docstring_shows(name: str) -> None:
    """Both texts are tidied by upstream's passes: a rewriting may leave dead constants behind."""
    shown = re.search(r"((?:^    .*\n)+)\nbecomes\n\n((?:^    .*\n)+)", f"{PASSES[name].__doc__}\n", re.MULTILINE)
    assert shown is not None, f"the docstring of {name} shows no IR before and after it"
    before, after = shown.groups()
    tidy = ["canonicalize", "cse"]
    assert run(before, [name, *tidy]) == run(after, tidy)
    assert run(before, tidy) != run(after, tidy)


@pytest.mark.slow
def test_every_pass_can_run_twice(traced: str) -> None:
    text = traced
    for name in PASSES:
        text = run(text, [name, "fly-canonicalize"])
        assert operations(run(text, [name, "fly-canonicalize"])) == operations(text)
    assert "fly." not in text


@pytest.mark.parametrize("name", ["fly-int-swizzle-simplify", "fly-rocdl-cluster-attr"])
def test_passes_without_anything_to_do_change_nothing(traced: str, name: str) -> None:
    assert run(traced, [name]) == run(traced, [])


@pytest.mark.slow
@pytest.mark.parametrize("part", [0, 1])
@pytest.mark.diagonal(2)
def test_passes_in_any_order_do_no_worse_than_a_compile_error(traced: str, part: int) -> None:
    """Half of all pairs in each part."""
    for number, first in enumerate(PASSES):
        try:
            text = run(traced, [first])
        except CompileError:
            continue
        for second in list(PASSES)[(number + part) % 2 :: 2]:
            with contextlib.suppress(CompileError):
                run(text, [second])
