"""`%%flykernel`: run a cell and show how each launch in it was compiled. `%flydiff`: compare two compilations."""

from __future__ import annotations

import argparse
import keyword
import re
import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from traceback import walk_stack
from typing import Any, NoReturn

from flydsl import interpreting
from flydsl.arch import ARCHS, DEFAULT_ARCH, Arch, get_arch
from flydsl.binary import capture_binary_launches, open_binary
from flydsl.compiler import Pipeline, capture_launches
from flydsl.compiler.stages import number_of, stages
from flydsl.errors import ArgumentError, FlyError, did_you_mean
from flydsl.errors.places import treat_as_library
from flydsl.runtime.device import target_arch
from workbench.binary_report import binary_reports
from workbench.comparisons import compare
from workbench.foreign_cell import DEFAULT_NAME, LANGUAGES, run_source
from workbench.kit.notebook import IPython, display
from workbench.live_views import explore
from workbench.report import DEFAULT_SECTIONS, SECTIONS, Report, Shown, reports
from workbench.run.targets import Targets
from workbench.stages.comparison import Comparison

_NOTHING_LAUNCHED = (
    "%%flykernel: the cell ran and launched nothing. Call a @flyc.jit function in it to see how it was compiled."
)
_FIRST_STAGE = "the first stage"


class _Parser(argparse.ArgumentParser):
    """An argument parser whose errors are ours; the standard one ends the process."""

    def __init__(self, prog: str, description: str) -> None:
        formatter = partial(argparse.HelpFormatter, width=100)
        super().__init__(prog, None, description, add_help=False, allow_abbrev=False, formatter_class=formatter)

    def error(self, message: str) -> NoReturn:
        unknown = re.match(r"unrecognized arguments: (--[\w-]+)", message)
        suggestion = did_you_mean(unknown[1], self._option_string_actions) if unknown else ""
        raise ArgumentError(
            f"{self.prog}: {message}", hint=f"{suggestion}%{self.prog.lstrip('%')} --help lists the options"
        )


def _flykernel_parser() -> argparse.ArgumentParser:
    parser = _Parser(
        "%%flykernel",
        "Run the cell and show, for every launch of a @flyc.jit function in it, the stages of the "
        "compilation, registers and occupancy, and the machine code. Launches of the same compiled code are shown "
        "once. After an error what was launched before it is shown, of a compilation that failed the stages up to "
        "the one that did, and the notebook stops.",
    )
    known = ", ".join(arch.name for arch in ARCHS)
    parser.add_argument(
        "--arch",
        metavar="ARCH[,ARCH...]",
        help=f"compile the launches for another target and show that, or for several, side by side; with --show run or "
        f"trace, launch copies of the arguments there: {known}",
    )
    parser.add_argument(
        "--show",
        metavar="SECTION,...",
        default=",".join(DEFAULT_SECTIONS),
        help=f"what to show: {', '.join(SECTIONS)}; by default {', '.join(DEFAULT_SECTIONS)}. "
        "For run, the first launch of each compilation is counted, if it is on the simulator; it takes up to 1.5 "
        "times as long then. For trace, it is timed by the simulator's model, which takes some seconds",
    )
    parser.add_argument("--stage", metavar="STAGE", help="show what that stage did, by a pass's name or a number")
    parser.add_argument(
        "--step",
        metavar="STAGE",
        nargs="?",
        const=_FIRST_STAGE,
        help="stop every launch before that stage (of --stage, or the first one, where none is named) and run nothing; "
        "go on with .step() and .run() of what --name binds",
    )
    parser.add_argument(
        "--name", metavar="NAME", help="bind the pipeline to a variable; a list of them where there are several"
    )
    parser.add_argument(
        "--interpret",
        action="store_true",
        help="run the launches as Python and show nothing: breakpoint() in a kernel and the debugger's breakpoints "
        "stop with the values of all lanes; after an error %%debug looks at them",
    )
    _add_other_compilers(parser)
    _add_form(parser)
    parser.add_argument("--help", action="store_true", help="show this text and run nothing")
    return parser


def _flydiff_parser() -> argparse.ArgumentParser:
    parser = _Parser(
        "%flydiff",
        "Compare two pipelines, artifacts, stages or texts: resources and every stage of two "
        "compilations, or the lines of two stages. Names of values and locations are no difference. Of two traces, "
        "times, utilisation, stalls and lines.",
    )
    parser.add_argument(
        "before", nargs="?", help="an expression of the notebook, such as p, p[3] or 'p[\"canonicalize\"]'"
    )
    parser.add_argument("after", nargs="?", help="another one")
    parser.add_argument(
        "--stage", metavar="STAGE", help="of two pipelines, compare that stage; with --live, that one first"
    )
    _add_form(parser)
    parser.add_argument("--help", action="store_true", help="show this text")
    return parser


