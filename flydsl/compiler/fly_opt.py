"""`fly-opt`: run passes on a module in a file.

    fly-opt --fly-canonicalize --fly-layout-lowering input.mlir
    fly-opt --canonicalize --pass-pipeline='gpu.module(cse)' - -o out.mlir < input.mlir

Passes run in the order given. Upstream passes can be named, too. Parsing and passes run in a forked process, so a
failed assertion of MLIR is an error like any other; so is a pass that takes longer than `--time-limit`. Ctrl-C ends
both processes.

Text that FlyDSL writes at any stage of its pipeline is accepted, and printed in the same form with these exceptions:

| FlyDSL prints | fly-opt prints | reason |
|---|---|---|
| `fly.make_int_tuple()` and `fly.make_layout` after fly-canonicalize | `fly.static : !fly.layout<...>` | one line, with the layout in it |
| `!fly.ptr<f32,global>` in some types | `!fly.ptr<f32, global>` | one form for each type |
| `copy_atom_call_ssa` of one value as `f32` | `vector<1xf32>` from our passes; `f32` stays | one rule for all widths |
| `copy_atom_call_ssa` with the old value and a predicate | the call in an `scf.if` | what the lowering needs |
| register tensors as one vector, `ub.poison` before its first store | a vector for each part that accesses divide, zeros | LLVM could conclude from poison that a path is never taken |
| buffer pointers as `!llvm.struct<(ptr<8>, i32)>` | the resource; offsets go into each instruction | no struct to take apart |
| `arith.index_cast` around offsets | an `i32` or `i64` as it is; nothing for an offset of 0 | shorter |
| `llvm.getelementptr ...[0]`, of `llvm.mlir.addressof` or of a register tensor | the address | the same pointer |
| the parts of a vector read and inserted in turn, into `ub.poison` | all are read first, then inserted into zeros | LLVM could conclude from poison that a path is never taken |
| `llvm.load -> vector<2xi32>` of eight 8-bit values for a matrix instruction, `vector<16xi16>` of bf16 | `vector<8xi8>`, `vector<16xbf16>` and `llvm.bitcast` | the type that the memory was written as |
| an atom's values put into an `llvm.struct` and taken out | each value by itself | shorter |
| `llvm.mlir.global external @__dynamic_shared__` that only unused pointers need | nothing | it has no effect |
| after convert-fly-to-rocdl, pointers and registers that nothing uses | nothing | they have no effect |
| `copy_atom_call_ssa` from registers to registers | `ptr.load`, `ptr.store` | no memory is accessed |
| packed structs with the dynamic parts alone | with an empty struct for a static part; the same bytes | one index per part |
| `llvm.extractvalue` of a part, then of its leaf | one `llvm.extractvalue ...[0, 0]` | shorter |
| `math` operations that a device library computes, after convert-fly-to-rocdl | intrinsics and formulas | no library is linked |
| `math` in f64 that the device library has | an error that names the operation | the same |
| register tensors of `f4E2M1FN` | of `i32`, after fly-layout-lowering | elements are packed, and moved by words |
| `universal_copy` of several values whose stride is not 1, as if it were | an error | the wrong elements would move |
| `llvm.load` and `llvm.store` of vectors without alignment | `{alignment = 4 : i64}` | LLVM would assume a vector's own |
| one `llvm.getelementptr` for accesses of one place | one each | LLVM finds those that are equal |
| `@__dynamic_shared_0` | `@__dynamic_shared__` | there is one in a module |
| errors in its own words | in ours, with the line | they say what to do, too |
| `rocdl.mfma ..., 0, 0, 0` (a later LLVM) | with constants `%c0_i32` | LLVM 22's form |
| `copy_atom_call` on a tensor of more values than the atom moves | an error | what is left out would go unnoticed |
| operands of `mma_atom_call_ssa` of more values than the instruction takes | an error | the same |
| matrix operands of `ui8` | an error: `i8`, with `signA` and `signB` false | values have no sign |
| `make_int_tuple` of an `i64` as `<?>` | an error: its type is `<?{i64}>` | the type says how wide it is |
| composed layouts `a o m o b o n o c` without brackets | `a o m o [b o n o c]`, both are read | one form for each |
| in old text, `zipped_product` and others zipped mode by mode | an error: the result is that of FlyDSL 0.2.2 | one meaning |

`convert-fly-to-rocdl` on text that has calls on tensors, or tensors as arguments, lowers those first. If FlyDSL's
text states a less precise type than inference finds, such as `(?,?)` for `(1,0)`, the stated type is kept.
Unsupported: pointers with a swizzle (`!fly.ptr<f16, shared, S<3,3,3>>`), to which FlyDSL's decomposition leads;
functions that take buffer tensors; coordinate tensors. `--split-input-file` treats the parts between lines `// -----`
one by one.
"""  # noqa: E501

