"""Observers of a running pipeline. The environment's debug variables ask for printing and dump files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from flydsl import env

if TYPE_CHECKING:
    from flydsl.compiler.pipeline import Pipeline, Stage


class Observer:
    """The base of observers: it is told about the steps of a pipeline, and does nothing itself."""

    def started(self, pipeline: Pipeline) -> None:
        """Called when the module is traced, before the first stage."""

    def stage_done(self, pipeline: Pipeline, stage: Stage) -> None:
        """Called after a stage; `pipeline.current_text()` is the module after it."""

    def ended(self, pipeline: Pipeline) -> None:
        """Called when the last stage has run, or a stage has failed."""


def observers_from_environment() -> list[Observer]:
    """The observers that the debug variables ask for."""
    found: list[Observer] = []
    if env.flag("FLYDSL_DEBUG_PRINT_ORIGIN_IR"):
        found.append(OriginPrinter())
    if env.flag("FLYDSL_DEBUG_PRINT_AFTER_ALL"):
        found.append(StagePrinter())
    if env.flag("FLYDSL_DUMP_IR"):
        found.append(StageFiles(env.dump_dir()))
    elif env.flag("FLYDSL_DEBUG_DUMP_ASM"):
        found.append(IsaFile(env.dump_dir()))
    return found


class OriginPrinter(Observer):
    """Prints the module as traced."""

    def started(self, pipeline: Pipeline) -> None:
        print(pipeline.origin)


class StagePrinter(Observer):
    """Prints the module after each stage."""

    def stage_done(self, pipeline: Pipeline, stage: Stage) -> None:
        print(f"// -----// after {stage.index} {stage.name} //----- //\n{pipeline.current_text()}")


class IsaFile(Observer):
    """Writes the ISA to `<folder>/<launcher>/`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def ended(self, pipeline: Pipeline) -> None:
        if pipeline.finished:
            folder = self._folder / pipeline.name
            folder.mkdir(parents=True, exist_ok=True)
            (folder / f"{len(pipeline) + 2:02d}_final_isa.s").write_text(pipeline.artifact.isa, "utf-8")


class StageFiles(IsaFile):
    """Writes every stage to `<folder>/<launcher>/`, numbered, as the architecture guide lists them.

    `00_origin.mlir`, one file per stage that ran, and the LLVM IR and ISA where there are any.
    """

    def ended(self, pipeline: Pipeline) -> None:
        folder = self._folder / pipeline.name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "00_origin.mlir").write_text(pipeline.origin, "utf-8")
        for stage in pipeline:
            if stage.state == "done":
                (folder / stage.file_name).write_text(stage.after, "utf-8")
        if pipeline.finished:
            (folder / f"{len(pipeline) + 1:02d}_llvm_ir.ll").write_text(pipeline.artifact.code.llvm_ir, "utf-8")
        super().ended(pipeline)
