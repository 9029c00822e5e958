"""A launch against a reference: the element, its writer, and the elements that it is made of."""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any

import pytest
import torch

import flydsl
import flydsl.compiler as flyc
import flydsl.expr as fx
import flydsl.gpu
from flydsl.compiler.debugging.wrong_results import WrongResult
from flydsl.errors import ArgumentError
from flydsl.simulator.observers import Observer, observing
from tests.compiler.debugging import buggy_kernels as bugs


def wrong(name: str, **options: Any) -> WrongResult:
    with pytest.raises(WrongResult) as found:
        flydsl.compare_reference(bugs.LAUNCHERS[name], bugs.REFERENCES[name], *bugs.ARGUMENTS[name](), **options)
    return found.value


def elements(mask: Any) -> list[Any]:
    return [tuple(place) for place in mask.nonzero().tolist()]


def test_the_elements_that_are_left_out():
    error = wrong("last_k_left_out")
    assert (error.tensor, error.element) == ("c", (0, 0))
    assert elements(error.depends["a"]) == [(0, k) for k in range(23)]
    assert elements(error.should_depend["a"]) == [(0, k) for k in range(24)]
    assert elements(error.depends["b"]) == [(k, 0) for k in range(23)]
    assert "made of b[:23, 0] (b is read in line" in str(error)
    assert error.writer.thread == (0, 0, 0)
    assert "c[row, column] = acc" in str(error)


def test_an_element_through_a_wrong_swizzle():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the two swizzles, where this compiles it first
        error = wrong("wrong_swizzle")
    assert "made of a[4, 4]" in str(error)
    assert "the reference, of a[4, 0]" in str(error)


def test_the_place_that_has_the_number():
    error = wrong("transposed_fragment")
    assert "the reference's number is at out[1, 0]" in str(error)
    assert error.writer.thread == (0, 0, 0)


def test_what_no_thread_writes():
    error = wrong("short_grid")
    assert (error.element, error.writer, error.depends) == ((128,), None, {})
    assert "32 of 160 elements differ: out[128:]" in str(error)
    assert "grid (2, 1, 1) x block (64, 1, 1) = 128 threads; out has 160 elements" in str(error)
    assert ".launch(grid=a.shape[0] // 64, block=64)" in str(error)


def test_a_result_of_one_element():
    assert "and the reference's" in (text := str(wrong("short_reduction")))
    assert "; it is the only element" in text


def test_on_a_gpu_nobody_claims_that_no_thread_writes():
    with flydsl.gpu.pose("mi300x"):
        a, out = (tensor.cuda() for tensor in bugs.ARGUMENTS["short_grid"]())
        with pytest.raises(WrongResult) as found:
            flydsl.compare_reference(bugs.short_grid, bugs.REFERENCES["short_grid"], a, out)
    assert "no thread" not in str(found.value)
    assert ".cpu()" in found.value.hint


def test_an_integer_and_an_infinity_have_their_checks():
    error = wrong("int8_overflow")
    assert 'checking("overflow")' in str(error)
    assert "both are made of a[0, :], b[:]" in str(error)
    assert 'checking("nan")' in str(wrong("f16_overflow"))


@pytest.mark.parametrize(
    ("name", "reference"),
    [
        ("missing_barrier", lambda a, out: out.copy_(a.flip(0))),
        ("same_tile", lambda a, out: out.copy_(a)),
        ("lost_update", lambda values, counts: counts.copy_(values.bincount())),
    ],
)
def test_a_race_is_the_first_thing_to_look_at(name, reference):
    with pytest.raises(WrongResult) as found:
        flydsl.compare_reference(bugs.LAUNCHERS[name], reference, *bugs.ARGUMENTS[name]())
    assert "race at " in found.value.hint
    assert f'{found.value.at}: flydsl.simulator.checking("races")' in found.value.hint


def test_hints_are_about_what_happens():
    assert "interpreting()" in wrong("last_k_left_out").hint
    assert "interpreting()" in wrong("converted_too_early").hint  # of integers that do not wrap


def test_an_observer_may_look_on():
    with observing(Observer()):
        assert "interpreting()" in wrong("last_k_left_out").hint


@flyc.kernel
def seven_kernel(out: fx.Tensor):
    out[fx.thread_idx.x] = 7


