"""Compilations kept in the cache folder, with which a kernel is compared when its figures have become worse.

A compilation is found by the machine code that is stored beside the figures. The folder has it if that code was
compiled here before, when the figures were written or in a test that passed.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from flydsl import env
from flydsl.errors import ArgumentError
from flydsl.system.disk_cache import RecordFolder
from flydsl.testing.code import Code, text_of

if TYPE_CHECKING:
    from flydsl.compiler import CompiledArtifact

_MAX_BYTES = 64 << 20
_FIELD = "artifact"


def keep(code: Code, artifact: CompiledArtifact) -> None:
    """Keep the compilation that some machine code comes from, unless it has values of the program's own classes."""
    from flydsl.compiler.caching.saved import to_bytes

    if not env.cache_enabled() or _folder().find(_name(code)) is not None:
        return
    try:
        content = to_bytes(artifact)
    except ArgumentError:
        return
    _folder().add(_name(code), {_FIELD: content})


def find(code: Code) -> CompiledArtifact | None:
    """The compilation that some machine code comes from; None if the cache folder does not have it."""
    from flydsl.compiler.caching.saved import from_bytes

    record = _folder().find(_name(code)) if env.cache_enabled() else None
    try:
        return None if record is None else from_bytes(record[_FIELD])
    except (KeyError, TypeError, ArgumentError):
        return None


def _name(code: Code) -> str:
    return hashlib.sha256(text_of(code).encode()).hexdigest()


def _folder() -> RecordFolder:
    return RecordFolder(env.cache_dir() / "compilations", _MAX_BYTES)