def _add_other_compilers(parser: argparse.ArgumentParser) -> None:
    """The options of code that another compiler made, or makes of the cell."""
    parser.add_argument(
        "--hsaco",
        metavar="FILE",
        help="open a code object that any compiler made, with its assembly beside it (.s), and bind it to --name, by "
        "default `module`; the cell then launches its kernels, module.add(x, y, 1000, grid=4, block=256)",
    )
    parser.add_argument(
        "--language",
        choices=sorted(LANGUAGES),
        help="the cell is a source text in that language, which is compiled and bound to --name, by default `module`",
    )
    parser.add_argument(
        "--options", metavar="OPTIONS", default="", help='of that compiler, such as --options="-O1 -DTILE=16"'
    )
    parser.add_argument(
        "--call",
        metavar="EXPRESSION",
        help='with --language: Python that runs then, such as --call "module.add(x, y, 1000, grid=4, block=256)"',
    )


def _add_form(parser: argparse.ArgumentParser) -> None:
    """The two forms. Static is the default: a widget is gone when a saved notebook is opened without its kernel."""
    forms = parser.add_mutually_exclusive_group()
    forms.add_argument("--live", action="store_true", help="with controls, which work as long as the kernel runs")
    forms.add_argument(
        "--static", action="store_true", help="without controls; stays in a saved notebook (the default)"
    )


def register_magics(shell: Any) -> None:
    """Add `%%flykernel`, `%flydiff` and `%gpu`, and `%flykernel` with --help or --hsaco, which need no cell.

    IPython runs no cell magic on an empty cell.
    """

    def cell_magic(line: str, cell: str | None = None) -> None:
        if cell is None and not any(word.startswith(("--help", "--hsaco")) for word in line.split()):
            raise ArgumentError("%flykernel without a cell", hint="begin the cell with %%flykernel")
        with _interruptible("%%flykernel"):
            flykernel(shell, line, cell or "")

    def line_magic(line: str) -> None:
        with _interruptible("%flydiff"):
            flydiff(shell, line)

    treat_as_library(str(Path(IPython.__file__).parent))  # what it calls for the cell is the cell's line
    cell_magic.__doc__ = _flykernel_parser().format_help()
    line_magic.__doc__ = _flydiff_parser().format_help()
    shell.register_magic_function(cell_magic, "line_cell", "flykernel")
    shell.register_magic_function(line_magic, "line", "flydiff")
    shell.register_magic_function(gpu, "line", "gpu")


def unregister_magics(shell: Any) -> None:
    """Take them away again."""
    for kind, name in (("cell", "flykernel"), ("line", "flykernel"), ("line", "flydiff"), ("line", "gpu")):
        del shell.magics_manager.magics[kind][name]


def gpu(line: str) -> None:
    """Let a GPU pose as torch's, so that tensors may be on "cuda": `%gpu mi300x`, `%gpu mi300x 8`; `%gpu off` ends it.

    `%gpu` alone says which one does. The kernels run on the simulator.
    """
    from flydsl.gpu import off, posed, use  # brings torch

    words = line.split()
    if not words or words == ["off"]:
        if words:
            off()
    elif len(words) > 1 and words[-1].isdecimal():
        use(" ".join(words[:-1]), int(words[-1]))
    else:
        use(" ".join(words))
    product = posed()
    print(f"{product.name} ({product.arch}), on the simulator" if product else "no GPU is posed")


def flydiff(shell: Any, line: str) -> None:
    """Show the comparison of two expressions.

    Raises ArgumentError for bad options, objects of other kinds, and --live for objects without a live view.
    """
    options = _flydiff_parser().parse_args(_words("%flydiff", line))
    if options.help:
        print(_flydiff_parser().format_help())
        return
    if options.before is None or options.after is None:
        raise ArgumentError(
            "%flydiff compares two things", hint="%flydiff p q, %flydiff p[3] p[5], or %flydiff p q --stage cse"
        )
    before, after = (_value(shell, text) for text in (options.before, options.after))
    stage = _stage(options.stage)
    if options.live:
        comparison = compare(before, after)
        shown = {"stage": stage} if isinstance(comparison, Comparison) else {}
        display(explore(comparison, **shown))
    else:
        display(compare(before, after, stage))


def _value(shell: Any, text: str) -> Any:
    """Evaluate an expression in the user's namespace."""
    try:
        return shell.ev(text)
    except FlyError:
        raise
    except (NameError, SyntaxError, AttributeError, LookupError, TypeError) as error:
        raise ArgumentError(
            f"%flydiff {text}: {type(error).__name__}: {error}",
            hint="a variable, or an expression in quotes if it has quotes or spaces in it: 'p[\"cse\"]'",
        ) from None


