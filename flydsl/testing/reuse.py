"""The part of the plugin behind `--reuse`: tests of unchanged code do not run, and are reported as unchanged."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Literal

import pytest
from _pytest.runner import runtestprotocol

from flydsl.testing.failures import uses

if TYPE_CHECKING:
    from flydsl.testing.remembered import Known, Result

UNCHANGED = "unchanged"
"""The property of a report of a test that did not run."""


class Reuse:
    """The hook that runs tests with this plugin's fixtures, or reports them as unchanged."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
        known = _known(item)
        if known is None:
            return None
        result = known.find()
        item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        if result is None:
            _run(item, nextitem, known)
        else:
            _tell(item, nextitem, result)
        item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        return True

    def pytest_report_teststatus(self, report: pytest.TestReport) -> tuple[str, str, str] | None:
        if report.when == "call" and report.passed and (UNCHANGED, "") in report.user_properties:
            return UNCHANGED, "u", "UNCHANGED"
        return None


def _known(item: pytest.Item) -> Known | None:
    from flydsl.testing.baseline import place_of as file_of_figures
    from flydsl.testing.remembered import content_of, place_of

    config = item.config
    if not uses(item, "gpu", "kernel_figures") or config.getoption("update_figures") or config.getoption("usepdb"):
        return None
    options = [config.getoption(name) for name in ("pose", "check")] + config.getini("figure_tolerances")
    marks = [(mark.name, repr(mark.args), repr(mark.kwargs)) for mark in item.iter_markers()]
    return place_of(item, options, marks, content_of(file_of_figures(item.path)))


def _run(item: pytest.Item, nextitem: pytest.Item | None, known: Known) -> None:
    """Run a test, and keep its result unless it failed."""
    from flydsl.compiler.caching.observation import observed
    from flydsl.testing.remembered import Result

    started_ns = time.time_ns()
    with observed() as seen:
        reports = runtestprotocol(item, nextitem=nextitem)
    skipped: Any = next((report.longrepr for report in reports if report.skipped), None)
    if any(report.failed or hasattr(report, "wasxfail") for report in reports):
        return
    notes = [note for report in reports if report.when == "call" for note in report.user_properties]
    texts = [(name, text) for name, text in notes if isinstance(text, str)]
    known.keep(Result(skipped, texts), seen, started_ns)


def _tell(item: pytest.Item, nextitem: pytest.Item | None, result: Result) -> None:
    """Report a test as it ended when it ran."""
    item.session._setupstate.teardown_exact(nextitem)
    notes = [*result.notes, (UNCHANGED, "")]
    item.user_properties += [note for note in dict.fromkeys(notes) if note not in item.user_properties]
    whens: tuple[Literal["setup"], Literal["call"], Literal["teardown"]] = ("setup", "call", "teardown")
    for when in whens:
        call = pytest.CallInfo.from_call(lambda: None, when=when)
        report = pytest.TestReport.from_item_and_call(item, call)
        if when == "call" and result.reason is not None:
            report.outcome, report.longrepr = "skipped", result.reason
        item.ihook.pytest_runtest_logreport(report=report)
