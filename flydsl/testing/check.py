"""`workbench check path/`: every case of every module of kernels on every GPU, without tests.

A case is compiled, launched under checks, compared with its reference, and measured. What a module lacks is found, too.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

from flydsl import env
from flydsl.errors import ArchError, ArgumentError, FlyError
from flydsl.testing import baseline
from flydsl.testing.cases import Case, launched_in, reached_from
from flydsl.testing.difference import Difference
from flydsl.testing.figures import KernelFigures, measure
from flydsl.testing.gpus import arch_names

CHECKS = ("races", "index", "uninitialized")
"""The checks by default."""


@dataclass(frozen=True)
class Outcome:
    """The end of one case on one GPU, or of what a module lacks. state: "ok", "failed" or "skipped".

    text: why it failed or was skipped. better: the figures that are better than those that are kept.
    """

    module: str
    case: str
    arch: str
    state: str
    text: str = ""
    figures: tuple[KernelFigures, ...] = field(default=(), repr=False)
    better: tuple[str, ...] = ()

    def __str__(self) -> str:
        """A line, or for a failure several."""
        where = f"{self.module}: {self.case} on {self.arch}" if self.arch else f"{self.module}: {self.case}"
        if self.state == "ok":
            return f"{where}: ok, {'; '.join(map(_short, self.figures))}"
        return f"{where}: {self.state}, {self.text}"


def _short(figures: KernelFigures) -> str:
    """The figures that people look at."""
    names = ("vgprs", "sgprs", "lds_bytes", "waves_per_simd", "time_us")
    return ", ".join(f"{name} {figures.values[name]:g}" for name in names if name in figures.values)


@dataclass(frozen=True)
class Checker:
    """A check of modules. gpus, checks: see the command. shapes: how many of SHAPES at most; None for all.

    cases_in: a folder with the cases of modules, in files of the same names; None if the modules have them.
    update: whether figures are written rather than compared.
    """

    gpus: Sequence[str] = ("all",)
    checks: Sequence[str] = CHECKS
    shapes: int | None = None
    cases_in: Path | None = None
    update: bool = False

    def check(self, path: Path) -> Iterator[Outcome]:
        """The outcomes of a module, or of those in a folder, as they come."""
        modules = [(file, load(file)) for file in modules_in(path)]
        launched: list[Any] = []
        for file, module in modules:
            source = self._source_of_cases(file, module)
            yield from missing_parts(module, source)
            if source is not None and hasattr(module, "SHAPES"):
                yield from self._of_module(file, module, source, launched)
        covered = {id(function) for first in launched for function in reached_from(first)}
        for _, module in modules:
            for name, function in launched_in(module).items():
                if id(function) not in covered:
                    yield Outcome(module.__name__, name, "", "failed", "no case launches it")

    def _source_of_cases(self, file: Path, module: ModuleType) -> Any:
        """The module with the function `cases`; None without one."""
        if hasattr(module, "cases"):
            return module
        other = self.cases_in / file.name if self.cases_in is not None else None
        return load(other) if other is not None and other.is_file() else None

    def _of_module(self, file: Path, module: ModuleType, source: Any, launched: list[Any]) -> Iterator[Outcome]:
        measured: dict[str, KernelFigures] = {}
        for arch in arch_names(self.gpus):
            for shape in module.SHAPES[: self.shapes]:
                for case, title in self._cases(source, shape, arch):
                    if isinstance(case, str):
                        yield Outcome(module.__name__, title, arch, "failed", case)
                        continue
                    launched.append(case.launcher)
                    if case.gpus and arch not in arch_names(case.gpus):
                        continue
                    outcome = self._of_case(file, module, case, title, arch)
                    measured.update(_sections(outcome))
                    yield outcome
        if self.update and measured:
            baseline.write(baseline.place_of(file), measured)

    def _cases(self, source: Any, shape: Any, arch: str) -> Iterator[tuple[Case | str, str]]:
        """The cases of a shape, with random numbers that do not depend on others, and what each is called.

        An error in the place of cases that cannot be made, as text.
        """
        from flydsl.sweeps.point import seeded

        values = shape if isinstance(shape, tuple | list) else (shape,)
        try:
            with seeded(0), env.replaced({"FLYDSL_GPU_ARCH": arch}):
                found = list(source.cases(*values))
        except Exception as error:  # noqa: BLE001 - whatever a module does wrong, the others are checked
            yield f"{type(error).__name__}: {error}", f"cases{tuple(values)}"
            return
        for case in found:
            yield case, f"{case.title} {tuple(values)}"

    def _of_case(self, file: Path, module: ModuleType, case: Case, title: str, arch: str) -> Outcome:
        def ended(state: str, text: str, *rest: Any) -> Outcome:
            return Outcome(module.__name__, title, arch, state, text, *rest)

        try:
            with env.replaced({"FLYDSL_GPU_ARCH": arch}):
                found = tuple(self._run(case, getattr(module, "reference", None)))
        except ArchError as error:
            return ended("skipped", error.message)
        except FlyError as error:
            return ended("failed", f"{type(error).__name__}: {error}")
        except Exception as error:  # noqa: BLE001 - whatever a case does wrong, the others are checked
            return ended("failed", f"{type(error).__name__}: {error}")
        outcome = ended("ok", "", found)
        return outcome if self.update else _compared(outcome, baseline.place_of(file))

    def _run(self, case: Case, reference: Callable[..., Any] | None) -> list[KernelFigures]:
        from flydsl.simulator import checking
        from flydsl.simulator.checks import no_checks

        results = case.results(reference)
        with checking(*self.checks) if self.checks else no_checks():
            found = measure(lambda: case.launcher(*case.operands.values()), Path.cwd())
        case.compare(results)
        return found


def _sections(outcome: Outcome) -> dict[str, KernelFigures]:
    """The figures of an outcome by the headings of their sections."""
    numbers: dict[str, int] = {}
    found = {}
    for figures in outcome.figures:
        numbers[figures.kernel] = numbers.get(figures.kernel, 0) + 1
        found[baseline.heading(outcome.case, figures, numbers[figures.kernel])] = figures
    return found


def _compared(outcome: Outcome, place: Path) -> Outcome:
    """The outcome with what the file of figures says of it; where there is none, as it is."""
    known, worse, better = baseline.read(place), [], []
    for name, figures in _sections(outcome).items():
        changes = baseline.compare(known.get(name, figures.values), figures.values)
        better += [str(change) for change in changes if change.is_better]
        if any(change.is_worse for change in changes):
            code = baseline.find_code(place, name)
            worse.append(Difference(figures.kernel, figures.arch, place.name, changes, code, figures.code))
    state = "failed" if worse else outcome.state
    return Outcome(
        outcome.module, outcome.case, outcome.arch, state, "\n".join(map(str, worse)), outcome.figures, tuple(better)
    )


def missing_parts(module: ModuleType, source: Any) -> Iterator[Outcome]:
    """The parts that a module of kernels lacks. Without SHAPES and cases it is no module of kernels."""
    if source is None and not hasattr(module, "SHAPES"):
        return
    if source is None:
        yield Outcome(module.__name__, "SHAPES", "", "failed", "no cases(*shape) says how a shape is launched")
    elif not getattr(module, "SHAPES", ()):
        yield Outcome(module.__name__, "cases", "", "failed", "the module has no SHAPES")


def modules_in(path: Path) -> list[Path]:
    """The files of the modules in a folder and those below it, or the file itself. Raises ArgumentError for none."""
    if path.is_file() and path.suffix == ".py":
        return [path]
    found = [file for file in sorted(path.rglob("*.py")) if not file.name.startswith(("_", "test_", "conftest"))]
    if not found:
        raise ArgumentError(f"{path}: there is no module of Python", hint="give a file, or a folder with some")
    return found


def load(file: Path) -> ModuleType:
    """Import a module by its file: by its name in its package, where it is in one."""
    file = file.resolve()
    root, parts = file.parent, [file.stem]
    while (root / "__init__.py").is_file():
        parts.insert(0, root.name)
        root = root.parent
    name = ".".join(parts)
    known = sys.modules.get(name)
    if known is not None and Path(str(getattr(known, "__file__", ""))).resolve() == file:
        return known
    if str(root) not in sys.path:
        sys.path.insert(0, str(root))
    found = importlib.import_module(name)
    if Path(str(found.__file__)).resolve() != file:
        raise ArgumentError(
            f"{file} is hidden by {found.__file__}, which has the same name", hint="put it into a package of its own"
        )
    return found