@flyc.jit
def seven(out: fx.Tensor):
    seven_kernel(out).launch(grid=1, block=4)


def test_a_result_that_depends_on_no_element():
    with pytest.raises(WrongResult, match="neither depends on an element of a tensor: both are made of constants"):
        flydsl.compare_reference(seven, lambda out: out.fill_(6), torch.zeros(4, dtype=torch.int32))


@flyc.kernel
def gather_kernel(parts: tuple, index: fx.Tensor, scale: fx.Tensor, out: fx.Tensor):
    i = fx.thread_idx.x
    out[i % 4, i // 4] = fx.Float32(parts[0][index[i]]) + fx.Float32(parts[1][i]) * scale[0]


@flyc.jit
def gather(parts: tuple, index: fx.Tensor, scale: fx.Tensor, out: fx.Tensor):
    gather_kernel(parts, index, scale, out).launch(grid=1, block=16)


def test_indices_narrow_floats_and_views():
    parts = bugs.random(16).bfloat16(), bugs.random(16).to(torch.float8_e4m3fnuz)
    index = torch.arange(16, dtype=torch.int32).flip(0)
    out = torch.zeros(8, 4).T[:, ::2]

    def reference(parts, index, scale, out, of_index=lambda index: index, of_part=lambda part: part):
        found = parts[0].float()[of_index(index).long()] + of_part(parts[1].float()) * scale
        out.copy_(found.reshape(4, 4).T)

    given = parts, index, torch.tensor([2.0]), out
    flydsl.compare_reference(gather, reference, *given)
    with pytest.raises(WrongResult) as found:
        flydsl.compare_reference(gather, partial(reference, of_index=lambda index: index.flip(0)), *given)
    assert "made of index[0] (index is read in line" in str(found.value)
    assert "the reference, of index[15]" in str(found.value)
    assert "made of parts[1]" not in str(found.value)
    with pytest.raises(WrongResult, match=r"made of parts\[1\]\[0\] .* the reference, of parts\[1\]\[15\]"):
        flydsl.compare_reference(gather, partial(reference, of_part=lambda part: part.flip(0)), *given)


def test_tolerances_and_what_is_given_stays():
    a, b, c, k = bugs.ARGUMENTS["last_k_left_out"]()
    flydsl.compare_reference(bugs.last_k_left_out, bugs.product, a, b, c, k, atol=100.0)
    flydsl.compare_reference(bugs.last_k_left_out, lambda a, b, c, k: c.copy_(a[:, :-1] @ b[:-1]), a, b, c, k)
    assert not c.any()


def test_a_reference_must_be_a_function():
    with pytest.raises(ArgumentError, match="is not a reference"):
        flydsl.compare_reference(bugs.short_grid, torch.zeros(160), *bugs.ARGUMENTS["short_grid"]())


def test_a_reference_writes_to_its_arguments():
    a, b, c, k = bugs.ARGUMENTS["last_k_left_out"]()
    with pytest.raises(ArgumentError, match="has written to none of a, b, c, and its Tensor is not looked at") as found:
        flydsl.compare_reference(bugs.last_k_left_out, lambda a, b, c, k: a @ b, a, b, c, k)
    assert "c.copy_(...)" in str(found.value)

    def computes(a, b, c, k):
        a @ b

    with pytest.raises(ArgumentError, match=r"none of a, b, c\n"):
        flydsl.compare_reference(bugs.last_k_left_out, computes, a, b, c, k)


def test_a_reference_may_write_what_is_there_already():
    a, b, c, k = bugs.ARGUMENTS["last_k_left_out"]()
    flydsl.compare_reference(bugs.last_k_left_out, lambda a, b, c, k: c.zero_(), a * 0, b, c, k)
    with torch.inference_mode():
        flydsl.compare_reference(bugs.last_k_left_out, lambda a, b, c, k: c.zero_(), a * 0, b, c, k)


def test_a_reference_may_write_through_numpy():
    a, b, c, k = bugs.ARGUMENTS["last_k_left_out"]()

    def reference(a, b, c, k):
        c.numpy()[:] = (a[:, :-1] @ b[:-1]).numpy()

    flydsl.compare_reference(bugs.last_k_left_out, reference, a, b, c, k)
