"""CONTRIBUTING.md sends people to what is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "CONTRIBUTING.md").read_text()
PATH = re.compile(r"`((?:flydsl|workbench|kernels|tests|notebooks|docs|tools)(?:/[\w/.]+)?)`")


def section(heading: str) -> str:
    return TEXT.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]


@pytest.mark.parametrize("heading", ["Where things are", "What to edit", "What the tests insist on"])
def test_every_path_exists(heading: str) -> None:
    paths = PATH.findall(section(heading))
    assert len(paths) > 5
    assert not [path for path in paths if not (ROOT / path).exists()]


def test_every_module_that_a_kernel_passes_through_exists() -> None:
    way = section("Where things are").partition("A kernel on its way")[2]
    places = [ROOT / "flydsl" / name for name in re.findall(r"`((?:compiler/)?\w+)`", way)]
    assert len(places) > 10
    assert not [place for place in places if not (place.is_dir() or place.with_suffix(".py").is_file())]


def test_where_things_are_is_the_tree() -> None:
    """No folder or module of `flydsl`, and no folder of `workbench`, is left out of the table."""
    listed = set(PATH.findall(section("Where things are").partition("\nA kernel on its way")[0]))
    places = [*(ROOT / "flydsl").iterdir(), *(ROOT / "workbench").iterdir()]
    expected = {
        place
        for place in places
        if (place.is_dir() and any(place.glob("*.py"))) or (place.suffix == ".py" and place.parent.name == "flydsl")
    }
    names = {str(place.relative_to(ROOT)) for place in expected if not place.name.startswith(("__", "."))}
    assert not names - listed


def test_every_target_of_make_is_explained() -> None:
    targets = set(re.findall(r"^([a-z]+):.*## ", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = set(re.findall(r"\b[a-z]+\b", " ".join(re.findall(r"make ([a-z ]+)", TEXT))))
    assert targets - named <= {"help", "setup", "lab", "clean"}
