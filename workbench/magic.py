"""`%%flykernel`: run a cell and show how each launch in it was compiled."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

from IPython.display import display

from flydsl.arch import ARCHS, get_arch
from flydsl.compiler import capture_launches
from flydsl.errors import ArgumentError
from workbench.report import reports

_NOTHING_LAUNCHED = (
    "%%flykernel: the cell ran and launched nothing. Call a @flyc.jit function in it to see how it was compiled."
)


class _Parser(argparse.ArgumentParser):
    """An argument parser whose errors are ours; the standard one ends the process."""

    def error(self, message: str) -> NoReturn:
        raise ArgumentError(f"%%flykernel: {message}", hint="%flykernel --help lists the options")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="%%flykernel",
        add_help=False,
        allow_abbrev=False,
        formatter_class=lambda prog: argparse.HelpFormatter(prog, width=100),
        description="Run the cell and show, for every launch of a @flyc.jit function in it, the stages of the "
        "compilation, registers and occupancy, and the machine code. Launches of the same compiled code are shown "
        "once. After an error the launches before it are shown, and the notebook stops.",
    )
    known = ", ".join(arch.name for arch in ARCHS)
    parser.add_argument(
        "--arch", metavar="ARCH", help=f"compile the launches for another target and show that: one of {known}"
    )
    parser.add_argument("--help", action="store_true", help="show this text and run nothing")
    return parser


def register_magics(shell: Any) -> None:
    """Add `%%flykernel` to an IPython shell, and `%flykernel --help`: IPython runs no cell magic on an empty cell."""

    def magic(line: str, cell: str | None = None) -> None:
        if cell is None and "--help" not in line.split():
            raise ArgumentError("%flykernel without a cell", hint="begin the cell with %%flykernel")
        flykernel(shell, line, cell or "")

    magic.__doc__ = _parser().format_help()
    shell.register_magic_function(magic, "line_cell", "flykernel")


def flykernel(shell: Any, line: str, cell: str) -> None:
    """Run a cell in the user's namespace and show its launches. line: the magic's options.

    Raises CellFailed, named and rendered as the cell's own error; ArgumentError and ArchError for bad options, before
    anything runs; FlyError where compiling for another target fails.
    """
    options = _parser().parse_args(_words(line))
    if options.help:
        print(_parser().format_help())
        return
    arch = get_arch(options.arch) if options.arch is not None else None
    with capture_launches() as launches:
        failure = _run(shell, f"# %%flykernel {line}\n{cell}")
    shown = reports(launches, arch)
    for report in shown:
        display(report)
    failure = failure or next((report.error for report in shown if report.error), None)
    if failure is not None:
        raise failure
    if not launches:
        print(_NOTHING_LAUNCHED)


def _words(line: str) -> list[str]:
    try:
        return shlex.split(line)
    except ValueError as error:
        raise ArgumentError(f"%%flykernel {line}: {error}", hint="quotes come in pairs") from None


class CellFailed(Exception):
    """What a cell raised, with the text that IPython made of it.

    It is that text that shows: rendered where the magic ends, it would have the magic's frames in it.
    """

    traceback_lines: list[str]

    @staticmethod
    def like(error: BaseException, traceback_lines: list[str]) -> CellFailed:
        """A failure with the name, message and stack of `error`, so that front ends and `%debug` see that one."""
        name = type(error).__name__
        failed: CellFailed = type(name, (CellFailed,), {})(str(error))
        failed.traceback_lines = traceback_lines or [f"%%flykernel: the cell ended with {name}, shown above"]
        return failed.with_traceback(error.__traceback__)

    def _render_traceback_(self) -> list[str]:
        """IPython's hook."""
        return self.traceback_lines


def _run(shell: Any, cell: str) -> Exception | None:
    """Run a cell as IPython does; its error is returned rather than shown."""
    if shell.should_run_async(cell, transformed_cell=cell):
        raise ArgumentError(
            "%%flykernel does not run cells with `await` at the top level", hint="await in a cell of its own"
        )
    with _errors_held_back(shell) as held:
        result = shell.run_cell(cell, store_history=False)
    error = result.error_before_exec or result.error_in_exec
    return None if error is None else CellFailed.like(error, held)


@contextmanager
def _errors_held_back(shell: Any) -> Iterator[list[str]]:
    """A list that receives the lines of tracebacks which the shell would show inside the `with` block.

    `_showtraceback` is what IPython's front ends override to show them elsewhere.
    """
    lines: list[str] = []

    def hold(kind: type, error: BaseException, rendered: list[str]) -> None:
        lines.extend(rendered)

    shown = shell._showtraceback
    shell._showtraceback = hold
    try:
        yield lines
    finally:
        shell._showtraceback = shown
