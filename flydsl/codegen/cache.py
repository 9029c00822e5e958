"""Compiled code on disk, named by everything that it was made from: the LLVM IR, the target, LLVM, and this package.

So an entry cannot be out of date, whatever happens to the kernels, their surroundings or the passes before it; those
run each time, and show what they do. `FLYDSL_RUNTIME_ENABLE_CACHE=0` turns it off.
"""

from __future__ import annotations

import functools
import hashlib
from pathlib import Path
from typing import Any

import msgpack

from flydsl import env
from flydsl.disk_cache import CacheFolder

_DIGEST_BYTES = 32
_MAX_BYTES = 256 << 20


def key(*inputs: Any) -> str:
    """The cache name of what is made from these texts and numbers."""
    return hashlib.sha256(repr((_toolchain(), *inputs)).encode()).hexdigest()


def find(name: str, fields: tuple[str, ...]) -> dict[str, Any] | None:
    """The fields stored under a name; None unless all of them are intact."""
    data = _folder().read(name) if _enabled() else None
    if data is None or hashlib.sha256(data[_DIGEST_BYTES:]).digest() != data[:_DIGEST_BYTES]:
        return None
    content = msgpack.unpackb(data[_DIGEST_BYTES:])
    return content if isinstance(content, dict) and tuple(content) == fields else None


def add(name: str, content: dict[str, str | bytes]) -> None:
    """Store texts and bytes under a name."""
    if _enabled():
        packed = msgpack.packb(content)
        _folder().write(name, hashlib.sha256(packed).digest() + packed)


def _enabled() -> bool:
    return env.flag("FLYDSL_RUNTIME_ENABLE_CACHE", default=True)


def _folder() -> CacheFolder:
    return CacheFolder(env.cache_dir() / "code", _MAX_BYTES)


@functools.cache
def _toolchain() -> tuple[Any, ...]:
    """LLVM's version, and how this package uses it."""
    from llvmlite.binding import llvm_version_info

    sources = sorted(Path(__file__).parent.glob("*.py"))
    return llvm_version_info, hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()
