"""Launch what a fuzzer made of a code object or a listing, in both backends."""

from __future__ import annotations

import contextlib
import os
import random
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from flydsl.errors import FlyError
from flydsl.hsaco.data import page_aligned
from flydsl.simulator import checking, counting, limited, load
from flydsl.simulator.arrays import Array
from flydsl.simulator.loading import LoadedModule

_INSTRUCTIONS = 2_000
_ARRAY_BYTES = 8192


def prepare() -> None:
    """Once in every child: caches of its own, one thread, the runtime of native code loaded."""
    from flydsl.simulator.native.library import library

    os.environ["FLYDSL_SIMULATOR_THREADS"] = "1"
    os.environ["FLYDSL_RUNTIME_CACHE_DIR"] = str(Path(tempfile.gettempdir(), f"flydsl-fuzz-{os.getuid()}"))
    warnings.simplefilter("ignore")
    library()


def load_and_launch(code: bytes, listing: str, random_: random.Random, *, checks: bool = False) -> None:
    """AssertionError if anything but a FlyError is raised, or the backends do not agree."""
    try:
        module = load(code, listing, check_listing=checks)
    except FlyError:
        return
    for name in module.kernels:
        waves = random_.choice((1, 1, 1, 1, 2))
        seed = random_.random()
        native, lockstep = (_launch(module, name, waves, seed, backend) for backend in ("native", "lockstep"))
        # What waves do to each other's memory depends on their order, which nobody promises.
        if waves == 1 and not (_differ(native, lockstep) and _differs_by_address(module, name, seed, native)):
            _compare(name, native, lockstep)
        if random_.random() < 0.05:
            _look_closely(module, name, waves, seed)


def _launch(module: LoadedModule, name: str, waves: int, seed: float, backend: str) -> FlyError | list[Array]:
    arrays: list[Array] = []
    arguments = _arguments(module, name, arrays, seed)
    os.environ["FLYDSL_SIMULATOR_BACKEND"] = backend
    try:
        with limited(instructions=_INSTRUCTIONS):
            module.kernel(name).launch((1, 1, 1), (module.program.arch.wave_size * waves, 1, 1), arguments)
    except FlyError as error:
        return error
    return arrays


def _differs_by_address(module: LoadedModule, name: str, seed: float, native: FlyError | list[Array]) -> bool:
    """True if a kernel computes with addresses: native code gives something else where memory lies elsewhere."""
    kept: list[Any] = []
    for size in (1 << 9, 1 << 12, 1 << 15, 1 << 18):
        kept += [bytearray(size), _launch(module, name, 1, seed, "native")]
        if _differ(native, kept[-1]):
            return True
    return False


def _look_closely(module: LoadedModule, name: str, waves: int, seed: float) -> None:
    """What else executes programs: checks, counters, single steps. No errors but FlyErrors, whatever they say."""
    with checking():
        _launch(module, name, waves, seed, "lockstep")
    with counting():
        _launch(module, name, waves, seed, "native")
    arguments = _arguments(module, name, [], seed)
    with contextlib.suppress(FlyError), limited(instructions=_INSTRUCTIONS):
        simulation = module.kernel(name).simulate((1, 1, 1), (module.program.arch.wave_size * waves, 1, 1), arguments)
        simulation.step(5)
        repr(simulation.wave(0)), simulation.where()


def _arguments(module: LoadedModule, name: str, arrays: list[Array], seed: float) -> list[Any]:
    random_ = random.Random(seed)
    return [_argument(size, arrays, random_) for size in (p.size for p in module.kernel(name).parameters)]


def _argument(size: int, arrays: list[Array], random_: random.Random) -> Any:
    if size != 8 or len(arrays) > 4 or random_.random() < 0.05:
        return random_.choice((bytes(size), bytes([1]) + bytes(size - 1))) if 0 < size <= 1 << 16 else b""
    numbers = np.random.default_rng(random_.getrandbits(32)).random(_ARRAY_BYTES // 4, np.float32)
    numbers = numbers.view(np.int32) % 100 if random_.random() < 0.3 else numbers
    # At a page, for the code may make numbers of its address.
    arrays.append(page_aligned(numbers.tobytes()).view(numbers.dtype))
    return arrays[-1]


def _differ(one: FlyError | list[Array], other: FlyError | list[Array]) -> bool:
    if isinstance(one, FlyError) or isinstance(other, FlyError):
        return type(one) is not type(other)
    return any(not np.array_equal(a.view(np.uint32), b.view(np.uint32)) for a, b in zip(one, other, strict=True))


def _compare(name: str, native: FlyError | list[Array], lockstep: FlyError | list[Array]) -> None:
    if isinstance(native, FlyError) or isinstance(lockstep, FlyError):
        assert type(native) is type(lockstep), f"{name}: native code ends with {native!r}, lock-step with {lockstep!r}"
        return
    for i, (got, expected) in enumerate(zip(native, lockstep, strict=True)):
        np.testing.assert_array_equal(got.view(np.uint32), expected.view(np.uint32), f"array {i} of {name} differs")
