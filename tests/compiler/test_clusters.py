"""Launches whose workgroups run in clusters: compiled and launched for gfx1250, and refused where there are none."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.errors import LaunchError

X = torch.zeros(64)


def launcher(cluster: Any, grid: Any = (4, 2)) -> Any:
    @flyc.kernel
    def kernel(x: fx.Tensor):
        x[fx.thread_idx.x] = 1.0

    @flyc.jit
    def launch(x: fx.Tensor):
        kernel(x, value_attrs={"passthrough": [["amdgpu-num-vgpr", "32"]]}).launch(
            grid=grid, block=(64,), cluster=cluster
        )

    return launch


def test_the_backend_gets_the_size() -> None:
    artifact = launcher((2, 2, 1)).lower(X, arch="gfx1250").artifact
    assert '"amdgpu-cluster-dims"="2,2,1"' in artifact.code.llvm_ir
    assert '"amdgpu-num-vgpr"="32"' in artifact.code.llvm_ir


def test_the_code_object_has_the_size_and_is_launched() -> None:
    artifact = launcher((2, 2, 1)).lower(X, arch="gfx1250").artifact
    assert artifact.kernels[0].info.cluster == (2, 2, 1)
    x = X.clone()
    artifact(x)
    assert torch.equal(x, torch.ones(64))


def test_a_cluster_of_one_workgroup_is_none() -> None:
    x = X.clone()
    launcher((1, 1, 1))(x)
    assert torch.equal(x, torch.ones(64))


@pytest.mark.parametrize(
    ("cluster", "arch", "message"),
    [
        ((2, 1, 1), "gfx942", "gfx942 has no clusters"),
        ((3, 1, 1), "gfx1250", "got 4 workgroups in clusters of 3 along x"),
        ((0, 1, 1), "gfx1250", "at least 1"),
        ((4, 1, 5), "gfx1250", "has 20 workgroups; gfx1250 takes up to 16"),
        ("two", "gfx1250", "is not an integer"),
    ],
)
def test_clusters_that_do_not_fit_are_refused(cluster: Any, arch: str, message: str) -> None:
    with pytest.raises(LaunchError, match=message) as caught:
        launcher(cluster).lower(X, arch=arch)
    assert caught.value.at.file == __file__
