"""A diff as a Jupyter widget."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from flydsl.errors import SourceLocation
from workbench.kit import line_list
from workbench.kit.notebook import traitlets
from workbench.kit.scripted import Scripted
from workbench.stages.diff import Diff
from workbench.stages.diff_view import diff_rows, script, style
from workbench.stages.levels import Places
from workbench.stages.origins import Origins

_RENDER = """
function render({ model, el }) {
  el.classList.add("fly-view");
  const origins = [...model.get("origins")];
  const view = diffView(el, "Differences", origins);
  const show = () => {
    origins.splice(0, Infinity, ...model.get("origins"));
    if (model.get("rows").length) view.show(model.get("rows"));
    else view.say("no change");
  };
  model.on("change:rows", show);
  show();
  return () => model.off("change:rows", show);
}
export default { initialize: keepHearing, render };
"""


class DiffWidget(Scripted):
    """A diff, with the controls of the timeline of the stages."""

    _esm = line_list.script() + script() + _RENDER
    _css = line_list.style() + style()
    rows: Any = traitlets.List().tag(sync=True)
    origins: Any = traitlets.List().tag(sync=True)

    def __init__(self, places: Iterable[SourceLocation | None] = ()) -> None:
        """places: of the lines of all diffs to come, as far as they are known; they order the colours."""
        self._origins = Origins(places)
        super().__init__()

    def show(self, diff: Diff, before: Places = (), after: Places = ()) -> None:
        """Show another diff. before, after: where each line is from, or none."""
        numbers = (self._origins.numbers(places) for places in (before, after))
        rows = [] if diff.is_empty else diff_rows(diff, *numbers)
        self.origins = self._origins.names  # before the rows, whose arrival is what changes the page
        self.rows = rows
