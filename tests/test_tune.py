"""The search of `tools.tune`, with times that are known."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tools import tune


def neighbours(options: tune.Options) -> Iterator[tune.Options]:
    yield from ({"tile": options["tile"] + step} for step in (-1, 1))


def refuse(*_: object) -> None:
    raise AssertionError("times are known")


FAMILY = tune.Family("hgemm", ("bf16",), lambda size: iter([{"tile": 1}]), neighbours, refuse)


@pytest.fixture(autouse=True)
def known_times(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The best tile is N, and each step from it costs 1 us of 10; tiles of 20 and more do not fit."""

    def time_us(search: tune.Search, options: tune.Options) -> float:
        return 10.0 + abs(options["tile"] - search.size[1]) if options["tile"] < 20 else float("inf")

    monkeypatch.setattr(tune.Search, "time_us", time_us)
    monkeypatch.setattr(tune, "TABLES", tmp_path)


def tables() -> tune.Tables:
    return json.loads((tune.TABLES / "hgemm.json").read_text())


def test_a_search_goes_on_to_the_fastest() -> None:
    tune.write(FAMILY, ["gfx942"], [(16, 7, 64)])
    assert tables() == {"gfx942": {"bf16": [{"M": 16, "N": 7, "K": 64, "us": 10.0, "options": {"tile": 7}}]}}


def test_what_does_not_fit_is_not_chosen() -> None:
    tune.write(FAMILY, ["gfx942"], [(16, 25, 64)])
    assert tables()["gfx942"]["bf16"][0]["options"] == {"tile": 19}


def test_a_size_that_is_searched_again_leaves_the_other_rows() -> None:
    tune.write(FAMILY, ["gfx950", "gfx942"], [(64, 7, 64), (16, 7, 64), (16, 5, 64)])
    before = tables()
    tune.write(FAMILY, ["gfx942"], [(16, 7, 64)])
    assert tables() == before
    assert list(before) == ["gfx942", "gfx950"]
    assert [tune.size_of(row) for row in before["gfx942"]["bf16"]] == [(16, 5, 64), (16, 7, 64), (64, 7, 64)]
