"""The timeline of the stages as a Jupyter widget."""

from __future__ import annotations

from typing import Any

from flydsl.compiler import Pipeline
from workbench.kit import line_list
from workbench.kit.notebook import traitlets
from workbench.kit.scripted import Scripted
from workbench.stages.strip import Strip, script, style

_RENDER = """
function render({ model, el }) {
  const waiting = new Map();
  model.on("msg:custom", (content) => waiting.get(content.stage)?.resolve(content));
  mountStrip(el, model.get("meta"), (stage) => {
    if (!waiting.has(stage)) {
      const entry = {};
      entry.promise = new Promise((resolve) => { entry.resolve = resolve; });
      waiting.set(stage, entry);
      model.send({ stage });
    }
    return waiting.get(stage).promise;
  });
}
export default { initialize: keepHearing, render };
"""


class StageStrip(Scripted):
    """The stages with their diffs. Python sends a diff when the page asks for it."""

    _esm = line_list.script() + script() + _RENDER
    _css = line_list.style() + style()
    meta = traitlets.Dict().tag(sync=True)

    def __init__(self, pipeline: Pipeline) -> None:
        self._strip = Strip(pipeline)
        super().__init__(meta=self._strip.meta())
        self.on_msg(self._answer)

    def _answer(self, _widget: Any, content: Any, _buffers: Any) -> None:
        stage = content.get("stage")
        if isinstance(stage, int) and 0 <= stage < len(self.meta["stages"]):
            self.send({"stage": stage, **self._strip.content(stage)})