from __future__ import annotations

import argparse
import linecache
import os
import re
import signal
import sys
import time
import warnings
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import NamedTuple, TypeAlias

from mlir import ir
from mlir.passmanager import PassManager

from flydsl.arch import DEFAULT_ARCH, Arch, get_arch
from flydsl.atoms import CopyOp, MmaOp
from flydsl.codegen.isolate import ProcessEndedError, run_isolated
from flydsl.dialect.context import context, lock
from flydsl.dialect.location import source_location
from flydsl.dialect.text import TEXT, generic_form, parse_module, to_text, written_form, written_place
from flydsl.dialect.types import CopyAtomType, MmaAtomType, TiledCopyType, TiledMmaType, fly_type, split_top_level
from flydsl.dialect.walk import operations
from flydsl.errors import CompileError, FlyError, SourceLocation, did_you_mean
from flydsl.passes import PASSES

_OPTIONS = ("help", "arch", "mlir-print-debuginfo", "split-input-file", "time-limit")
_SPLIT = re.compile(r"^// -----[^\n]*$", re.MULTILINE)
_INTERRUPTED = 130  # a shell's exit status for a process that Ctrl-C has ended

_STDERR = 2
_LONGEST_LIMIT_S = 1e6
_MARK = "fly-opt is at step "
_READING = -1
_WORDS = re.compile(r"Assertion [`'](?P<assertion>.+)' failed|LLVM ERROR: (?P<error>.+)")
_MOST_WORDS = 300  # characters of what MLIR said at its end


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command. Returns the exit status: 0, 1 after printing an error to stderr, or 130 after Ctrl-C."""
    steps, rest = _split(sys.argv[1:] if arguments is None else arguments)
    options = _parser().parse_args(rest)
    try:
        text = sys.stdin.read() if options.input == "-" else Path(options.input).read_text(encoding="utf-8")
        name = "<stdin>" if options.input == "-" else options.input
        arch, limit_s = options.arch and get_arch(options.arch), options.time_limit
        parts = _parts(text) if options.split_input_file else [text]
        locations = options.mlir_print_debuginfo
        results = [run(part, steps, arch, locations=locations, name=name, time_limit_s=limit_s) for part in parts]
        result = "\n\n// -----\n".join(results)
        if options.output == "-":
            print(result)
        else:
            Path(options.output).write_text(result + "\n", encoding="utf-8")
    except OSError as error:
        print(f"fly-opt: {error.filename}: {error.strerror}", file=sys.stderr)
        return 1
    except (FlyError, UnicodeDecodeError) as error:
        print(f"fly-opt: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return _INTERRUPTED
    return 0


def _parts(text: str) -> list[str]:
    """The parts of a text between the lines that split it, each at its own lines.

    >>> _parts("a\\n// -----\\nb")
    ['a\\n', '\\n\\nb']
    """
    starts = [0, *(match.end() for match in _SPLIT.finditer(text))]
    ends = [*(match.start() for match in _SPLIT.finditer(text)), len(text)]
    return ["\n" * text.count("\n", 0, start) + text[start:end] for start, end in zip(starts, ends, strict=True)]


def run(
    text: str,
    steps: Sequence[str],
    arch: Arch | None = None,
    *,
    locations: bool = False,
    name: str = "<mlir>",
    time_limit_s: float | None = None,
) -> str:
    """The module in `text` after the passes, as text. Raises CompileError, with the place in the text.

    steps: names of passes, or pipelines in MLIR's syntax. They run in a forked process, so your own passes cannot
    change the state of this one. name: the text's name in errors. time_limit_s: seconds after which parsing and passes
    are stopped, with an error that names the step.

    >>> print(run("func.func @f() { %0 = fly.static : !fly.layout<4:1> return }", ["fly-canonicalize"]))
    module {
      func.func @f() {
        return
      }
    }
    """
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)  # for the excerpts of errors
    passes = passes_of(steps)
    context()  # made here, once
    started_s = time.monotonic()
    try:
        outcome, _ = run_isolated(lambda: _limited(text, passes, arch, locations, time_limit_s), lock=lock)
    except ProcessEndedError as error:
        if time_limit_s is not None and time.monotonic() - started_s >= time_limit_s:
            raise _too_long(error.output, passes, time_limit_s) from None
        raise _ended(error.output, text, passes, name) from None
    result, noted = outcome
    for note in noted:
        warnings.warn_explicit(note.message, UserWarning, name if note.file == TEXT else note.file, note.line)
    if isinstance(result, FlyError):
        if result.at is not None and result.at.file == TEXT:
            result.at = SourceLocation(name, result.at.line, result.at.column, result.at.end_column)
        raise result
    return result


class _Noted(NamedTuple):
    """A warning, with its place in the text."""

    message: str
    file: str
    line: int


_Outcome: TypeAlias = tuple[str | FlyError, list[_Noted]]


def _limited(text: str, passes: Sequence[str], arch: Arch | None, locations: bool, limit_s: float | None) -> _Outcome:
    """The result of `_outcome`. The process is ended if it takes longer than the limit."""
    if limit_s is not None:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)  # in C++ too: no handler of Python's would run there
        signal.setitimer(signal.ITIMER_REAL, limit_s)
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always", UserWarning)
        result = _outcome(text, passes, arch, locations)
    return result, [_Noted(str(note.message), note.filename, note.lineno) for note in found]


def _outcome(text: str, passes: Sequence[str], arch: Arch | None, locations: bool) -> str | FlyError:
    """The text or the error, with a mark on stderr before each step. This part runs isolated."""
    try:
        _mark(_READING)
        module = parse_module(text)
        with lock, context(), ir.Location.unknown():
            _run_passes(module, passes, arch, text)
            return to_text(module, locations=locations).rstrip()
    except FlyError as error:
        # Some libraries (tblib, which Dask loads) have errors take along what they came from: MLIR's cannot be sent.
        error.__context__ = error.__cause__ = None
        return error


def _run_passes(module: ir.Module, passes: Sequence[str], arch: Arch | None, text: str) -> None:
    arch = arch or _arch_of(module, text)
    for number, name in enumerate(passes):
        _mark(number)
        try:
            run_pass(module.operation, name, arch)
        except FlyError as error:
            error.at = written_place(error.at, text, generic_form(text))
            raise


_TARGET = re.compile(r'#rocdl\.target<[^>]*chip = "(\w+)"')


def _arch_of(module: ir.Module, text: str) -> Arch:
    """The target that a module names; else the default if it has all its instructions, else the first that has."""
    if named := _TARGET.search(text):
        return get_arch(named[1])
    allowed = [archs for op in _instructions(module) if (archs := op.archs) is not None]
    fitting = [name for name in dict.fromkeys(chain(*allowed)) if all(name in archs for archs in allowed)]
    return DEFAULT_ARCH if not fitting or DEFAULT_ARCH.name in fitting else get_arch(fitting[0])


def _instructions(module: ir.Module) -> Iterator[CopyOp | MmaOp]:
    """The copy and matrix instructions that a module's values name."""
    kinds = {value.type for op in operations(module.operation) for value in (*op.operands, *op.results)}
    for kind in map(fly_type, kinds):
        atom = kind.atom if isinstance(kind, TiledCopyType | TiledMmaType) else kind
        if isinstance(atom, CopyAtomType | MmaAtomType):
            yield atom.op


