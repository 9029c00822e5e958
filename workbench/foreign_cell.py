"""A cell of `%%flykernel --language`: its text is a source of another language, compiled and shown."""

from __future__ import annotations

import argparse
import linecache
import shlex
from collections.abc import Callable, Sequence
from typing import Any

from flydsl.arch import Arch
from flydsl.binary import BinaryModule, capture_binary_launches, compile_hip, compile_opencl
from flydsl.errors import ArgumentError, FlyError
from workbench.binary_report import BinaryReport, binary_reports
from workbench.kit.notebook import display
from workbench.live_views import explore

DEFAULT_NAME = "module"
_CALL = "--call"
# The names of languages for --language, and what compiles them.
LANGUAGES: dict[str, Callable[..., BinaryModule]] = {"hip": compile_hip, "opencl": compile_opencl}


def run_source(
    shell: Any, options: argparse.Namespace, source: str, archs: Sequence[Arch | None], sections: Sequence[str]
) -> None:
    """Compile a cell's text, bind the module (for the first of two targets), run --call, and show.

    Raises CompileError at the cell's line, ArgumentError for bad options, and what --call raises.
    """
    # The first line of the cell is the magic's; lines count as the front end shows them.
    text = f"\n{source}"
    name = shell.compile.cache(text, shell.execution_count)
    words = _words(options.options)
    modules = [LANGUAGES[options.language](text, arch=arch, options=words, name=name) for arch in archs]
    shell.push({options.name or DEFAULT_NAME: modules[0]})
    launches = []
    try:
        if options.call is not None:
            with capture_binary_launches(counted="run" in sections, traced="trace" in sections) as launches:
                _call(shell, options.call)
    finally:
        for module in modules[1 if launches else 0 :]:
            display(BinaryReport(module, [], sections))
        for report in binary_reports(launches, sections):
            display(explore(report.launch) if options.live else report)


def _call(shell: Any, text: str) -> None:
    """Run --call. It is no line of the cell's, so what Python says of it is one message."""
    linecache.cache[_CALL] = len(text), None, [text], _CALL  # for errors
    try:
        shell.ev(compile(text.strip(), _CALL, "eval"))
    except FlyError:
        raise
    except (NameError, SyntaxError, AttributeError, LookupError, TypeError) as error:
        raise ArgumentError(f"%%flykernel --call {text}: {type(error).__name__}: {error}") from None


def _words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError as error:
        raise ArgumentError(f"%%flykernel --options {text}: {error}", hint="quotes come in pairs") from None
