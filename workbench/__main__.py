"""The command line: `workbench tour`, `new`, `check kernels/`, `run script.py` and `export script.py page.html`.

Also as `python -m workbench`.
"""

from __future__ import annotations

import argparse
import os
import runpy
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from flydsl.arch import ARCHS
from flydsl.compiler import Launch, Pipeline, capture_launches
from flydsl.errors import ArgumentError, FlyError, SourceLocation
from flydsl.errors.places import treat_as_library
from flydsl.gpu.__main__ import add_options, run_program, with_report_file
from flydsl.testing.check import CHECKS, Checker
from workbench.new_project import can_write_figures, write_figures, write_project
from workbench.page import export
from workbench.program_report import write_program_report
from workbench.tour import copy_notebooks, open_lab


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return the exit status: 1 if something failed, 2 for bad arguments."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    options = _parser().parse_args(with_report_file(words) if words[:1] == ["run"] else words)
    treat_as_library(sys.argv[0])
    try:
        command: Callable[[argparse.Namespace], int] = options.run
        return command(options)
    except FlyError as error:
        print(f"workbench: {error}", file=sys.stderr)
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="workbench", description="Take the tour, run a program, or export what the compiler does."
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    page = commands.add_parser(
        "export",
        help="one HTML page of a whole compilation",
        description="Run a Python script and write one self-contained page of the compilations behind its launches: "
        "every stage and what it changed, every level line by line, machine code, occupancy, and of the first launch "
        "of each what the simulator counted. The page opens from disk. "
        "Where a compilation fails, the page shows how far it came.",
    )
    page.add_argument("script", help="a Python file that calls a @flyc.jit function")
    page.add_argument("page", help="the HTML file to write")
    page.add_argument("--launcher", metavar="NAME", help="only the launches of this function")
    page.add_argument("--arch", choices=[arch.name for arch in ARCHS], help="compile for this target instead")
    page.add_argument("arguments", nargs="*", metavar="-- ARGUMENT", help="arguments of the script, its sys.argv[1:]")
    page.set_defaults(run=_export)
    tour = commands.add_parser(
        "tour",
        help="the tutorial's notebooks, in JupyterLab",
        description="Copy the tutorial's notebooks to a folder and open the first one in JupyterLab. "
        "Notebooks that are already there stay as they are.",
    )
    tour.add_argument("folder", nargs="?", type=Path, default=Path("flydsl-tour"), help="default: flydsl-tour")
    tour.add_argument("--no-browser", action="store_true", help="print the address, and open no browser")
    tour.add_argument("--copy-only", action="store_true", help="copy the notebooks, and do not start JupyterLab")
    tour.set_defaults(run=_tour)
    program = commands.add_parser(
        "run",
        help="a program with a GPU that is not there",
        description='Run a Python program in which torch has an AMD GPU: tensors on "cuda" are in host memory, and '
        "kernels run on the simulator.",
    )
    add_options(program, gpu_is_option=True)
    program.set_defaults(run=lambda options: run_program(options, write_program_report))
    _add_check(commands)
    _add_new(commands)
    return parser


def _add_check(commands: Any) -> None:
    check = commands.add_parser(
        "check",
        help="every kernel of a folder on every GPU, without tests",
        description="For each module with SHAPES and cases(*shape): compile, launch under checks, compare with "
        "reference(...), and measure every case on every GPU. Modules that lack something are found, too. The exit "
        "status is 1 if anything fails.",
    )
    check.add_argument("path", type=Path, nargs="+", help="a Python file, or a folder")
    check.add_argument("--gpu", action="append", metavar="GPUS", help="such as mi300x,rx9070xt; default: all")
    check.add_argument("--check", metavar="CHECKS", default=",".join(CHECKS), help="default: %(default)s")
    check.add_argument("--shapes", type=int, metavar="N", help="only the first N of SHAPES")
    check.add_argument("--cases", type=Path, metavar="FOLDER", help="where the cases are, in files of the same names")
    check.add_argument("--update-figures", action="store_true",
                       help="write the figures beside the modules; those that are there are compared")  # fmt: skip
    check.set_defaults(run=_check)


