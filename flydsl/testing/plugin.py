"""The plugin of pytest: GPUs, checks, and figures of kernels. It loads nothing of the compiler until a test asks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from flydsl.arch import Arch
    from flydsl.testing.figures import KernelFigures

_IMPROVED = "better figures"
"""The property of a test's report with the figures that are better than those that are kept."""


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("flydsl", "kernels of FlyDSL")
    group.addoption("--gpu", action="append", metavar="GPUS", default=[],
                    help="run tests with the fixture `gpu` on these, such as mi300x,mi355x, or all")  # fmt: skip
    group.addoption("--pose", action="store_true",
                    help='in tests with the fixture `gpu`, torch has this GPU: tensors may be on "cuda"')  # fmt: skip
    group.addoption("--check", action="append", metavar="CHECKS", default=[],
                    help="check the launches of all tests: races,index,..., or all")  # fmt: skip
    group.addoption("--update-figures", action="store_true", help="write the figures that `kernel_figures` compares")
    parser.addini("gpus", "the GPUs of tests with the fixture `gpu`, where --gpu names none", type="args", default=[])


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "gpus(*names): the GPUs that the test is for, by product or architecture")
    config.addinivalue_line("markers", "check(*names): check the test's launches; without names by all checks")


# --- GPUs


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run each test that asks for `gpu` once for each GPU."""
    if "gpu" not in metafunc.fixturenames:
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


@pytest.fixture
def gpu(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Arch]:
    """The GPU that CPU tensors run on in this test: see `--gpu`, the ini option `gpus` and the mark `gpus`.

    With `--pose` it is torch's GPU, and tensors on "cuda" run on it as well.
    """
    from flydsl.arch import get_arch

    arch = get_arch(request.param)
    if not arch.instruction_sets:
        pytest.skip(f"the simulator does not execute {arch.name}")
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
    if names is None and "gpu" not in getattr(item, "fixturenames", ()):
        return (yield)
    from flydsl.errors import ArchError
    from flydsl.simulator import checking

    try:
        with nullcontext() if names is None else checking(*names):
            return (yield)
    except ArchError as error:
        if "gpu" in getattr(item, "fixturenames", ()):
            pytest.skip(error.message)
        raise


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
def kernel_figures(request: pytest.FixtureRequest) -> Callable[..., list[KernelFigures]]:
    """`kernel_figures(launcher, *args)` calls the launcher, and compares its kernels' figures with the last ones.

    They are in a file beside the test, `test_x.figures.txt`, which `pytest --update-figures` writes. The test fails
    where one is worse than there, registers by anything, time by more than 3 %, and where there are none yet.
    """
    config, test = request.config, request.node.originalname
    seen: Counter[str] = Counter()

    def measure_and_compare(launcher: Callable[..., Any], *args: Any, **options: Any) -> list[KernelFigures]:
        from flydsl.testing import baseline
        from flydsl.testing.figures import measure

        found = measure(lambda: launcher(*args, **options))
        sections = {}
        for figures in found:
            seen[figures.kernel] += 1
            sections[baseline.heading(_with_parameters(request), figures, seen[figures.kernel])] = figures
        place = baseline.place_of(request.path)
        if config.getoption("update_figures"):
            baseline.write(place, {name: figures.values for name, figures in sections.items()})
        else:
            improved = _compare(place.name, baseline.read(place), sections)
            request.node.user_properties += [(_IMPROVED, text) for text in improved]
        return found

    assert test
    return measure_and_compare


def _with_parameters(request: pytest.FixtureRequest) -> str:
    """The test's name with the parameters besides the GPU, which the heading has."""
    callspec = getattr(request.node, "callspec", None)
    others = [str(value) for name, value in callspec.params.items() if name != "gpu"] if callspec else []
    return request.node.originalname + (f"[{'-'.join(others)}]" if others else "")


def _compare(file: str, known: dict[str, dict[str, float]], now: dict[str, KernelFigures]) -> list[str]:
    """Fail for a figure that is worse. Return those that are better, in words."""
    from flydsl.testing.baseline import compare

    improved = []
    for name, figures in now.items():
        if name not in known:
            pytest.fail(f"{file} has no figures of {name}\npytest --update-figures writes them", pytrace=False)
        changes = compare(known[name], figures.values)
        worse = [change for change in changes if change.is_worse]
        if worse:
            lines = [f"{figures.kernel} on {figures.arch} is worse than in {file}: {worse[0]}", *map(str, worse[1:])]
            better = [str(change) for change in changes if not change.is_worse]
            lines += ["better, or within its tolerance:", *better] if better else []
            pytest.fail("\n  ".join(lines) + "\nif this is meant: pytest --update-figures", pytrace=False)
        improved += [f"{name}: {change}" for change in changes]
    return improved


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Tell of figures that are better than those in the files."""
    passed = terminalreporter.stats.get("passed", [])
    improved = [text for report in passed for name, text in report.user_properties if name == _IMPROVED]
    if improved:
        terminalreporter.section("better figures than are kept: --update-figures takes them over")
        terminalreporter.write("\n".join(improved) + "\n")
