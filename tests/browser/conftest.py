"""A browser and a JupyterLab, for all tests of this folder. Where there is no browser they are skipped, saying so."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.browser.lab import Lab

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

    from tests.browser.notebook_page import NotebookPage

_CHROMIUM = ("chromium", "chromium-browser", "google-chrome")
_LOOPBACK = "http://127.0.0.1:"
_TIMEOUT_MS = 10_000


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    playwright = pytest.importorskip("playwright.sync_api", reason="no playwright; make setup installs it")
    executable = next(filter(None, map(shutil.which, _CHROMIUM)), None)
    if executable is None:
        pytest.skip(f"no browser: none of {', '.join(_CHROMIUM)} is installed; make browser installs Debian's")
    playwright.expect.set_options(timeout=_TIMEOUT_MS)
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


@pytest.fixture(scope="module")
def new_page(browser: Browser) -> Iterator[Callable[[], Page]]:
    """Make an empty page. At the end: nothing was fetched but from this machine, and no script failed."""
    context = browser.new_context(viewport={"width": 1500, "height": 1000})
    context.set_default_timeout(_TIMEOUT_MS)
    fetched: list[str] = []
    failed: list[str] = []

    def new_page() -> Page:
        page = context.new_page()
        page.on("request", lambda request: fetched.append(request.url))
        page.on("pageerror", lambda error: failed.append(str(error)))
        return page

    yield new_page
    context.close()
    assert [url for url in fetched if not url.startswith((_LOOPBACK, "data:", "blob:", "file:"))] == []
    assert failed == []


@pytest.fixture(scope="module")
def open_notebook(lab: Lab, new_page: Callable[[], Page]) -> Callable[[str], NotebookPage]:
    """Open a notebook of the server in a page of its own."""
    from tests.browser.notebook_page import NotebookPage

    def open_notebook(path: str) -> NotebookPage:
        return NotebookPage(new_page(), lab.url(path))

    return open_notebook


@pytest.fixture(scope="session")
def repository() -> Path:
    return Path(__file__).parents[2]
