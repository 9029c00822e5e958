"""The layouts of a kernel are those that its operations make, not those that stand in other types."""

from __future__ import annotations

import pytest
import torch

from tests.kernels import examples
from workbench.stages.layout_list import layouts_of
from workbench.stages.levels import Level, mlir_level


def test_a_tiled_product_has_its_layouts() -> None:
    a, b, c = (torch.zeros(64, 64) for _ in range(3))
    pipeline = examples.tiledMma.lower(a, b, c)
    found = [str(layout) for layout, _ in layouts_of(mlir_level("traced", pipeline, 0))]
    assert found
    assert len(found) == len(set(found))


@pytest.mark.parametrize(
    ("line", "layouts"),
    [
        ("%5 = fly.static : !fly.layout<(4,8):(8,1)>", ["(4,8):(8,1)"]),
        ("%5 = fly.f(%1) : (!fly.layout<2:1>) -> !fly.layout<4:1>", ["4:1"]),
        ("%5 = fly.f(%1) : (i32) -> !fly.composed_layout<S<3,3,3> o 0 o (8,8):(8,1)>", ["S<3,3,3> o 0 o (8,8):(8,1)"]),
        ("%5 = fly.f(%1) : (!fly.layout<2:1>) -> !fly.tiled_mma<!fly.mma_atom<x>, !fly.layout<1:0>>", []),
        ("%5 = fly.f(%1) : (i32) -> !fly.layout<?:1>", []),
        ("scf.yield", []),
    ],
)
def test_only_the_type_of_a_result_counts(line: str, layouts: list[str]) -> None:
    level = Level("traced", "mlir", (line,), (None,))
    assert [str(layout) for layout, _ in layouts_of(level)] == layouts
