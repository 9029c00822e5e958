"""Dump files: `FLYDSL_DUMP_IR=1` writes every stage of a pipeline, numbered, as the architecture guide lists them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from flydsl import env

if TYPE_CHECKING:
    from flydsl.compiler.pipeline import Pipeline


def dump(pipeline: Pipeline) -> None:
    """Write what the environment asks for, of a pipeline that is finished or has failed."""
    if env.flag("FLYDSL_DUMP_IR"):
        write_stages(pipeline, env.dump_dir() / pipeline.name)
    elif env.flag("FLYDSL_DEBUG_DUMP_ASM") and pipeline.finished:
        write_isa(pipeline, env.dump_dir() / pipeline.name)


def write_stages(pipeline: Pipeline, folder: Path) -> None:
    """Write `00_origin.mlir`, one file per stage that ran, and the LLVM IR and ISA where there are any."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "00_origin.mlir").write_text(pipeline.origin, "utf-8")
    for stage in pipeline:
        if stage.state == "done":
            (folder / stage.file_name).write_text(stage.after, "utf-8")
    if pipeline.finished:
        (folder / f"{len(pipeline) + 1:02d}_llvm_ir.ll").write_text(pipeline.artifact.code.llvm_ir, "utf-8")
        write_isa(pipeline, folder)


def write_isa(pipeline: Pipeline, folder: Path) -> None:
    """Write the ISA."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{len(pipeline) + 2:02d}_final_isa.s").write_text(pipeline.artifact.isa, "utf-8")
