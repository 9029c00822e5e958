"""A diff as a Jupyter widget."""

from __future__ import annotations

from typing import Any

import traitlets

from workbench.kit import line_list
from workbench.kit.scripted import Scripted
from workbench.stages.diff import Diff
from workbench.stages.diff_view import diff_rows, script, style

_RENDER = """
function render({ model, el }) {
  el.classList.add("fly-view");
  const view = diffView(el, "Differences", []);
  const show = () => (model.get("rows").length ? view.show(model.get("rows")) : view.say("no change"));
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

    def __init__(self, **traits: Any) -> None:
        super().__init__(**traits)

    def show(self, diff: Diff) -> None:
        """Show another diff."""
        self.rows = [] if diff.is_empty else diff_rows(diff)
