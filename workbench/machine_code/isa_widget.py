"""The machine code, live: help, registers in use, live ranges, blocks, encodings."""

from __future__ import annotations

from typing import Any

from flydsl.codegen import CodeObject
from workbench.kit import line_list
from workbench.kit.controls import dropdown
from workbench.kit.html import title
from workbench.kit.live_view import HtmlPart, LiveView
from workbench.kit.notebook import ipywidgets as widgets
from workbench.kit.notebook import traitlets
from workbench.kit.scripted import Scripted
from workbench.machine_code.analysis import analyse, analyses
from workbench.machine_code.content import content, script, style
from workbench.machine_code.listing import isa_html, summary_html

_RENDER = """
function render({ model, el }) {
  const show = () => {
    el.replaceChildren();
    const root = document.createElement("div");
    el.append(root);
    mountIsa(root, model.get("content"));
  };
  model.on("change:content", show);
  show();
}
export default { initialize: keepHearing, render };
"""


class IsaCode(Scripted):
    """One kernel's code."""

    _esm = line_list.script() + script() + _RENDER
    _css = line_list.style() + style()
    content = traitlets.Dict().tag(sync=True)


class IsaExplorer(LiveView):
    """The machine code of a code object, one kernel at a time."""

    def __init__(self, code: CodeObject) -> None:
        self._code = code
        names = [analysis.kernel.name for analysis in analyses(code)]
        self._kernel = dropdown("Kernel", names, names[0])
        self._kernel.observe(self._show, names="value")
        self._summary, self._lines = HtmlPart(), IsaCode()
        self._show()
        head = [self._kernel] if len(names) > 1 else []
        super().__init__([*head, self._summary, self._lines])

    def _show(self, _change: Any = None) -> None:
        name = self._kernel.value
        self._summary.show(summary_html(analyse(self._code, name)))
        self._lines.content = content(self._code, name)

    def static_html(self) -> str:
        """The listing without the controls."""
        return f"<div>{isa_html(self._code)}</div>"


def isa_explorer(code: CodeObject) -> widgets.DOMWidget:
    """The view; without a kernel, a line that says so."""
    return IsaExplorer(code) if code.kernels else HtmlPart(title("There is no kernel."))
