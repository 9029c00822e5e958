"""`flydsl.sweep`: run every point, keep what is found, return the table."""

from __future__ import annotations

import hashlib
from bisect import bisect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from flydsl import env
from flydsl.errors import ArgumentError
from flydsl.sweeps.config import Config
from flydsl.sweeps.journal import Journal
from flydsl.sweeps.point import SweepJob
from flydsl.sweeps.row import Row, cell_text
from flydsl.sweeps.space import Configs, Launchers, Point, Shapes, check_parameters, named, points
from flydsl.sweeps.table import Table
from flydsl.sweeps.workers import RETRIES, Lost, MakesExecutor, results

Progress = Callable[[Table], None]
_default_progress: Progress | None = None
_ONE_CONFIG = (Config(),)


def show_progress_with(progress: Progress | None) -> None:
    """Have every later sweep that is given no `progress` call this one: the notebook extension draws with it."""
    global _default_progress
    _default_progress = progress


def sweep(
    launchers: Launchers,
    configs: Configs = _ONE_CONFIG,
    shapes: Shapes = ({},),
    *,
    arguments: Callable[..., Mapping[str, Any] | Sequence[Any]] | None = None,
    archs: Sequence[str] | str | None = None,
    check: Callable[..., Any] | None = None,
    launch: bool = True,
    executor: MakesExecutor | None = None,
    path: str | Path | None = None,
    seed: int = 0,
    retries: int = RETRIES,
    progress: Progress | None = None,
) -> Table:
    """The table of every launcher with every configuration, shape and architecture: what each takes and how long.

        table = flydsl.sweep(scale, {"block": [64, 128, 256]}, {"n": [1000, 4096]}, arguments=tensors)

    launchers: a @flyc.jit function, or a function that calls some; several in a list, or in a dict by name.
    configs: `flydsl.Config` objects, or the values of each parameter, to be taken in all combinations.
    shapes: dicts, or the values of each name likewise.
    arguments: called with a shape's values, returns the arguments of a launch, by name or in order, without those of
    the configuration. By default they are the shape's values. Its random numbers begin with `seed` each time.
    archs: names such as "gfx950"; by default that of the device which the tensors are on.
    check: called with those arguments by name after a launch; raises or returns False for a wrong result.
    launch: False compiles only: resources, no counters and no times.

    CPU tensors run on the simulator, which counts and estimates (`bench.estimated`). Tensors of a GPU are measured
    there, as `do_bench` does: then give as many workers as GPUs. What neither runs is compiled, and its row says so.

    executor: any `concurrent.futures.Executor`, or a function that makes one; without, the sweep runs in this process.
    Functions of a notebook or of `__main__` are sent themselves, by cloudpickle, others by the name of their module.
    A point whose worker dies is run again, up to `retries` times, after the third death with nothing beside it; then
    its row says so. A process pool that broke is made again, and other executors by the function.

    path: a file of JSON lines, to which every result is added when it comes. A sweep that was killed goes on where it
    was: what is there is not run again, unless the source of a function, a value that it uses, or this package is
    another. Several sweeps can share a file. What is read from elsewhere while running, such as files, does not count.

    progress: called with the table before the first point and after each.

    The rows are those of the points in order, the same for any executor; what is given twice is run once. A
    configuration that does not compile, faults or is wrong has a row with the error's text.

    Raises ArgumentError for arguments that do not fit together, and for what cannot be sent, loaded or compared;
    JournalError for the file; DeviceError if the workers are gone. What was found until then is in the file.
    """
    known = named(launchers)
    job = SweepJob(known, arguments, check, launch, _checked_seed(seed), env.code_variables())
    every = points(known, configs, shapes, [archs] if isinstance(archs, str) else [None] if archs is None else archs)
    if retries < 1:
        raise ArgumentError(f"retries must be at least 1, got {retries}", hint="pass 1 or more")
    for name, function in (("arguments", arguments), ("check", check)):
        if function is not None and not callable(function):
            raise ArgumentError(
                f"{name} must be a function, got {function!r}", hint="pass one that takes a shape's values by name"
            )
    check_parameters(known, every, arguments)
    _check_archs(every)
    keys = _keys(job, every, is_kept=path is not None)
    with _journal(path) as journal:
        return _swept(job, dict(zip(keys, every, strict=True)), journal, executor, retries, progress)


def _swept(
    job: SweepJob,
    points: dict[str, Point],
    journal: Journal | None,
    executor: MakesExecutor | None,
    retries: int,
    progress: Progress | None,
) -> Table:
    """Run what the journal does not have. points: by key, in order."""
    keys, kept = list(points), journal.kept if journal is not None else {}
    there = [number for number, key in enumerate(keys) if key in kept]  # of the table's rows, in order
    missing = [number for number, key in enumerate(keys) if key not in kept]
    table = Table([_row(points[keys[number]], kept[keys[number]]) for number in there], len(points), len(there))
    tell = progress or _default_progress or (lambda table: None)
    tell(table)
    for i, outcome in results(job, [points[keys[number]] for number in missing], executor, retries):
        number = missing[i]
        point = points[keys[number]]
        if isinstance(outcome, Lost):  # not kept: another day it may have a worker that lives
            outcome = {"arch": point.arch or "", "values": {}, "error": outcome.reason, "note": None}
        elif journal is not None:
            journal.add(keys[number], _about(point), outcome)
        place = bisect(there, number)
        there.insert(place, number)
        table.rows.insert(place, _row(point, outcome))
        tell(table)
    return table


def _row(point: Point, outcome: Mapping[str, Any]) -> Row:
    arch = outcome["arch"] or point.arch or ""
    return Row(point.launcher, point.shape, point.config, arch, outcome["values"], outcome["error"], outcome["note"])


def _about(point: Point) -> dict[str, Any]:
    """The point that a line of the file is of, for readers."""
    shape, config = ({n: cell_text(v) for n, v in d.items()} for d in (point.shape, point.config.to_dict()))
    return {"launcher": point.launcher, "shape": shape, "config": config}


@contextmanager
def _journal(path: str | Path | None) -> Iterator[Journal | None]:
    if path is None:
        yield None
        return
    journal = Journal(path)
    try:
        yield journal
    finally:
        journal.close()


def _keys(job: SweepJob, points: Sequence[Point], *, is_kept: bool) -> list[str]:
    """A key for each point. is_kept: it says all that the result depends on; otherwise it tells the points apart."""
    from flydsl.sweeps.state import digest_of, digest_of_package

    parts: dict[str, str] = {}
    for name, launcher in job.launchers.items() if is_kept else ():
        state = [launcher, job.arguments, job.check, job.launch, job.seed, sorted(job.variables.items())]
        parts[name] = digest_of(state, f"{name}, or what it uses,") + digest_of_package()
    return [_key(parts.get(point.launcher, ""), point) for point in points]


def _key(common: str, point: Point) -> str:
    from flydsl.sweeps.state import digest_of

    config = point.config
    own = digest_of([point.launcher, point.shape, config.to_dict(), config.pre_hook, point.arch], repr(config))
    return hashlib.sha256(f"{common} {own}".encode()).hexdigest()


def _check_archs(points: Sequence[Point]) -> None:
    """Raise ArchError for a name that no architecture has."""
    from flydsl.arch import get_arch

    for name in {point.arch for point in points} - {None}:
        get_arch(str(name))


def _checked_seed(seed: int) -> int:
    if isinstance(seed, int) and 0 <= seed < 1 << 32:
        return seed
    raise ArgumentError(f"seed must be an integer from 0 to {(1 << 32) - 1}, got {seed!r}")
