"""Results of tests that need not run again, as nothing that they depend on has changed since.

A test is known by its function with all that it refers to, such as kernels and launchers, as whole artifacts on disk
are (`flydsl.compiler.caching.fingerprint`), its fixtures and parameters, its file, the configuration of pytest, the
GPU and the checks, and this package with its tools. Beside its result lies what it read from outside, environment and
files, which is compared. What cannot be compared runs. They are kept in the cache folder, where all processes find
them.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flydsl import env
from flydsl.system.disk_cache import RecordFolder

if TYPE_CHECKING:
    import pytest

    from flydsl.compiler.caching.observation import Observation

_MAX_BYTES = 16 << 20
_OF_PYTEST = ("PYTEST_", "COV_")


@dataclass(frozen=True)
class Result:
    """The end of a test. reason: why it was skipped, with its place; None if it passed. notes: of its report."""

    reason: tuple[str, int, str] | None
    notes: list[tuple[str, str]]


@dataclass(frozen=True)
class Known:
    """The place of a test's result. variables, modules: the environment before it, and the files that are imported."""

    name: str
    variables: dict[str, str]
    modules: frozenset[str]

    def find(self) -> Result | None:
        """The result that lies there, if all that the test read is as it was."""
        from flydsl.compiler.caching.observation import Observation

        record = _folder().find(self.name)
        try:
            if record is None or not Observation.from_data(record["observation"]).still_holds():
                return None
            reason = record["reason"]
            return Result(
                reason and (reason[0], reason[1], reason[2]), [(name, text) for name, text in record["notes"]]
            )
        except (KeyError, TypeError, ValueError):
            return None

    def keep(self, result: Result, seen: Observation, started_ns: int) -> None:
        """Put a result there. seen: by the test. Files that are newer than its start it wrote itself.

        The source of what was imported before is read for messages; what a test uses of it, its name stands for.
        """
        from flydsl.compiler.caching.observation import file_state

        read = {name: value for name, value in seen.variables.items() if not name.startswith(_OF_PYTEST)}
        seen.variables = {name: self.variables.get(name) for name in read}
        files = {path: state for path, state in seen.files.items() if path not in self.modules}
        seen.files = {path: state for path, state in files.items() if file_state(path)[0] < started_ns}
        seen.names = None
        record = {"observation": seen.to_data(), "reason": result.reason and list(result.reason)}
        _folder().add(self.name, {**record, "notes": [list(note) for note in result.notes]})


def place_of(item: pytest.Item, *others: Any) -> Known | None:
    """The place of the result of a test; None if something that it depends on cannot be compared.

    others: what it depends on besides.
    """
    from flydsl.compiler.caching.dependencies import Dependencies
    from flydsl.compiler.caching.fingerprint import Fingerprint, UnknownStateError
    from flydsl.sweeps.state import digest_of_package

    if not env.cache_enabled():
        return None
    used = list(_functions(item))
    found = Fingerprint(Dependencies(used[0], used[1:]).attributes, with_places=False)
    try:
        for function in used:
            found.add(function)
        found.add(_parameters(item))
        found.add([digest_of_package(), *map(content_of, _files(item)), *others])
        variables = env.variables_now()
        found.add(sorted(pair for pair in variables.items() if pair[0].startswith("FLYDSL_") or pair[0] in _OURS))
    except UnknownStateError as error:
        from flydsl.utils.logger import log

        log.info("%s runs again: %s", item.nodeid, error)
        return None
    name = hashlib.sha256(f"{item.nodeid} {found.hexdigest()}".encode()).hexdigest()
    modules = frozenset(str(getattr(module, "__file__", None)) for module in [*sys.modules.values()])
    return Known(name, variables, modules)


_OURS = ("ARCH", "HSA_OVERRIDE_GFX_VERSION", "COMPILE_ONLY")


def _functions(item: Any) -> Iterator[Any]:
    """The function of a test, and those of its fixtures."""
    yield item.function
    for definitions in item._fixtureinfo.name2fixturedefs.values():
        yield from (definition.func for definition in definitions)


def _parameters(item: Any) -> dict[str, Any]:
    return dict(item.callspec.params) if hasattr(item, "callspec") else {}


def _files(item: pytest.Item) -> Iterator[Path]:
    """The test's file, and what configures it: every conftest.py around it, and the file of pytest's options."""
    yield item.path
    if item.config.inipath is not None:
        yield item.config.inipath
    for folder in item.path.parents:
        if (conftest := folder / "conftest.py").is_file():
            yield conftest
        if folder == item.config.rootpath:
            return


def content_of(file: Path) -> str:
    """The digest of a file; "" without one."""
    from flydsl.compiler.caching.observation import content_digest

    return content_digest(str(file)) or ""


def _folder() -> RecordFolder:
    return RecordFolder(env.cache_dir() / "tests", _MAX_BYTES)
