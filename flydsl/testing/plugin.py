"""The plugin of pytest: GPUs, checks, and figures of kernels. It loads nothing of the compiler until a test asks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import pytest

from flydsl.testing.failures import begin_with, first_lines, gpu_of, on_some_gpus, uses

if TYPE_CHECKING:
    from flydsl.arch import Arch
    from flydsl.testing.baseline import Sections
    from flydsl.testing.code import Code
    from flydsl.testing.difference import Difference
    from flydsl.testing.figures import KernelFigures
    from flydsl.testing.tolerances import Tolerances

_IMPROVED = "better figures"
"""The property of a test's report with the figures that are better than those that are kept."""
_GPU = "gpu"
_SECONDS = "seconds of {}"
_KINDS = ("compilation", "simulation")

DIFFERENCES: pytest.StashKey[list[Difference]] = pytest.StashKey()
"""The launches of a test whose figures are worse than those that are kept, in `item.stash`."""


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("flydsl", "kernels of FlyDSL")
    group.addoption("--gpu", action="append", metavar="GPUS", default=[],
                    help="run tests with the fixture `gpu` on these, such as mi300x,mi355x, or all")  # fmt: skip
    group.addoption("--pose", action="store_true",
                    help='torch has the GPU of each run, in all tests: tensors may be on "cuda"')  # fmt: skip
    group.addoption("--check", action="append", metavar="CHECKS", default=[],
                    help="check the launches of all tests: races,index,..., or all")  # fmt: skip
    group.addoption("--update-figures", action="store_true", help="write the figures that `kernel_figures` compares")
    group.addoption("--reuse", action="store_true",
                    help="do not run tests of kernels again that passed and have not changed since")  # fmt: skip
    parser.addini("reuse_results", "as with --reuse", type="bool", default=False)
    parser.addini("figure_tolerances", "by how much figures may be worse: time_us = 5%, vgprs = 2", type="linelist")
    parser.addini("gpus", "the GPUs of tests with the fixture `gpu`, where --gpu names none", type="args", default=[])


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "gpus(*names): the GPUs that the test is for, by product or architecture")
    config.addinivalue_line("markers", "tolerances(**figures): by how much figures may be worse: time_us='5%', vgprs=2")
    config.addinivalue_line("markers", "check(*names): check the test's launches; without names by all checks")
    if config.getoption("reuse") or config.getini("reuse_results"):
        from flydsl.testing.reuse import Reuse

        config.pluginmanager.register(Reuse(), "flydsl-reuse")
    if config.getoption("pose"):
        from flydsl.gpu import off, use

        use(_asked(config)[0])  # modules ask for a GPU when they are imported
        config.add_cleanup(off)


def _asked(config: pytest.Config) -> list[str]:
    """The architectures that are asked for; of tests for a GPU that is not there, the one by default."""
    from flydsl.arch import DEFAULT_ARCH
    from flydsl.errors import ArchError
    from flydsl.testing.gpus import arch_names

    try:
        return arch_names(config.getoption("gpu") or config.getini("gpus")) or [DEFAULT_ARCH.name]
    except ArchError as error:
        raise pytest.UsageError(str(error)) from None


# --- GPUs


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run each test that asks for `gpu` once for each GPU; with `--pose` each test."""
    if metafunc.config.getoption("pose") and "gpu" not in metafunc.fixturenames:
        metafunc.fixturenames.append("gpu")
        found = metafunc.definition.session._fixturemanager.getfixturedefs("gpu", metafunc.definition)
        metafunc._arg2fixturedefs["gpu"] = found or ()
    own = metafunc.definition.iter_markers("parametrize")
    if not uses(metafunc.definition, "gpu") or any("gpu" in _names_of(mark) for mark in own):
        return
    from flydsl.arch import DEFAULT_ARCH
    from flydsl.errors import ArchError
    from flydsl.testing.gpus import arch_names

    config, marker = metafunc.config, metafunc.definition.get_closest_marker("gpus")
    try:
        asked = arch_names(config.getoption("gpu") or config.getini("gpus"))
        meant = arch_names(marker.args) if marker else []
    except ArchError as error:
        raise pytest.UsageError(str(error)) from None
    chosen = [arch for arch in asked or meant if arch in (meant or asked)] or ([] if asked else [DEFAULT_ARCH.name])
    if chosen:
        metafunc.parametrize("gpu", chosen, indirect=True)
        return
    reason = f"the test is for {', '.join(meant)}, and the run for {', '.join(asked)}"
    metafunc.parametrize("gpu", [pytest.param(meant[0], marks=pytest.mark.skip(reason=reason))], indirect=True)


def _names_of(mark: pytest.Mark) -> list[str]:
    """The parameters of a mark `parametrize`."""
    names = mark.args[0] if mark.args else mark.kwargs["argnames"]
    return [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)


@pytest.fixture
def gpu(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Arch]:
    """The GPU that CPU tensors run on in this test: see `--gpu`, the ini option `gpus` and the mark `gpus`.

    With `--pose` it is torch's GPU, and tensors on "cuda" run on it as well.
    """
    from flydsl.arch import get_arch

    arch = get_arch(request.param)
    monkeypatch.setenv("FLYDSL_GPU_ARCH", arch.name)
    if not request.config.getoption("pose"):
        yield arch
        return
    from flydsl.gpu import pose

    with pose(arch.name):
        yield arch


# --- checks


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Run a test under the checks that are asked for, and skip it where its GPU lacks what it uses."""
    names = _checks(item)
    if names is None and not _is_of_kernels(item):
        return (yield)
    from flydsl.errors import ArchError
    from flydsl.progress import seconds_by_kind
    from flydsl.simulator import checking

    try:
        with seconds_by_kind() as seconds, nullcontext() if names is None else checking(*names):
            try:
                result = yield
            finally:
                item.user_properties += [(_SECONDS.format(kind), seconds[kind]) for kind in _KINDS]
    except ArchError as error:
        if uses(item, "gpu"):
            pytest.skip(error.message)
        raise
    if worse := item.stash.get(DIFFERENCES, []):
        pytest.fail(_said_of(worse), pytrace=False)
    return result


