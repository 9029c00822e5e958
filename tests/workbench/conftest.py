"""A shell to run cells in, compilations to look at, and what a view's HTML may contain."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
import torch
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output

from flydsl.compiler import JitFunction, Pipeline

FOLDER_IS_SLOW = True  # they load Jupyter's packages

KERNEL = """\
import torch
import flydsl.compiler as flyc
import flydsl.expr as fx

@flyc.kernel
def add(A: fx.Tensor, B: fx.Tensor, C: fx.Tensor, scale: fx.Constexpr[int]):
    i = fx.block_idx.x * 64 + fx.thread_idx.x  # <script>alert("comment")</script>
    C[i] = A[i] + B[i] * scale

@flyc.jit
def launch(A: fx.Tensor, B: fx.Tensor, C: fx.Tensor, n: fx.Int32, scale: fx.Constexpr[int] = 1):
    add(A, B, C, scale).launch(grid=n // 64, block=64)
"""
TENSORS = "A, B, C = torch.randn(128), torch.randn(128), torch.zeros(128)"


@dataclass
class Outcome:
    """The outcome of a cell. text: everything printed, without colours; shown: the formats of each display."""

    error: BaseException | None
    text: str
    shown: list[dict[str, str]]


class Notebook:
    """Cells in a shell of this process."""

    def __init__(self, shell: InteractiveShell) -> None:
        self.shell = shell

    def run(self, cell: str) -> Outcome:
        with capture_output() as captured:
            result = self.shell.run_cell(cell)
        text = re.sub(r"\x1b\[[0-9;]*m", "", captured.stdout + captured.stderr)
        shown: list[dict[str, str]] = []
        for output in captured.outputs:
            if list(output.data) == ["application/vnd.jupyter.widget-view+json"]:
                shown[-1] |= output.data  # a live view: what was shown before it stands in for it
            else:
                shown.append(dict(output.data))
        return Outcome(result.error_before_exec or result.error_in_exec, text, shown)


@pytest.fixture
def notebook(shell: InteractiveShell) -> Iterator[Notebook]:
    """A notebook in which the kernel above and its tensors are defined."""
    with patch("gc.collect"):  # a reset ends with it, and in a process of this size that takes longer than most tests
        shell.reset()
    shell.user_module.__spec__ = None  # which multiprocessing reads, and a reset takes away
    notebook = Notebook(shell)
    for cell in ("%load_ext workbench", KERNEL, TENSORS):
        outcome = notebook.run(cell)
        assert outcome.error is None, outcome.text
    yield notebook
    notebook.run("%unload_ext workbench")


@pytest.fixture(scope="session")
def launcher(tmp_path_factory: pytest.TempPathFactory) -> JitFunction:
    """The kernel above from a file with HTML in its name."""
    path: Path = tmp_path_factory.mktemp("kernels") / "<script>alert(1)<&script>.py"
    path.write_text(KERNEL)
    namespace: dict[str, Any] = {}
    exec(compile(KERNEL, str(path), "exec"), namespace)
    found: JitFunction = namespace["launch"]
    return found


@pytest.fixture
def tensors() -> tuple[torch.Tensor, ...]:
    return torch.ones(128), torch.ones(128), torch.zeros(128)


@pytest.fixture
def pipeline(launcher: JitFunction, tensors: tuple[torch.Tensor, ...]) -> Pipeline:
    """A pipeline of which nothing has run."""
    return launcher.lower(*tensors, 128)


# What JupyterLab's sanitizer lets through in notebooks that are not trusted, as far as views need it.
_TAGS = {"div", "span", "strong", "em", "code", "pre", "details", "summary"}
_TAGS |= {"a", "ul", "li", "u", "img", "table", "thead", "tbody", "tr", "th", "td", "wbr"}
_VOID_TAGS = {"img", "wbr"}
_ATTRIBUTES = {"style", "open", "title", "alt", "src", "id", "href"}
_STYLES = {
    "background-color",
    "border-collapse",
    "border-left",
    "border-top",
    "color",
    "cursor",
    "display",
    "font-family",
    "font-size",
    "line-height",
}
_STYLES |= {"margin", "margin-left", "max-height", "min-width", "opacity", "overflow", "padding"}
_STYLES |= {"padding-left", "text-align", "text-indent", "vertical-align", "white-space", "width", "max-width"}
_STYLES |= {"word-break", "overflow-wrap"}


@dataclass
class Page(HTMLParser):
    """HTML read back: tags in order and text. Fails at what the sanitizer would remove, and at tags out of place."""

    text: str = ""
    styles: list[str] = field(default_factory=list)
    _open: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        # Of live views, and for paper: they do no harm if they are removed.
        if tag == "style" and attrs in ([("class", "fly-twin")], [("class", "fly-paper")]):
            self._open.append(tag)
            return
        assert tag in _TAGS
        if tag not in _VOID_TAGS:
            self._open.append(tag)
        for name, value in attrs:
            assert name in _ATTRIBUTES
            if name == "src":
                assert (value or "").startswith(("data:image/png;base64,", "data:image/svg+xml;base64,"))
            if name == "href":
                assert (value or "").startswith("#")  # to another part of the same output
            if name == "style":
                self.styles.append(value or "")
                assert not re.search(r"\dch\b", value or "")  # not one of the units that it knows
                assert {part.split(":")[0].strip() for part in (value or "").split(";")} <= _STYLES

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += "" if self._open[-1:] == ["style"] else data

    def handle_comment(self, data: str) -> None:
        pytest.fail(f"a comment in the HTML: {data}")

    def end(self) -> None:
        self.close()
        assert not self._open


@pytest.fixture(scope="session")
def read() -> Callable[[str], Page]:
    """Read HTML, checking that a sanitizer leaves all of it."""

    def read(html: str) -> Page:
        page = Page()
        page.feed(html)
        page.end()
        return page

    return read
