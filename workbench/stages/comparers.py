"""Live diffs: of any two levels of one compilation, and of one stage of two."""

from __future__ import annotations

from typing import Any

from workbench.kit.finder import Finder
from workbench.kit.html import escape, title
from workbench.kit.live_view import HtmlPart, LiveView
from workbench.kit.notebook import ipywidgets as widgets
from workbench.stages.comparison import Comparison
from workbench.stages.diff import Diff
from workbench.stages.diff_widget import DiffWidget
from workbench.stages.levels import Level
from workbench.stages.search import search

_STYLE = {"description_width": "initial"}
_WRAPPED = {"flex_flow": "row wrap"}
_MAX_SAVED_LINES = 600


class LevelComparer(LiveView):
    """The diff of any two levels, and where an operation is."""

    def __init__(self, forms: list[Level]) -> None:
        self._levels = {level.name: level for level in forms}
        names = list(self._levels)
        self._from = widgets.Dropdown(description="From", options=names, value=names[0], style=_STYLE)
        self._to = widgets.Dropdown(description="To", options=names, value=names[min(1, len(names) - 1)], style=_STYLE)
        self._search = widgets.Text(description="Find operation", placeholder="for example add", style=_STYLE)
        self._head, self._found = HtmlPart(), HtmlPart()
        self._diff = DiffWidget(place for level in forms for place in level.places)
        self._finder = Finder(self._diff)
        for control in (self._from, self._to):
            control.observe(self._show_diff, names="value")
        self._search.observe(self._show_found, names="value")
        self._show_diff()
        super().__init__(
            [
                widgets.HBox([self._from, self._to, self._search], layout=_WRAPPED),
                self._found,
                self._finder,
                self._head,
                self._diff,
            ]
        )

    def static_html(self) -> str:
        """The diff without controls, as much of it as a saved notebook should hold."""
        shown = "" if self._chosen.is_empty else self._chosen.html(max_lines=_MAX_SAVED_LINES)
        return f"<div>{title(escape(self._heading))}{shown}</div>"

    def static_text(self) -> str:
        """The text for a terminal."""
        return f"{self._heading}\n{self._chosen.text()}".rstrip()

    @property
    def _chosen(self) -> Diff:
        other = self._levels[self._to.value]
        return Diff.between(self._levels[self._from.value].text(), other.text(), other.language)

    @property
    def _heading(self) -> str:
        return f"{self._from.value} → {self._to.value}: {self._chosen.summary}"

    def _show_diff(self, _change: Any = None) -> None:
        self._head.show(title(escape(self._heading)))
        before, after = (self._levels[control.value] for control in (self._from, self._to))
        self._diff.show(self._chosen, before.places, after.places)

    def _show_found(self, _change: Any = None) -> None:
        text = self._search.value
        self._finder.text = text
        self._found.show(search(list(self._levels.values()), text)._repr_html_() if text.strip() else "")


class StageComparer(LiveView):
    """One stage of two compilations."""

    def __init__(self, comparison: Comparison, stage: str | int | None = None) -> None:
        self._comparison = comparison
        self._diffs = dict(comparison.stages())
        names = list(self._diffs)
        self._stage = widgets.Dropdown(description="Stage", options=names, value=names[0], style=_STYLE)
        if stage is not None:
            self._stage.value = comparison.stage_name(stage)
        self._stage.observe(self._show, names="value")
        self._head, self._diff = HtmlPart(), DiffWidget()
        self._show()
        heading = HtmlPart(comparison.title_html() + comparison.kernels_html())
        super().__init__([heading, self._stage, self._head, self._diff])

    def static_html(self) -> str:
        """The whole comparison, which names every stage."""
        return self._comparison._repr_html_()

    def static_text(self) -> str:
        """The text for a terminal."""
        return repr(self._comparison)

    def _show(self, _change: Any = None) -> None:
        diff = self._diffs[self._stage.value]
        self._head.show(title(escape(diff.summary)))
        self._diff.show(diff, *self._comparison.places(self._stage.value))
