"""Tiles of tensors that one instruction copies between global memory and LDS: see `tensor_descriptor`."""

from __future__ import annotations

from typing import Any

from flydsl.simulator.isa.builder import Builder
from flydsl.simulator.isa.table import define


def _define() -> None:
    for name, is_load in (("tensor_load_to_lds", True), ("tensor_store_from_lds", False)):

        def move(b: Builder, *groups: Any, load: bool = is_load) -> None:
            b.move_tensor([word for group in groups for word in group], is_load=load)

        # As text, the modifiers are cache policies.
        define(f"{name}/2", "= i32x4 i32x8", move, of="cdna5")
        define(f"{name}/4", "= i32x4 i32x8 i32x4 i32x4", move, of="cdna5")


_define()
