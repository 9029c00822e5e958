"""Run a program as if there were a GPU: `python -m flydsl.gpu mi300x script.py --rows 4096`."""

from __future__ import annotations

import argparse
import runpy
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path

from flydsl.errors import ArgumentError, DeviceError, FlyError
from flydsl.errors.places import treat_as_library


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return the exit status: that of the program, 1 for an error of FlyDSL's."""
    parser = argparse.ArgumentParser(
        prog="python -m flydsl.gpu",
        description='Run a Python program in which torch has an AMD GPU: tensors on "cuda" are in host memory, and '
        "kernels run on the simulator.",
    )
    add_options(parser, gpu_is_option=False)
    options = parser.parse_args(with_report_file(sys.argv[1:] if arguments is None else arguments))
    treat_as_library(sys.argv[0])
    try:
        return run_program(options)
    except FlyError as error:
        print(f"flydsl.gpu: {error}", file=sys.stderr)
        return 1


def add_options(parser: argparse.ArgumentParser, *, gpu_is_option: bool) -> None:
    """The options of running a program, here and of `workbench run`."""
    names = 'a product, such as mi300x or "RX 9070 XT", or an architecture'
    if gpu_is_option:
        parser.add_argument(
            "--gpu", default="mi300x", help=f"{names}, or local, the one that is there; default: mi300x"
        )
    else:
        parser.add_argument("gpu", help=names)
    parser.add_argument("--count", type=int, default=1, help="how many of them there are; default: 1")
    parser.add_argument("--check", metavar="CHECKS", help="checks around the program, such as races,index, or all")
    parser.add_argument(
        "--report", metavar="FILE.html", nargs="?", const="",
        help="print the kernels with their times at the end, or write them as a page",
    )  # fmt: skip
    parser.add_argument("--trace", metavar="FILE", help="write the kernels over time, for Perfetto")
    parser.add_argument("-m", dest="is_module", action="store_true", help="the program is a module, as for python -m")
    parser.add_argument("program", help="a Python file, or with -m a module")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="its arguments")


def with_report_file(arguments: Sequence[str]) -> list[str]:
    """The words of a command, of which a file behind `--report` is one with it. The program's words stay as they are.

    >>> with_report_file(["run", "--report", "x.html", "a.py"]), with_report_file(["mi300x", "--report", "a.py", "1"])
    (['run', '--report=x.html', 'a.py'], ['mi300x', '--report=', 'a.py', '1'])
    """
    words, place, before_program = list(arguments), 0, 1
    while place < len(words) and (words[place].startswith("-") or before_program):
        before_program -= not words[place].startswith("-")
        if words[place] == "--report":
            file = words.pop(place + 1) if any(map(_is_page, words[place + 1 : place + 2])) else ""
            words[place] = f"--report={file}"
        place += 2 if words[place] in _WITH_VALUES else 1
    return words


_WITH_VALUES = ("--gpu", "--count", "--check", "--trace")


def _is_page(word: str) -> bool:
    return word.endswith((".html", ".htm"))


WritePage = Callable[[Path, str], None]
"""Writes the report of the posed GPU as a page: its path, and the program."""


def run_program(options: argparse.Namespace, write_page: WritePage | None = None) -> int:
    """Run the program of some options with a GPU. Raises FlyError for a name that is wrong, and for its errors.

    write_page: what writes a report that is to be a page.
    """
    if options.report and (write_page is None or not _is_page(options.report)):
        raise ArgumentError(
            f"--report must be an HTML file of workbench run, got {options.report}",
            hint="run workbench run --report report.html",
        )
    if not options.is_module and not Path(options.program).is_file():
        raise ArgumentError(f"{options.program}: there is no such file", hint="pass -m before the name of a module")
    argv, path = sys.argv, sys.path[0]
    sys.argv = [options.program, *options.arguments]
    try:
        with _gpu(options, write_page):
            if options.is_module:
                sys.path[0] = ""
                runpy.run_module(options.program, run_name="__main__", alter_sys=True)
            else:
                sys.path[0] = str(Path(options.program).parent)
                runpy.run_path(options.program, run_name="__main__")
    except SystemExit as end:
        return _status(end)
    finally:
        sys.argv, sys.path[0] = argv, path
    return 0


@contextmanager
def _gpu(options: argparse.Namespace, write_page: WritePage | None) -> Iterator[None]:
    """The GPU of some options, with the checks, the report and the trace that they ask for."""
    from flydsl import gpu
    from flydsl.simulator import checking

    # Now, as the program may go to another folder.
    page, trace = (Path(name or "").resolve() for name in (options.report, options.trace))
    if options.gpu == "local":
        _require_local(options)
        with gpu.local() if options.report is not None else nullcontext():
            try:
                yield
            finally:
                _report(options, page, write_page)
        return
    chosen = () if options.check in (None, "all") else tuple(options.check.split(","))
    with gpu.pose(options.gpu, options.count), checking(*chosen) if options.check else nullcontext():
        profile = gpu.Profile()
        if options.report is not None or options.trace:
            profile.start()
        try:
            yield
        finally:
            _report(options, page, write_page)
            if options.trace:
                profile.export_chrome_trace(str(trace))


def _report(options: argparse.Namespace, page: Path, write_page: WritePage | None) -> None:
    """Print the report, or write it as a page, if it is asked for."""
    from flydsl import gpu

    if options.report == "":
        print(gpu.report())
    elif options.report and write_page is not None:
        write_page(page, options.program)


def _require_local(options: argparse.Namespace) -> None:
    """Raise DeviceError if torch has no GPU, ArgumentError for options that only the simulator has an answer to."""
    import torch

    if options.check or options.trace:
        raise ArgumentError("--check and --trace need the simulator", hint="name a GPU to simulate: --gpu mi300x")
    if not torch.cuda.is_available():
        raise DeviceError("torch has no GPU here", hint="simulate one with --gpu mi300x")


def _status(end: SystemExit) -> int:
    """The exit status of a program that ends itself."""
    if isinstance(end.code, str):
        print(end.code, file=sys.stderr)
        return 1
    return end.code or 0


if __name__ == "__main__":
    sys.exit(main())
