"""Digests of what a result depends on, the same in every process and in a restarted notebook."""

from __future__ import annotations

import functools
import hashlib
import sys
from pathlib import Path
from typing import Any

from flydsl.errors import ArgumentError

_PACKAGE = Path(__file__).parents[1]


def digest_of(value: Any, what: str) -> str:
    """The digest of a value, of functions with all that they use. Raises ArgumentError if it does not say its state.

    what: what the error calls it.
    """
    from flydsl.compiler.caching.dependencies import Dependencies
    from flydsl.compiler.caching.fingerprint import Fingerprint, UnknownStateError

    found = Fingerprint(Dependencies(_nothing, [value]).attributes, with_places=False)
    try:
        found.add(value)
        return found.hexdigest()
    except UnknownStateError as error:
        raise ArgumentError(
            f"{what} cannot be told apart from one of another process: {error}",
            hint="create tensors and open files inside `arguments`, or omit path=",
        ) from None


def _nothing() -> None:
    """A function without surroundings."""


@functools.cache
def digest_of_package() -> str:
    """The digest of this package's files, of Python and of the tools that compile."""
    import llvmlite

    digest = hashlib.sha256(f"{sys.version} {llvmlite.__version__}".encode())
    for file in sorted(path for suffix in ("py", "c", "h") for path in _PACKAGE.rglob(f"*.{suffix}")):
        digest.update(f"{file.relative_to(_PACKAGE)}\n".encode() + file.read_bytes())
    return digest.hexdigest()
