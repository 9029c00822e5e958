"""`%%flykernel`: run a cell and show how each launch in it was compiled."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Sequence
from typing import Any, NoReturn

from IPython.display import HTML, display

from flydsl.arch import get_arch
from flydsl.compiler import CompiledArtifact, Launch, Pipeline, capture_launches
from flydsl.errors import ArgumentError, FlyError
from workbench.display import artifact_html
from workbench.html import escape
from workbench.pipeline import pipeline_html


def register_magics(shell: Any) -> None:
    """Add `%%flykernel` to an IPython shell."""
    shell.register_magic_function(lambda line, cell: flykernel(shell, line, cell), "cell", "flykernel")


class _Parser(argparse.ArgumentParser):
    """An argument parser whose errors are ours; the standard one ends the process."""

    def error(self, message: str) -> NoReturn:
        raise ArgumentError(f"%%flykernel: {message}", hint="%%flykernel --help lists the options")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="%%flykernel",
        add_help=False,
        description="Run the cell. Every launch of a @flyc.jit function in it is shown: the stages of its compilation, "
        "its registers and occupancy, its machine code.",
    )
    parser.add_argument("--arch", metavar="ARCH", help="show the code for another target, such as gfx950")
    parser.add_argument("--help", action="store_true", help="show this text and run nothing")
    return parser


class CellFailed(Exception):
    """Ends a cell whose error is on the page already."""

    def _render_traceback_(self) -> list[str]:
        return [str(self)]


def flykernel(shell: Any, line: str, cell: str) -> None:
    """Run a cell in the user's namespace and show its launches. line: the magic's options."""
    parser = _parser()
    options = parser.parse_args(_split(line))
    if options.help:
        print(parser.format_help())
        return
    arch = get_arch(options.arch).name if options.arch else None
    with capture_launches() as launches:
        # The magic's own line stays in the count, so line numbers are those of the cell on the page.
        result = shell.run_cell("\n" + cell, store_history=False)
    for launch in launches:
        show_launch(launch, arch)
    error = result.error_before_exec or result.error_in_exec
    if error is not None:
        raise CellFailed(f"%%flykernel: the cell ended with {type(error).__name__}, shown above")
    if not launches:
        print("%%flykernel: the cell ran, and launched no kernel. Call a @flyc.jit function to see its compilation.")


def _split(line: str) -> list[str]:
    try:
        return shlex.split(line)
    except ValueError as error:
        raise ArgumentError(f"%%flykernel {line}: {error}") from None


def show_launch(launch: Launch, arch: str | None = None) -> None:
    """Show one launch: its pipeline, resources and ISA. arch: a target to compile it for, by default its own."""
    try:
        pipeline = launch.pipeline if arch is None else launch.function.lower(*launch.arguments, arch=arch)
        artifact = pipeline.artifact
    except FlyError as error:
        display(HTML(f"<pre>{escape(str(error))}</pre>"))
        return
    display(_Report(pipeline, artifact))


class _Report:
    """What a cell shows of one compilation."""

    def __init__(self, pipeline: Pipeline, artifact: CompiledArtifact) -> None:
        self.pipeline = pipeline
        self.artifact = artifact

    def _repr_html_(self) -> str:
        return f"<div>{pipeline_html(self.pipeline)}{artifact_html(self.artifact)}</div>"

    def __repr__(self) -> str:
        lines: Sequence[str] = [f"{k.name}: {k.resources}, {k.occupancy}" for k in self.artifact.kernels]
        return "\n".join([repr(self.pipeline), *lines, self.artifact.isa])
