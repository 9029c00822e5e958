"""A program's own folder of artifacts, and traces that are opened by hand."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.compiler.jit_function import JitCacheManager
from flydsl.compiler.kernel_function import CompilationContext
from flydsl.errors import ArgumentError, TraceError
from tests.launchers import launcher_of


@flyc.kernel(known_block_size=[64, 1, 1])
def double_kernel(x: fx.Tensor):
    x[fx.thread_idx.x] = x[fx.thread_idx.x] * 2.0


double = launcher_of(double_kernel, grid=1, block=64)


def test_artifacts_are_found_again_and_launch(tmp_path: Path) -> None:
    artifact = flyc.compile(double, torch.zeros(64))
    JitCacheManager(tmp_path / "mine").set("double", artifact)
    other = JitCacheManager(tmp_path / "mine")
    assert other.get("triple") is None
    x = torch.ones(64)
    other.get("double")(x)
    assert torch.equal(x, torch.full((64,), 2.0))
    assert other.get("double") is other.memory_cache["double"]
    assert other.cache_info()[:2] == (2, 1)
    assert other.cache_info().currsize == 1
    assert "max_flat_workgroup_size" in artifact.ir
    assert 'gpu.kernel_metadata<"double_kernel_0"' in artifact.ir


def test_plain_data_is_kept_and_damage_is_a_miss(tmp_path: Path) -> None:
    cache = JitCacheManager(tmp_path)
    with cache.compile_lock("a"):
        cache.set("a", "text")
    cache.set("b", 7)
    assert JitCacheManager(tmp_path).load_all() == 2
    for path in tmp_path.glob("*.artifact"):
        path.write_bytes(b"?" + path.read_bytes())
    assert JitCacheManager(tmp_path).get("a") is None
    assert JitCacheManager(tmp_path).load_all() == 0
    with pytest.raises(ArgumentError, match="keeps artifacts and plain data"):
        cache.set("c", object())


def test_a_trace_can_be_opened_by_hand() -> None:
    with CompilationContext.create() as state:
        assert CompilationContext.get_current() is state
        assert state.link_libs == []
        fx.Int32(3).ir_value()
        assert len(state.gpu_module_body.operations) == 1
        with pytest.raises(TraceError, match="a trace inside a trace"), CompilationContext.create():
            pass
    with pytest.raises(TraceError, match="nothing is being traced"):
        CompilationContext.get_current()
