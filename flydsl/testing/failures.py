"""The first lines of a failure, and the sentence about a test that fails on some GPUs only."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pytest

_LINES = 3


def first_lines(item: pytest.Item, error: BaseException) -> list[str]:
    """Three lines that say what is wrong, on which GPU, and where."""
    from flydsl.errors import FlyError
    from flydsl.errors.places import innermost_place

    arch = gpu_of(item)
    said = [line.strip() for line in str(error).splitlines() if line.strip()] or ["no message"]
    where = f" on {arch}" if arch else ""
    lines = [f"{_name(item)} fails{where}: {type(error).__name__}: {said[0]}"]
    if isinstance(error, FlyError):
        at = error.at or innermost_place(error)
        lines += [f"  at {at}: {(at.source_line or '').strip()}".rstrip(": ")] if at is not None else []
        lines += [f"  hint: {error.hint}"] if error.hint else []
        said = error.message.splitlines()
    lines += [f"  {line.strip()}" for line in said[1:]]
    return lines[:_LINES]


def begin_with(report: pytest.TestReport, lines: Iterable[str]) -> None:
    """Put lines before the traceback of a failed test, also in JUnit's file and where another process shows them."""
    from _pytest._code.code import ExceptionChainRepr, ReprEntryNative

    shown = report.longrepr
    if isinstance(shown, ExceptionChainRepr):
        first = shown.chain[0][0]
        text = "".join(f"{line}\n" for line in lines)
        first.reprentries = [ReprEntryNative([text]), *first.reprentries]


def gpu_of(item: Any) -> str | None:
    """The architecture that a test runs on; None without this plugin's fixture `gpu`."""
    return item.callspec.params["gpu"] if uses(item, "gpu") else None


def uses(item: Any, *fixtures: str) -> bool:
    """True if a test has one of these fixtures, and it is this plugin's rather than one of its own of that name."""
    known = getattr(getattr(item, "_fixtureinfo", None), "name2fixturedefs", {})
    found = (known[name][-1].func for name in fixtures if known.get(name))
    return any(function.__module__ == "flydsl.testing.plugin" for function in found)


def _name(item: Any) -> str:
    return getattr(item, "originalname", None) or item.name


def on_some_gpus(failed: Iterable[tuple[str, str]], passed: Iterable[tuple[str, str]]) -> list[str]:
    """Sentences about tests that fail on some GPUs and pass on others. The pairs: of test and GPU.

    >>> on_some_gpus([("test_a.py::test_a", "gfx1201")], [("test_a.py::test_a", "gfx942"), ("test_b.py::b", "gfx942")])
    ['test_a.py::test_a fails on gfx1201, and passes on gfx942']
    """
    by_test: dict[str, tuple[list[str], list[str]]] = {}
    for which, pairs in enumerate((failed, passed)):
        for test, arch in pairs:
            by_test.setdefault(test, ([], []))[which].append(arch)
    return [
        f"{test} fails on {', '.join(bad)}, and passes on {', '.join(good)}"
        for test, (bad, good) in by_test.items()
        if bad and good
    ]