def flykernel(shell: Any, line: str, cell: str) -> None:
    """Run a cell in the user's namespace and show its launches. line: the magic's options.

    Raises CellFailed, named and rendered as the cell's own error; ArgumentError and ArchError for bad options, before
    anything runs; FlyError where compiling for another target fails.
    """
    options = _flykernel_parser().parse_args(_words("%%flykernel", line))
    if options.help:
        print(_flykernel_parser().format_help())
        return
    archs, shown = _archs(options.arch), Shown(_sections(options.show), _stage(options.stage))
    _check_name(options.name)
    _check_foreign(options)
    if options.interpret:
        _interpret(shell, options, f"# %%flykernel {line}\n{cell}")
        return
    if options.language is not None:
        run_source(shell, options, cell, archs, shown.sections)
        return
    if options.hsaco is not None:
        module = open_binary(options.hsaco)
        shell.push({options.name or DEFAULT_NAME: module})
        if not cell.strip():  # nothing is launched, so the program itself is shown
            display(module)
            return
    _check_stages(archs[0] or DEFAULT_ARCH, options)
    trace_only = options.step is not None
    watched = {"counted": "run" in shown.sections, "traced": "trace" in shown.sections}
    watched_here = watched if _show_the_cells_own(archs) else {}
    with (
        capture_launches(trace_only=trace_only, **watched_here) as launches,
        capture_binary_launches(**watched) as binary_launches,
    ):
        failure = _run(shell, f"# %%flykernel {line}\n{cell}")
    if not launches and not binary_launches and failure is None:
        print(_NOTHING_LAUNCHED)
    found = [reports(launches, shown, arch, trace_only=trace_only) for arch in archs]
    if trace_only:
        _stop_all(found, options)
    if options.hsaco is None:
        _bind(shell, options.name, _flat(found))
    _show(found, is_live=options.live)
    for binary_report in binary_reports(binary_launches, shown.sections):
        display(explore(binary_report.launch) if options.live else binary_report)
    failure = failure or next((report.error for report in _flat(found) if report.error), None)
    if failure is not None:
        raise failure


def _interpret(shell: Any, options: argparse.Namespace, cell: str) -> None:
    """Run a cell whose launches are interpreted."""
    others = {"--arch": options.arch, "--step": options.step, "--language": options.language, "--hsaco": options.hsaco}
    for name, given in others.items():
        if given is not None:
            raise ArgumentError(f"%%flykernel: --interpret with {name}", hint="nothing is compiled: omit one of them")
    with interpreting():
        failure = _run(shell, cell)
    if failure is not None:
        raise failure


def _stop_all(found: list[list[Report]], options: argparse.Namespace) -> None:
    """Run every compilation up to the stage that --step names, or --stage where it names none."""
    for report in _flat(found):
        _stop_before(report, _stage(options.stage if options.step == _FIRST_STAGE else options.step))


def _show(found: list[list[Report]], *, is_live: bool) -> None:
    """Each report; of several targets these side by side, and of two their comparison, first."""
    for reports_of_one in zip(*found, strict=True):
        targets = [target for report in reports_of_one if (target := report.target)]
        if len(targets) > 1 and (len(targets) > 2 or any(target.counters for target in targets)):
            display(Targets(reports_of_one[0].launched, targets))
        pipelines = [report.pipeline for report in reports_of_one if report.pipeline is not None]
        if len(pipelines) == 2:
            comparison = compare(*pipelines)
            display(explore(comparison) if is_live else comparison)
        for report in reports_of_one:
            display(report.explore() if is_live else report)


def _flat(found: list[list[Report]]) -> list[Report]:
    """All reports, in the order in which they are shown."""
    return [report for reports_of_one in zip(*found, strict=True) for report in reports_of_one]


def _stop_before(report: Report, stage: str | int | None) -> None:
    """Run a traced pipeline up to the stage before one. If a stage fails on the way, the report shows its error."""
    pipeline = report.pipeline
    if pipeline is None:
        return
    until = 1 if stage is None else pipeline[stage].index
    if until > 1:
        try:
            pipeline.run(until=until - 1)
        except FlyError as error:
            report.error = error


def _bind(shell: Any, name: str | None, found: list[Report]) -> None:
    pipelines = [report.pipeline for report in found if report.pipeline is not None]
    if name is not None and pipelines:
        value: Pipeline | list[Pipeline] = pipelines[0] if len(pipelines) == 1 else pipelines
        shell.push({name: value})


