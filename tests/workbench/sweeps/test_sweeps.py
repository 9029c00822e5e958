"""The views of a sweep: what they say, that they are escaped, and that they stay without their program."""

from __future__ import annotations

from typing import Any

import pytest

import workbench
from flydsl import Config
from flydsl.errors import ArgumentError
from flydsl.sweeps import Row, Table
from workbench.sweeps.heat_map import heat_map
from workbench.sweeps.progress import progress_html
from workbench.sweeps.rows import sweep_html
from workbench.sweeps.widget import SweepExplorer

ODD = "<script>alert(1)</script>"


def row(m: int, n: int, time_us: float | None, waves: int = 4, error: str | None = None) -> Row:
    values: dict[str, Any] = {"waves_per_simd": waves}
    return Row(
        "gemm", {"k": 8}, Config(m=m, n=n), "gfx942", values | ({"estimate_us": time_us} if time_us else {}), error
    )


@pytest.fixture
def table() -> Table:
    rows = [row(16, 64, 4.0), row(16, 128, 2.0, 2), row(32, 64, 1.0, 1), row(32, 128, None, error=f"wrong {ODD}\nmore")]
    return Table([*rows, row(16, 64, 3.0, 1)], 8)


def test_the_table_says_what_is_best_and_what_went_wrong(table, read):
    text = read(sweep_html(table)).text
    assert "5 of 8 rows, 1 with errors" in text
    assert "the best: m=32, n=64, 1 us" in text
    assert text.count("best ▶") == 1
    assert f"wrong {ODD}\nmore" in text
    assert ODD not in sweep_html(table)
    assert "95 more rows" in read(sweep_html(Table([row(16, i, 1.0) for i in range(195)], 195))).text


def test_the_progress_is_a_bar_until_all_rows_are_there(table, read):
    assert "width:62%" in progress_html(table)
    table.total = 5
    assert "width:" not in progress_html(table)
    assert "5 rows, 1 with errors" in read(progress_html(table)).text
    assert "0 of 3 rows" in read(progress_html(Table(total=3))).text


def test_the_heat_map_has_the_smallest_number_of_each_field(table):
    drawn = heat_map(table)
    assert (drawn.x_name, drawn.y_name, drawn.xs, drawn.ys) == ("m", "n", [16, 32], [64, 128])
    texts = {(drawn.xs[i], drawn.ys[j]): field.text for (i, j), field in drawn.fields.items()}
    assert texts == {(16, 64): "3 ± ?", (16, 128): "2 ± ?", (32, 64): "1 ± ?", (32, 128): "error"}
    assert [drawn.heat(number) for number in (1.0, 3.0)] == [1.0, 0.0]
    assert heat_map(table, "n", "m", "waves_per_simd", {"m": 16}).xs == [64, 128]


def test_pictures_are_kept_and_escaped(table, read):
    table.rows.append(Row("gemm", {"k": 8}, Config(m=ODD, n=64), "gfx942", {"estimate_us": 9.0, "waves_per_simd": 8}))
    for figure in (workbench.heat_map_figure(table), workbench.pareto_figure(table)):
        bundle = figure._repr_mimebundle_()
        assert "<script" not in bundle["text/html"]
        assert "<script" not in str(bundle["application/vnd.plotly.v1+json"])
        assert bundle["text/html"].startswith('<img alt="')
        assert "m=32" in bundle["text/plain"]
    assert "4 of 5 rows" in workbench.pareto_figure(table).layout.title.text


def test_what_cannot_be_drawn(table):
    with pytest.raises(ArgumentError, match="no row has width"):
        workbench.heat_map_figure(table, "m", "width")
    with pytest.raises(ArgumentError, match="needs two parameters with several values, and there is n"):
        workbench.heat_map_figure(Table([row(16, n, 1.0) for n in (1, 2)], 2))
    with pytest.raises(ArgumentError, match="no row has speed"):
        workbench.pareto_figure(table, large="speed")
    assert "0 of 0 rows" in workbench.pareto_figure(Table([row(1, 1, None, error="no")], 1), "waves_per_simd").to_json()


def test_controls_choose(table, read):
    explorer = SweepExplorer(table)
    assert "4 us" not in read(explorer._table.value).text
    explorer._where["m"].value = (16,)
    shown = read(explorer._table.value).text
    assert "3 rows" not in shown
    assert shown.index("2") < shown.index("4")
    assert "<img" in explorer._map.value
    explorer._y.value = explorer._x.value
    assert "<img" not in explorer._map.value
    assert read(explorer.static_html()).text


def test_a_sweep_in_a_notebook_shows_its_progress(notebook):
    cell = "import flydsl\ntable = flydsl.sweep(launch, {'scale': [1, 2]}, arguments=lambda: (A, B, C, 128))\n"
    outcome = notebook.run(cell)
    assert outcome.error is None, outcome.text
    assert "0 of 2 rows" in outcome.shown[0]["text/plain"]
    assert "2 rows" in outcome.shown[-1]["text/html"]
    assert "2 rows" in notebook.run("table").text
    shown = notebook.run("display(table)").shown[-1]
    assert "best ▶" in shown["text/html"]
    assert "2 rows" in shown["text/plain"]
    assert "waves_per_simd" in notebook.run("display(table.best())").shown[-1]["text/html"]
    live = notebook.run("display(table.explore())").shown[-1]
    assert "application/vnd.jupyter.widget-view+json" in live
    assert "best ▶" in live["text/html"]


def test_a_table_of_many_columns_is_shown_in_parts_as_wide_as_a_page(read):
    amounts = {f"amount_{i}": i for i in range(12)}
    rows = [
        Row("gemm", {}, Config(m=m), "gfx942", {k: v * m for k, v in amounts.items()} | {"vgprs": 7}) for m in (1, 2)
    ]
    html = sweep_html(Table(rows, 2))
    assert "The same in all rows: vgprs 7" in read(html).text
    parts = html.split("<table")[1:]
    assert all("<th" in part and part.count("<th ") <= 11 and ">m</th>" in part for part in parts)
    assert all(sum(f">amount_<wbr>{i}<" in part for part in parts) == 1 for i in range(1, 12))