def _said_of(differences: Iterable[Difference]) -> str:
    return "\n\n".join(map(str, differences)) + "\nif this is meant: pytest --update-figures"


def _is_of_kernels(item: pytest.Item) -> bool:
    return uses(item, "gpu", "kernel_figures")


def _checks(item: pytest.Item) -> list[str] | None:
    """The checks of a test, an empty list for all of them; None if there are to be none."""
    marker = item.get_closest_marker("check")
    asked = [name.strip() for text in item.config.getoption("check") for name in text.split(",") if name.strip()]
    if not asked and marker is None:
        return None
    names = [*asked, *(marker.args if marker else ())]
    return [] if "all" in names or (marker is not None and not marker.args) else names


# --- figures


@pytest.fixture
def kernel_figures(request: pytest.FixtureRequest) -> Iterator[Callable[..., list[KernelFigures]]]:
    """`kernel_figures(launcher, *args)` calls the launcher, and compares its kernels' figures with the last ones.

    They are in a file beside the test, `test_x.figures.txt`, which `pytest --update-figures` writes. The test fails
    where one is worse than there by more than its tolerance (`flydsl.testing.tolerances`, the ini option
    `figure_tolerances` and the mark `tolerances`), at its end: a wrong result comes first. It fails where there are
    none yet, too.
    """
    from flydsl.testing import baseline
    from flydsl.testing.figures import measure

    place, update = baseline.place_of(request.path), request.config.getoption("update_figures")
    tolerances = _tolerances(request)
    measured: dict[str, KernelFigures] = {}
    seen: Counter[str] = Counter()

    def measure_and_compare(launcher: Callable[..., Any], *args: Any, **options: Any) -> list[KernelFigures]:
        __tracebackhide__ = True
        found = measure(lambda: launcher(*args, **options), request.config.rootpath)
        sections = {}
        for figures in found:
            seen[figures.kernel] += 1
            sections[baseline.heading(_with_parameters(request), figures, seen[figures.kernel])] = figures
        measured.update(sections)
        if not update:
            _compare(request.node, baseline.read(place), sections, tolerances)
        return found

    yield measure_and_compare
    if update and measured:
        baseline.write(place, measured)
        for figures in measured.values():
            _keep_compilation(figures, figures.code)


def _keep_compilation(figures: KernelFigures, kept: Code | None) -> None:
    """Have the compilation at hand for `--report-html` when the kernel has become worse. kept: its code in the file."""
    from flydsl.testing import compilations

    if figures.artifact is not None and figures.code == kept:
        compilations.keep(figures.code, figures.artifact)


def _tolerances(request: pytest.FixtureRequest) -> Tolerances:
    """The tolerances of a test: its marks, the nearest first, then the ini option, then those by default."""
    from flydsl.errors import ArgumentError
    from flydsl.testing.tolerances import DEFAULT, listed, tolerance

    try:
        found = {**DEFAULT, **listed(request.config.getini("figure_tolerances"))}
        for mark in reversed([*request.node.iter_markers("tolerances")]):
            found |= {name: tolerance(amount) for name, amount in mark.kwargs.items()}
    except ArgumentError as error:
        raise pytest.UsageError(str(error)) from None
    return found


