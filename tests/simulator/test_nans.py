"""checking("nan"): the first instruction that made a NaN or an infinity out of numbers."""

# mypy: ignore-errors

from __future__ import annotations

import pytest
import torch

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.errors import LaunchError
from flydsl.simulator import checking
from flydsl.simulator.errors import MemoryFault, NotFinite
from tests.launchers import launcher_of


@flyc.kernel
def ratio(A: fx.Tensor, B: fx.Tensor):
    i = fx.block_idx.x * 64 + fx.thread_idx.x
    root = fx.sqrt(A[i])
    B[i] = root / A[i]  # the ratio


@flyc.kernel
def difference(A: fx.Tensor, B: fx.Tensor):
    i = fx.block_idx.x * 64 + fx.thread_idx.x
    largest = A[i]
    B[i] = fx.exp(A[i] - largest)  # of infinities


@flyc.kernel
def squared(A: fx.Tensor, B: fx.Tensor):
    i = fx.block_idx.x * 64 + fx.thread_idx.x
    B[i] = A[i] * A[i]  # too large


@flyc.kernel
def root(A: fx.Tensor, B: fx.Tensor):
    i = fx.block_idx.x * 64 + fx.thread_idx.x
    B[i] = fx.sqrt(A[i])


@flyc.kernel
def increased(A: fx.Tensor):
    i = fx.block_idx.x * 64 + fx.thread_idx.x
    A[i] = A[i] + 1.0


def run(kernel, x: torch.Tensor, y: torch.Tensor | None = None) -> torch.Tensor:
    y = torch.zeros_like(x) if y is None else y
    with checking("nan"):
        launcher_of(kernel, grid=2, block=64)(x, y)
    return y


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_a_quotient_of_zeros_is_at_its_line_and_lane(dtype: torch.dtype) -> None:
    x = torch.rand(128, dtype=dtype) + 0.5
    assert torch.isfinite(run(ratio, x)).all()
    x[70] = 0
    with pytest.raises(NotFinite) as caught:
        run(ratio, x)
    error = caught.value
    assert (error.tensor, error.element, error.count) == ("B", 70, 1)
    assert {(made.workgroup, made.wave, made.lane) for made in error.made} == {((1, 0, 0), 0, 6)}
    of_f16 = dtype is torch.float16  # whose root of 0 goes through an infinity
    assert len(error.made) == 1 + of_f16
    assert of_f16 or "# the ratio" in str(error)
    assert "has nan at element 70" in str(error)


def test_a_difference_of_infinities() -> None:
    x = torch.ones(128)
    x[3] = -float("inf")
    with pytest.raises(NotFinite, match=r"made nan of -inf, -inf") as caught:
        run(difference, x)
    assert "# of infinities" in str(caught.value)


def test_a_product_that_is_too_large() -> None:
    x = torch.full((128,), 300.0, dtype=torch.float16)
    with pytest.raises(NotFinite, match=r"has inf at element 0 in memory, and 127 more NaNs or infinities") as caught:
        run(squared, x)
    assert "made inf of 300, 300" in str(caught.value)


def test_what_is_made_on_the_way_and_not_written_is_no_error() -> None:
    x = torch.rand(128)
    x[5] = 0
    assert torch.allclose(run(root, x), x.sqrt())


def test_what_was_there_before_was_not_made() -> None:
    x = torch.ones(128)
    x[9] = float("nan")
    with pytest.raises(NotFinite, match=r"no instruction made it out of numbers: it was in memory before"):
        run(root, x)
    run(root, x, torch.full((128,), float("nan")))  # where there was no number


def test_it_is_found_beside_what_others_find() -> None:
    x, y = torch.ones(128), torch.zeros(128)
    launch = launcher_of(root, grid=2, block=64)
    with checking("races", "nan"):
        launch(x, y)
    assert torch.equal(y, x)
    x[70] = -1
    with pytest.raises(NotFinite), checking("uninitialized", "nan", "races"):
        launch(x, y)
    with pytest.raises(MemoryFault), checking("races", "nan"):
        launch(x, y[:64])


def test_a_launch_that_runs_twice_adds_once() -> None:
    total = torch.ones(128)
    with checking("races", "nan"):
        launcher_of(increased, grid=2, block=64)(total)
    assert torch.equal(total, torch.full((128,), 2.0))


def test_steps_are_checked_for_one_thing_at_a_time() -> None:
    launch = launcher_of(root, grid=2, block=64)
    simulation = launch.simulate(torch.ones(128), torch.zeros(128))
    with checking("races", "nan"), pytest.raises(LaunchError, match="cannot be checked for NaNs and others at once"):
        simulation.run()


def test_where_the_output_was_no_number_before() -> None:
    """What torch.empty holds is anything."""
    x = torch.rand(128) + 0.5
    assert torch.isfinite(run(ratio, x, torch.full((128,), torch.nan))).all()
    x[70] = 0
    with pytest.raises(NotFinite) as caught:
        run(ratio, x, torch.full((128,), torch.nan))
    assert (caught.value.tensor, caught.value.element, caught.value.count) == ("B", 70, 1)
    unwritten = torch.full((200,), torch.nan)
    assert torch.isnan(run(root, torch.ones(128), unwritten)[128:]).all()


def test_a_number_that_was_none_before_may_stay_so_in_place() -> None:
    x = torch.full((128,), torch.nan)
    assert torch.isnan(run(squared, x, x)).all()
