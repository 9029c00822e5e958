"""A plugin of pytest: `--report-html FOLDER` writes a page for each test of kernels that fails, and a list of them."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from flydsl.testing.failures import uses

if TYPE_CHECKING:
    from flydsl.compiler import Launch

_PAGE = "page"
"""The property of a report that names its page."""
_LAUNCHES: pytest.StashKey[Sequence[Launch]] = pytest.StashKey()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("flydsl")
    group.addoption("--report-html", metavar="FOLDER", type=Path,
                    help="write a page for each test of kernels that fails: its code, before and now")  # fmt: skip


def pytest_configure(config: pytest.Config) -> None:
    folder = config.getoption("report_html")
    if folder is not None:
        config.pluginmanager.register(Pages((config.invocation_params.dir / folder).resolve()))


class Pages:
    """The pages of a run. With several processes, each writes its own, and the first one the list."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._written: dict[str, str] = {}
        folder.mkdir(parents=True, exist_ok=True)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, None, None]:
        """Keep the launches of a test of kernels."""
        if not uses(item, "gpu", "kernel_figures"):
            return (yield)
        from flydsl.compiler import capture_launches

        with capture_launches(with_stages=False) as launches:
            item.stash[_LAUNCHES] = launches
            return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        if report.when == "call" and report.failed and _LAUNCHES in item.stash:
            from flydsl.testing.plugin import DIFFERENCES
            from workbench.failed_test import write_page

            differences = item.stash.get(DIFFERENCES, [])
            page = write_page(self._folder, item.nodeid, report.longreprtext, differences, item.stash[_LAUNCHES])
            report.user_properties.append((_PAGE, page.name))
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        page = dict(report.user_properties).get(_PAGE)
        if report.when == "call" and isinstance(page, str):
            self._written[report.nodeid] = page

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Write the list of the pages, and say where it is."""
        from workbench.kit.html import escape
        from workbench.kit.static_page import static_page

        items = [f'<li><a href="{escape(page)}">{escape(test)}</a></li>' for test, page in self._written.items()]
        body = f"<ul>{''.join(items)}</ul>" if items else "<p>No test of kernels failed.</p>"
        index = self._folder / "index.html"
        index.write_text(static_page("Tests that failed", body), encoding="utf-8")
        terminalreporter.write_line(f"pages of {len(items)} failed tests: {index}")
