"""The stages as a timeline: a strip with the time and the changed lines of each, and the diff of the chosen one.

The same script (`strip.js`) runs in the widget, which requests the diff of a stage when it is first shown, and in an
exported page, which contains all of them. Where there is no script, there is the picture of `strip_picture`.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

from flydsl.compiler import Pipeline
from workbench.kit.assets import asset_text
from workbench.stages import diff_view
from workbench.stages.diff_view import diff_rows
from workbench.stages.levels import Places, mlir_level
from workbench.stages.origins import Origins
from workbench.stages.stage_facts import stage_diff, stage_facts


class Strip:
    """The stages of a compilation as `strip.js` takes them."""

    def __init__(self, pipeline: Pipeline) -> None:
        self.pipeline = pipeline

    def meta(self) -> dict[str, Any]:
        """Everything about the stages but their diffs."""
        return {"stages": [stage_facts(stage) for stage in self.pipeline], "origins": self._origins.names}

    def content(self, index: int) -> dict[str, Any]:
        """The diff of a stage, counted from 0."""
        stage = self.pipeline.stages[index]
        if stage.state != "done":
            return {"rows": []}
        diff = stage_diff(stage)
        return {"rows": diff_rows(diff, *self._numbers[stage.index - 1 : stage.index + 1])}

    @cached_property
    def _levels(self) -> list[Places]:
        """The places after each stage; where a stage changed nothing, the same object as before."""
        levels = [mlir_level("", self.pipeline, 0).places]
        for stage in self.pipeline:
            if stage.state == "done":
                levels.append(mlir_level("", self.pipeline, stage.index).places if stage.changed else levels[-1])
        return levels

    @cached_property
    def _distinct(self) -> dict[int, Places]:
        """The same without repetitions, by identity."""
        return {id(level): level for level in self._levels}

    @cached_property
    def _origins(self) -> Origins:
        return Origins(place for level in self._distinct.values() for place in level)

    @cached_property
    def _numbers(self) -> list[list[int]]:
        """The numbers of the origins after each stage."""
        numbers = {key: self._origins.numbers(level) for key, level in self._distinct.items()}
        return [numbers[id(level)] for level in self._levels]


def script() -> str:
    """The JavaScript: a function `mountStrip(element, meta, fetchStage)`. That of `kit.line_list` goes before."""
    return diff_view.script() + asset_text(__file__, "strip.js")


def style() -> str:
    """The CSS that goes with it."""
    return diff_view.style() + asset_text(__file__, "strip.css")
