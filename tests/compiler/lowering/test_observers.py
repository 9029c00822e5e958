"""An observer is told of every stage once it is done, and of the end, whether all went well or not."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.compiler.lowering.observers import Observer
from flydsl.compiler.pipeline import Pipeline, Stage
from flydsl.errors import CompileError
from flydsl.passes import fly_layout_lowering
from tests.launchers import launcher_of


class Notes(Observer):
    """Writes down what it is told."""

    def __init__(self) -> None:
        self.stages: list[tuple[int, str]] = []
        self.ends = 0

    def stage_done(self, pipeline: Pipeline, stage: Stage) -> None:
        assert stage.state == "done"
        assert pipeline.position == stage.index
        self.stages.append((stage.index, stage.name))

    def ended(self, pipeline: Pipeline) -> None:
        self.ends += 1


@flyc.kernel
def double_kernel(A: fx.Tensor):
    A[fx.thread_idx.x] = A[fx.thread_idx.x] * 2


double = launcher_of(double_kernel, grid=1, block=64)


@pytest.fixture
def observed() -> tuple[Pipeline, Notes]:
    pipeline, notes = double.lower(torch.ones(64)), Notes()
    pipeline.observers.append(notes)
    return pipeline, notes


def test_every_stage_once_and_the_end(observed: tuple[Pipeline, Notes]) -> None:
    pipeline, notes = observed
    pipeline.step()
    assert (len(notes.stages), notes.ends) == (1, 0)
    pipeline.run()
    assert notes.stages == [(stage.index, stage.name) for stage in pipeline]
    assert notes.ends == 1


def test_a_stage_that_fails_is_not_done_and_ends_it(
    observed: tuple[Pipeline, Notes], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise CompileError("no")

    pipeline, notes = observed
    monkeypatch.setattr(fly_layout_lowering, "apply", fail)
    with pytest.raises(CompileError):
        pipeline.run()
    assert [name for _, name in notes.stages] == [stage.name for stage in pipeline][:2]
    assert notes.ends == 1


def test_without_variables_nothing_observes() -> None:
    assert double.lower(torch.ones(64)).observers == []