def _archs(text: str | None) -> Sequence[Arch | None]:
    """The targets to show; None is the one that the cell launches for."""
    if text is None:
        return [None]
    names = [name.strip() for name in text.split(",")]
    if "" in names:
        raise ArgumentError(
            f"%%flykernel --arch {text}: a target is missing", hint="--arch ONE, or --arch ONE,OTHER without a space"
        )
    if len(set(names)) < len(names):
        raise ArgumentError(f"%%flykernel --arch {text}: a target twice", hint="name each target once")
    return [get_arch(name) for name in names]


def _show_the_cells_own(archs: Sequence[Arch | None]) -> bool:
    """True if the launches of the cell itself are shown, rather than copies of them on other targets alone."""
    return any(arch is None or arch.name == target_arch("cpu") for arch in archs)


_OTHER_SECTION_NAMES = {
    **dict.fromkeys(("timeline", "time", "waves", "stalls"), "trace"),
    **dict.fromkeys(("asm", "assembly", "sass", "ptx", "code", "llvm"), "isa"),
    **dict.fromkeys(("stages", "passes", "ir", "mlir", "diff", "lines"), "pipeline"),
    **dict.fromkeys(("counters", "profile", "roofline", "stepper"), "run"),
    **dict.fromkeys(("registers", "resources"), "occupancy"),
}


def _sections(text: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(","))
    unknown = [name for name in names if name not in SECTIONS]
    if unknown:
        meant = _OTHER_SECTION_NAMES.get(unknown[0])
        suggestion = f"did you mean {meant}? " if meant else did_you_mean(unknown[0], SECTIONS)
        raise ArgumentError(
            f"%%flykernel --show: no section {unknown[0]!r}", hint=f"{suggestion}they are {', '.join(SECTIONS)}"
        )
    return names


def _check_name(name: str | None) -> None:
    if name is not None and (not name.isidentifier() or keyword.iskeyword(name)):
        raise ArgumentError(f"%%flykernel --name {name}: not a name", hint="give one that Python takes for a variable")


def _check_foreign(options: argparse.Namespace) -> None:
    """Raise ArgumentError for options of other compilers' programs that do not go together."""
    if options.hsaco is not None and options.language is not None:
        raise ArgumentError(
            "%%flykernel with --hsaco and --language", hint="choose one of them: a file, or the cell's source"
        )
    for option in ("options", "call"):
        if getattr(options, option) and options.language is None:
            raise ArgumentError(f"%%flykernel --{option} without --language", hint="--language hip, or opencl")
    if (options.hsaco or options.language) and (options.step or options.stage):
        raise ArgumentError("%%flykernel --step and --stage are for launches of @flyc.jit functions")


def _check_stages(arch: Arch, options: argparse.Namespace) -> None:
    """Raise ArgumentError for an unknown stage, before anything runs."""
    for text in (options.stage, None if options.step == _FIRST_STAGE else options.step):
        stage = _stage(text)
        if stage is not None:
            number_of(stages(arch), stage)


def _stage(text: str | None) -> str | int | None:
    """A stage as a pipeline takes it: its number or a name."""
    return int(text) if text is not None and text.isdigit() else text


def _words(magic: str, line: str) -> list[str]:
    try:
        return shlex.split(line)
    except ValueError as error:
        raise ArgumentError(f"{magic} {line}: {error}", hint="quotes come in pairs") from None


class CellFailed(Exception):
    """An exception raised by a cell, with its text as IPython formats it.

    The text is shown as it is; formatted where the magic ends, it would contain the magic's frames.
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
    with _errors_held_back(shell) as held, _named_as_the_cell(shell):
        result = shell.run_cell(cell, store_history=False)
    error = result.error_before_exec or result.error_in_exec
    return None if error is None else CellFailed.like(error, held)


@contextmanager
def _named_as_the_cell(shell: Any) -> Iterator[None]:
    """In the `with` block, code that the shell runs gets in tracebacks the name of the cell with the magic.

    The shell counts on before it runs a cell, so that it would have the name of the next one.
    """
    files = (frame.f_code.co_filename for frame, _ in walk_stack(None))
    names = (name for name in map(shell.compile.format_code_name, files) if name)
    number = re.search(r"\d+", next(names, ("", ""))[1])
    cache = shell.compile.cache

    def cache_as_the_cell(code: str, count: int = 0, raw_code: str | None = None) -> str:
        return cache(code, int(number[0]) if number else count, raw_code=raw_code)

    shell.compile.cache = cache_as_the_cell
    try:
        yield
    finally:
        shell.compile.cache = cache


@contextmanager
def _interruptible(magic: str) -> Iterator[None]:
    """Ctrl-C while compiling or showing ends the cell, with a line instead of this package's frames."""
    try:
        yield
    except KeyboardInterrupt as error:
        where = f" {error}" if str(error) else ""
        raise CellFailed.like(error, [f"{magic}: interrupted{where}"]) from None


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