def _mark(step: int) -> None:
    os.write(_STDERR, f"{_MARK}{step}\n".encode())


def _ended(output: str, text: str, passes: Sequence[str], name: str) -> CompileError:
    """The error for a process that MLIR aborted, from its output on stderr."""
    step, said = _reached(output)
    match = _WORDS.search(said)
    words = (match["assertion"] or match["error"]) if match else said.strip()
    what = f"MLIR ended its process: {words[:_MOST_WORDS] or 'it crashed without a word'}"
    if step != _READING:
        return CompileError(
            f"{passes[step]}: {what}", hint="omit the pass, or find out which operation of the module it fails on"
        )
    line = _line_that_ends_the_process(text)
    return CompileError(f"reading the text: {what}", at=SourceLocation(name, line), hint="correct this line")


def _too_long(output: str, passes: Sequence[str], limit_s: float) -> CompileError:
    """The error for a process that was ended at its time limit."""
    step, _ = _reached(output)
    what = "reading the text" if step == _READING else passes[step]
    return CompileError(f"{what}: it did not end within {limit_s:g} s", hint="pass a longer --time-limit, or none")


def _reached(output: str) -> tuple[int, str]:
    """The step that a process had reached when it ended, and its output on stderr since that step began."""
    *_, last = output.rpartition(_MARK)
    number, _, said = last.partition("\n")
    return int(number) if number.lstrip("-").isdigit() else _READING, said


