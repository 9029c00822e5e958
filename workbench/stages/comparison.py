"""Two compilations side by side: what each kernel takes, and the same stage of both."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from flydsl.compiler import CompiledArtifact, Pipeline, Stage
from flydsl.errors import ArgumentError
from workbench.kit.html import ON_PAPER, code, details, escape, faint, message, table, title
from workbench.resources.occupancy import occupancy_text
from workbench.stages.diff import Diff
from workbench.stages.levels import Places, isa_level, mlir_level
from workbench.stages.names import compilation_names
from workbench.stages.stage_facts import label

_MAX_DIFF_LINES = 80
_LIVE_HINT = title(faint(f"One stage at a time, whole: {code('%flydiff --live')} or {code('.explore()')}"))


def compare(before: Any, after: Any, stage: str | int | None = None) -> Comparison | TextComparison:
    """Compare two pipelines or artifacts, or two stages or texts.

    stage: compare only this stage of two pipelines. Pipelines are compared as far as both have run.
    Raises ArgumentError for things that cannot be compared.
    """
    before, after = (p.pipeline if isinstance(p, CompiledArtifact) else p for p in (before, after))
    if isinstance(before, Pipeline) and isinstance(after, Pipeline):
        if stage is None:
            return Comparison(before, after)
        return compare(before[stage], after[stage])
    if stage is not None:
        raise ArgumentError(f"a stage of {_kind(before)} and {_kind(after)}", hint="give two pipelines")
    if isinstance(before, Stage) and isinstance(after, Stage):
        names = f"after {before.index} {label(before)}", f"after {after.index} {label(after)}"
        return TextComparison(*names, Diff.between(before.after, after.after, "mlir"))
    if isinstance(before, str) and isinstance(after, str):
        return TextComparison("one", "other", Diff.between(before, after, _language(before + after)))
    raise ArgumentError(
        f"{_kind(before)} and {_kind(after)} cannot be compared",
        hint="pass two pipelines (launch.lower(...)), two artifacts, two stages (p[3]), or two texts",
    )


def _kind(value: Any) -> str:
    return f"a {type(value).__name__}"


def _language(text: str) -> str:
    """MLIR and LLVM IR name values with %, which other texts do not."""
    return "mlir" if "%" in text else "text"


@dataclass(frozen=True)
class TextComparison:
    """Two texts. before, after: what they are called."""

    before: str
    after: str
    diff: Diff

    def _repr_html_(self) -> str:
        head = title(f"{code(self.before)} → {code(self.after)}: {escape(self.diff.summary)}")
        return f"<div>{head}{'' if self.diff.is_empty else self.diff.html(max_lines=600)}</div>"

    def __repr__(self) -> str:
        return f"{self.before} -> {self.after}: {self.diff.summary}\n{self.diff.text()}".rstrip()


@dataclass(frozen=True)
class Comparison:
    """Two compilations. titles: of both; by default the launcher, and how the two differ."""

    before: Pipeline
    after: Pipeline
    titles: tuple[str, str] | None = None

    def stages(self) -> list[tuple[str, Diff]]:
        """The module as traced, then after every stage that both have run; last, where both are finished, the ISA."""
        found = [("traced", Diff.between(self.before.origin, self.after.origin, "mlir"))]
        for one, other in zip(self.before, self.after, strict=False):
            if one.state != "done" or other.state != "done" or one.passes != other.passes:
                break
            found.append((f"{one.index} {label(one)}", Diff.between(one.after, other.after, "mlir")))
        if self.before.finished and self.after.finished:
            texts = [isa_level(p.artifact.code).text() for p in (self.before, self.after)]
            found.append(("ISA", Diff.between(texts[0], texts[1], "isa")))
        return found

    def places(self, name: str) -> tuple[Places, Places]:
        """The origins of the lines of both sides of one of `stages`."""
        if name == "ISA":
            levels = [isa_level(p.artifact.code) for p in (self.before, self.after)]
        else:
            index = 0 if name == "traced" else int(name.split()[0])
            levels = [mlir_level(name, p, index) for p in (self.before, self.after)]
        return levels[0].places, levels[1].places

    def stage_name(self, stage: str | int) -> str:
        """The name of a stage in `stages`. Raises ArgumentError for a stage that only one of the two has run."""
        found = self.before[stage]
        name = f"{found.index} {label(found)}"
        if name not in dict(self.stages()):
            raise ArgumentError(f"stage {name} has not run in both", hint="run both: p.run()")
        return name

    def _repr_html_(self) -> str:
        rows = [[escape(name), escape(diff.summary)] for name, diff in _folded(self.stages())]
        diffs = "".join(
            details(f"{escape(name)} {escape(diff.summary)}", diff.html(max_lines=_MAX_DIFF_LINES))
            for name, diff in _folded(self.stages())
            if not diff.is_empty
        )
        changes = table(("after", "lines"), rows)
        parts = [self.title_html(), self.kernels_html(), changes, diffs, *self._errors(), _LIVE_HINT, ON_PAPER]
        return f"<div>{''.join(parts)}</div>"

    @property
    def names(self) -> list[str]:
        """The names of the two."""
        return list(self.titles or compilation_names((self.before, self.after)))

    def title_html(self) -> str:
        """The names of both."""
        return title(" → ".join(f"<strong>{code(name)}</strong>" for name in self.names))

    def kernels_html(self) -> str:
        """A table of the resources of both compilations' kernels; empty unless both are finished."""
        if not (self.before.finished and self.after.finished):
            return ""
        sides = [{k.name: k for k in p.artifact.kernels} for p in (self.before, self.after)]
        rows = []
        for name in dict.fromkeys([*sides[0], *sides[1]]):
            for side, of in zip(sides, self.names, strict=True):
                if kernel := side.get(name):
                    taken, usage = kernel.resources, kernel.usage
                    amounts = (taken.vgprs, taken.agprs, taken.sgprs, usage.lds_bytes, taken.code_bytes)
                    rows.append([code(name), escape(of), *map(str, amounts), occupancy_text(usage.occupancy)])
        return table(
            ("kernel", "of", "VGPR", "AGPR", "SGPR", "LDS B", "code B", "occupancy"), rows, numbers=range(2, 7)
        )

    def _errors(self) -> Iterable[str]:
        return (message(str(stage.error)) for p in (self.before, self.after) for stage in p if stage.error)

    def __repr__(self) -> str:
        lines = [" -> ".join(self.names)]
        return "\n".join([*lines, *(f"  {name}: {diff.summary}" for name, diff in _folded(self.stages()))])


def _folded(stages: list[tuple[str, Diff]]) -> list[tuple[str, Diff]]:
    """The stages except those whose diff is the same as that of the stage before."""
    return [pair for i, pair in enumerate(stages) if i == 0 or pair[1] != stages[i - 1][1]]
