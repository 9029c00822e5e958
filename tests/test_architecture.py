"""The house's rules: who may import whom, where the environment is read, where architectures are named."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

# A part may import these, what they may import, `errors` and `utils`.
MAY_IMPORT = {
    "_mlir": (),
    "errors": (),
    "utils": (),
    "hsaco": (),
    "disk_cache": (),
    "layout": (),
    "arch": ("layout",),
    "atoms": ("layout",),
    "dialect": ("layout", "atoms"),
    "expr": ("dialect",),
    "passes": ("dialect", "arch"),
    "codegen": ("arch", "hsaco", "disk_cache"),
    "simulator": ("arch", "hsaco", "disk_cache"),
    "runtime": ("simulator", "codegen"),
    "compiler": ("expr", "passes", "codegen", "runtime"),
    "autotune": ("compiler",),
    "smem_allocator": ("expr", "arch"),
}
JUPYTER = {"workbench", "IPython", "ipykernel", "ipywidgets", "anywidget", "jupyterlab", "notebook", "plotly"}
ENVIRONMENT = {"environ", "environb", "getenv", "putenv"}

SOURCES = [p for package in ("flydsl", "workbench", "kernels") for p in sorted((ROOT / package).rglob("*.py"))]
EVERY_SOURCE = pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))


def imports(path: Path) -> Iterator[str]:
    """Dotted names that a file imports, at its top or inside functions: `from a import b` is "a.b"."""
    package = path.relative_to(ROOT).parent.parts
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) + 1 - node.level] if node.level else ()
            yield from (".".join((*base, *filter(None, [node.module]), alias.name)) for alias in node.names)


def part(path: Path) -> str:
    """The part of flydsl that a file belongs to: its folder, or its own name at top level.

    `utils/smem_allocator.py` is where users import it from, not a utility that anything here builds on.
    """
    if path.stem == "smem_allocator":
        return path.stem
    return path.relative_to(ROOT / "flydsl").with_suffix("").parts[0]


def reachable(name: str) -> set[str]:
    return {name, "errors", "utils"}.union(*(reachable(other) for other in MAY_IMPORT[name]))


@EVERY_SOURCE
def test_imports_point_one_way(path: Path) -> None:
    roots = {name.split(".")[0] for name in imports(path)}
    parts = {name.split(".")[1] for name in imports(path) if re.match(r"flydsl\.\w", name)} - {"__version__"}
    match path.relative_to(ROOT).parts[0]:
        case "workbench":
            assert not [name for name in imports(path) if re.match(r"flydsl\.(.*\.)?_(?!_)", name)], (
                "workbench uses what is public"
            )
        case "kernels":
            assert not roots & JUPYTER
            assert parts <= reachable("compiler")
        case "flydsl":
            assert not roots & JUPYTER
            if part(path) != "__init__":
                assert parts <= reachable(part(path))


@EVERY_SOURCE
def test_environment_is_read_in_one_place(path: Path) -> None:
    if path == ROOT / "flydsl" / "utils" / "env.py":
        return
    read = {n.attr for n in ast.walk(ast.parse(path.read_text())) if isinstance(n, ast.Attribute)} & ENVIRONMENT
    assert not read
    assert not [name for name in imports(path) if name in {f"os.{function}" for function in ENVIRONMENT}]


@EVERY_SOURCE
def test_architectures_are_named_as_data_only(path: Path) -> None:
    """Strings, that is: documentation may name them, and a kernel may name those that it is for."""
    if path.relative_to(ROOT).parts[:2] in {("flydsl", "arch"), ("flydsl", "atoms")} or path.is_relative_to(
        ROOT / "kernels"
    ):
        return
    tree = ast.parse(path.read_text())
    prose = {id(n.value) for n in ast.walk(tree) if isinstance(n, ast.Expr) and isinstance(n.value, ast.Constant)}
    strings = [n.value for n in ast.walk(tree) if isinstance(n, ast.Constant) and id(n) not in prose]
    assert not [s for s in strings if isinstance(s, str) and re.search(r"gfx\d", s)]