def _add_new(commands: Any) -> None:
    new = commands.add_parser(
        "new",
        help="a project with a kernel, its tests, and CI",
        description="Write a project: a package with a kernel, its tests on three GPUs, workflows for GitHub and "
        "GitLab, and a hook for pre-commit. Then run the tests, which keeps the kernel's figures.",
    )
    new.add_argument("folder", type=Path, help="a new folder, named as the project will be, such as my-kernels")
    new.add_argument("--no-figures", action="store_true", help="only write the files, and run no tests")
    new.set_defaults(run=_new)


def _check(options: argparse.Namespace) -> int:
    checks = tuple(filter(None, (name.strip() for name in options.check.split(","))))
    checker = Checker(options.gpu or ("all",), checks, options.shapes, options.cases, options.update_figures)
    outcomes: Counter[str] = Counter()
    for path in options.path:
        for outcome in checker.check(path):
            outcomes[outcome.state] += 1
            print(outcome, flush=True)
            for change in outcome.better:
                print(f"  better than is kept, --update-figures takes it over: {change}")
    print(", ".join(f"{outcomes[state]} {state}" for state in ("ok", "failed", "skipped")))
    return 1 if outcomes["failed"] or not outcomes["ok"] else 0


def _new(options: argparse.Namespace) -> int:
    files = write_project(options.folder)
    print(f"{options.folder}: {len(files)} files", flush=True)
    keeps_figures = not options.no_figures and can_write_figures()
    if keeps_figures and not write_figures(options.folder):
        print("workbench: a test failed, so no figures are kept; pytest --update-figures keeps them", file=sys.stderr)
        return 1
    pytest = "pytest" if keeps_figures else "pytest --update-figures  # keeps the figures that later runs compare with"
    print(f"next: cd {options.folder} && pip install -e '.[dev]' && {pytest}")
    return 0


def _tour(options: argparse.Namespace) -> int:
    copied, kept = copy_notebooks(options.folder)
    print(f"{options.folder}: {copied} notebooks copied" + (f", {kept} kept as they were" if kept else ""), flush=True)
    return 0 if options.copy_only else open_lab(options.folder, browser=not options.no_browser)


def _export(options: argparse.Namespace) -> int:
    launches, error = _run(options.script, options.arguments)
    if options.launcher is not None:
        launches = [launch for launch in launches if launch.pipeline.name == options.launcher]
    if not launches and error is not None:
        raise error
    if not launches:
        of = f" of {options.launcher}" if options.launcher else ""
        raise ArgumentError(
            f"{options.script} ran, and there was no launch{of} in it", hint="call a @flyc.jit function"
        )
    written = export(_compilations(launches, options.arch), options.page)
    print(f"wrote {written} ({written.stat().st_size} bytes)")
    if error is not None:
        raise error
    return 0


def _run(script: str, arguments: Sequence[str]) -> tuple[list[Launch], FlyError | None]:
    """The script's launches, and the error of flydsl's that ended it, if any."""
    if not os.path.isfile(script):
        raise ArgumentError(f"{script}: there is no such file", hint="give a Python script that launches a kernel")
    argv, sys.argv = sys.argv, [script, *arguments]
    error: FlyError | None = None
    with capture_launches(counted=True) as launches:
        try:
            runpy.run_path(script, run_name="__main__")
        except FlyError as raised:
            error = raised
        except SyntaxError as raised:
            if raised.filename != script:
                raise
            at = SourceLocation(script, raised.lineno or 1, (raised.offset or 1) - 1)
            raise ArgumentError(f"{script}: {raised.msg}", at=at, hint="pass a Python script") from None
        finally:
            sys.argv = argv
    return launches, error


def _compilations(launches: Sequence[Launch], arch: str | None) -> Sequence[Pipeline | Launch]:
    """Each compilation once, by its first launch, which was counted."""
    found: dict[int, Launch] = {}
    for launch in launches:
        found.setdefault(id(launch.pipeline), launch)
    if arch is None:
        return [launch if launch.pipeline.finished else launch.pipeline for launch in found.values()]
    return [launch.function.lower(*launch.arguments, arch=arch).run() for launch in found.values()]


if __name__ == "__main__":
    sys.exit(main())
