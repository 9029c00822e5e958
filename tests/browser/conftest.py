"""A browser and a JupyterLab, for all tests of this folder. Where there is no browser they are skipped, saying so."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest

from tests.browser.lab import CHROMIUM, Lab, find_chromium

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

    from tests.browser.notebook_page import LabPage, NotebookPage

FOLDER_IS_SLOW = True  # each starts a browser

_LOOPBACK = "http://127.0.0.1:"
TIMEOUT_MS = 60_000  # generous: the machine may be busy, and nothing waits longer than it must


class Wire:
    """A browser's profile, and what its pages fetched and which of their scripts failed."""

    def __init__(self, browser: Browser) -> None:
        self.context = browser.new_context(viewport={"width": 1500, "height": 1000})
        self.context.set_default_timeout(TIMEOUT_MS)
        self._fetched: list[str] = []
        self._failed: list[str] = []
        self.context.on("request", lambda request: self._fetched.append(request.url))
        self.context.on("weberror", lambda error: self._failed.append(str(error.error)))

    def check(self) -> None:
        """Nothing was fetched but from this machine, and no script failed, since the last check."""
        fetched, failed = self._fetched[:], self._failed[:]
        self._fetched.clear()
        self._failed.clear()
        assert [url for url in fetched if not url.startswith((_LOOPBACK, "data:", "blob:", "file:"))] == []
        assert failed == []


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    playwright = pytest.importorskip("playwright.sync_api", reason="no playwright; make setup installs it")
    executable = find_chromium()
    if executable is None:
        pytest.skip(f"no browser: none of {', '.join(CHROMIUM)} is installed; make browser installs Debian's")
    playwright.expect.set_options(timeout=TIMEOUT_MS)
    with playwright.sync_playwright() as driver:
        # A sandbox needs rights that containers rarely have. The pages are ours.
        browser = driver.chromium.launch(executable_path=executable, chromium_sandbox=False)
        yield browser
        browser.close()


@pytest.fixture(scope="package")
def lab(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    lab = Lab(tmp_path_factory.mktemp("lab"))
    yield lab
    lab.stop()


@pytest.fixture(scope="package")
def wire(browser: Browser) -> Iterator[Wire]:
    wire = Wire(browser)
    yield wire
    wire.context.close()


@pytest.fixture
def page(wire: Wire) -> Iterator[Page]:
    """An empty page. At the end: nothing was fetched but from this machine, and no script failed."""
    page = wire.context.new_page()
    yield page
    page.close()
    wire.check()


@pytest.fixture(scope="package")
def lab_page(lab: Lab, wire: Wire) -> LabPage:
    """JupyterLab in the browser: loading it is most of what opening a notebook costs, so all tests share one."""
    from tests.browser.notebook_page import LabPage

    return LabPage(wire.context.new_page(), lab.url)


@pytest.fixture(scope="module")
def open_notebook(lab_page: LabPage, wire: Wire) -> Iterator[Callable[[str], NotebookPage]]:
    """Open a notebook of the server. At the end: nothing was fetched but from this machine, and no script failed."""
    yield lab_page.open
    lab_page.close_all()
    wire.check()
