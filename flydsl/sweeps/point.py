"""Running one point of a sweep: its resources, counters and time, or the text of the error."""

from __future__ import annotations

import inspect
import random
import threading
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from flydsl import env
from flydsl.errors import ArchError, ArgumentError, FlyError
from flydsl.sweeps.bench import Estimated, do_bench, estimated
from flydsl.sweeps.limits import limits
from flydsl.sweeps.row import ERROR, IS_COMPARED
from flydsl.sweeps.space import Point

if TYPE_CHECKING:
    from flydsl.codegen import Kernel
    from flydsl.compiler import Launch

MOST_ERROR_CHARS = 4000
_seeding = threading.Lock()


@dataclass(frozen=True)
class SweepJob:
    """The common part of all points of a sweep; called with a point, it runs it.

    arguments: the arguments of a launch for a shape. check: called with them after the launch. variables: of the
    environment, as in the process that began the sweep. See `flydsl.sweep`.
    """

    launchers: dict[str, Callable[..., Any]]
    arguments: Callable[..., Mapping[str, Any] | Sequence[Any]] | None
    check: Callable[..., Any] | None
    launch: bool
    seed: int
    variables: dict[str, str]

    def __call__(self, point: Point) -> dict[str, Any]:
        """The outcome, as numbers and texts: arch, values by column, error, note."""
        outcome: dict[str, Any] = {"arch": point.arch, "values": {}, "error": None, "note": None}
        with env.replaced(self.variables | _variables_of(point.arch)):
            try:
                self._run(point, outcome)
            except Exception as error:  # noqa: BLE001 - whatever a configuration does wrong, the others go on
                outcome["error"] = error_text(error)
        return outcome

    def _run(self, point: Point, outcome: dict[str, Any]) -> None:
        launcher, values = self.launchers[point.launcher], outcome["values"]
        with seeded(self.seed):
            arguments = by_name(launcher, point.shape if self.arguments is None else self.arguments(**point.shape))
        outcome["arch"], why_not = _target(arguments, point.arch, self.launch)
        call = Call(launcher, arguments, point)
        launches: list[Launch] = []
        try:
            found = call.compile(launches) if why_not is not None else call.run(launches)
        finally:
            values.update(resources([kernel for launch in launches for kernel in _kernels(launch)]))
        if why_not is not None:
            outcome["note"] = why_not or None
            return
        verdict = None if self.check is None else self.check(**arguments)
        if verdict is not None and not verdict:
            raise AssertionError(f"wrong result: check returned {verdict}")
        if found.launches:
            outcome["note"] = _add_counters(values, found)
        else:
            values["time_us"] = 1000 * do_bench(call)


@dataclass(frozen=True)
class Call:
    """A launch with the arguments of a shape and the values of a configuration."""

    launcher: Callable[..., Any]
    arguments: dict[str, Any]
    point: Point

    def __call__(self) -> None:
        from flydsl.compiler.hints import compile_hints

        config = self.point.config
        every = {**self.arguments, **config.kwargs}
        if config.pre_hook is not None:
            config.pre_hook(every)
        with compile_hints(config.compiler_opts):
            self.launcher(**every)

    def compile(self, launches: list[Launch]) -> Estimated:
        """Compile without launching. launches: receives what was compiled."""
        with env.replaced({"COMPILE_ONLY": "1"}):
            return self.run(launches)

    def run(self, launches: list[Launch]) -> Estimated:
        """Launch; what runs on the simulator is counted. launches: receives what was launched."""
        from flydsl.compiler import capture_launches

        with capture_launches(with_stages=False) as captured:
            try:
                return estimated(self)
            finally:
                launches += captured


def by_name(launcher: Callable[..., Any], arguments: Mapping[str, Any] | Sequence[Any]) -> dict[str, Any]:
    """Arguments by the names of the launcher's parameters."""
    if isinstance(arguments, Mapping):
        return dict(arguments)
    if not isinstance(arguments, tuple | list):
        raise ArgumentError(
            f"arguments must return a dict or a tuple, got {type(arguments).__name__}",
            hint="return a dict by parameter name, or a tuple in the order of the parameters",
        )
    return dict(inspect.signature(launcher).bind_partial(*arguments).arguments)


