"""The linked levels as a Jupyter widget."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from workbench.kit import line_list
from workbench.kit.notebook import traitlets
from workbench.kit.scripted import Scripted
from workbench.stages.levels import Level
from workbench.stages.linked import Linked, script, style

_RENDER = """
function render({ model, el }) {
  const waiting = new Map();
  model.on("msg:custom", (content) => {
    waiting.get(content.level)?.resolve(content);
  });
  const fetchLevel = (level) => {
    if (!waiting.has(level)) {
      const entry = {};
      entry.promise = new Promise((resolve) => { entry.resolve = resolve; });
      waiting.set(level, entry);
      model.send({ level });
    }
    return waiting.get(level).promise;
  };
  mount(el, model.get("meta"), fetchLevel, (origin) => model.send({ chosen: origin }));
}
export default { initialize: keepHearing, render };
"""


class LinkedCode(Scripted):
    """Two levels beside the source. Python sends a level when the page asks for it.

    on_choose: called with the origin of a line that is chosen, as "kernel.py:17".
    """

    _esm = line_list.script() + script() + _RENDER
    _css = line_list.style() + style()
    meta = traitlets.Dict().tag(sync=True)

    def __init__(
        self, levels: list[Level], on_choose: Callable[[str], None] = lambda origin: None, **traits: Any
    ) -> None:
        self._linked = Linked(levels)
        self._on_choose = on_choose
        super().__init__(meta=self._linked.meta(), **traits)
        self.on_msg(self._answer)

    def _answer(self, widget: Any, content: Any, buffers: Any) -> None:
        level, chosen = content.get("level"), content.get("chosen")
        if isinstance(level, int) and 0 <= level < len(self._linked.levels):
            self.send({"level": level, **self._linked.content(level)})
        if isinstance(chosen, int) and 0 <= chosen < len(self.meta["origins"]):
            self._on_choose(self.meta["origins"][chosen])
