"""What `%%flykernel` shows: each compilation behind the launches of a cell, with how often it was called."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flydsl.arch import Arch
from flydsl.compiler import CompiledArtifact, Launch, Pipeline
from flydsl.errors import FlyError
from workbench.html import code, details, escape, message, title
from workbench.isa import isa_html, isa_text
from workbench.occupancy import kernel_text, kernels_html
from workbench.pipeline import progress, stages_html

_MAX_VALUE_CHARS = 40


class Report:
    """One compilation: its stages, its kernels' resources, its machine code.

    launch: the first call that used it. calls: how many there were. arch: a target to compile it for instead of the
    one that the cell launched it for. error: why that failed.
    """

    def __init__(self, launch: Launch, calls: int, arch: Arch | None = None, *, is_folded: bool = False) -> None:
        self._call = call_text(launch)
        self._calls = "1 call" if calls == 1 else f"{calls} calls, the first one shown"
        self._is_folded = is_folded
        self.pipeline: Pipeline | None = None
        self.artifact: CompiledArtifact | None = None
        self.error: FlyError | None = None
        if arch is None or arch == launch.pipeline.arch:
            self.pipeline, self.artifact = launch.pipeline, launch.artifact
            self._target = launch.pipeline.arch.name
        else:
            self._target = f"{arch.name}, compiled only; the cell launched it for {launch.pipeline.arch.name}"
            self._compile(launch, arch)

    def _compile(self, launch: Launch, arch: Arch) -> None:
        try:
            self.pipeline = launch.function.lower(*launch.arguments, arch=arch.name)
            self.artifact = self.pipeline.artifact
        except FlyError as error:
            self.error = error

    def _repr_html_(self) -> str:
        head = title(f"<strong>{code(self._call)}</strong> for {escape(self._target)} ({escape(self._calls)})")
        parts = [head]
        if self.pipeline is not None:
            summary = f"Pipeline, {escape(progress(self.pipeline))}"
            parts.append(details(summary, stages_html(self.pipeline), is_open=not self._is_folded))
        elif self.error is not None:
            parts.append(message(str(self.error)))
        if self.artifact is not None:
            parts += [kernels_html(self.artifact.kernels), isa_html(self.artifact, is_open=not self._is_folded)]
        return f"<div>{''.join(parts)}</div>"

    def __repr__(self) -> str:
        parts = [f"{self._call} for {self._target} ({self._calls})"]
        if self.pipeline is not None:
            parts.append(repr(self.pipeline))
        if self.error is not None:
            parts.append(str(self.error))
        if self.artifact is not None:
            parts += [*map(kernel_text, self.artifact.kernels), isa_text(self.artifact)]
        return "\n\n".join(parts)


def reports(launches: Sequence[Launch], arch: Arch | None = None) -> list[Report]:
    """One report per compilation, in the order of the first launches; folded where there are several."""
    groups: dict[int, list[Launch]] = {}
    for launch in launches:
        groups.setdefault(id(launch.artifact), []).append(launch)
    return [Report(group[0], len(group), arch, is_folded=len(groups) > 1) for group in groups.values()]


def call_text(launch: Launch) -> str:
    """A launch as the user would write it, with tensors as types."""
    parameters = launch.function.signature.parameters
    arguments = (
        f"{parameter.name}={_value_text(value)}"
        for parameter, value in zip(parameters, launch.arguments, strict=True)
        if value is not parameter.default
    )
    return f"{launch.function.signature.name}({', '.join(arguments)})"


def _value_text(value: Any) -> str:
    if hasattr(value, "dtype") and hasattr(value, "shape"):
        sizes = ", ".join(map(str, value.shape))
        return f"{str(value.dtype).removeprefix('torch.')}[{sizes}]"
    if hasattr(value, "__name__"):
        return str(value.__name__)
    text = repr(value)
    # An address differs from run to run.
    return text if len(text) <= _MAX_VALUE_CHARS and " at 0x" not in text else type(value).__name__