def _with_parameters(request: pytest.FixtureRequest) -> str:
    """The test's name, after that of its class, with the parameters besides the GPU, which the heading has."""
    node = request.node
    callspec = getattr(node, "callspec", None)
    others = [part for part in callspec.id.split("-") if part != callspec.params.get("gpu")] if callspec else []
    owner = f"{request.cls.__name__}." if request.cls is not None else ""
    return f"{owner}{node.originalname}" + (f"[{'-'.join(others)}]" if others else "")


def _compare(node: Any, known: Sections, now: dict[str, KernelFigures], tolerances: Tolerances) -> None:
    """Note figures that are worse, for which the test fails at its end, and better ones. Fail where none are kept."""
    from flydsl.testing import baseline
    from flydsl.testing.difference import Difference

    place, worse = baseline.place_of(node.path), []
    for name, figures in now.items():
        if name not in known:
            pytest.fail(_said_of_none(place.name, name, known), pytrace=False)
        changes, code = baseline.compare(known[name], figures.values, tolerances), baseline.find_code(place, name)
        _keep_compilation(figures, code)
        if any(change.is_worse for change in changes):
            worse.append(Difference(figures.kernel, figures.arch, place.name, changes, code, figures.code))
        better = [(_IMPROVED, f"{name}: {change}") for change in changes if change.is_better]
        node.user_properties += better
    if worse:
        node.stash.setdefault(DIFFERENCES, []).extend(worse)


def _said_of_none(file: str, name: str, known: Iterable[str]) -> str:
    """The failure of a launch that has no figures in the file; with those of another LLVM, which are not compared."""
    from flydsl.testing import baseline

    others = baseline.other_versions(name, known)
    also = f"\n  it has them for LLVM {', '.join(others)}, whose code is another" if others else ""
    return f"{file} has no figures of {name}{also}\npytest --update-figures writes them"


# --- what is told


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Have the failure of a test of kernels begin with what is wrong, and on which GPU."""
    report = yield
    if not (_is_of_kernels(item) or _checks(item) is not None):
        return report
    if report.failed and call.excinfo is not None and not isinstance(call.excinfo.value, pytest.fail.Exception):
        begin_with(report, first_lines(item, call.excinfo.value))
        if differences := item.stash.get(DIFFERENCES, []):
            report.sections.append(("figures that are worse, too", _said_of(differences)))
    if report.when == "call" and (arch := gpu_of(item)) is not None:
        report.user_properties.append((_GPU, arch))
    return report


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Tell of tests that fail on some GPUs only, of better figures, and of where the time of slow tests went."""
    stats = terminalreporter.stats
    passed = [*stats.get("passed", []), *stats.get("unchanged", [])]
    _tell_of_gpus(terminalreporter, stats.get("failed", []), passed)
    improved = [text for report in passed for name, text in report.user_properties if name == _IMPROVED]
    if improved:
        terminalreporter.section("better figures than are kept: --update-figures takes them over")
        terminalreporter.write("\n".join(dict.fromkeys(improved)) + "\n")
    if config.option.durations is not None:
        _tell_of_time(terminalreporter, [*passed, *stats.get("failed", [])], config.option.durations)


def _tell_of_gpus(terminalreporter: Any, failed: Iterable[Any], passed: Iterable[Any]) -> None:
    def pairs(reports: Iterable[Any]) -> Iterator[tuple[str, str]]:
        for report in reports:
            arch = dict(report.user_properties).get(_GPU)
            if arch is not None:
                yield report.nodeid.replace(f"[{arch}]", "").replace(f"{arch}-", "").replace(f"-{arch}", ""), arch

    lines = on_some_gpus(pairs(failed), pairs(passed))
    if lines:
        terminalreporter.section("on some GPUs only")
        terminalreporter.write("\n".join(lines) + "\n")


def _tell_of_time(terminalreporter: Any, reports: Iterable[Any], count: int) -> None:
    """The slowest tests of kernels, with what they compiled and simulated, as `--durations` asks for them."""
    calls = [report for report in reports if report.when == "call"]
    slowest = sorted(calls, key=lambda report: -report.duration)[: count or None]
    rows = []
    for report in slowest:
        properties = dict(report.user_properties)
        seconds = [properties[name] for kind in _KINDS if (name := _SECONDS.format(kind)) in properties]
        if seconds:
            rest = max(report.duration - sum(seconds), 0.0)
            rows.append("".join(f"{amount:>12.2f}s" for amount in (*seconds, rest)) + f"  {report.nodeid}")
    if rows:
        terminalreporter.section("slowest tests of kernels")
        terminalreporter.write("\n".join(["  compilation   simulation     the rest", *rows]) + "\n")
