"""The contract between the table and the backends: semantics use nothing but the builder's vocabulary."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path

import pytest

from flydsl.simulator import isa
from flydsl.simulator.isa import table
from flydsl.simulator.isa.builder import Builder
from flydsl.simulator.lockstep.machine import Machine
from flydsl.simulator.native.builder.handler import HandlerBuilder

VOCABULARY = {name for name, value in vars(Builder).items() if inspect.isfunction(value) and not name.startswith("_")}
NUMBERS = set(vars(Builder)["__annotations__"])
FAMILIES = [Path(isa.__file__).with_name(f"{name}.py") for name in sorted({*" ".join(table.FAMILIES.values()).split()})]


@pytest.mark.parametrize("path", FAMILIES, ids=lambda p: p.stem)
def test_semantics_use_the_vocabulary_only(path: Path) -> None:
    tree = ast.parse(path.read_text())
    used = {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "b"
    }
    assert used <= VOCABULARY | NUMBERS
    imported = {
        n.module if isinstance(n, ast.ImportFrom) else a.name
        for n in ast.walk(tree)
        if isinstance(n, (ast.Import, ast.ImportFrom))
        for a in n.names
    }
    assert "numpy" not in imported


@pytest.mark.parametrize("name", sorted(VOCABULARY))
@pytest.mark.parametrize("backend", [Machine, HandlerBuilder])
def test_the_backends_speak_it(name: str, backend: type) -> None:
    expected = list(inspect.signature(getattr(Builder, name)).parameters)
    assert list(inspect.signature(getattr(backend, name)).parameters) == expected