def _line_that_ends_the_process(text: str) -> int:
    """The number of the line up to which MLIR can read the text."""
    lines = text.splitlines(keepends=True)
    good, bad = 0, len(lines)
    while bad - good > 1:
        middle = (good + bad) // 2
        try:
            run_isolated(lambda: _outcome("".join(lines[:middle]), (), DEFAULT_ARCH, False), lock=lock)  # noqa: B023
            good = middle
        except ProcessEndedError:
            bad = middle
    return bad


def passes_of(pipelines: Sequence[str]) -> list[str]:
    """The passes, in order, of pipelines in MLIR's syntax.

    >>> passes_of(["builtin.module(fly-canonicalize,gpu.module(cse,canonicalize))"])
    ['fly-canonicalize', 'gpu.module(cse,canonicalize)']
    """
    return [part for pipeline in pipelines for part in split_top_level(_unwrapped(pipeline))]


def _unwrapped(pipeline: str) -> str:
    """A pipeline without `builtin.module(...)` around it."""
    inner = pipeline.removeprefix("builtin.module(")
    return pipeline if inner == pipeline else inner.removesuffix(")")


def run_pass(module: ir.Operation, name: str, arch: Arch) -> None:
    """Run a fly pass, or MLIR's own, on a module. Raises CompileError where it fails."""
    if name in PASSES:
        PASSES[name].apply(module, arch)
        if not module.verify():
            raise CompileError(f"{name} left a module that does not verify")
        return
    try:
        manager = PassManager.parse(f"builtin.module({name})")
    except ValueError as error:
        said = str(error).partition("error: ")[2].partition("\n")[0]
        raise CompileError(
            f"{name!r} is not a pass{': ' if said else ''}{said}",
            hint=f"{did_you_mean(name, PASSES)}fly-opt --help lists the fly passes",
        ) from None
    try:
        manager.run(module)
    except ir.MLIRError as error:
        first = error.error_diagnostics[0] if error.error_diagnostics else None
        at = source_location(first.location) if first else None
        raise CompileError(f"{name}: {written_form(first.message if first else str(error))}", at=at) from None


def _split(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """Passes and pipelines in order, and the other arguments."""
    steps: list[str] = []
    rest: list[str] = []
    for argument in arguments:
        name, _, value = argument.removeprefix("--").partition("=")
        if not argument.startswith("--") or name in _OPTIONS:
            rest.append(argument)
        else:
            steps.append(value if name == "pass-pipeline" else argument[2:])
    return steps, rest


def _parser() -> argparse.ArgumentParser:
    passes = "\n".join(f"  --{name}\n        {_summary(name)}" for name in PASSES)
    parser = argparse.ArgumentParser(
        prog="fly-opt",
        usage="fly-opt [--PASS ...] [--pass-pipeline=PIPELINE] [options] input",
        description="Run passes on an MLIR module in the fly dialect's written form, and print the result.",
        epilog=f"passes, run in the order given (every upstream MLIR pass can be named too):\n{passes}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("input", help="the file to read, - for stdin")
    parser.add_argument("-o", dest="output", default="-", metavar="FILE", help="the file to write (default: stdout)")
    parser.add_argument(
        "--arch",
        help=f"target architecture (default: the module's, or one with its instructions, \
{DEFAULT_ARCH.name} if it can be)",
    )
    parser.add_argument(
        "--time-limit", type=_seconds, metavar="SECONDS", help="end reading and passes after this time (default: none)"
    )
    parser.add_argument(
        "--split-input-file", action="store_true", help="treat the parts between lines `// -----` one by one"
    )
    parser.add_argument("--mlir-print-debuginfo", action="store_true", help="print the location of every operation")
    return parser


def _seconds(text: str) -> float:
    """Read a time limit; argparse turns a ValueError into its message."""
    value = float(text)
    if not 0 < value < _LONGEST_LIMIT_S:
        raise ValueError(text)
    return value


def _summary(name: str) -> str:
    """The first line of a pass's docstring, without its name."""
    return (PASSES[name].__doc__ or "").partition("\n")[0].removeprefix(f"{name}: ")


if __name__ == "__main__":
    sys.exit(main())
