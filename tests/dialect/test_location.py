"""Every operation carries the place in the user's source that made it."""

from __future__ import annotations

import importlib.util
import linecache
import sys
from pathlib import Path
from types import ModuleType

import pytest
import torch

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.dialect.location import source_location
from flydsl.errors import FlyError, SourceLocation

HELPER = """\
import flydsl.expr as fx

def first(A):
    return A[
        fx.thread_idx.x,
        0,
    ]

def wrong(A):
    return A[0, 0, 0]
"""


@pytest.fixture
def helper(tmp_path: Path) -> ModuleType:
    path = tmp_path / "helper_of_user.py"
    path.write_text(HELPER)
    spec = importlib.util.spec_from_file_location("helper_of_user", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def places(pipeline: flyc.Pipeline, name: str) -> list[SourceLocation]:
    """Where the operations of a name come from, in the module as traced."""
    found: list[SourceLocation] = []

    def collect(block):  # type: ignore[no-untyped-def]
        for view in block.operations:
            if view.operation.name == name:
                at = source_location(view.operation.location)
                assert at is not None
                found.append(at)
            for region in view.operation.regions:
                for inner in region.blocks:
                    collect(inner)

    collect(pipeline.traced.module.body)
    return found


def test_a_helper_in_another_file_has_its_own_lines(helper: ModuleType) -> None:
    @flyc.kernel
    def kernel(A: fx.Tensor, B: fx.Tensor):
        B[fx.thread_idx.x] = helper.first(A)

    @flyc.jit
    def launch(A: fx.Tensor, B: fx.Tensor):
        kernel(A, B).launch(grid=1, block=64)

    pipeline = launch.lower(torch.zeros(64, 4), torch.zeros(64))
    (load,) = places(pipeline, "fly.memref_load")
    assert (load.file, load.line) == (helper.__file__, 4)
    (store,) = places(pipeline, "fly.memref_store")
    assert store.file == __file__
    assert "helper.first(A)" in linecache.getline(store.file, store.line)


def test_an_error_in_a_helper_points_there(helper: ModuleType) -> None:
    @flyc.kernel
    def kernel(A: fx.Tensor):
        helper.wrong(A)

    @flyc.jit
    def launch(A: fx.Tensor):
        kernel(A).launch(grid=1, block=64)

    with pytest.raises(FlyError) as caught:
        launch(torch.zeros(64, 4))
    assert (caught.value.at.file, caught.value.at.line) == (helper.__file__, 10)
    if sys.version_info >= (3, 11):
        assert "^^^^^^^^^^" in str(caught.value)


def test_a_notebook_cell_is_shown_as_the_cell() -> None:
    source = "def use(A):\n    return A[0, 0, 0]\n"
    file = "/tmp/ipykernel_1234/567.py"
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    namespace: dict[str, object] = {}
    exec(compile(source, file, "exec"), namespace)
    use = namespace["use"]

    @flyc.kernel
    def kernel(A: fx.Tensor):
        use(A)  # type: ignore[operator]

    @flyc.jit
    def launch(A: fx.Tensor):
        kernel(A).launch(grid=1, block=64)

    with pytest.raises(FlyError) as caught:
        launch(torch.zeros(64, 4))
    assert "at cell:2" in str(caught.value)
    assert "return A[0, 0, 0]" in str(caught.value)
    del linecache.cache[file]


def test_locations_survive_every_pass(helper: ModuleType) -> None:
    @flyc.kernel
    def kernel(A: fx.Tensor, B: fx.Tensor):
        i = fx.thread_idx.x
        B[i] = helper.first(fx.logical_divide(A, fx.make_tile(None, 2))[None, (None, 0)])

    @flyc.jit
    def launch(A: fx.Tensor, B: fx.Tensor):
        kernel(A, B).launch(grid=1, block=64)

    pipeline = launch.lower(torch.zeros(64, 4), torch.zeros(64))
    pipeline.run(until="convert-fly-to-rocdl")
    (load,) = (at for at in places(pipeline, "llvm.load") if at.file == helper.__file__)
    assert load.line == 4
    (store,) = places(pipeline, "llvm.store")
    assert store.file == __file__
