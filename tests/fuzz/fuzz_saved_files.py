"""Files that the workbench wrote and somebody changed, with digests that fit: FlyErrors, or what is read is left out.

Saved artifacts, the journals of sweeps and traces. A value becomes one of another kind, is nested, doubled or left out.
"""

from __future__ import annotations

import copy
import json
import random
import tempfile
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.compiler.caching.saved import _MAGIC, from_bytes, to_bytes
from flydsl.errors import FlyError
from flydsl.simulator.timing.rocprofv3 import read_thread_trace
from flydsl.simulator.timing.trace import Trace
from flydsl.sweeps.journal import Journal
from flydsl.system.disk_cache import packed, unpacked
from tests.fuzz.launching import prepare
from tests.fuzz.workers import run_trials
from tests.simulator.timing.rocprof_folder import write_folder
from tests.simulator.timing.synthetic import synthetic

_DEEP = 100_000
_OTHERS: tuple[Any, ...] = (
    None, True, 0, -1, 7, 1 << 40, 1 << 63, -(1 << 63), 1.5, float("inf"), float("nan"), "", "x", "\x00", "é",
    "f32", "v[0:1]", "(" * 5000, [], {}, [[]], [1, "a"], {"a": 1}, [None] * 3, "9" * 5000,
)  # fmt: skip
_LINE = {"key": "a" * 64, "values": {"time_us": 1.5}, "arch": "gfx942", "error": None, "note": None}


def run(seed: int, count: int) -> None:
    """AssertionError with the trials that ended otherwise than they may."""
    _artifact()
    run_trials(trial, seed, count, prepare)


def trial(random_: random.Random) -> None:
    random_.choice((_saved, _saved, _journal, _trace, _rocprofv3))(random_)


def _saved(random_: random.Random) -> None:
    record = unpacked(_artifact()[len(_MAGIC) :])
    assert record is not None
    content = _MAGIC + packed(_changed(record, random_, [b"", b"\x7fELF", bytes(64)]))
    with suppress(FlyError):
        repr(from_bytes(content))
    with suppress(FlyError):
        from_bytes(_flipped(content, random_))


def _journal(random_: random.Random) -> None:
    text = json.dumps(_changed(_LINE, random_))
    lines = [text, "[" * _DEEP, json.dumps(_LINE), "{" * 10, '{"key":' * _DEEP, "9" * 5000]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "sweep.jsonl"
        path.write_bytes(_flipped("\n".join(random_.sample(lines, 3)).encode(), random_))
        with suppress(FlyError):
            Journal(path).close()


def _trace(random_: random.Random) -> None:
    fields = _changed(json.loads(_traced()), random_)
    text = random_.choice((json.dumps(fields), '{"instructions":' * _DEEP))
    with suppress(FlyError):
        found = Trace.from_json(text)
        repr(found), found.to_json()


def _changed(record: dict[str, Any], random_: random.Random, more: list[Any] | None = None) -> Any:
    """A copy with one value, or a few, changed."""
    found = {"all": copy.deepcopy(record)}
    for _ in range(random_.choice((1, 1, 2, 4))):
        holder: Any = found
        while True:
            key = random_.choice(list(holder) if isinstance(holder, dict) else range(len(holder)))
            inside = holder[key]
            if not isinstance(inside, dict | list) or not inside or (holder is not found and random_.random() < 0.25):
                break
            holder = inside
        what = random_.random()
        if what < 0.15 and holder is not found:
            del holder[key]
        elif what < 0.25:
            holder[key] = [inside]
        else:
            holder[key] = copy.deepcopy(random_.choice((*_OTHERS, *(more or ()))))
        if not isinstance(found["all"], dict) or not found["all"]:
            break
    return found["all"] if isinstance(found["all"], dict) else {}


def _flipped(content: bytes, random_: random.Random) -> bytes:
    changed = bytearray(content)
    for _ in range(random_.choice((0, 1, 8))):
        changed[random_.randrange(len(changed))] ^= 1 << random_.randrange(8)
    return bytes(changed[: random_.choice((len(changed), len(changed), random_.randrange(len(changed))))])


@flyc.kernel
def _scale_kernel(a: fx.Tensor, factor: fx.Float32, n: fx.Int32) -> None:
    i = fx.block_idx.x * 64 + fx.thread_idx.x
    if i < n:
        a[i] = a[i] * factor


@flyc.jit
def _scale(a: fx.Tensor, factor: fx.Float32, n: fx.Int32, block: fx.Constexpr = 64) -> None:
    _scale_kernel(a, factor, n).launch(grid=(1, 1, 1), block=(block, 1, 1))


@cache
def _artifact() -> bytes:
    return to_bytes(flyc.compile(_scale, flyc.TensorSpec(fx.Float32, 1), fx.Float32, fx.Int32, arch="gfx942"))


@cache
def _traced() -> str:
    return synthetic(waves=2, iterations=1).to_json()


def _rocprofv3(random_: random.Random) -> None:
    """One of the files has a changed value."""
    with tempfile.TemporaryDirectory() as name:
        folder = write_folder(Path(name), synthetic(waves=2, iterations=1))
        file = random_.choice(sorted(folder.glob("*.json")))
        fields = _changed(json.loads(file.read_text()), random_)
        file.write_text(random_.choice((json.dumps(fields), "[" * _DEEP)))
        with suppress(FlyError):
            read_thread_trace(folder)