def resources(kernels: Sequence[Kernel]) -> dict[str, int]:
    """The resources of a call's kernels: the most registers, LDS and scratch of one, and the fewest waves per SIMD.

    lds_bytes includes dynamic LDS; code_bytes is the sum over all kernels.
    """
    if not kernels:
        return {}
    usages, used = [kernel.usage for kernel in kernels], [kernel.resources for kernel in kernels]
    return {
        "waves_per_simd": min(usage.occupancy.waves_per_simd for usage in usages),
        "vgprs": max(u.vgprs for u in used),
        "agprs": max(u.agprs for u in used),
        "sgprs": max(u.sgprs for u in used),
        "lds_bytes": max(usage.lds_bytes for usage in usages),
        "scratch_bytes": max(u.scratch_bytes for u in used),
        "spills": max(u.vgpr_spills + u.sgpr_spills for u in used),
        "code_bytes": sum(u.code_bytes for u in used),
    }


def error_text(error: BaseException) -> str:
    """The text of an error, with its kind, in a few thousand characters."""
    text = f"{type(error).__name__}: {error}"
    if not isinstance(error, FlyError):
        text = "".join(traceback.format_exception_only(type(error), error)).strip()
    return text if len(text) <= MOST_ERROR_CHARS else text[:MOST_ERROR_CHARS] + " …"


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Seed the random numbers of torch, numpy and Python in the block, and restore their state after it."""
    import numpy as np
    import torch

    with _seeding, torch.random.fork_rng(devices=[]), ExitStack() as restored:
        restored.callback(random.setstate, random.getstate())
        restored.callback(np.random.set_state, np.random.get_state())
        torch.manual_seed(seed)
        random.seed(seed)
        np.random.seed(seed)
        yield


def _variables_of(arch: str | None) -> dict[str, str]:
    """The variables that name the architecture to compile for."""
    return {} if arch is None else {"ARCH": arch, "FLYDSL_GPU_ARCH": arch}


def _target(arguments: Mapping[str, Any], arch: str | None, launch: bool) -> tuple[str, str | None]:
    """The architecture, and why nothing is launched: None if it is, "" if it was not asked for."""
    from flydsl.runtime.device import target_arch

    tensors = [value for value in arguments.values() if hasattr(value, "device") and hasattr(value, "data_ptr")]
    place = next((str(tensor.device) for tensor in tensors if tensor.device.type != "cpu"), "cpu")
    target = target_arch(place)
    if not launch:
        return target, ""
    return target, _why_not_launched(place, target, is_asked_for=arch is not None)


def _why_not_launched(place: str, target: str, *, is_asked_for: bool) -> str | None:
    """The reason why code for an architecture cannot run where the tensors are; None if it can."""
    from flydsl.runtime.rocm import get_rocm_arch

    if place != "cpu" and is_asked_for:
        with env.replaced({"ARCH": "", "FLYDSL_GPU_ARCH": ""}):
            here = get_rocm_arch()
        if here != target:
            return f"not run: it was compiled for {target}, and the GPU is a {here}"
    return None


def _kernels(launch: Launch) -> Sequence[Kernel]:
    """The kernels of a launch, none if it did not compile."""
    return launch.artifact.kernels if launch.pipeline.finished else ()


def _add_counters(values: dict[str, Any], found: Estimated) -> str | None:
    """Add the counters of all kernels together, and the estimate. Returns why there is no estimate."""
    totals = [launch.totals for launch in found.launches]
    values["instructions"] = sum(total.executions for total in totals)
    for name in ("global_bytes", "global_lines", "lds_passes", "lds_conflicts", "mfma_cycles", "valu_cycles"):
        values[name] = sum(getattr(total, name) for total in totals)
    try:
        estimate, values["bound"] = found.estimate, found.bound
    except ArchError as error:
        return f"no estimate: {error.message}"
    values["estimate_us"] = estimate.time_us
    values |= limits(found)
    if estimate.error_percent is not None:
        values[ERROR], values[IS_COMPARED] = estimate.error_percent, estimate.is_compared
    return f"estimated by the roofline, as {found.by_roofline}" if found.by_roofline else None
