"""How the compiler's objects show themselves in a notebook once the extension is loaded."""

from __future__ import annotations

from typing import Any

from flydsl.codegen import CodeObject, Kernel
from flydsl.compiler import CompiledArtifact, Pipeline, Stage
from workbench.isa import isa_html
from workbench.occupancy import resources_html
from workbench.pipeline import pipeline_html, stage_html


def register_formatters(shell: Any) -> None:
    """Give each type its HTML form; text/plain stays what `repr` says."""
    html = shell.display_formatter.formatters["text/html"]
    for kind, formatter in {
        Pipeline: pipeline_html,
        Stage: stage_html,
        CompiledArtifact: artifact_html,
        CodeObject: artifact_html,
        Kernel: lambda kernel: resources_html([kernel]),
    }.items():
        html.for_type(kind, formatter)


def artifact_html(artifact: CompiledArtifact | CodeObject) -> str:
    """Resources of every kernel, and the ISA."""
    return f"<div>{resources_html(artifact.kernels)}{isa_html(artifact.isa)}</div>"
